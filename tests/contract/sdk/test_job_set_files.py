"""`sweephand plan`, `apply` and `diff` through the whole service."""

from __future__ import annotations

import base64
import json
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sweephand import cli
from sweephand.cli.commands import job_sets, show
from sweephand.sdk import ConfigError, Sweephand, TransportError
from tests.contract.native.api import Api
from tests.contract.sdk.stack import connected

ENTRY = """
    [[jobs]]
    key = "{key}"
    action = {{type = "http", url = "${{BASE_URL}}/run", payload = {{price = "$$5"}}}}
    schedules = [{{cron = "{cron}", timezone = "Europe/Berlin"}}]
"""


@pytest.fixture
def client(api: Api, monkeypatch: pytest.MonkeyPatch) -> Sweephand:
    """The client that the commands make."""
    made, _ = connected(api)
    monkeypatch.setattr("sweephand.sdk.sync.client.Sweephand", lambda *_, **__: made)
    return made


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE_URL", "https://example.org")
    monkeypatch.setenv("SWEEPHAND_URL", "https://sweephand.example")
    monkeypatch.setenv("SWEEPHAND_CLIENT_ID", "me")
    monkeypatch.setenv("SWEEPHAND_SECRET", "mine")


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Writes a file with these jobs; returns its path."""

    def put(**crons: str) -> str:
        path = tmp_path / "jobs.toml"
        text = 'set = "billing"\n' + ("" if crons else "jobs = []\n")
        path.write_text(
            text + "".join(textwrap.dedent(ENTRY).format(key=key, cron=cron) for key, cron in crons.items())
        )
        return str(path)

    return put


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.main(arguments)
    said = capsys.readouterr()
    return status, said.out, said.err


def test_a_plan_is_shown_and_applied_exactly(client: Sweephand, write, capsys):
    file = write(nightly="30 2 * * 1-5", weekly="0 8 * * 1")
    status, out, err = ran(capsys, "plan", file)
    *lines, last = out.splitlines()

    assert (status, err) == (0, "")
    assert lines == [
        "billing: 2 create, 0 same",
        "+ nightly  first Tue 2027-03-02 01:30:00Z",
        "+ weekly  first Mon 2027-03-08 07:00:00Z",
    ]
    assert last.startswith(f"apply with: sweephand apply {file} --plan p_")
    assert list(client.job_sets.list()) == []
    assert ran(capsys, *last.removeprefix("apply with: sweephand ").split()) == (
        0,
        "billing: 2 created, 0 same\n+ nightly\n+ weekly\n",
        "",
    )
    job = client.jobs.get(client.job_sets.get("billing").jobs[0].job_id, include="schedules")
    assert (job.key, job.action.url) == ("nightly", "https://example.org/run")
    assert job.to_json()["action"]["payload"] == {"price": "$5"}


def test_a_file_is_applied_with_a_reason(client: Sweephand, write, capsys):
    assert ran(capsys, "apply", write(nightly="30 2 * * *"), "--reason", "release 7")[0] == 0

    job = client.job_sets.get("billing").jobs[0].job_id
    assert [change.reason for change in client.jobs.changes(job)] == ["release 7"]
    assert ran(capsys, "jobs", "pause", job, "--reason", "moved")[0] == 0
    assert next(iter(client.jobs.changes(job))).reason == "moved"


def test_an_unchanged_file_changes_nothing_and_differences_can_set_the_exit_status(client: Sweephand, write, capsys):
    file = write(nightly="30 2 * * *")
    assert ran(capsys, "plan", "--exit-code", file)[0] == 3
    ran(capsys, "apply", file)

    assert ran(capsys, "plan", "--exit-code", file) == (0, "billing: no change, 1 same\n", "")
    assert ran(capsys, "apply", file) == (0, "billing: no change, 1 same\n", "")
    file = write(nightly="0 3 * * *")
    assert ran(capsys, "plan", "--exit-code", file)[:2][0] == 3
    assert ran(capsys, "apply", file)[1] == "billing: 1 changed, 0 same\n~ nightly\n"


def test_a_stale_plan_is_a_conflict_and_the_new_plan_is_shown(client: Sweephand, write, capsys):
    file = write(nightly="30 2 * * *")
    ran(capsys, "apply", file)
    file = write(nightly="0 3 * * *")
    token = ran(capsys, "plan", file)[1].split()[-1]
    client.jobs.patch(client.job_sets.get("billing").jobs[0].job_id, description="by somebody else")

    status, out, err = ran(capsys, "apply", file, "--plan", token)

    assert (status, out) == (4, "")
    assert "look at the new plan" in err
    assert err.endswith(
        "billing: 1 repair, 0 same\n"
        "! nightly  next Tue 2027-03-02 01:30:00Z -> Tue 2027-03-02 02:00:00Z\n"
        '\tdescription\t"by somebody else"\t->\tnull\n'
        '\tschedule-1: cron\t"30 2 * * *"\t->\t"0 3 * * *"\n'
    )


def test_a_plan_that_changes_only_a_secret_names_it(client: Sweephand, tmp_path, capsys):
    path = tmp_path / "jobs.json"

    def wanted(password: str) -> str:
        authentication = {"type": "basic", "username": "me", "password": password}
        action = {"type": "http", "url": "https://example.org", "authentication": authentication}
        path.write_text(json.dumps({"set": "billing", "jobs": [{"key": "a", "action": action}]}))
        return str(path)

    ran(capsys, "apply", wanted("canary-1"))

    assert ran(capsys, "plan", wanted("canary-2"))[1].splitlines()[:3] == [
        "billing: 1 change, 0 same",
        "~ a  next never as before",
        '\taction.authentication.password\t"***"\t->\t"***"',
    ]


def test_defaults_of_a_file_hold_for_its_jobs(client: Sweephand, tmp_path, capsys):
    path = tmp_path / "jobs.toml"
    path.write_text(
        """
        set = "billing"

        [defaults]
        tags = ["money"]
        schedule = {timezone = "Europe/Berlin"}
        action = {type = "http", url = "https://example.org/usual", retry = {type = "fixed", delaySeconds = 60}}
        policies = {overlap = "skip"}
        hooks = {onFailure = {type = "http", url = "https://example.org/alarm"}}

        [[jobs]]
        key = "usual"
        schedules = [{cron = "0 9 * * *"}]

        [[jobs]]
        key = "own"
        tags = []
        action = {url = "https://example.org/own"}
        policies = {misfire = {type = "skip"}}
        hooks = {onFailure = {type = "http", url = "https://example.org/other"}}
        schedules = [{cron = "0 9 * * *", timezone = "Asia/Tokyo"}, {every = "1h"}]
        """
    )

    assert ran(capsys, "apply", str(path))[0] == 0

    jobs = {each.key: each for each in client.jobs.list(include="schedules")}
    usual, own = jobs["usual"], jobs["own"]
    assert (usual.tags, own.tags) == (("money",), ())
    assert [each.timezone for each in (*usual.schedules, *own.schedules)] == [
        *("Europe/Berlin", "Asia/Tokyo", "Europe/Berlin")
    ]
    full = [client.jobs.get(each.id).to_json() for each in (usual, own)]
    assert [each["action"]["url"] for each in full] == ["https://example.org/usual", "https://example.org/own"]
    assert [each["action"]["retry"]["type"] for each in full] == ["fixed", "fixed"]
    assert [each["policies"]["overlap"] for each in full] == ["skip", "skip"]
    assert full[1]["policies"]["misfire"]["type"] == "skip"
    assert [each["hooks"]["onFailure"]["url"].rpartition("/")[2] for each in full] == ["alarm", "other"]
    assert ran(capsys, "plan", str(path))[1] == "billing: no change, 2 same\n"


def test_many_deletes_need_their_number(client: Sweephand, write, capsys):
    ran(capsys, "apply", write(**{f"job-{n:02}": "0 3 * * *" for n in range(12)}))
    file = write()

    status, out, err = ran(capsys, "apply", file)
    assert (status, out) == (4, "")
    assert err.startswith("deletes 12 of 12 jobs; the limit is 10: to allow it, use --allow-deletes 12\n")
    assert len(list(client.jobs.list())) == 12
    last = ran(capsys, "plan", file)[1].splitlines()[-1]
    assert "--allow-deletes 12" in last
    assert ran(capsys, *last.removeprefix("apply with: sweephand ").split())[0] == 0
    assert list(client.jobs.list()) == []


def test_jobs_missing_from_the_file_are_kept_on_request(client: Sweephand, write, capsys):
    ran(capsys, "apply", write(nightly="30 2 * * *", weekly="0 8 * * 1"))
    file = write(nightly="0 3 * * *")

    *lines, last = ran(capsys, "plan", "--no-prune", file)[1].splitlines()
    assert lines[0] == "billing: 1 change, 0 same"
    assert f" {file} --no-prune --plan p_" in last
    assert ran(capsys, *last.removeprefix("apply with: sweephand ").split())[:2] == (
        *(0, "billing: 1 changed, 0 same\n~ nightly\n"),
    )
    assert [each.key for each in client.job_sets.get("billing").jobs] == ["nightly", "weekly"]
    assert ran(capsys, "apply", "--no-prune", file)[1] == "billing: no change, 1 same\n"
    assert ran(capsys, "apply", "--prune", file)[1] == "billing: 1 deleted, 1 same\n- weekly  0 runs\n"


def test_a_deleted_job_shows_how_many_runs_are_lost(client: Sweephand, api: Api, write, capsys):
    ran(capsys, "apply", write(nightly="* * * * *", weekly="0 8 * * 1"))
    api.stage.run(190)

    assert ran(capsys, "plan", write(weekly="0 8 * * 1"))[1].splitlines()[:2] == [
        "billing: 1 delete, 1 same",
        "- nightly  5 runs, 2 open will end  next Mon 2027-03-01 12:04:00Z -> never",
    ]


def test_a_plan_is_printed_in_columns_that_fit_the_terminal(client: Sweephand, write, capsys):
    ran(capsys, "apply", write(nightly="30 2 * * *"))
    wanted = job_sets.read(Path(write(nightly="0 3 * * *")), {"BASE_URL": f"https://example.org/{'x' * 90}"})
    planned = client.job_sets.put("billing", jobs=wanted.jobs, plan=True)

    job_sets.show(show.Output(width=80), planned, planned=True)

    lines = capsys.readouterr().out.splitlines()
    assert lines[2:] == [
        '    action.url        "https://example.org/run"  ->  "https://example.org/xxxxx…',
        '    schedule-1: cron  "30 2 * * *"               ->  "0 3 * * *"',
    ]


def test_a_diff_shows_who_changed_what(client: Sweephand, write, capsys):
    file = write(nightly="30 2 * * *", weekly="0 8 * * 1")
    assert ran(capsys, "diff", file) == (
        1,
        "",
        "there is no set billing yet: `sweephand plan` shows what it would create\n",
    )
    ran(capsys, "apply", file)
    assert ran(capsys, "diff", file)[1] == "billing: 0 changed by others, 2 as applied\n"
    changed, deleted = (each.job_id for each in client.job_sets.get("billing").jobs)
    client.jobs.patch(changed, description="by hand")
    client.jobs.delete(deleted)

    status, out, _ = ran(capsys, "diff", file)

    assert status == 0
    assert out.splitlines()[:2] == ["billing: 2 changed by others, 0 as applied", "! nightly  changed"]
    assert 'description: null -> "by hand"' in out
    assert out.endswith("! weekly  deleted\n")


def test_json_output_is_exactly_the_answer_of_the_api(client: Sweephand, write, capsys):
    file = write(nightly="30 2 * * *")

    planned = json.loads(ran(capsys, "plan", "--json", file)[1])
    assert [each["key"] for each in planned["created"]] == ["nightly"]
    assert json.loads(ran(capsys, "apply", "--json", file)[1])["created"][0]["jobId"]
    assert json.loads(ran(capsys, "diff", "--json", file)[1])["jobs"][0]["state"] == "applied"
    status, out, err = ran(capsys, "apply", "--json", "--plan", "p_0", write(nightly="0 3 * * *"))
    assert (status, out, json.loads(err)["code"]) == (4, "", "PLAN_STALE")


def test_mistakes_are_named_with_their_path_and_change_nothing(client: Sweephand, write, capsys):
    assert ran(capsys, "apply", write(nightly="30 2 * * 9")) == (
        1,
        "",
        'jobs[0].schedules[0].cron: weekday must be 0 to 7, not "9"\n',
    )
    assert list(client.jobs.list()) == []


def test_a_large_list_is_applied_completely(client: Sweephand, api: Api, write, capsys, monkeypatch):
    """Each request makes what it has time for."""
    monkeypatch.setattr("sweephand.server.facades.native.jobs.job_sets.APPLIED_S", -1.0)

    status, out, _ = ran(capsys, "apply", write(a="0 1 * * *", b="0 2 * * *", c="0 3 * * *"))

    assert status == 0
    assert [line for line in out.splitlines() if line.startswith("+")] == ["+ a", "+ b", "+ c"]
    assert [each.state for each in client.job_sets.get("billing").jobs] == ["applied"] * 3


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("gone.toml", None, "there is no such file"),
        ("a.toml", "set = ", "Invalid value"),
        ("a.json", "{", "line 1"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.toml", "a = " + "[" * 100_000, "nested too deeply"),
        ("a.json", '{"set": "a", "jobs": [], "set": "b"}', 'the member "set" appears twice'),
        ("a.toml", "jobs = []", "must name its set"),
        ("a.toml", 'set = ""\njobs = []', "must name its set"),
        (
            "a.toml",
            'set = "a"\njobs = ["${HOME"]',
            "'${HOME' is not a variable: write ${NAME}, or $${ for a literal ${",
        ),
        ("a.toml", 'set = "a"\njobs = ["${1}x"]', "'${1}' is not a variable"),
        ("a.toml", 'set = "a"', "must have a list `jobs`"),
        ("a.toml", 'set = "a"\njob = []\njobs = []', "unknown member job"),
        ("a.toml", 'set = "a"\njobs = []\ndefaults = 7', "`defaults` must be a table"),
        ("a.toml", 'set = "a"\njobs = []\ndefaults = {name = "x"}', "defaults.name must be in each job"),
        ("a.toml", 'set = "a"\njobs = []\ndefaults = {schedules = []}', "`schedule` has the members of each schedule"),
        ("a.toml", 'set = "${NO_SUCH}-${NOR_THIS}"\njobs = []', "no variable NO_SUCH, NOR_THIS"),
    ],
)
def test_an_unusable_file_is_not_sent(tmp_path, capsys, name, text, why):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)

    status, out, err = ran(capsys, "plan", str(path))

    assert (status, out) == (2, "")
    assert err.startswith(f"{path}: ")
    assert why in err


def test_half_of_a_surrogate_pair_gives_one_sentence_and_status_2(client: Sweephand, tmp_path, capsys):
    path = tmp_path / "a.json"
    path.write_text('{"set": "a", "jobs": [{"key": "\\ud800"}]}')

    status, out, err = ran(capsys, "plan", str(path))

    assert (status, out) == (2, "")
    assert err.startswith("body cannot be sent as JSON: ")


def test_toml_dates_and_times_are_read(client: Sweephand, tmp_path, capsys):
    path = tmp_path / "jobs.toml"
    path.write_text(
        textwrap.dedent("""
            set = "billing"
            [[jobs]]
            key = "a"
            action = {type = "event", payload = {day = 2027-04-01, hour = 07:30:00}}
            schedules = [{every = "PT1H", startTime = 2027-04-01T00:00:00Z}]
        """)
    )

    assert ran(capsys, "apply", str(path)) == (0, "billing: 1 created, 0 same\n+ a\n", "")
    job = client.jobs.get(client.job_sets.get("billing").jobs[0].job_id, include="schedules")
    assert job.to_json()["action"]["payload"] == {"day": "2027-04-01", "hour": "07:30:00"}
    assert job.schedules[0].to_json()["startTime"] == "2027-04-01T00:00:00Z"


def test_an_unreadable_address_gives_one_sentence_and_status_2(write, capsys):
    status, _, err = ran(capsys, "plan", "--url", "https://[::1", write(nightly="30 2 * * *"))

    assert (status, err) == (2, "the address 'https://[::1' cannot be read: Invalid IPv6 URL\n")


def test_an_invalid_set_name_is_refused_with_the_rule(client: Sweephand, tmp_path, capsys):
    path = tmp_path / "jobs.toml"
    path.write_text('set = "my billing"\njobs = []')

    status, _, err = ran(capsys, "plan", str(path))

    assert status == 1
    assert err == (
        'set: must consist of letters, digits, . _ and -, and begin with a letter or a digit, not "my billing"\n'
    )


@pytest.mark.parametrize("error", [ConfigError("the address is missing"), TransportError("no connection")])
def test_a_failed_request_gives_one_sentence_and_status_2(write, capsys, monkeypatch, error):
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("sweephand.sdk.sync.client.Sweephand", refuse)

    assert ran(capsys, "plan", write(nightly="30 2 * * *")) == (2, "", f"{error}\n")


def test_a_missing_scope_gives_status_2(api: Api, client: Sweephand, write, capsys, monkeypatch):
    reader = client.credentials.create(name="reader", scopes=["jobs:read"])
    pair = f"{reader.client_id}:{reader.secret}".encode()
    api.credentials["reader"] = f"Basic {base64.b64encode(pair).decode()}"
    made, _ = connected(api, "reader")
    monkeypatch.setattr("sweephand.sdk.sync.client.Sweephand", lambda *_, **__: made)

    status, _, err = ran(capsys, "apply", write(nightly="30 2 * * *"))

    assert status == 2
    assert "jobs:write" in err
