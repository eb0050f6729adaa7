"""`sam local start-api`: authentication and store, reached over a real HTTP server, with the function in its
container.
"""

from __future__ import annotations

import httpx
import pytest

from tests.sam_local.conftest import run_block


@pytest.fixture(scope="module")
def url(sam):
    with sam.running("start-api") as url:
        yield url


@pytest.fixture
def client(url, stack):
    """A client with the credential of tenant acme."""
    credential = stack.file.tenants["acme"]
    auth = httpx.BasicAuth(credential.client_id, credential.secret)
    with httpx.Client(base_url=url, auth=auth, timeout=300, trust_env=False) as client:
        yield client


@pytest.fixture
def stranger(url):
    with httpx.Client(base_url=url, timeout=300, trust_env=False) as client:
        yield client


FIELDS = {
    "name": "by-start-api",
    "schedules": [{"cron": "30 2 * * 1-5", "timezone": "Europe/Berlin"}],
    "action": {"type": "http", "url": "https://example.org/"},
}


def test_health_is_public(stranger):
    answer = stranger.get("/v1/health")

    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"


def test_a_job_is_created_and_read_back_across_containers(client, stack):
    made = client.post("/v1/jobs", json=FIELDS)
    read = client.get(made.headers["Location"])
    seen_by_the_emulators_own_function = stack.client().get(made.headers["Location"])

    assert made.status_code == 201, made.text
    assert made.headers["ETag"] == '"1"'
    assert read.status_code == 200
    assert read.json()["name"] == "by-start-api"
    assert read.json() == seen_by_the_emulators_own_function.json()
    assert client.delete(made.headers["Location"]).status_code == 204
    assert client.get(made.headers["Location"]).status_code == 404


def test_the_calls_of_the_guide_create_a_job_and_list_it(url, client, stack):
    printed = run_block(
        "curl -u", {"http://127.0.0.1:3000": url, ".local/stack.json": str(stack.folder.root / "stack.json")}
    )

    (job,) = client.get("/v1/jobs", params={"name": "by-start-api"}).json()["items"]
    assert printed.count(job["id"]) >= 2
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 204


def test_nothing_is_created_without_credentials(stranger, stack):
    answer = stranger.post("/v1/jobs", json=FIELDS)

    assert answer.status_code == 401
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "Basic" in answer.headers["WWW-Authenticate"]
    assert stack.client().get("/v1/jobs", params={"name": "by-start-api"}).json()["items"] == []


def test_a_credential_is_exchanged_for_a_token_that_grants_access(client, stranger):
    given = client.post("/oauth/token", data={"grant_type": "client_credentials"})

    token = given.json()["access_token"]
    assert stranger.get("/v1/jobs", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_the_api_refuses_an_unknown_path_below_v1(client):
    answer = client.get("/v1/nothing")

    assert answer.status_code == 404
    assert answer.json()["code"] == "NOT_FOUND"


def test_a_path_without_a_route_is_refused_with_a_problem(client):
    answer = client.get("/nothing")

    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["type"] == "/problems/not-found"
    assert answer.json()["detail"] == "no such path: /nothing"
