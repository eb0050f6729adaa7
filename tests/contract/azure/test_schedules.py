"""The tables and examples of Azure's page on complex schedules, through the facade."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.azure.api import COLLECTION, HTTP, JOB, job
from tests.support.azure_schedules import EXAMPLES, MO_WE_FR

WEDNESDAY = datetime(2037, 3, 4, 8, 25, tzinfo=UTC)
"""4 March is a Wednesday as in 2026, for which the examples are written."""
MINUTELY_10 = {"frequency": "Minute", "interval": 10}
BY_THE_CLOCK = {"frequency": "Hour", "schedule": {"minutes": [5, 20]}}
START_S = {"no start time": None, "start time in the past": -420, "start time in the future": 240, "start time now": 0}


def instants(api, count):
    """Returns the first ones of the service's plan; the facade's answer has the first as well."""
    (made,) = api.native.get("/v1/jobs").json["items"]
    ahead = api.native.get(f"/v1/jobs/{made['id']}/occurrences", query=f"limit={count}").json["items"]
    found = [each["plannedAt"] for each in ahead]
    assert api.properties()["status"]["nextExecutionTime"] == found[0]
    return [each[5:16].replace("T", " ") for each in found]


@pytest.mark.parametrize(("frequency", "schedule", "expected"), EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_schedule_runs_at_the_documented_times(api, frequency, schedule, expected):
    api.stage.clock.move_to(WEDNESDAY - timedelta(minutes=5))

    api.job(startTime="2037-03-04T08:25Z", recurrence={"frequency": frequency, "schedule": schedule})

    assert instants(api, len(expected)) == expected


@pytest.mark.parametrize(
    ("start", "recurrence", "ran_s"),
    [
        ("no start time", None, [0]),
        ("no start time", MINUTELY_10, [0, 600, 1_200]),
        ("no start time", BY_THE_CLOCK, [0, 299, 1_199]),
        ("start time in the past", None, [0]),
        ("start time in the past", MINUTELY_10, [180, 780, 1_380]),
        ("start time in the past", BY_THE_CLOCK, [299, 1_199]),
        ("start time in the future", None, [240]),
        ("start time in the future", MINUTELY_10, [240, 840, 1_440]),
        ("start time in the future", BY_THE_CLOCK, [299, 1_199]),
        ("start time now", None, [0]),
        ("start time now", MINUTELY_10, [0, 600, 1_200]),
        ("start time now", BY_THE_CLOCK, [299, 1_199]),
    ],
)
def test_start_times_follow_the_documented_table(api, start, recurrence, ran_s):
    api.collection()
    api.stage.clock.advance(0.75)
    now = api.stage.clock.now()
    times = {} if START_S[start] is None else {"startTime": api.at(START_S[start])}

    api.job(**times, **({} if recurrence is None else {"recurrence": recurrence}))
    api.stage.run(1_750)

    planned = [datetime.fromisoformat(each["expectedExecutionTime"]) for each in api.history()]
    assert [(each - now).total_seconds() for each in reversed(planned)] == ran_s
    assert api.properties()["state"] == ("Completed" if recurrence is None else "Enabled")


@pytest.mark.parametrize("day", ["07", "05", "01"])
def test_a_recurrence_every_two_days_keeps_the_grid_of_its_past_start(api, day):
    """The worked example of the page: at 13:00 the first execution is the next day at 14:00."""
    api.stage.clock.move_to(datetime(2037, 4, 8, 13, tzinfo=UTC))

    api.job(startTime=f"2037-04-{day}T14:00Z", recurrence={"frequency": "Day", "interval": 2})

    assert instants(api, 4) == ["04-09 14:00", "04-11 14:00", "04-13 14:00", "04-15 14:00"]


def test_the_documented_basic_schedule_is_over_today(api):
    schedule = {"weekDays": ["Monday", "Wednesday", "Friday"], "hours": [10, 22]}
    recurrence = {"frequency": "Week", "interval": 1, "schedule": schedule, "count": 10, "endTime": "2012-11-04"}

    made = api.job(startTime="2012-08-04T00:00Z", recurrence=recurrence)
    api.stage.run(60)

    assert made["startTime"] == "2012-08-04T00:00:00Z"
    assert made["recurrence"]["endTime"] == "2012-11-04T00:00:00Z"
    assert made["state"] == "Completed"
    assert api.stage.endpoint.received == []


def test_the_documented_basic_schedule_runs_ten_times(api):
    """The page has 2012; 4 August 2037 is a Tuesday."""
    api.stage.clock.move_to(datetime(2037, 8, 4, tzinfo=UTC) - timedelta(minutes=5))
    schedule = {"weekDays": MO_WE_FR, "hours": [10, 22]}
    recurrence = {"frequency": "Week", "schedule": schedule, "count": 10, "endTime": "2037-11-04"}

    api.job(startTime="2037-08-04T00:00Z", recurrence=recurrence)

    assert instants(api, 20) == [f"08-{day:02} {hour}:00" for day in (5, 7, 10, 12, 14) for hour in (10, 22)]


def test_a_bare_end_date_means_its_midnight_and_ends_the_job_before_the_count(api):
    api.stage.clock.move_to(WEDNESDAY)

    api.job(startTime="2037-03-05", recurrence={"frequency": "Day", "count": 10, "endTime": "2037-03-07"})

    assert instants(api, 20) == ["03-05 00:00", "03-06 00:00", "03-07 00:00"]


def test_a_daily_job_with_count_seven_ends_on_sunday_if_it_starts_on_monday(api):
    api.stage.clock.move_to(WEDNESDAY)

    api.job(startTime="2037-03-09T09:00Z", recurrence={"frequency": "Day", "count": 7})

    assert instants(api, 20) == [f"03-{day:02} 09:00" for day in range(9, 16)]


@pytest.mark.parametrize(
    ("frequency", "most"),
    [("Minute", 1_000), ("Hour", 1_000), ("Day", 548), ("Week", 78), ("Month", 18), ("Year", 1)],
)
def test_each_frequency_has_its_maximum_interval(api, frequency, most):
    api.job(startTime=api.at(60), recurrence={"frequency": frequency, "interval": most})

    for wrong in (most + 1, 0):
        reply = api("PUT", f"{COLLECTION}/jobs/second", job(recurrence={"frequency": frequency, "interval": wrong}))
        assert reply.status == 400
        assert reply.json["error"]["message"].startswith("properties.recurrence.interval")
    assert api.get(f"{COLLECTION}/jobs/second").status == 404


@pytest.mark.parametrize(
    ("frequency", "schedule", "names"),
    [
        ("Day", {"weekDays": ["Monday"]}, "weekDays"),
        ("Month", {"weekDays": ["Monday"]}, "weekDays"),
        ("Week", {"weekDays": ["Monday"] * 8}, "weekDays"),
        ("Week", {"weekDays": ["Mon"]}, "weekDays"),
        ("Week", {"monthDays": [1]}, "monthDays"),
        ("Month", {"monthDays": [32]}, "monthDays"),
        ("Month", {"monthDays": [-32]}, "monthDays"),
        ("Month", {"monthDays": [0]}, "monthDays"),
        ("Day", {"monthlyOccurrences": [{"day": "Friday"}]}, "monthlyOccurrences"),
        ("Month", {"monthlyOccurrences": [{"occurrence": 1}]}, "monthlyOccurrences"),
        ("Month", {"monthlyOccurrences": [{"day": "Friday", "occurrence": 6}]}, "monthlyOccurrences"),
        ("Day", {"hours": [24]}, "hours"),
        ("Day", {"minutes": [60]}, "minutes"),
        ("Day", {"minutes": ["5"]}, "minutes"),
    ],
)
def test_schedule_elements_out_of_range_are_refused(api, frequency, schedule, names):
    api.collection()

    reply = api("PUT", JOB, job(recurrence={"frequency": frequency, "schedule": schedule}))

    assert reply.status == 400
    assert reply.json["error"]["message"].startswith(f"properties.recurrence.schedule.{names}"), reply.text
    assert api.get(JOB).status == 404


def test_a_time_without_an_offset_is_utc_and_other_offsets_are_converted(api):
    assert api.job(startTime="2027-03-05T10:00:00")["startTime"] == "2027-03-05T10:00:00Z"
    shown = api("PUT", JOB, job(startTime="2027-03-05T10:00-05:00")).json["properties"]
    assert shown["startTime"] == "2027-03-05T15:00:00Z"
    assert shown["action"] == HTTP


@pytest.mark.parametrize(
    ("frequency", "name", "number"), [("Day", "minutes", 5), ("Day", "hours", 0), ("Month", "monthDays", -1)]
)
def test_a_single_number_is_shown_as_the_array_that_clients_read(api, frequency, name, number):
    recurrence = {"frequency": frequency, "schedule": {name: number}}

    shown = api.job(startTime=api.at(3600), recurrence=recurrence)

    assert shown["recurrence"]["schedule"] == {name: [number]}
    before = api.get(JOB).json
    assert api("PUT", JOB, job(startTime=api.at(3600), recurrence=shown["recurrence"])).json == before
