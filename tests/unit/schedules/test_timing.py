"""The members of a schedule together: window, count, hostile values, the packed text."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules import timing as module
from sweephand.schedules.notations import NOTATIONS
from sweephand.schedules.rule import between
from sweephand.schedules.timing import TIMING_MEMBERS, load, parse
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant
from tests.unit.json_values import ANY_JSON
from tests.unit.schedules import given as some

NOW = datetime(2026, 3, 7, 12, tzinfo=UTC)
DAILY = {"cron": "0 2 * * *"}
LONG = "0 " * 50_000


def member_of(refused: InvalidRequest) -> str:
    """Returns the member that the path of a refusal begins with."""
    return (refused.field or "").partition("[")[0].partition(".")[0]


def refusal(fields: object, **job: datetime) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as refused:
        parse(fields, now=NOW, **job)
    return refused.value


def test_the_members_of_this_module_are_these() -> None:
    rules = "align timezone dstGap dstOverlap monthOverflow startTime endTime count jitterSeconds calendars"

    assert {*NOTATIONS, *rules.split()} == TIMING_MEMBERS


@given(st.dictionaries(st.sampled_from(sorted(TIMING_MEMBERS)), ANY_JSON))
def test_any_json_is_parsed_or_refused_with_field_and_reason(fields: dict[str, object]) -> None:
    try:
        parse(fields, now=NOW)
    except InvalidRequest as refused:
        problem = (member_of(refused) in TIMING_MEMBERS, bool(refused.reason), refused.code)
    else:
        return

    assert problem in [(True, True, code) for code in ("INVALID_FIELD", "UNKNOWN_MEMBER", "NEVER_FIRES")]


@given(some.fields(), st.sampled_from(sorted(TIMING_MEMBERS)), ANY_JSON)
def test_the_error_names_the_one_invalid_member(fields: dict[str, object], member: str, value: object) -> None:
    acting = {name: each for name, each in fields.items() if name not in ("dstGap", "dstOverlap")}
    try:
        parse({**acting, member: value}, now=NOW)
    except InvalidRequest as refused:
        named, code = member_of(refused), refused.code
    else:
        return

    assert named == member or code == "NEVER_FIRES" or {named, member} <= {*NOTATIONS, "align"} or named == "endTime"


@pytest.mark.parametrize("member", sorted(TIMING_MEMBERS))
@pytest.mark.parametrize(
    "value", [True, -1, 10**99, 1.5, [], {}, ["x"], "", " ", "\x00", "\ud800", "\u0661", "x" * 1001, LONG, "null"]
)
def test_a_hostile_value_is_refused_by_its_field(member: str, value: object) -> None:
    fields = {**(DAILY if member not in (*NOTATIONS, "align") else {}), member: value}
    if member == "align":
        fields["every"] = "1 day"

    if value == [] and member == "calendars":
        assert parse(fields, now=NOW) == parse(DAILY, now=NOW)
        return
    refused = refusal(fields)

    assert (member_of(refused), refused.code) == (member, "INVALID_FIELD")
    assert len(refused.reason) < 400


@pytest.mark.parametrize("value", [0, 2**31, "1", 1.0, True])
def test_a_count_is_a_whole_number_of_31_bits(value: object) -> None:
    assert refusal({**DAILY, "count": value}).field == "count"


@pytest.mark.parametrize("value", [-1, 86_401, "30", 1.0, False])
def test_jitter_is_up_to_a_day(value: object) -> None:
    assert refusal({**DAILY, "jitterSeconds": value}).field == "jitterSeconds"


def test_count_and_jitter_are_kept() -> None:
    timing = parse({**DAILY, "count": 2**31 - 1, "jitterSeconds": 86_400}, now=NOW, salt="s")

    assert (timing.count, timing.jitter_s) == (2**31 - 1, 86_400)
    assert (load(timing.packed).count, load(timing.packed).jitter_s) == (2**31 - 1, 86_400)


@pytest.mark.parametrize(
    "name", ["Europe/Atlantis", "europe/berlin", "posixrules", "localtime", "tzdata.zi", "zone.tab"]
)
def test_an_unknown_zone_is_refused(name: str) -> None:
    refused = refusal({**DAILY, "timezone": name})

    assert (refused.field, refused.position) == ("timezone", 0)
    assert "IANA" in refused.reason


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/localtime", "Europe/../UTC", "UTC\x00", "Europe/", "."])
def test_a_path_is_not_a_zone(name: str) -> None:
    assert refusal({**DAILY, "timezone": name}).field == "timezone"


@pytest.mark.parametrize("fields", [{}, {"at": None}, {"timezone": "UTC"}, {"cron": None, "every": None}])
def test_a_schedule_without_a_notation_is_refused(fields: dict[str, object]) -> None:
    assert f"is required, or one of {', '.join([*NOTATIONS][1:])}" in refusal(fields).reason


def test_two_notations_are_refused() -> None:
    refused = refusal({"every": "1 day", "cron": "@daily"})

    assert refused.field == "cron"
    assert "every is given too" in refused.reason


def test_null_is_absent() -> None:
    nulls = dict.fromkeys(TIMING_MEMBERS)

    assert parse({**nulls, **DAILY}, now=NOW) == parse(DAILY, now=NOW)


def test_the_start_and_the_end_are_included() -> None:
    timing = parse({**DAILY, "startTime": "2026-04-01T02:00:00Z", "endTime": "2026-04-03T02:00:00Z"}, now=NOW)

    assert [at.day for at in between(timing.rule, NOW, to_instant(LAST_SECOND), 9)] == [1, 2, 3]


def test_the_windows_of_the_job_and_the_schedule_both_apply() -> None:
    job = {"job_start": datetime(2026, 4, 2, tzinfo=UTC), "job_end": datetime(2026, 4, 4, 2, tzinfo=UTC)}
    inner = parse({**DAILY, "startTime": "2026-04-01T00:00:00Z", "endTime": "2026-04-09T00:00:00Z"}, now=NOW, **job)

    assert [at.day for at in between(inner.rule, NOW, to_instant(LAST_SECOND), 9)] == [2, 3, 4]
    refused = refusal({**DAILY, "startTime": "2026-04-05T00:00:00Z"}, **job)
    assert (refused.field, refused.code) == ("cron", "NEVER_FIRES")
    assert "the job's own" in refused.reason


def test_an_end_before_the_start_is_refused() -> None:
    refused = refusal({**DAILY, "startTime": "2026-04-02T00:00:00Z", "endTime": "2026-04-01T00:00:00Z"})

    assert (refused.field, refused.code) == ("endTime", "INVALID_FIELD")


def test_a_limit_without_offset_is_wall_time_in_the_zone() -> None:
    timing = parse({**DAILY, "timezone": "Europe/Berlin", "startTime": "2026-04-01T02:00:00"}, now=NOW)

    assert timing.rule.next_after(NOW) == datetime(2026, 4, 1, tzinfo=UTC)


def test_a_repeated_limit_needs_a_rule_and_both_means_the_wider_window() -> None:
    limits = {"startTime": "2026-10-25T02:30:00", "endTime": "2026-10-25T02:30:00"}
    berlin = {"cron": "*/30 * * * *", "timezone": "Europe/Berlin", **limits}

    assert refusal(berlin).field == "startTime"
    wide = parse({**berlin, "dstOverlap": "both"}, now=NOW)
    assert [f"{at:%H:%M}" for at in between(wide.rule, NOW, to_instant(LAST_SECOND), 9)] == ["00:30", "01:00", "01:30"]


def test_a_limit_in_a_gap_that_skips_is_the_end_of_the_gap() -> None:
    berlin = {"cron": "0 * * * *", "timezone": "Europe/Berlin", "startTime": "2026-03-29T02:30:00", "dstGap": "skip"}

    assert parse(berlin, now=NOW).rule.next_after(NOW) == datetime(2026, 3, 29, 1, tzinfo=UTC)


def test_an_ended_schedule_is_not_an_error() -> None:
    timing = parse({**DAILY, "endTime": "2026-01-01T00:00:00Z"}, now=NOW)

    assert timing.rule.next_after(NOW) is None


def test_the_packed_form_is_short_and_plain() -> None:
    weekdays = {
        "cron": "30 2 * * 1-5",
        "timezone": "Europe/Berlin",
        "dstGap": "skip",
        "endTime": "2027-12-31T00:00:00Z",
    }

    assert json.loads(parse(weekdays, now=NOW).packed) == {
        "cron": "30 2 * * 1-5",
        "zone": "Europe/Berlin",
        "gap": "skip",
        "last": 1_830_211_200,
    }


@pytest.mark.parametrize(
    "packed",
    [
        "",
        "x",
        "null",
        "5",
        "[]",
        "{}",
        '"cron"',
        '{"cron":5}',
        '{"cron":"* * *"}',
        '{"cron":"0 0 1 1 *","every":{"seconds":1,"align":"epoch"}}',
        '{"cron":"0 0 1 1 *","later":1}',
        '{"cron":"0 0 1 1 *","zone":"Europe/Atlantis"}',
        '{"cron":"0 0 1 1 *","zone":[]}',
        '{"cron":"0 0 1 1 *","gap":"other"}',
        '{"cron":"0 0 1 1 *","first":"x"}',
        '{"cron":"0 0 1 1 *","first":1e999}',
        '{"cron":"0 0 1 1 *","count":[]}',
        '{"every":{"seconds":0,"align":"epoch"}}',
        '{"every":{"seconds":-5,"align":"epoch"}}',
        '{"every":{"months":0,"align":"epoch"}}',
        '{"every":{}}',
        '{"every":"PT1S"}',
        '{"at":{}}',
        '{"at":{"second":null}}',
        "[" * 5_000,
    ],
)
def test_an_invalid_packed_text_raises_only_value_error(packed: str) -> None:
    with pytest.raises(ValueError, match="cannot be read as a timing"):
        load(packed)


@given(st.text(max_size=40) | ANY_JSON.map(lambda value: json.dumps(value, default=str)))
def test_load_raises_nothing_but_value_error(packed: str) -> None:
    try:
        load(packed)
    except ValueError:
        return
    pytest.fail("random text was read as a schedule")


def test_loads_are_cached_within_bounds() -> None:
    timing = parse(DAILY, now=NOW)

    assert load(timing.packed) is load(timing.packed)
    assert module.load.cache_info().maxsize == 4096


@pytest.mark.parametrize("member", [*NOTATIONS, "startTime", "timezone"])
@pytest.mark.parametrize("text", ["*,", "1-", "9", "P1", "PT", "0 ", "-", "@", "/", "2027-01-01T", "Z"])
def test_texts_at_the_length_limit_are_parsed_in_linear_work(member: str, text: str) -> None:
    """A text of a thousand characters of any one kind is refused or parsed; nothing backtracks."""
    fields = {**(DAILY if member not in NOTATIONS else {}), member: (text * 1_000)[:1_000]}

    assert refusal(fields).field == member
