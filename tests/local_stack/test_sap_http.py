"""SAP's API over plain HTTP, through gateway and function: what its client cannot show."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.local_stack.conftest import LocalStack, patiently, warm

pytestmark = pytest.mark.emulator

AT_ONCE = 20


@pytest.fixture
def http(stack: LocalStack) -> httpx.Client:
    return stack.client("globex")


def job(name: str, **more: Any) -> dict[str, Any]:
    schedules = [{"repeatAt": "4.40pm", "active": True, "description": "tea & cake"}]
    return {"name": name, "action": "https://example.org/run", "active": True, "schedules": schedules, **more}


def made(http: httpx.Client, name: str, **more: Any) -> dict[str, Any]:
    answer = http.post("/scheduler/jobs", json=job(name, **more))
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def message(answer: httpx.Response) -> str:
    body = answer.json()
    assert body["code"] == answer.status_code
    assert body["message"] == body["detailedError"]
    text: str = body["message"]
    return text


def test_a_location_leads_to_the_job(http: httpx.Client) -> None:
    answer = http.post("/scheduler/jobs", json=job("located"))

    assert answer.headers["location"] == f"/scheduler/jobs/{answer.json()['_id']}"
    assert http.get(answer.headers["location"]).json()["name"] == "located"


def test_a_plus_in_a_query_is_a_space_unless_it_is_encoded(http: httpx.Client) -> None:
    made(http, "plus-and-blank", description="one two", startTime="2027-01-01")

    def found(query: str) -> list[str]:
        answer = http.get(f"/scheduler/search/jobs?{query}")
        return [each["name"] for each in answer.json()["results"]]

    assert found("q=one+two+startTime%3A%3E2011-02-18") == ["plus-and-blank"]
    assert found("q=one%20two") == ["plus-and-blank"]
    assert found("q=one%2Btwo") == []


def test_a_name_is_percent_decoded_once_wherever_it_appears(http: httpx.Client) -> None:
    id_ = made(http, "a-name")["_id"]

    replaced = http.put("/scheduler/jobs/a%2Dname", json=job("a-name", description="again"))
    refused = http.put("/scheduler/jobs/my%20job", json=job("my job"))
    twice = http.put("/scheduler/jobs/a%252Dname", json=job("a-name"))

    assert (replaced.status_code, replaced.json()["_id"]) == (200, id_)
    assert http.get("/scheduler/jobs?name=a%2Dname").json()["description"] == "again"
    assert refused.status_code == 400
    assert "letters, digits" in message(refused)
    assert twice.status_code == 400
    assert "name in the path" in message(twice)
    slash = http.put("/scheduler/jobs/a%2Fname", json=job("a-name")), http.get("/scheduler/jobs/a%2Fname")
    assert [(answer.status_code, message(answer)) for answer in slash] == [
        (404, f"Not Found: no such route below /scheduler: {method} /scheduler/jobs/a/name")
        for method in ("PUT", "GET")
    ]


@pytest.mark.parametrize(("size", "status"), [(102_400, 201), (102_401, 413), (2_000_000, 413)])
def test_a_body_may_have_up_to_100_kb(http: httpx.Client, size: int, status: int) -> None:
    rest = b'{"name": "large-%d", "action": "https://example.org/run", "schedules": []}' % size

    answer = http.post(
        "/scheduler/jobs", content=rest + b" " * (size - len(rest)), headers={"content-type": "application/json"}
    )

    assert answer.status_code == status
    if status == 413:
        assert answer.json()["type"] == "Request Too Large"
        assert "the maximum is 102,400" in message(answer)


@pytest.mark.parametrize(
    "authorization", [None, "Basic x", "Basic Z2xvYmV4Ong=", "bearer x", "Bearer a.b.c", "Digest x"]
)
def test_an_unknown_caller_gets_401_with_a_message(stack: LocalStack, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}

    answer = stack.anonymous().get("/scheduler/jobs", headers=headers)

    assert (answer.status_code, message(answer)) == (401, "Unauthorized")
    assert answer.json()["type"] == "Authentication Error"
    assert answer.headers["www-authenticate"].startswith("Basic")


def test_twenty_creates_of_one_name_at_once_make_one_job(http: httpx.Client) -> None:
    warm(http, "/scheduler/jobCount", AT_ONCE)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        create = lambda _: patiently(lambda: http.post("/scheduler/jobs", json=job("only-one")))  # noqa: E731
        answers = list(pool.map(create, range(AT_ONCE)))

    assert sorted(answer.status_code for answer in answers) == [201, *[400] * (AT_ONCE - 1)]
    assert all("exists" in message(answer) for answer in answers if answer.status_code == 400)
    listed = http.get("/scheduler/jobs", params={"filter": "name eq 'only-one'"}).json()
    assert (listed["total"], len(listed["results"])) == (1, 1)


def test_twenty_schedules_created_at_once_for_one_job_are_all_created(http: httpx.Client) -> None:
    where = f"/scheduler/jobs/{made(http, 'many-at-once')['_id']}/schedules"
    warm(http, "/scheduler/jobCount", AT_ONCE)

    def create(n: int) -> httpx.Response:
        return patiently(lambda: http.post(where, json={"active": True, "repeatInterval": f"{n + 1} hours"}))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(create, range(AT_ONCE)))

    assert [answer.status_code for answer in answers] == [201] * AT_ONCE
    assert http.get(where).json()["total"] == AT_ONCE + 1


def test_the_links_of_an_answer_keep_the_search(http: httpx.Client) -> None:
    for n in range(3):
        made(http, f"linked-{n}", description="tea & cake")
    page = http.get("/scheduler/search/jobs", params={"q": "tea & cake linked", "page_size": 2}).json()

    rest = http.get(page["next_url"]).json()

    assert [each["name"] for each in page["results"] + rest["results"]] == ["linked-0", "linked-1", "linked-2"]
    assert rest["next_url"] is None
