"""A new action is its class and a line, a new notation its module and a line. Each is added here, in a process of its
own, and all that must know it is asked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.architecture.test_contributing import LISTS

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "layers" / "sweephand" / "python"
SLACK = '''
from typing import final

from sweephand.server.actions.call import Call
from sweephand.domain.job import MASK
from sweephand.server.actions.headers import MAX_SECRET
from sweephand.server.actions.kind import member, string
from sweephand.server.actions.payloads import message
from sweephand.server.actions.webhook import Post, Webhook
from sweephand.base.members import fields as read
from sweephand.base.json_schema import text
from sweephand.base.records import dataclass


def _url(value, path, reading):
    reading.keep({"url": read.text(value, path, 1, MAX_SECRET)})
    return MASK


@final
@dataclass(frozen=True)
class Slack(Webhook):
    """A message to a channel of Slack."""

    url: str = member(
        "url",
        text(longest=MAX_SECRET, description="The webhook of the channel, which is a secret."),
        _url,
        shown={"const": MASK, "description": "The webhook, masked."},
        default=MASK,
    )
    channel: str | None = string(
        "channel", 1, 80, like=("#.+", "must begin with #"), more={"description": "The channel."}, default=None
    )

    kind = "slack"

    @property
    def secret_fields(self):
        return ("url",)

    def post(self, call: Call, settings):
        return Post(call.secret("url"), [("Content-Type", "text/plain")], message(call).encode())
'''
ADD_SLACK = """
from sweephand.server import actions
from sweephand.domain.job import ActionSpec
from sweephand.base.errors import InvalidRequest
from sweephand.server.security.guard import GuardSettings

actions.__path__.append(ADDED)
actions._CLASSES["slack"] = "slack:Slack"
GUARD = GuardSettings()
SECRET = "https://hooks.example.org/T0/B0/x"

draft = actions.draft({"type": "slack", "url": SECRET, "channel": "#ops"}, field="action", guard=GUARD)
assert (draft.kind, draft.secrets) == ("slack", {"url": SECRET})
assert draft.params["url"] == "***" and draft.params["channel"] == "#ops" and SECRET not in str(draft.params)
stored = ActionSpec(draft.kind, draft.params, draft.retry)
again = actions.draft({"type": "slack", "channel": "#dev"}, field="action", guard=GUARD, stored=stored)
assert again.kept == {"url"} and again.params["channel"] == "#dev"
assert actions.load("slack", draft.params).to_json() == draft.params
assert not actions.load("slack", draft.params).sends_callback(with_payload=True)
refused_members = [
    ({"url": SECRET, "chanel": "#ops"}, "chanel"),
    ({}, "url"),
    ({"url": SECRET, "channel": "ops"}, "channel"),
]
for given, wrong in refused_members:
    try:
        actions.draft({"type": "slack", **given}, field="action", guard=GUARD)
    except InvalidRequest as refused:
        assert refused.field == f"action.{wrong}", refused.field
        assert wrong != "chanel" or "channel" in refused.reason
    else:
        raise AssertionError(given)

from tools.openapi.schemas import SCHEMAS

for form in ("", "Shown", "Listed"):
    assert {"$ref": f"#/components/schemas/{form}SlackAction"} in SCHEMAS[f"{form}Action"]["oneOf"]
assert SCHEMAS["SlackAction"]["required"] == ["type"]
assert SCHEMAS["ShownSlackAction"]["properties"]["url"]["const"] == "***"
assert SCHEMAS["ShownSlackAction"]["properties"]["channel"]["type"] == ["string", "null"]

from tools.openapi import descriptions

described = descriptions.described({name: schema for name, schema in SCHEMAS.items() if "Slack" in name})
assert len(described) == 3
for name, schema in described.items():
    members = schema["properties"]
    assert [each for each in members if not members[each].keys() & {"description", "$ref", "anyOf"}] == [], name

from tools.docs import action_table

try:
    action_table.action_table()
except ValueError as empty:
    assert "('slack', 'key', 'success')" in str(empty) and "pytest.mark.action" in str(empty)
else:
    raise AssertionError("no test shows the new kind")
"""
HOURLY_AT = """
from sweephand.base import json_schema
from sweephand.base.members import fields
from sweephand.schedules.notations import cron
from sweephand.schedules.notations.shapes import ON_THE_CLOCK

DEFAULTS = ON_THE_CLOCK
SCHEMA = json_schema.whole(0, 59, description="The minute of each hour.")


def read(value, rules, beginning):
    return fields.whole(value, "hourlyAt", 0, 59)


def counted_from(facts):
    return None


def compile_(facts, rules):
    return cron.compile_(f"{facts} * * * *", rules)
"""
ADD_HOURLY_AT = """
from sweephand.schedules import notations

notations.__path__.append(ADDED)
notations._MODULES["hourlyAt"] = "hourly_at"

from datetime import UTC, datetime

from sweephand.server.facades.native.members import defaults, idle
from tools.openapi import schedule_schemas
from sweephand.schedules.timing import TIMING_MEMBERS, load, parse

timing = parse({"hourlyAt": 40}, now=datetime(2027, 1, 1, tzinfo=UTC))
assert load(timing.packed).rule.next_after(datetime(2027, 1, 1, 5, tzinfo=UTC)).minute == 40
assert "hourlyAt" in TIMING_MEMBERS and "hourlyAt" in schedule_schemas.TIMING
(one,) = (each["properties"] for each in schedule_schemas.ONE_NOTATION if each["required"] == ["hourlyAt"])
assert one["hourlyAt"]["description"] == schedule_schemas.TIMING["hourlyAt"]["description"]
assert defaults.shown_timing({"hourlyAt": 40})["dstGap"] == "next_valid"
assert idle.is_one_time({"hourlyAt": 40}) is False
"""


PRIORITY = {
    "domain/job.py": (
        ("    own_runs: bool = False\n", "    priority: int = 0\n"),
        (
            "    ordinal: int | None = None\n    attributes: Mapping[str, Any] | None = None\n",
            "    priority: int = 0\n",
        ),
    ),
    "domain/run.py": (("    root: str | None = None\n", "    priority: int = from_its_job(0)\n"),),
    "server/store/dynamo/table.py": (
        ("    own_runs = BooleanAttribute(null=True)\n", "    priority = Integer(null=True)\n"),
        ("    root = UnicodeAttribute(null=True)\n", "    priority = Integer(null=True)\n"),
    ),
    "server/facades/native/members/job_members.py": (
        ("from sweephand.base.lazy import lazy\n", "from sweephand.base.json_schema import whole\n"),
        ('        "description": Member(text(0, 1_000)),\n', '        "priority": Member(whole(0, 9)),\n'),
    ),
}
"""The lines that are added, by file of the package, each after another line."""
ADD_PRIORITY = """
from datetime import UTC, datetime

from sweephand.domain.run import Kind, State
from sweephand.domain.runs.run_action import new_run
from sweephand.domain.runs.run_members import run_body
from sweephand.domain.schedule import Lane
from sweephand.server.facades.native.members.job_members import job_body, job_draft
from tools.openapi.schemas import SCHEMAS
from sweephand.server.flow.jobs import drafts
from sweephand.server.security.guard import GuardSettings
from sweephand.server.store.dynamo.table import JobItem, RunItem
from sweephand.server.store.jobs import jobs
from sweephand.server.store.runs import run_rows

NOW = datetime(2027, 1, 1, tzinfo=UTC)
draft = job_draft({"action": {"type": "http", "url": "https://example.org/"}, "priority": 7}, GuardSettings())
made, _ = drafts.job_from(draft, "acme", "id", NOW, 1)
job = jobs.job_of(JobItem.from_raw_data(jobs.job_item(made).serialize()))
assert job_body(job, (), NOW)["priority"] == 7

begun = new_run(job, Kind.MANUAL, None, "0198f000-0000-7000-8000-000000000001", State.QUEUED, NOW)
run = run_rows.run_of(RunItem.from_raw_data(run_rows.item_of(begun, shards=16, lane=Lane.FAST).serialize()))
assert run_body(run, job_name=None)["priority"] == 7

for name in ("JobDraft", "Job", "Run"):
    assert SCHEMAS[name]["properties"]["priority"]["maximum"] == 9, name
"""


def test_a_new_action_takes_its_class_and_a_line_in_the_registry(tmp_path: Path):
    (tmp_path / "slack.py").write_text(SLACK)

    assert outcome_of(ADD_SLACK, tmp_path) == ""


def test_a_new_notation_takes_its_module_and_a_line_in_the_registry(tmp_path: Path):
    (tmp_path / "hourly_at.py").write_text(HOURLY_AT)

    assert outcome_of(ADD_HOURLY_AT, tmp_path) == ""


def test_a_new_attribute_shown_by_the_ledger_takes_four_files(tmp_path: Path):
    changed = tmp_path / "python"
    shutil.copytree(PACKAGES, changed, ignore=shutil.ignore_patterns("__pycache__", "cli", "local"))
    for path, lines in PRIORITY.items():
        file = changed / "sweephand" / path
        for before, line in lines:
            assert file.read_text().count(before) == 1, (path, before)
            file.write_text(file.read_text().replace(before, before + line))

    assert outcome_of(ADD_PRIORITY, tmp_path, changed) == ""
    assert {f"layers/sweephand/python/sweephand/{path}" for path in PRIORITY} == set(LISTS["attribute"])
    assert len(PRIORITY) == 4


def outcome_of(code: str, added: Path, packages: Path = PACKAGES) -> str:
    """Returns what a process complains of. added: the folder of the new module."""
    paths = [str(packages), str(ROOT)]
    done = subprocess.run(
        [sys.executable, "-c", f"ADDED = {str(added)!r}\n{code}"],
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr[-2_000:]
