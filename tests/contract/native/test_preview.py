"""The preview of schedules that are not stored."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sweephand.schedules.zones.localtime import IANA_VERSION
from tests.contract.native import shapes

MEMBERS = (
    *(
        "type",
        "summary",
        "description",
        "dropped",
        "leftOut",
        "gaps",
        "warnings",
        "explained",
        "searchedUntil",
        "ianaVersion",
    ),
)


@pytest.fixture
def preview(shared):
    def ask(body, **more):
        with shared.unchanged():
            return shared("POST", "/v1/schedules:preview", body, **more)

    return ask


def instants(reply):
    return [each["plannedAt"] for each in reply.json["items"]]


@pytest.mark.parametrize(
    ("schedule", "kind", "summary", "wanted"),
    [
        (
            {"at": "2027-03-28T09:00:00", "timezone": "Europe/Berlin"},
            "one-time",
            "once at 2027-03-28T09:00:00, Europe/Berlin",
            ["2027-03-28T07:00:00Z"],
        ),
        (
            {"every": "PT10S"},
            "recurring",
            "every 10 seconds from 2027-03-01T12:00:11Z",
            [f"2027-03-01T12:00:{second}Z" for second in (11, 21, 31)],
        ),
        (
            {"every": "90 minutes", "align": "epoch", "startTime": "2027-03-02T00:00:00Z"},
            "recurring",
            None,
            ["2027-03-02T00:00:00Z", "2027-03-02T01:30:00Z", "2027-03-02T03:00:00Z"],
        ),
        (
            {"every": "P1M", "startTime": "2027-03-31T08:00:00", "timezone": "Asia/Tokyo"},
            "recurring",
            None,
            ["2027-03-30T23:00:00Z", "2027-04-29T23:00:00Z", "2027-05-30T23:00:00Z"],
        ),
        (
            {"cron": "0 9 * * MON"},
            "recurring",
            "at 09:00 on Monday",
            [f"2027-03-{day}T09:00:00Z" for day in ("08", "15", "22")],
        ),
        (
            {"cron": "0 9 1 * *", "count": 2, "endTime": "2027-12-01T00:00:00Z"},
            "recurring",
            None,
            ["2027-04-01T09:00:00Z", "2027-05-01T09:00:00Z"],
        ),
    ],
)
def test_every_notation_is_previewed_and_described(preview, schedule, kind, summary, wanted):
    reply = preview(schedule | {"limit": 3})

    shapes.check_page(reply.json, *MEMBERS)
    assert reply.status == 200
    assert instants(reply) == wanted
    assert reply.json["type"] == kind
    assert summary is None or reply.json["summary"] == summary
    assert reply.json["dropped"] == []
    assert all(each.keys() == {"plannedAt", "localTime", "movedBy"} for each in reply.json["items"])
    moved = [each["movedBy"] for each in reply.json["items"] if each["movedBy"] is not None]
    assert {each["rule"] for each in moved} <= {"monthOverflow"}


def test_five_instants_are_shown_by_default_from_now_or_from_after(preview):
    assert len(instants(preview({"cron": "* * * * *"}))) == 5
    assert instants(preview({"cron": "0 * * * *", "limit": 1})) == ["2027-03-01T13:00:00Z"]
    assert instants(preview({"cron": "0 * * * *", "after": "2030-01-01T00:00:00Z", "limit": 1})) == [
        "2030-01-01T01:00:00Z"
    ]


@pytest.mark.parametrize("words", ["now", "in 0 seconds"])
def test_the_word_now_means_the_start_of_the_preview(preview, words):
    stated = preview({"time": words, "after": "2030-01-01T00:00:00Z"})

    assert instants(stated) == ["2030-01-01T00:00:00Z"]
    assert stated.json["warnings"] == []
    assert instants(preview({"at": "2030-01-01T00:00:00Z", "after": "2030-01-01T00:00:00Z"})) == []


def test_a_preview_shows_at_most_a_thousand_instants(preview):
    reply, too_many = preview({"every": "PT1S", "limit": 1_000}), preview({"every": "PT1S", "limit": 1_001})

    assert len(set(instants(reply))) == 1_000
    assert all(one < other for one, other in pairwise(instants(reply)))
    assert (too_many.status, too_many.fields) == (422, ["limit"])


def test_a_gap_and_an_overlap_are_marked(preview):
    daily = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "limit": 3}

    gap = preview(daily | {"after": "2027-03-26T12:00:00Z"}).json["items"]
    both = preview(daily | {"after": "2027-10-30T12:00:00Z", "dstOverlap": "both"}).json["items"]
    second = preview(daily | {"after": "2027-10-30T12:00:00Z", "dstOverlap": "second"}).json["items"]

    moved = {"rule": "dstGap", "localTime": "2027-03-28T02:30:00", "effect": "moved"}
    assert [each["movedBy"] for each in gap] == [None, moved, None]
    assert [each["localTime"] for each in gap[:2]] == ["2027-03-27T02:30:00+01:00", "2027-03-28T03:00:00+02:00"]
    assert gap[1]["plannedAt"] == "2027-03-28T01:00:00Z"
    assert [each["plannedAt"][8:] for each in both] == ["31T00:30:00Z", "31T01:30:00Z", "01T01:30:00Z"]
    assert [each["movedBy"] and each["movedBy"]["rule"] for each in both] == ["dstOverlap", "dstOverlap", None]
    assert [each["movedBy"] and each["movedBy"]["effect"] for each in both] == ["doubled", "doubled", None]
    assert [each["movedBy"] and each["movedBy"]["effect"] for each in second] == ["once", None, None]


def test_a_date_in_another_time_zone_is_marked_with_that_zone(preview):
    """Clocks in London and Berlin change at the same instants."""
    text = "DTSTART;TZID=Europe/London:20270101T120000\nRRULE:FREQ=YEARLY\nRDATE;TZID=Europe/Berlin:20270328T023000"

    reply = preview({"rrule": text, "after": "2027-03-01T00:00:00Z", "limit": 1})

    marks = [each["movedBy"] for each in reply.json["items"]]

    wall = "2027-03-28T02:30:00"
    assert marks == [{"rule": "dstGap", "localTime": wall, "timezone": "Europe/Berlin", "effect": "moved"}]


@pytest.mark.parametrize(("overflow", "runs"), [("clamp", "2027-02-28T09:00:00Z"), ("next", "2027-03-01T09:00:00Z")])
def test_a_day_missing_from_the_month_is_marked_and_explained(preview, overflow, runs):
    body = {"cron": "0 9 31 * *", "monthOverflow": overflow, "after": "2027-01-01T00:00:00Z", "explain": runs}
    moved_by = {"rule": "monthOverflow", "localTime": "2027-02-31T09:00:00", "effect": "moved"}

    found = preview(body).json

    assert [(each["plannedAt"], each["movedBy"]) for each in found["items"]][:2] == [
        ("2027-01-31T09:00:00Z", None),
        (runs, moved_by),
    ]
    assert found["explained"]["movedBy"] == moved_by
    assert found["explained"]["reasons"] == [
        {"code": "MOVED_BY_MONTH", "message": "stands for the 31st, which February 2027 does not have", "field": None}
    ]


def test_instants_lost_in_a_gap_are_reported(preview):
    schedule = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "dstGap": "skip", "after": "2027-03-26T12:00:00Z"}

    body = preview(schedule).json

    assert [each["plannedAt"][8:10] for each in body["items"]] == ["27", "29", "30", "31", "01"]
    assert body["dropped"] == [
        {
            "at": "2027-03-28T01:00:00Z",
            "movedBy": {"rule": "dstGap", "localTime": "2027-03-28T02:30:00", "effect": "skipped"},
        }
    ]


def test_no_gap_is_reported_after_the_last_run_of_a_count(preview):
    schedule = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "dstGap": "skip", "after": "2027-03-26T12:00:00Z"}

    counted = {count: preview({**schedule, "count": count}).json for count in (1, 2)}

    assert [len(body["items"]) for body in counted.values()] == [1, 2]
    assert [len(body["dropped"]) for body in counted.values()] == [0, 1]
    assert [len(body["warnings"]) for body in counted.values()] == [0, 1]


def test_the_end_of_a_schedule_is_the_end_of_its_preview(preview):
    ended = preview({"cron": "0 0 * * *", "endTime": "2027-03-03T00:00:00Z"}).json
    past = preview({"at": "2020-01-01T00:00:00Z"}).json

    assert [each["plannedAt"][8:10] for each in ended["items"]] == ["02", "03"]
    assert ended["searchedUntil"] == "2199-12-31T23:59:59Z"
    assert past["items"] == []


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"cron": "0 0 30 2 *"}, "NEVER_FIRES", "cron"),
        ({"cron": "0 0 32 * *"}, "INVALID_FIELD", "cron"),
        ({"cron": "0 0 * * *", "every": "PT1H"}, "INVALID_FIELD", None),
        ({}, "INVALID_FIELD", None),
        ({"at": "2027-02-30T00:00:00Z"}, "INVALID_FIELD", "at"),
        ({"at": "2027-03-28T02:30:00", "timezone": "Europe/Berlin"}, "INVALID_FIELD", "at"),
        ({"at": "2027-03-28T02:30:00", "timezone": "Europe/Berlin", "dstGap": "skip"}, "NEVER_FIRES", "at"),
        ({"cron": "* * * * *", "timezone": "Mars/Phobos"}, "INVALID_FIELD", "timezone"),
        ({"cron": "* * * * *", "timezone": "../../etc/passwd"}, "INVALID_FIELD", "timezone"),
        ({"cron": "* * * * *", "limit": 0}, "INVALID_FIELD", "limit"),
        ({"cron": "* * * * *", "limit": True}, "INVALID_FIELD", "limit"),
        ({"cron": "* * * * *", "limit": 10**30}, "INVALID_FIELD", "limit"),
        ({"cron": "* * * * *", "limit": "5"}, "INVALID_FIELD", "limit"),
        ({"cron": "* * * * *", "after": "x"}, "INVALID_FIELD", "after"),
        ({"cron": "* * * * *", "after": 0}, "INVALID_FIELD", "after"),
        ({"cron": "* * * * *", "name": "x"}, "UNKNOWN_MEMBER", "name"),
        ({"cron": "* * * * *", "x" * 70_000: 1}, "UNKNOWN_MEMBER", "x" * 100),
        ([], "INVALID_FIELD", "body"),
        ("cron", "INVALID_FIELD", "body"),
    ],
)
def test_a_schedule_that_cannot_be_previewed_is_refused(preview, body, code, field):
    reply = preview(body)

    assert (reply.status, reply.code) == (422, code)
    assert field is None or reply.fields == [field]


def test_a_refusal_points_to_the_mistake_in_the_text(preview):
    (error,) = preview({"cron": "0 0 32 * *"}).json["errors"]

    assert error["position"] == 4


def test_a_provider_can_preview_without_naming_a_tenant(preview):
    assert preview({"every": "PT1H"}, caller="provider").status == 200


def test_a_preview_reports_a_years_gaps_oddities_and_the_version_of_the_time_zones(preview):
    hourly = preview({"cron": "* 9 31 * *", "timezone": "Europe/Berlin"}).json
    once = preview({"at": "2027-06-01T00:00:00Z"}).json

    assert (hourly["gaps"]["smallestSeconds"], hourly["gaps"]["until"]) == (60, "2028-03-01T12:00:00Z")
    assert hourly["gaps"]["largestSeconds"] == 61 * 86_400 - 59 * 60 + 3_600  # 31 August to the end of summer time
    assert [each["code"] for each in hourly["warnings"]] == ["MANY_IN_AN_HOUR", "SOME_MONTHS_LACK_THE_DAY"]
    assert hourly["warnings"][1]["message"] == "31st: 5 months a year have none"
    assert hourly["description"] == "Every minute from 09:00 to 09:59 on day 31 of the month, Europe/Berlin."
    assert hourly["ianaVersion"] == IANA_VERSION
    assert (once["gaps"], once["warnings"], once["description"]) == (None, [], "Once at 2027-06-01T00:00:00Z.")


def test_a_preview_reports_the_gaps_of_a_year_of_minutes(preview):
    """A single January has more gaps than one answer walks through."""
    begin = "2027-01-01T00:00:00Z"
    body = preview({"rrule": "FREQ=MINUTELY;INTERVAL=11;BYMONTH=1", "startTime": begin, "after": begin}).json

    assert body["gaps"] == {"smallestSeconds": 660, "largestSeconds": 28_857_840, "until": "2028-01-02T00:00:00Z"}


def test_the_reported_gaps_end_with_the_count(preview):
    """The third occurrence would lie a month away."""
    body = preview({"cron": "0 9 30,31 * *", "count": 2}).json

    assert [each["plannedAt"][5:10] for each in body["items"]] == ["03-30", "03-31"]
    assert body["gaps"]["largestSeconds"] == 86_400


def test_an_instant_is_explained_in_a_preview(preview):
    schedule = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "count": 3}

    def explained(at):
        found = preview(schedule | {"explain": at}).json["explained"]
        return found["at"][5:16], found["occurs"], [each["code"] for each in found["reasons"]]

    assert explained("2027-03-02T02:30:00") == ("03-02T01:30", True, ["MATCHES"])
    assert explained("2027-03-02T02:31:00") == ("03-02T01:31", False, ["DOES_NOT_MATCH"])
    assert explained("2027-03-28T02:30:00")[2] == ["IN_GAP", "COUNT_REACHED"]
    assert explained("2027-10-31T00:30:00Z")[2] == ["COUNT_REACHED"]
    refused = preview(schedule | {"explain": "half past two"})
    assert (refused.status, refused.fields) == (422, ["explain"])
