"""The live ledger: each run has one line, once, when it finishes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from sweephand.base.sources import SystemClock
from sweephand.local.api import Refused
from sweephand.local.demo.endpoint import DemoEndpoint, open_endpoint, standing
from sweephand.local.demo.ledger import Arrivals, Follower, header, line, schedule_name
from sweephand.local.folder import StateFolder

BEGIN = datetime(2027, 1, 1, 12, 0, tzinfo=UTC)


class Clock:
    """Moves by hand; a look at the endpoint's slow answer takes no time."""

    def __init__(self):
        self.seconds = 0.0

    def now(self):
        return BEGIN + timedelta(seconds=self.seconds)

    def monotonic(self):
        return self.seconds

    def sleep(self, seconds):
        self.seconds += seconds


class Ledger:
    """Answers as the API does, from lists: jobs, and the runs of each job, newest first."""

    def __init__(self):
        self.jobs = []
        self.runs = {}
        self.calls = []

    def add(self, job, second, state="SUCCESS", **more):
        at = (BEGIN + timedelta(seconds=second)).isoformat()
        finished = None if state in {"TRIGGERED", "RETRY_WAIT"} else more.pop("finished", at)
        runs = self.runs.setdefault(job, [])
        row = {"id": f"{job}-{second}", "jobId": job, "scheduleId": f"S{job}", "plannedAt": at, "state": state}
        runs[:] = [old for old in runs if old["id"] != row["id"]]
        runs.append({**row, "finishedAt": finished, "reason": "ON_TIME", "httpStatus": 200, "attempt": 1, **more})
        runs.sort(key=lambda run: run["plannedAt"], reverse=True)

    def pages(self, path, *, limit, query):
        runs = list(self.runs.get(query["jobId"], []))
        for start in range(0, max(1, len(runs)), limit):
            self.calls.append((path, limit))
            yield runs[start : start + limit]

    def items(self, path):
        self.calls.append((path, 0))
        if path == "/v1/jobs":
            return iter(self.jobs)
        job = path.split("/")[3]
        return iter([{"id": f"S{job}", "name": "10s"}])


class NoArrivals:
    def refresh(self):
        pass

    def first_ms(self, run_id):
        return None


@pytest.fixture
def followed(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    ledger, other, clock, lines = Ledger(), Ledger(), Clock(), []
    ledger.jobs = [{"id": "J", "name": "job"}]
    follower = Follower({"acme": ledger, "globex": other}, NoArrivals(), clock, lines.append, BEGIN)
    lines.clear()  # the header
    return ledger, other, clock, lines, follower


def test_a_finished_run_has_one_line_and_an_active_run_has_none(followed):
    ledger, _, clock, lines, follower = followed
    ledger.add("J", 1)
    ledger.add("J", 2, "TRIGGERED")
    for _ in range(5):
        follower.step()
        clock.sleep(1)
    assert [text.split()[:4] for text in lines] == [["12:00:01", "job", "10s", "SUCCESS"]]

    ledger.add("J", 2, "ERROR")
    follower.step()

    assert lines[1].split()[:4] == ["12:00:02", "job", "10s", "ERROR"]


def test_runs_that_finished_earlier_have_no_line(followed):
    ledger, _, _, lines, follower = followed
    ledger.add("J", -10)
    ledger.add("J", -20, finished=(BEGIN + timedelta(seconds=1)).isoformat())

    follower.step()

    assert [text.split()[0] for text in lines] == ["11:59:40"]


def test_later_jobs_and_those_of_the_other_tenant_are_followed_too(followed):
    ledger, other, clock, lines, follower = followed
    follower.step()
    ledger.jobs.append({"id": "K", "name": "mine"})
    other.jobs.append({"id": "L", "name": "theirs"})
    ledger.add("K", 3)
    other.add("L", 4)
    clock.sleep(5)

    follower.step()

    assert [text.split()[1] for text in lines] == ["mine", "globex/theirs"]


def test_every_run_of_a_burst_has_its_line(followed):
    ledger, _, _, lines, follower = followed
    for second in range(1, 331):
        ledger.add("J", second)

    follower.step()

    assert len(lines) == len(set(lines)) == 330
    assert lines == sorted(lines)


@pytest.mark.parametrize("status", [404, 429, 500, 503])
def test_a_deleted_job_or_a_single_missing_answer_ends_nothing(followed, status):
    ledger, _other, clock, lines, follower = followed
    ledger.jobs.append({"id": "K", "name": "gone"})
    ledger.add("J", 10)
    follower.step()
    real, refused = ledger.pages, []

    def pages(path, *, limit, query):
        if query["jobId"] == "K" and not refused:
            refused.append(status)
            if status == 404:
                ledger.jobs.pop()
            raise Refused("GET", path, httpx.Response(status, json={"code": "NOT_FOUND"}))
        return real(path, limit=limit, query=query)

    ledger.pages = pages
    clock.sleep(5)
    ledger.add("J", 20)
    ledger.add("K", 20)
    follower.step()
    clock.sleep(5)
    follower.step()

    assert refused == [status]
    assert [line.split()[1] for line in lines].count("job") == 2
    assert [line.split()[1] for line in lines].count("gone") == (status != 404)


def test_a_refusal_of_the_followers_own_credential_is_not_hidden(followed):
    ledger, _other, clock, _lines, follower = followed

    def pages(path, *, limit, query):
        raise Refused("GET", path, httpx.Response(403, json={"code": "SCOPE_MISSING"}))

    ledger.pages = pages
    clock.sleep(5)

    with pytest.raises(Refused):
        follower.step()


def test_catch_up_rows_older_than_others_are_found(followed):
    ledger, _, clock, lines, follower = followed
    ledger.add("J", -600)
    for second in range(1, 300):
        ledger.add("J", second)
    follower.step()
    lines.clear()
    ledger.add("J", -300, finished=(BEGIN + timedelta(seconds=300)).isoformat())

    for _ in range(30):
        clock.sleep(1)
        follower.step()

    assert [text.split()[0] for text in lines] == ["11:55:00"]


def test_a_quiet_job_costs_one_page_a_second(followed):
    ledger, _, clock, _, follower = followed
    ledger.add("J", 1)
    follower.step()
    ledger.calls.clear()

    for _ in range(50):
        clock.sleep(0.2)
        follower.step()

    assert len([call for call in ledger.calls if call[0] == "/v1/runs"]) <= 11


def test_many_jobs_are_polled_less_often(followed):
    ledger, _, clock, _, follower = followed
    ledger.jobs = [{"id": f"J{number}", "name": "x"} for number in range(60)]
    follower.step()
    ledger.calls.clear()

    for _ in range(50):
        clock.sleep(0.2)
        follower.step()

    assert len([call for call in ledger.calls if call[0] == "/v1/runs"]) <= 70


FINISHED = {
    "plannedAt": "2027-01-01T12:00:00Z",
    "state": "REQUEST_ERROR",
    "reason": "SERVICE_OUTAGE",
    "httpStatus": 503,
    "attempt": 12,
    "latenessMs": 5,
}


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_line_fits_the_terminal_and_aligns_with_the_header(width):
    text = line(
        FINISHED, job="a-very-long-name-of-a-job" * 3, schedule="weekdays-at-noon", late_ms=86_400_000, width=width
    )

    assert max(len(header(width)), len(text)) <= width
    assert header(width).index("STATE") == text.index("REQUEST_ERROR")
    assert text.split()[-3:] == ["503", "12", "864000~"]


def test_a_missed_range_shows_its_number_of_runs():
    span = {"from": "a", "to": "b", "count": 57}
    run = {**FINISHED, "state": "MISSED", "httpStatus": None, "attempt": None, "range": span}

    assert line(run, job="j", schedule="s", late_ms=None, width=100).endswith("x57")


def test_a_schedule_without_a_name_is_shown_by_its_rule():
    assert schedule_name({"id": "I", "name": "I", "every": "PT10S"}) == "PT10S"
    assert schedule_name({"id": "I", "name": "I", "every": None, "cron": "* * * * *"}) == "* * * * *"
    assert schedule_name({"id": "I", "name": "nightly", "every": "PT10S"}) == "nightly"


@pytest.fixture
def endpoint(tmp_path):
    endpoint = DemoEndpoint(SystemClock(), str(tmp_path), 0)
    yield endpoint
    endpoint.close()


def post(endpoint, path, run_id, attempt):
    headers = {"Sweephand-Run-Id": run_id, "Sweephand-Attempt": str(attempt)}
    return httpx.post(endpoint.url + path, headers=headers, json={}, trust_env=False).status_code


def test_the_flaky_path_refuses_each_run_twice(endpoint):
    answers = [post(endpoint, "/flaky", run_id, attempt) for attempt in (1, 2, 3, 4) for run_id in ("a", "b")]

    assert answers == [503, 503, 503, 503, 200, 200, 200, 200]


def test_lateness_is_measured_at_the_first_attempt_that_arrived(endpoint):
    before = int(SystemClock().now().timestamp() * 1000)
    post(endpoint, "/flaky", "a", 1)
    after = int(SystemClock().now().timestamp() * 1000)
    SystemClock().sleep(0.01)
    post(endpoint, "/flaky", "a", 2)
    post(endpoint, "/sync", "b", 3)
    arrivals = Arrivals(endpoint.url)

    arrivals.refresh()
    arrivals.close()

    assert before <= arrivals.first_ms("a") <= after
    assert arrivals.first_ms("b") is None


def test_nothing_listens_at_the_closed_address(endpoint):
    with pytest.raises(httpx.ConnectError):
        httpx.get(endpoint.closed_url, trust_env=False)


def test_an_endpoint_reuses_its_address_and_is_found_by_others_of_its_stack(tmp_path):
    folder, clock = StateFolder(tmp_path), SystemClock()
    assert standing(folder) is None
    first = open_endpoint(folder, clock)
    assert standing(folder) == (first.url, first.closed_url)
    assert standing(StateFolder(tmp_path / "other")) is None
    first.close()
    assert standing(folder) is None

    second = open_endpoint(folder, clock)

    assert second.url == first.url
    second.close()


def test_a_refusal_names_the_problem():
    response = httpx.Response(409, json={"code": "NAME_TAKEN", "detail": "there"})

    refused = Refused("POST", "/v1/jobs", response)

    assert (refused.status, refused.code) == (409, "NAME_TAKEN")
    assert "NAME_TAKEN" in str(refused)
