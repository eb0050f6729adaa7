"""Answers as objects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sweephand.sdk import at, bodies, cron, every, http, rrule
from sweephand.sdk.models import Job, Run, RunStarted, Schedule
from sweephand.sdk.transport.request import to_json

RUN = {
    "id": "s_1",
    "jobId": "j",
    "plannedAt": "2027-03-01T12:00:00.250Z",
    "startedAt": None,
    "state": "QUITE_NEW",
    "attempts": [{"attempt": 1, "startedAt": "2027-03-01T12:00:01.000Z"}],
    "newMember": {"x": 1},
}


def test_members_are_read_in_snake_case_and_instants_are_aware():
    run = Run(RUN)

    assert run.job_id == "j"
    assert run.planned_at == datetime(2027, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    assert run.started_at is None
    assert run.attempts[0].started_at.second == 1


def test_a_list_of_instants_is_one_of_datetimes():
    schedule = Schedule({"id": "s", "nextRuns": ["2027-03-01T12:00:00Z"]})

    assert schedule.next_runs == (datetime(2027, 3, 1, 12, tzinfo=UTC),)


def test_an_answer_without_id_and_name_shows_its_first_members():
    assert repr(Run(RUN)) == "Run(id='s_1', state='QUITE_NEW')"
    assert repr(RunStarted({"runId": "s_1"})) == "RunStarted(run_id='s_1')"


def test_unknown_members_are_kept():
    run = Run(RUN)

    assert run.state == "QUITE_NEW"
    assert run.new_member == {"x": 1}
    assert run.to_json() == RUN
    assert run.to_json() is not RUN


def test_an_omitted_documented_member_is_none_and_a_misspelled_one_an_error():
    assert Job({"id": "j"}).totals is None
    with pytest.raises(AttributeError, match="Job has no member 'nmae'"):
        Job({"id": "j"}).nmae  # noqa: B018


def test_changing_a_copy_does_not_change_the_answer():
    run = Run(RUN)

    run.to_json()["newMember"]["x"] = 2

    assert run.new_member == {"x": 1}


def test_answers_with_the_same_json_are_equal():
    assert Run(RUN) == Run(dict(RUN))
    assert Run(RUN) != Job(RUN)
    assert repr(Run(RUN)) == "Run(id='s_1', state='QUITE_NEW')"


def test_short_forms_of_bodies_are_expanded():
    assert cron("30 2 * * 1-5", zone="Europe/Berlin", month_overflow="clamp") == {
        "cron": "30 2 * * 1-5",
        "timezone": "Europe/Berlin",
        "monthOverflow": "clamp",
    }
    assert every(timedelta(minutes=5)) == {"every": "PT300S"}
    assert at(datetime(2027, 3, 1, 9, tzinfo=UTC)) == {"at": "2027-03-01T09:00:00Z"}
    assert at(datetime(2027, 3, 1, 9, tzinfo=UTC).replace(tzinfo=None), zone="Asia/Tokyo") == {
        "at": "2027-03-01T09:00:00",
        "timezone": "Asia/Tokyo",
    }
    assert rrule("FREQ=DAILY", jitterSeconds=3) == {"rrule": "FREQ=DAILY", "jitterSeconds": 3}
    assert http.post("https://x.org", retry={"type": "none"})["retry"] == {"type": "none"}
    assert bodies.event(payload={"a_b": 1}) == {"type": "event", "detailType": "job", "payload": {"a_b": 1}}


def test_a_duration_of_a_part_of_a_second_is_refused():
    with pytest.raises(ValueError, match=r"must be whole seconds, not 0:00:00[.]500000"):
        every(timedelta(milliseconds=500))


def test_values_in_bodies_become_json():
    given = {"from": datetime(2027, 3, 1, 13, tzinfo=UTC), "job": Job({"id": "j"}), "each": (timedelta(seconds=2),)}

    assert to_json(given) == {"from": "2027-03-01T13:00:00Z", "job": {"id": "j"}, "each": ["PT2S"]}
