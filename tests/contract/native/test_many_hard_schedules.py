"""Many hard schedules cost an answer no more than a few, and it says of which it does not know the next runs.

A change of a calendar makes any number of schedules hard at once, because it is not refused for their sake.
"""

from __future__ import annotations

import pytest

from sweephand.schedules import rule
from sweephand.schedules.explain import explain
from sweephand.schedules.rule import EASY, OF_ANSWER
from sweephand.server.flow.jobs.load_ahead import Loads
from sweephand.server.store.views import jobs as views
from tests.contract.native.api import JOB, api
from tests.contract.native.test_hard_schedules import FORMER, LATER
from tests.contract.native.test_work_of_a_body import HARD as NIGHTLY
from tests.contract.native.test_work_of_a_body import NIGHT, SHOP
from tests.support.work import OURS, few_calls

JOBS, SCHEDULES = 4, 30
USES = [{"name": name, "roll": "next"} for name in FORMER]
EASY_SCHEDULE = {"name": "easy", "cron": "0 3 * * *"}
MOST = 800_000
"""Function calls in a whole request, some 100 ms: those of 121 schedules, and those of the few that are too hard."""


@pytest.fixture(scope="module")
def hard():
    """Jobs of hard schedules that have yet to follow a change of their calendars; the last job is easy."""
    with api() as made:
        for name, content in FORMER.items():
            assert made("POST", "/v1/calendars", {"name": name, **content}).status == 201
        for n in range(JOBS):
            own = [{"name": f"s{k}", "cron": f"{k} {n} * * 5", "calendars": USES} for k in range(SCHEDULES)]
            made.create({**JOB, "name": f"hard {n}", "schedules": own})
        made.create({**JOB, "name": "easy", "schedules": [EASY_SCHEDULE]})
        for name, content in LATER.items():
            assert made("PUT", f"/v1/calendars/{name}", content).status == 200
        yield made


@pytest.fixture
def spent(monkeypatch):
    """Counts the units of all questions."""
    found = [0]
    leave = rule.limited.__exit__

    def counted(self, *raised):
        if self.before < 0:
            found[0] += self.begun - rule.left()
        leave(self, *raised)

    monkeypatch.setattr(rule.limited, "__exit__", counted)
    return found


PATHS = {
    "jobs": ("/v1/jobs", {"limit": "100"}),
    "jobs with schedules": ("/v1/jobs", {"limit": "100", "include": "schedules,total"}),
    "jobs by creation": ("/v1/jobs", {"createdAfter": "2020-01-01T00:00:00Z"}),
    "timeline": ("/v1/timeline", {"limit": "100"}),
    "load": ("/v1/load", {}),
    "attention": ("/v1/attention", {}),
    "a job": ("/v1/jobs/{job}", {"include": "schedules"}),
    "schedules": ("/v1/jobs/{job}/schedules", {"limit": "100"}),
    "next": ("/v1/jobs/{job}/next", {}),
    "occurrences": ("/v1/jobs/{job}/occurrences", {"limit": "100"}),
}


@pytest.fixture
def jobs(hard):
    return {each["name"]: each for each in hard.get("/v1/jobs", query={"limit": "100"}).json["items"]}


@pytest.mark.parametrize(("path", "query"), PATHS.values(), ids=PATHS)
def test_all_hard_schedules_of_an_answer_share_one_limit(hard, jobs, path, query):
    path = path.format(job=jobs["hard 0"]["id"])
    hard.get(path, query=query)
    hard.stage.world.memory.of(Loads).clear()

    with few_calls(MOST, OURS):
        reply = hard.get(path, query=query)

    assert reply.status == (400 if path.endswith("occurrences") else 200), reply.text


def test_the_limit_is_that_of_the_request(hard, jobs, spent):
    hard.get("/v1/jobs", query={"include": "schedules"})

    assert 0 < spent[0] <= OF_ANSWER + 2 * EASY * JOBS * SCHEDULES


def test_a_list_says_of_which_jobs_the_next_run_is_not_certain(hard, jobs):
    listed = hard.get("/v1/jobs", query={"include": "schedules"}).json["items"]

    assert {each["name"]: each["nextRunExact"] for each in listed} == {
        "easy": True,
        **{f"hard {n}": False for n in range(JOBS)},
    }
    for each in listed:
        assert {one["nextRunsExact"] for one in each["schedules"]} == {each["nextRunExact"]}
    assert jobs["easy"]["nextRunAt"] == "2027-03-02T03:00:00Z"
    (own,) = next(each["schedules"] for each in listed if each["name"] == "easy")
    assert len(own["nextRuns"]) == 5


def test_a_timeline_says_which_lanes_may_lack_instants(hard):
    lanes = hard.get("/v1/timeline").json["items"]

    assert {each["name"]: each["exact"] for each in lanes} == {
        "easy": True,
        **{f"hard {n}": False for n in range(JOBS)},
    }


def test_a_load_leaves_out_whole_jobs_and_counts_them(hard):
    hard.stage.world.memory.of(Loads).clear()

    load = hard.get("/v1/load").json

    assert (load["jobs"], load["jobsLeftOut"], sum(load["slots"])) == (1, JOBS, 1)


@pytest.mark.parametrize("query", [{"sort": "nextRunAt"}, {"nextRunAfter": "2027-01-01T00:00:00Z"}])
def test_a_list_that_needs_these_next_runs_is_refused(hard, query):
    reply = hard.get("/v1/jobs", query=query)
    narrowed = hard.get("/v1/jobs", query={**query, "name": "easy"})

    assert (reply.status, reply.fields) == (400, [next(iter(query))])
    assert "narrow the list" in reply.text
    assert len(narrowed.json["items"]) == 1


def test_a_change_of_a_job_answers_although_its_next_runs_are_too_hard(hard, jobs):
    path = f"/v1/jobs/{jobs['hard 1']['id']}"
    hard("PATCH", path, {"description": "first"})

    with few_calls(MOST, OURS):
        reply = hard("PATCH", path, {"description": "second"})

    assert (reply.status, reply.json["description"], reply.json["nextRunExact"]) == (200, "second", False)


def test_a_plan_of_a_set_says_which_next_runs_are_not_certain(hard):
    wanted = {"jobs": [{"key": "k", **JOB, "schedules": [EASY_SCHEDULE]}]}
    plan = hard("PUT", "/v1/job-sets/plans", wanted, query={"plan": "true"}).json

    assert plan["created"][0]["nextRunExact"] is True


def test_a_page_of_occurrences_ends_where_the_next_one_takes_too_long(api, monkeypatch):
    for calendar in (NIGHT, SHOP):
        assert api("POST", "/v1/calendars", calendar).status == 201
    job = api.create(
        {**JOB, "schedules": [{"name": "hard", **NIGHTLY}, {"name": "near", "at": "2027-03-05T18:00:00Z"}]}
    )
    path = f"/v1/jobs/{job['id']}/occurrences"
    until = {"until": "2027-03-09T00:00:00Z"}
    whole = api.get(path, query={**until, "limit": "200"}).json

    monkeypatch.setattr(explain, "_MOST_PREVIEWED", 60)
    pages = [api.get(path, query={**until, "limit": "200"}).json]
    while pages[-1]["nextCursor"]:
        pages.append(api.get(path, query={**until, "limit": "200", "cursor": pages[-1]["nextCursor"]}).json)

    assert len(pages) > 2
    assert [each["plannedAt"] for page in pages for each in page["items"]] == [
        each["plannedAt"] for each in whole["items"]
    ]
    assert [page["searchedUntil"] for page in pages[:-1]] == [page["items"][-1]["plannedAt"] for page in pages[:-1]]


def test_a_page_of_jobs_ends_with_the_job_that_reaches_the_limit_of_schedules(api, monkeypatch):
    monkeypatch.setattr(views, "MOST_SCHEDULES", 5)
    for n in range(5):
        api.create({**JOB, "name": f"j{n}", "schedules": [{"name": f"s{k}", "cron": f"{k} 3 * * *"} for k in range(3)]})

    for path, name in (("/v1/jobs", "name"), ("/v1/timeline", "name")):
        names, sizes, cursor = [], [], {}
        while cursor is not None:
            page = api.get(path, query={"limit": "100", **cursor}).json
            names += [each[name] for each in page["items"]]
            sizes.append(len(page["items"]))
            cursor = page["nextCursor"] and {"cursor": page["nextCursor"]}

        assert names == [f"j{n}" for n in range(5)]
        assert sizes == [2, 2, 1]
