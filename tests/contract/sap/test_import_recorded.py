"""The import from an instance as its documentation shows it: recorded answers, with a token, over real connections."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from sweephand.cli.imports.import_sap import Copying
from sweephand.cli.imports.sap_service import SapService, service_key
from sweephand.cli.imports.service import Access, Failed
from tests.contract.sap.api import OTHER, Sap
from tests.contract.sap.test_import import service, shown

ANSWERS = json.loads((Path(__file__).parent / "recorded" / "instance.json").read_text())
UNKNOWN = {"code": 404, "message": "Job Not Found", "type": "Resource Not Found", "detailedError": "Job Not Found"}
NOBODY = {"code": 401, "message": "Unauthorized", "type": "Authentication Error", "detailedError": "Unauthorized"}
PAIR = "Basic " + base64.b64encode(b"sb-clone!b7:s3cret").decode()


@dataclass
class Instance:
    """troubles: statuses with which the next requests are answered. lives: how many requests a token is good for."""

    url: str = ""
    troubles: list[tuple[int, str | None]] = field(default_factory=list)
    lives: int = 100
    tokens: int = 0
    left: int = 0
    requests: list[str] = field(default_factory=list)

    def answer(self, method: str, target: str, authorization: str, body: str) -> tuple[int, Any, str | None]:
        self.requests.append(f"{method} {target}")
        if target == "/oauth/token":
            if authorization != PAIR or parse_qs(body).get("grant_type") != ["client_credentials"]:
                return 401, {"error": "unauthorized"}, None
            self.tokens, self.left = self.tokens + 1, self.lives
            return 200, {"access_token": f"t{self.tokens}", "token_type": "bearer", "expires_in": 43_199}, None
        if authorization != f"Bearer t{self.tokens}" or not self.left:
            return 401, NOBODY, None
        self.left -= 1
        if self.troubles:
            status, retry_after = self.troubles.pop(0)
            return status, {"code": status, "message": "later"}, retry_after
        found = ANSWERS.get(f"{method} {target}")
        return (404, UNKNOWN, None) if found is None else (200, found, None)


@contextmanager
def serving() -> Iterator[Instance]:
    instance = Instance()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
            authorization = self.headers.get("authorization", "")
            status, told, retry_after = instance.answer(self.command, self.path, authorization, body)
            content = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            if retry_after is not None:
                self.send_header("retry-after", retry_after)
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        instance.url = f"http://127.0.0.1:{server.server_port}"
        yield instance
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def instance() -> Iterator[Instance]:
    with serving() as there:
        yield there


def imported(api: Sap, instance: Instance, **options: Any) -> tuple[int, list[str], str]:
    access = Access(instance.url, "sb-clone!b7", "s3cret", f"{instance.url}/oauth/token")
    source = SapService.at(access, api.stage.clock)
    out, err = io.StringIO(), io.StringIO()
    with source.client:
        status = Copying(source, service(api, "https://here.example", OTHER), **options).run(out, err)
    return status, out.getvalue().splitlines(), err.getvalue()


LINES = [
    "created    stock-report  (3 schedules)  left out: 2 ended",
    "created    tidy_up  (1 schedules)  has the user tidier: give its password, and switch it on",
]


def test_a_recorded_instance_is_copied(api, instance):
    status, lines, _ = imported(api, instance)

    assert lines[:2] == LINES
    assert lines[2].startswith("failed     gone-meanwhile  GET ")
    assert lines[2].endswith("404 Job Not Found")
    assert (status, lines[3]) == (1, "created 2, changed 0, unchanged 0, failed 1")
    report, tidy = shown(api, OTHER)
    assert (report["active"], report["startTime"]) == (True, "2027-02-01 00:00:00")
    assert (report["ansConfig"], report["calmConfig"]) == ({"onSuccess": False, "onError": True}, {"enabled": True})
    found = {each["description"]: each for each in report["schedules"]}
    assert {name: each["nextRunAt"] for name, each in found.items()} == {
        "every odd hour": "2027-03-01 13:07:13",
        "in the afternoon": "2027-03-01 16:40:00",
        "once, in words": "2027-03-02 16:00:00",
    }
    assert json.loads(found["every odd hour"]["data"]) == {"site": "north", "deep": {"n": 1}}
    assert found["every odd hour"]["endTime"] == "2027-12-31 23:59:59"
    assert (tidy["active"], tidy["httpMethod"]) == (False, "DELETE")
    assert json.loads(tidy["schedules"][0]["data"]) == {"older": "than a week"}
    assert imported(api, instance)[1][-1] == "created 0, changed 0, unchanged 2, failed 1"


def test_a_dry_run_prints_the_same_lines(api, instance):
    with api.native.unchanged():
        assert imported(api, instance, dry_run=True)[1][:2] == LINES


def test_a_throttled_import_waits_as_long_as_the_answer_says(api, instance):
    instance.troubles = [(429, "7"), (429, "7200"), (429, None), (503, "2"), (500, None)]

    assert imported(api, instance)[1][-1] == "created 2, changed 0, unchanged 0, failed 1"

    assert api.stage.clock.slept_s == 7 + 60 + 15 + 2 + 1


def test_a_source_that_keeps_failing_ends_the_import_with_its_counts(api, instance):
    instance.troubles = [(500, None)] * 50

    status, lines, told = imported(api, instance)

    assert (status, lines) == (1, ["created 0, changed 0, unchanged 0, failed 0"])
    assert told.startswith("ended early: ")
    assert len(instance.troubles) == 46


def test_an_expired_token_is_fetched_anew(api, instance):
    instance.lives = 2

    assert imported(api, instance)[1][-1] == "created 2, changed 0, unchanged 0, failed 1"

    assert instance.tokens == 2


def test_a_wrong_secret_is_reported_at_once(api, instance):
    source = SapService.at(Access(instance.url, "sb-clone!b7", "other", instance.url), api.stage.clock)

    with source.client, pytest.raises(Failed, match=r"/oauth/token: 401, and no token"):
        source.call("GET", "/scheduler/jobs")
    assert instance.requests == ["POST /oauth/token"]


UAA = {"url": "https://zone.example", "clientid": "me", "clientsecret": "s3cret"}
KEY = {"url": "https://jobs.example", "uaa": UAA}


@pytest.mark.parametrize(
    "given",
    [KEY, {"credentials": KEY}, {"jobscheduler": [{"credentials": KEY}]}, {"VCAP_SERVICES": {"jobscheduler": [KEY]}}],
)
def test_a_service_key_is_read_in_each_of_its_forms(tmp_path, given):
    path = tmp_path / "key.json"
    path.write_text(json.dumps(given))

    access = Access("https://jobs.example", "me", "s3cret", "https://zone.example/oauth/token")
    assert service_key(str(path)) == access


def test_an_old_service_key_holds_user_and_password(tmp_path):
    path = tmp_path / "key.json"
    path.write_text(json.dumps({"url": "https://jobs.example", "user": "me", "password": "s3cret"}))

    assert service_key(str(path)) == Access("https://jobs.example", "me", "s3cret")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no json", "Expecting value"),
        ('{"xsuaa": []}', "must contain a url with uaa"),
        ('{"url": "https://a", "uaa": {"url": "https://b", "clientid": "me", "certificate": "x"}}', "with a secret"),
    ],
)
def test_an_incomplete_service_key_names_the_missing_members(tmp_path, text, why):
    path = tmp_path / "key.json"
    path.write_text(text)

    with pytest.raises(Failed, match=why):
        service_key(str(path))
