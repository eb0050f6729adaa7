"""The commands through the whole service."""

from __future__ import annotations

import base64
import io
import json
import re
import shlex
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from string import Template
from typing import Any

import pytest

from sweephand import cli
from sweephand.cli.commands import doctor, following
from sweephand.sdk import Sweephand, TransportError
from sweephand.sdk.sync.http import HttpTransport
from sweephand.sdk.transport.request import Answer
from tests.contract.azure.test_clients import served
from tests.contract.native.api import Api
from tests.contract.sdk.stack import connected, credential
from tests.support.endpoint import WRONG

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "cli.md"
URL = "https://example.org/run"


@pytest.fixture
def client(api: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Sweephand:
    """The client that the commands make."""
    made, _ = connected(api)
    monkeypatch.setattr("sweephand.sdk.sync.client.Sweephand", lambda *_, **__: made)
    mine = credential(api)
    monkeypatch.setenv("SWEEPHAND_URL", "https://sweephand.example")
    monkeypatch.setenv("SWEEPHAND_CLIENT_ID", mine["client_id"])
    monkeypatch.setenv("SWEEPHAND_SECRET", mine["secret"])
    monkeypatch.setenv("SWEEPHAND_PROFILES", str(tmp_path / "profiles.json"))
    return made


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.main(arguments)
    said = capsys.readouterr()
    return status, said.out, said.err


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Returns the JSON that a command prints, after it was done."""
    status, out, err = ran(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_a_job_is_made_changed_listed_run_and_deleted(client: Sweephand, capsys):
    made = answered(
        *(capsys, "jobs", "create", "nightly", "--post", URL, "--payload", '{"n": 1}', "--cron", "30 2 * * *"),
        *("--timezone", "Europe/Berlin", "--tag", "x", "--tag", "y", "--description", "first"),
    )
    assert made["action"]["payload"] == {"n": 1}
    assert made["schedules"][0]["timezone"] == "Europe/Berlin"
    assert made["tags"] == ["x", "y"]

    changed = answered(capsys, "jobs", "edit", made["id"], "--no-active", "--clear", "description")
    assert (changed["active"], changed.get("description")) == (False, None)
    assert answered(capsys, "jobs", "get", made["id"]) == client.jobs.get(made["id"]).to_json()
    assert [each["id"] for each in answered(capsys, "jobs", "list", "--tag", "x")] == [made["id"]]
    status, out, _ = ran(capsys, "jobs", "list")
    assert (status, out.split("\t")[:2]) == (0, [made["id"], "nightly"])
    run = answered(capsys, "jobs", "run", made["id"], "--payload", '"text"')["runId"]
    assert [each["id"] for each in answered(capsys, "runs", "list", "--job-id", made["id"])] == [run]
    assert ran(capsys, "jobs", "delete", made["id"]) == (0, "", "")
    assert answered(capsys, "jobs", "list") == []
    assert ran(capsys, "jobs", "list") == (0, "", "")


def test_a_job_can_be_named_by_its_name_if_the_name_is_unique(client: Sweephand, capsys):
    action = {"type": "http", "url": URL}
    made = client.jobs.create("nightly report", action, schedules=[{"every": "5m", "name": "often"}])
    client.collections.create(name="other")
    for collection in ("default", "other"):
        client.jobs.create("twice", action, collection=collection)

    assert answered(capsys, "jobs", "get", "nightly report")["id"] == made.id
    assert [each["name"] for each in answered(capsys, "schedules", "list", "nightly report")] == ["often"]
    run = answered(capsys, "jobs", "run", "nightly report")["runId"]
    assert [each["id"] for each in answered(capsys, "runs", "list", "--job-id", "nightly report")] == [run]
    status, out, err = ran(capsys, "jobs", "delete", "nightly")
    assert (status, out) == (1, "")
    assert err.startswith('no job has the name "nightly": ')
    status, out, err = ran(capsys, "jobs", "delete", "twice", "--json")
    assert (status, out, json.loads(err)["code"]) == (2, "", "ERROR")
    assert "in the collection default" in err
    assert "in the collection other" in err
    assert len(list(client.jobs.list())) == 3


def test_a_schedule_can_be_named_by_its_name(client: Sweephand, capsys):
    schedules = [{"every": "5m", "name": "often"}, {"every": "1h", "name": "seldom"}]
    made = client.jobs.create("report", {"type": "http", "url": URL}, schedules=schedules)

    found = answered(capsys, "schedules", "get", "report", "seldom")
    assert (found["name"], found["every"]) == ("seldom", "1h")
    assert answered(capsys, "schedules", "get", made.id, found["id"])["id"] == found["id"]
    assert answered(capsys, "explain", "report", "often")["occurs"] in {True, False}
    status, out, err = ran(capsys, "schedules", "delete", "report", "weekly")
    assert (status, out) == (1, "")
    assert err == 'the job has no schedule with the name "weekly"; its schedules are: "often", "seldom"\n'


def test_an_edit_without_a_change_or_with_a_wrong_revision_is_refused_before_a_request(client: Sweephand, capsys):
    made = client.jobs.create("report", {"type": "http", "url": URL})

    status, out, err = ran(capsys, "jobs", "edit", "report")
    assert (status, out) == (2, "")
    assert err == "Error: no change is given: name a member by its option, or remove one by --clear\n"
    status, _, err = ran(capsys, "jobs", "edit", "report", "--tag", "a", "--if-match", "latest")
    assert (status, err) == (2, "Error: --if-match must be a revision, such as 3, not latest\n")
    assert client.jobs.get(made).revision == 1
    assert answered(capsys, "jobs", "edit", "report", "--tag", "a", "--if-match", '"1"')["revision"] == 2


def test_options_override_the_members_of_a_file(client: Sweephand, tmp_path, capsys, monkeypatch):
    path = tmp_path / "job.toml"
    path.write_text(
        'name = "a"\ndescription = "file"\nresourceId = "r"\n[action]\ntype = "http"\nurl = "https://a.b"\n'
    )

    made = answered(capsys, "jobs", "create", "--file", str(path), "--description", "option")
    assert (made["name"], made["description"], made["resourceId"]) == ("a", "option", "r")
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"description": null}'))
    assert answered(capsys, "jobs", "edit", made["id"], "--file", "-").get("description") is None


def test_a_list_follows_all_pages_or_stops_at_the_given_limit(client: Sweephand, capsys):
    for n in range(103):
        client.jobs.create(f"job-{n:03}", {"type": "http", "url": URL})

    assert len(answered(capsys, "jobs", "list")) == 103
    assert len(answered(capsys, "jobs", "list", "--limit", "3")) == 3
    assert len(ran(capsys, "jobs", "list")[1].splitlines()) == 103


def test_the_revision_guards_a_change_and_a_conflict_exits_with_4(client: Sweephand, capsys):
    job = client.jobs.create("a", {"type": "http", "url": URL})
    assert ran(capsys, "jobs", "edit", job.id, "--description", "b", "--if-match", "1")[0] == 0

    status, out, err = ran(capsys, "jobs", "edit", job.id, "--description", "c", "--if-match", "1", "--json")
    assert (status, out, json.loads(err)["status"]) == (4, "", 412)
    status, out, err = ran(capsys, "jobs", "create", "a", "--post", URL, "--json")
    assert (status, out, json.loads(err)["code"]) == (4, "", "NAME_TAKEN")


def test_a_refusal_exits_with_1_and_a_line_for_each_mistake(client: Sweephand, capsys):
    status, out, err = ran(capsys, "jobs", "create", "a", "--post", URL, "--cron", "30 2 * * 9")
    assert (status, out, err) == (1, "", 'schedules[0].cron: weekday must be 0 to 7, not "9"\n')
    status, out, err = ran(capsys, "jobs", "get", "nobody")
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    status, out, err = ran(capsys, "jobs", "get", "nobody", "--json")
    assert (status, out, json.loads(err)["code"]) == (1, "", "NOT_FOUND")


def test_a_refusal_names_options_instead_of_parameters(client: Sweephand, capsys):
    assert ran(capsys, "jobs", "delete-matching", "--tag", "x") == (
        *(1, ""),
        "--expected-count: is required; a request with --dry-run says how many jobs it would delete\n",
    )
    status, out, err = ran(capsys, "jobs", "delete-matching", "--tag", "x", "--json")
    assert (status, out, json.loads(err)["errors"][0]["field"]) == (1, "", "expectedCount")
    assert ran(capsys, "jobs", "delete-matching", "--tag", "x", "--expected-count", "3") == (
        *(4, ""),
        "--expected-count is 3, but the filters find 0 jobs\n",
    )
    assert ran(capsys, "errors", "redrive") == (1, "", "--run: is required, or else --group or --filter\n")
    assert ran(capsys, "sets", "get", "billing") == (1, "", 'no such job set: "billing"\n')
    assert ran(capsys, "sets", "delete", "billing") == (1, "", 'no such job set: "billing"\n')


def test_a_missing_scope_or_wrong_secret_exits_with_2_and_says_which(api: Api, client: Sweephand, capsys, monkeypatch):
    reader = client.credentials.create(name="reader", scopes=["jobs:read"])
    for secret, why in ((reader.secret, "jobs:write"), ("wrong", "credential")):
        api.credentials["other"] = f"Basic {base64.b64encode(f'{reader.client_id}:{secret}'.encode()).decode()}"
        other, _ = connected(api, "other")
        monkeypatch.setattr("sweephand.sdk.sync.client.Sweephand", lambda *_, other=other, **__: other)

        status, out, err = ran(capsys, "jobs", "create", "a", "--post", URL)

        assert (status, out) == (2, "")
        assert why in err
        assert err.count("\n") == 1


def test_no_answer_or_no_credential_exits_with_2_and_one_sentence(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("SWEEPHAND_PROFILES", str(tmp_path / "none.json"))
    for name in ("URL", "CLIENT_ID", "SECRET"):
        monkeypatch.delenv(f"SWEEPHAND_{name}", raising=False)
    status, out, err = ran(capsys, "jobs", "list")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "sweephand login" in err

    class Nothing:
        def send(self, *_: object) -> Answer:
            raise TransportError("POST https://sweephand.example/v1/jobs: no connection")

        def close(self) -> None: ...

    monkeypatch.setenv("SWEEPHAND_URL", "https://sweephand.example")
    monkeypatch.setenv("SWEEPHAND_CLIENT_ID", "a.b")
    monkeypatch.setenv("SWEEPHAND_SECRET", "c")
    monkeypatch.setattr("sweephand.sdk.sync.client.HttpTransport", Nothing)
    status, out, err = ran(capsys, "jobs", "create", "a", "--post", URL)
    assert (status, out, err) == (2, "", "POST https://sweephand.example/v1/jobs: no connection\n")


def test_a_wrong_address_exits_with_2_and_is_named(capsys, url, monkeypatch):
    class Elsewhere(HttpTransport):
        def send(self, *given: Any) -> Answer:
            return Answer(404, {"content-type": "application/json"}, b'{"message":"Not Found"}')

    monkeypatch.setenv("SWEEPHAND_URL", f"{url}/nope")
    monkeypatch.setattr("sweephand.sdk.sync.client.HttpTransport", Elsewhere)

    status, out, err = ran(capsys, "jobs", "list")

    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"{url}/nope does not answer as a stack does (GET /v1/jobs: 404, ")
    assert "ApiUrl" in err


@pytest.mark.parametrize(
    ("lacks", "says"),
    [
        (("CLIENT_ID", "SECRET"), "set SWEEPHAND_CLIENT_ID and SWEEPHAND_SECRET, or run `sweephand login`"),
        (("SECRET",), "only SWEEPHAND_CLIENT_ID is set: set SWEEPHAND_CLIENT_ID and SWEEPHAND_SECRET"),
        (("URL",), "the address is missing: give --url, or set SWEEPHAND_URL to the stack's output ApiUrl"),
    ],
)
def test_a_missing_value_is_reported_as_the_option_that_sets_it(client, capsys, monkeypatch, lacks, says):
    for name in lacks:
        monkeypatch.delenv(f"SWEEPHAND_{name}")

    status, _, err = ran(capsys, "jobs", "list")

    assert status == 2
    assert says in err
    assert "=" not in err


def test_preview_and_explain_print_their_answers(client: Sweephand, capsys):
    found = answered(capsys, "preview", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin", "--limit", "2")
    assert len(found["items"]) == 2
    job = client.jobs.create("a", {"type": "http", "url": URL}, {"cron": "30 2 * * *"})
    (schedule,) = job.schedules
    told = answered(capsys, "explain", job.id, schedule.id, "--at", "2027-03-02T02:30:00Z")
    assert told["occurs"] is True


def test_long_work_is_awaited_and_its_progress_goes_to_stderr(client: Sweephand, api: Api, capsys):
    for n in range(103):
        client.jobs.create(f"job-{n:03}", {"type": "http", "url": URL}, tags=["old"])

    assert answered(capsys, "jobs", "delete-matching", "--tag", "old", "--dry-run")["count"] == 103
    status, out, err = ran(capsys, "jobs", "delete-matching", "--tag", "old", "--expected-count", "103", "--wait")

    assert status == 0
    assert "DONE" in out
    assert "103 of 103" in err.splitlines()[-1]
    (operation,) = client.operations.list()
    assert answered(capsys, "ops", "watch", operation.id)["state"] == "DONE"
    assert answered(capsys, "ops", "list")[0]["id"] == operation.id


def test_a_tail_shows_each_run_and_each_change_of_its_state_until_it_is_interrupted(
    client: Sweephand, api: Api, capsys, monkeypatch
):
    job = client.jobs.create("beat", {"type": "http", "url": URL}, {"every": "PT1M"})
    client.jobs.run(job)  # has not begun at the first look
    looks = [70.0, 60.0]

    class Clock:
        def now(self):
            return api.stage.clock.now()

        def sleep(self, seconds: float) -> None:
            assert seconds == 2
            if not looks:
                raise KeyboardInterrupt
            api.stage.run(looks.pop(0))

    monkeypatch.setattr(following, "SystemClock", Clock)

    status, out, _ = ran(capsys, "runs", "tail", "--job-id", job.id, "--json")

    assert status == 130
    lines = [json.loads(line) for line in out.splitlines()]
    assert {each["jobId"] for each in lines} == {job.id}
    assert {each["id"] for each in lines} == {each.id for each in client.runs.list(job_id=job.id)}
    told = [(each["id"], each["state"], each.get("attempt")) for each in lines]
    assert len(told) == len(set(told)) > len({each["id"] for each in lines})
    _, out, err = ran(capsys, "runs", "tail", "--since", "15m")
    assert "SUCCESS" not in out
    assert err.splitlines()[0] == "Without --job-id, --collection or --tag, runs that succeed are left out."
    _, out, err = ran(capsys, "runs", "tail", "--collection", "default", "--since", "15m")
    assert "SUCCESS" in out
    assert "left out" not in err
    assert ran(capsys, "runs", "tail", "--collection", "default")[1] == "", "from now on"


def test_a_run_can_be_named_by_the_end_of_its_id(client: Sweephand, api: Api, capsys):
    job = client.jobs.create("beat", {"type": "http", "url": URL}, {"every": "PT1M"})
    api.stage.run(200)
    runs = list(client.runs.list(job_id=job.id))

    for run in runs:
        assert answered(capsys, "runs", "get", run.id[-8:])["id"] == run.id
        assert answered(capsys, "runs", "get", run.id)["id"] == run.id
    status, _, err = ran(capsys, "runs", "get", "00000000")
    assert (status, err.splitlines()[0]) == (
        1,
        'none of the latest runs has an id that ends with "00000000": give a whole id',
    )


def test_a_terminal_gets_a_line_after_a_change(client: Sweephand, capsys, monkeypatch):
    client.jobs.create("nightly", {"type": "http", "url": URL}, {"cron": "30 2 * * *"})
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    _, paused, _ = ran(capsys, "jobs", "pause", "nightly")
    _, read, _ = ran(capsys, "jobs", "get", "nightly")

    assert paused.split()[:5] == ["nightly", "PAUSED", "no", "next", "run"]
    assert (len(paused.splitlines()), len(read.splitlines()) > 5) == (1, True)


def test_errors_are_noted_archived_and_listed(client: Sweephand, api: Api, capsys):
    job = client.jobs.create("bad", {"type": "http", "url": URL})
    api.stage.endpoint.answer = lambda _: WRONG
    client.jobs.run(job)
    api.stage.run(5)

    (group,) = answered(capsys, "errors", "list")
    assert answered(capsys, "errors", "note", group["id"], "look at this")["notes"][0]["text"] == "look at this"
    assert answered(capsys, "errors", "archive", group["id"], "--reason", "done")["state"] == "ARCHIVED"


def test_an_answer_with_a_list_prints_a_line_for_each_item_and_the_rest_on_stderr(client: Sweephand, api: Api, capsys):
    api.stage.endpoint.answer = lambda _: WRONG
    for name in ("bad", "worse"):
        client.jobs.run(client.jobs.create(name, {"type": "http", "url": f"{URL}/{name}"}))
    api.stage.run(5)

    status, out, err = ran(capsys, "errors", "summary", "--group-by", "target")
    assert (status, err) == (0, "groupBy\ttarget\ncomplete\tyes\n")
    assert [line.split("\t")[:5] for line in out.splitlines()] == [
        [f"{URL}/{name}", "-", "1", "1", "1"] for name in ("bad", "worse")
    ]
    assert len(answered(capsys, "errors", "summary", "--group-by", "target")["items"]) == 2
    status, out, err = ran(capsys, "preview", "--cron", "30 2 * * *", "--limit", "2")
    assert [line.partition("\t")[0] for line in out.splitlines()] == ["2027-03-02T02:30:00Z", "2027-03-03T02:30:00Z"]
    assert "description\tAt 02:30.\n" in err
    status, out, err = ran(capsys, "overview", "attention")
    assert [line.split("\t")[0] for line in out.splitlines()] == ["errors"] * 2
    assert "itemsLeftOut\t0\n" in err


def test_a_job_set_is_shown_as_a_list_and_its_delete_as_changes(client: Sweephand, capsys):
    """Seen failing: each was one long line of JSON."""
    entry = {"key": "nightly", "action": {"type": "http", "url": URL}}
    there = client.job_sets.put("billing", jobs=[entry]).created[0]

    status, out, err = ran(capsys, "sets", "get", "billing")
    assert (status, out) == (0, f"nightly\t{there.job_id}\tapplied\n")
    assert err.startswith("name\tbilling\nappliedAt\t")
    assert answered(capsys, "sets", "get", "billing")["jobs"][0]["key"] == "nightly"
    status, out, _ = ran(capsys, "sets", "delete", "billing", "--plan")
    assert (status, out.splitlines()[0]) == (0, "billing: 1 delete, 0 same")
    status, out, _ = ran(capsys, "sets", "delete", "billing")
    assert (status, out) == (0, "billing: 1 deleted, 0 same\n- nightly  0 runs\n")


def test_any_path_can_be_called(client: Sweephand, capsys):
    body = json.dumps({"name": "a", "action": {"type": "http", "url": URL}})
    assert answered(capsys, "api", "POST", "/v1/jobs", "-d", body)["name"] == "a"
    assert len(answered(capsys, "api", "get", "/v1/jobs", "-q", "name=a")["items"]) == 1
    assert ran(capsys, "api", "GET", "/v1/nothing")[0] == 1


def test_whoami_names_the_credential_its_source_its_tenant_and_its_scopes(api: Api, client: Sweephand, capsys):
    found = answered(capsys, "whoami")

    mine = credential(api)["client_id"]
    assert (found["clientId"], found["tenant"], found["source"]) == (mine, mine.partition(".")[0], "the environment")
    assert "jobs:read" in found["scopes"]
    assert f"clientId\t{mine}\n" in ran(capsys, "whoami")[1]


def test_a_profile_is_saved_after_the_service_has_accepted_it(
    api: Api, client: Sweephand, capsys, monkeypatch, tmp_path
):
    mine = credential(api)
    for name in ("CLIENT_ID", "SECRET"):
        monkeypatch.delenv(f"SWEEPHAND_{name}")
    assert ran(capsys, "jobs", "list")[0] == 2
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{mine['secret']}\n"))
    status, out, _ = ran(capsys, "login", "--client-id", mine["client_id"], "--secret-stdin")
    assert status == 0
    assert out.startswith("saved as profile default in ")
    assert mine["secret"] not in out
    assert (tmp_path / "profiles.json").stat().st_mode & 0o777 == 0o600
    assert ran(capsys, "jobs", "list") == (0, "", "")
    assert answered(capsys, "whoami")["source"].startswith("profile default of ")
    assert ran(capsys, "logout")[0] == 0
    assert ran(capsys, "jobs", "list")[0] == 2


def test_a_wrong_secret_is_refused_in_one_sentence_and_nothing_is_saved(url, capsys, monkeypatch, tmp_path):
    for secret, says in (
        ("wrong", "a.b from your input is refused: the id or the secret is wrong, or it was deleted\n"),
        ("", "the secret is empty: enter both\n"),
    ):
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{secret}\n"))

        assert ran(capsys, "login", "--client-id", "a.b", "--secret-stdin") == (2, "", says)

    assert not (tmp_path / "none.json").exists()


def test_the_commands_of_the_guide_run(client: Sweephand, api: Api, capsys):
    known: dict[str, str] = {}
    for block in re.findall(r"^```console\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            words = shlex.split(Template(line.removeprefix("$ sweephand ")).substitute(known))
            status, out, err = ran(capsys, *words)
            assert (line, status, out != "") == (line, 0, True), err
            if words[:2] == ["jobs", "create"]:
                (job,) = client.jobs.list(include="schedules")
                known = {"JOB": job.id, "SCHEDULE": job.schedules[0].id}
                for _ in range(2):
                    client.jobs.create(None, {"type": "http", "url": URL}, tags=["old"])
    assert client.jobs.get(known["JOB"]).tags == ("nightly",)


# doctor


def levels(found: list[dict[str, str]]) -> dict[str, str]:
    return {each["check"]: each["level"] for each in found}


@pytest.fixture
def url(api: Api, monkeypatch, tmp_path):
    mine = credential(api)
    monkeypatch.setenv("SWEEPHAND_PROFILES", str(tmp_path / "none.json"))
    monkeypatch.setenv("SWEEPHAND_CLIENT_ID", mine["client_id"])
    monkeypatch.setenv("SWEEPHAND_SECRET", mine["secret"])
    with served(api) as there:
        monkeypatch.setenv("SWEEPHAND_URL", there)
        yield there


def test_the_doctor_reports_nothing_and_changes_nothing_while_all_is_well(api: Api, url, capsys):
    with api.unchanged():
        found = answered(capsys, "doctor")

    checks = ("program", "address", "connection", "service", "clock", "credential", "scopes")
    assert levels(found) == dict.fromkeys(checks, "ok")


def test_the_doctor_says_which_check_failed_and_what_to_do(api: Api, url, capsys, monkeypatch):
    monkeypatch.setenv("SWEEPHAND_SECRET", "wrong")
    status, out, err = ran(capsys, "doctor")
    assert (status, err) == (2, "")
    assert out.splitlines()[-1].startswith("fail  credential")
    assert out.splitlines()[-1].endswith("-> ask for a new one, then `sweephand login`")

    monkeypatch.setenv("SWEEPHAND_URL", "http://127.0.0.1:1")
    status, out, err = ran(capsys, "doctor", "--json")
    assert (status, err) == (2, "")
    assert levels(json.loads(out)) == {"program": "ok", "address": "ok", "connection": "fail"}

    monkeypatch.delenv("SWEEPHAND_URL")
    status, out, err = ran(capsys, "doctor", "--json")
    assert (status, levels(json.loads(out))) == (2, {"program": "ok", "address": "fail"})


def test_the_doctor_reports_a_missing_credential_and_not_the_address(url, capsys, monkeypatch):
    for name in ("CLIENT_ID", "SECRET"):
        monkeypatch.delenv(f"SWEEPHAND_{name}")

    status, out, _ = ran(capsys, "doctor")

    assert status == 2
    assert out.splitlines()[-1] == (
        "fail  credential  the credential is missing  "
        "-> set SWEEPHAND_CLIENT_ID and SWEEPHAND_SECRET, or run `sweephand login`"
    )


@pytest.mark.parametrize(
    ("ahead_s", "level", "words"),
    [(2, "ok", "as the service's"), (30, "warn", "30 s ahead of"), (-600, "fail", "600 s behind")],
)
def test_the_doctor_compares_the_clocks(monkeypatch, ahead_s, level, words):
    theirs = datetime(2027, 3, 1, 12, tzinfo=UTC)

    class Clock:
        def now(self):
            return theirs + timedelta(seconds=ahead_s)

    monkeypatch.setattr(doctor, "SystemClock", Clock)

    found = doctor._clock(format_datetime(theirs, usegmt=True))

    assert found.level == level
    assert words in found.text
