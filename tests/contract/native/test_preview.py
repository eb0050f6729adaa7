"""The preview of schedules that are not stored."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.contract.native import shapes


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

    shapes.check_page(reply.json, "type", "summary", "dropped", "searchedUntil")
    assert reply.status == 200
    assert instants(reply) == wanted
    assert reply.json["type"] == kind
    assert summary is None or reply.json["summary"] == summary
    assert reply.json["dropped"] == []
    assert all(each == {"plannedAt": each["plannedAt"], "movedBy": None} for each in reply.json["items"])


def test_five_instants_by_default_from_now_or_after(preview):
    assert len(instants(preview({"cron": "* * * * *"}))) == 5
    assert instants(preview({"cron": "0 * * * *", "limit": 1})) == ["2027-03-01T13:00:00Z"]
    assert instants(preview({"cron": "0 * * * *", "after": "2030-01-01T00:00:00Z", "limit": 1})) == [
        "2030-01-01T01:00:00Z"
    ]


def test_a_thousand_instants_are_the_most(preview):
    reply, too_many = preview({"every": "PT1S", "limit": 1_000}), preview({"every": "PT1S", "limit": 1_001})

    assert len(set(instants(reply))) == 1_000
    assert all(one < other for one, other in pairwise(instants(reply)))
    assert (too_many.status, too_many.fields) == (422, ["limit"])


def test_a_gap_and_an_overlap_are_marked(preview):
    daily = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "limit": 3}

    gap = preview(daily | {"after": "2027-03-26T12:00:00Z"}).json["items"]
    both = preview(daily | {"after": "2027-10-30T12:00:00Z", "dstOverlap": "both"}).json["items"]
    second = preview(daily | {"after": "2027-10-30T12:00:00Z", "dstOverlap": "second"}).json["items"]

    assert [each["movedBy"] for each in gap] == [None, {"rule": "dstGap", "localTime": "2027-03-28T02:30:00"}, None]
    assert gap[1]["plannedAt"] == "2027-03-28T01:00:00Z"
    assert [each["plannedAt"][8:] for each in both] == ["31T00:30:00Z", "31T01:30:00Z", "01T01:30:00Z"]
    assert [each["movedBy"] and each["movedBy"]["rule"] for each in both] == ["dstOverlap", "dstOverlap", None]
    assert [each["movedBy"] and each["movedBy"]["rule"] for each in second] == ["dstOverlap", None, None]


def test_what_a_gap_leaves_out_is_told(preview):
    schedule = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "dstGap": "skip", "after": "2027-03-26T12:00:00Z"}

    body = preview(schedule).json

    assert [each["plannedAt"][8:10] for each in body["items"]] == ["27", "29", "30", "31", "01"]
    assert body["dropped"] == [
        {"at": "2027-03-28T01:00:00Z", "movedBy": {"rule": "dstGap", "localTime": "2027-03-28T02:30:00"}}
    ]


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
def test_what_cannot_be_previewed_is_refused(preview, body, code, field):
    reply = preview(body)

    assert (reply.status, reply.code) == (422, code)
    assert field is None or reply.fields == [field]


def test_a_refused_text_is_pointed_into(preview):
    (error,) = preview({"cron": "0 0 32 * *"}).json["errors"]

    assert error["position"] == 4


def test_a_provider_previews_without_naming_a_tenant(preview):
    assert preview({"every": "PT1H"}, caller="provider").status == 200
