"""Hypothesis strategies: schedules as a caller writes them, zones, instants close to clock changes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.schedules.notations import NOTATIONS
from sweephand.schedules.text import duration
from sweephand.schedules.timing import Timing, parse
from sweephand.schedules.zones.localtime import LAST_SECOND, to_instant, zone
from tests.unit.schedules.given_rrule import rrules

ZONES = [
    "UTC",
    "America/New_York",
    "Europe/London",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Africa/Cairo",
    "Asia/Kolkata",
    "Pacific/Apia",
    "Atlantic/Azores",
    "Europe/Dublin",
    "Antarctica/Troll",
]
zones = st.sampled_from(ZONES)
NOW = datetime(2026, 3, 7, 12, 0, 0, tzinfo=UTC)


def parse_acting(fields: Mapping[str, object], now: datetime = NOW, salt: str = "") -> Timing:
    """Parses as `parse` does; rules for clock changes that do not act on the schedule, and so are refused, are left
    out.
    """
    try:
        return parse(fields, now=now, salt=salt)
    except InvalidRequest as refused:
        if refused.field not in ("dstGap", "dstOverlap") or "has no effect" not in refused.reason:
            raise
        return parse_acting({name: each for name, each in fields.items() if name != refused.field}, now, salt)


@st.composite
def seconds(draw: st.DrawFn, name: str, first: int = 0, last: int = LAST_SECOND) -> int:
    """Draws Unix seconds, half of them within two days of a change of that zone."""
    starts = [start for start in zone(name).starts if first + 400_000 < start < last - 400_000]
    if starts and draw(st.booleans()):
        return draw(st.sampled_from(starts)) + draw(st.integers(-172_800, 172_800))
    return draw(st.integers(first, last))


def _field(low: int, high: int, names: list[str]) -> st.SearchStrategy[str]:
    values = st.integers(low, high).map(str)
    if names:
        values = st.one_of(values, st.sampled_from([*names, *(name.upper() for name in names)]))
    numbers = st.integers(low, high)
    spans = st.tuples(numbers, numbers).map(lambda ends: f"{min(ends)}-{max(ends)}")
    steps = st.integers(1, high + 1).map(str)
    item = st.one_of(
        values,
        spans,
        st.tuples(st.one_of(spans, values, st.just("*")), steps).map("/".join),
    )
    return st.one_of(
        st.just("*"),
        values,
        st.integers(1, high).map("*/{}".format),
        st.lists(item, min_size=1, max_size=4).map(",".join),
    )


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_often = st.just("*")
crons = st.tuples(
    _field(0, 59, []),
    _field(0, 23, []),
    st.one_of(_often, _field(1, 28, []), _field(1, 31, [])),
    st.one_of(_often, _often, _field(1, 12, _MONTHS)),
    st.one_of(_often, _field(0, 7, _WEEKDAYS)),
).map(" ".join)

_dates = st.one_of(_field(1, 31, []), st.sampled_from(["L", "LW"]), st.integers(1, 31).map("{}W".format), st.just("*"))
_days = st.integers(1, 7).map(str) | st.sampled_from([name.upper() for name in _WEEKDAYS])
_weekdays = st.one_of(
    _field(1, 7, _WEEKDAYS),
    st.just("L"),
    _days.map("{}L".format),
    st.tuples(_days, st.integers(1, 5).map(str)).map("#".join),
)
_years = st.one_of(
    _often,
    _often,
    st.just("*/2"),
    st.integers(1970, 2199).map(str),
    st.tuples(st.integers(1970, 2080).map(str), st.integers(2080, 2199).map(str)).map("-".join),
)
event_bridge_crons = st.tuples(
    _field(0, 59, []),
    _field(0, 23, []),
    st.one_of(_dates.map(lambda day: (day, "?")), _weekdays.map(lambda day: ("?", day))),
    st.one_of(_often, _often, _field(1, 12, _MONTHS)),
    _years,
).map(lambda parts: f"{parts[0]} {parts[1]} {parts[2][0]} {parts[3]} {parts[2][1]} {parts[4]}")
event_bridges = st.one_of(
    event_bridge_crons.map("cron({})".format),
    st.integers(2, 548).map("rate({} days)".format),
    st.sampled_from(["rate(1 minute)", "rate(12 hours)", "at(2027-06-01T09:00:00)"]),
)


def _sap_field(low: int, high: int, numbers: st.SearchStrategy[int] | None = None) -> st.SearchStrategy[str]:
    values = st.integers(low, high) if numbers is None else numbers
    steps = st.integers(1, 9).map(str)
    spans = st.tuples(values, values).map(lambda ends: f"{min(ends)}:{max(ends)}")
    item = st.one_of(values.map(str), spans, st.tuples(spans, steps).map("/".join))
    divided = st.integers(1, max(1, high // 2)).map("*/{}".format)
    return st.one_of(_often, divided, st.lists(item | divided, min_size=1, max_size=3).map(",".join))


_sap_days = st.one_of(
    _often,
    _sap_field(1, 28),
    st.integers(-31, 31).filter(bool).map(str),
    st.tuples(st.integers(1, 15), st.integers(-14, -1)).map(lambda ends: f"{ends[0]}:{ends[1]}"),
    _sap_field(-31, -1, st.integers(-31, -1)),
)
_sap_names = st.sampled_from(["mon", "tue", "wed", "thu", "fri", "sat", "sun", "FRI", "Sun"])
_sap_nth = st.tuples(st.sampled_from(["-5", "-4", "-3", "-2", "-1", "1", "2", "3", "4", "5"]), _sap_names).map(".".join)
_sap_spans = st.tuples(_sap_names, _sap_names).map(":".join)
_sap_weekday = st.one_of(_sap_names, _sap_nth, _sap_spans, st.tuples(_sap_spans, st.sampled_from("123")).map("/".join))
_sap_weekdays = st.one_of(
    _often, _often, st.integers(1, 7).map("*/{}".format), st.lists(_sap_weekday, min_size=1, max_size=3).map(",".join)
)
_sap_years = st.one_of(
    _often,
    _often,
    st.integers(1, 9).map("*/{}".format),
    st.tuples(st.integers(1970, 2080).map(str), st.integers(2080, 2199).map(str)).map(":".join),
)
sap_crons = st.tuples(
    _sap_years,
    st.one_of(_often, _often, _sap_field(1, 12)),
    _sap_days,
    _sap_weekdays,
    _sap_field(0, 23),
    _sap_field(0, 59),
    st.one_of(st.just("0"), st.just("30"), _sap_field(0, 59)),
).map(" ".join)
times = st.sampled_from(
    [
        "now",
        "in 2 hours",
        "3 days from now",
        "2027-W06-5",
        "Mon, 08 Feb 2027 09:30:00 GMT",
        "2027-039T09:30+07:00",
    ]
)
daily_times = st.sampled_from(["4.40pm", "18.40", "17.20:30", "0:00", "noon", "2.30am", "23:59:59"])


def _some(values: st.SearchStrategy[object], most: int) -> st.SearchStrategy[list[object]]:
    """Draws some of the values, often none at all."""
    return st.one_of(st.just([]), st.lists(values, min_size=1, max_size=most))


_weekday_names = st.sampled_from(
    ["monday", "Tuesday", "WEDNESDAY", "thursday", "friday", "saturday", "sunday"]
)  # any case
_longest = {"minute": 1_000, "hour": 1_000, "day": 548, "week": 78, "month": 18, "year": 1}


@st.composite
def recurrences(draw: st.DrawFn) -> dict[str, object]:
    """Draws recurrences as Azure Scheduler wrote them, most with a short interval."""
    unit = draw(st.sampled_from(list(_longest)))
    interval = draw(st.integers(1, min(4, _longest[unit])) | st.integers(1, _longest[unit]))
    schedule = {
        "minutes": draw(_some(st.integers(0, 59), 4)),
        "hours": draw(_some(st.integers(0, 23), 4) | st.just(list(range(24)))),
    }
    if unit == "week":
        schedule["weekDays"] = draw(_some(_weekday_names, 4))
    if unit == "month":
        days = st.integers(1, 31) | st.integers(-31, -1) | st.sampled_from([29, 30, 31, -1])
        nth = st.fixed_dictionaries(
            {"day": _weekday_names}, optional={"occurrence": st.integers(1, 5) | st.integers(-5, -1)}
        )
        schedule |= draw(
            st.fixed_dictionaries({"monthDays": _some(days, 4)})
            | st.fixed_dictionaries({"monthlyOccurrences": _some(nth, 3)})
        )
    made: dict[str, object] = {"frequency": draw(st.sampled_from([unit, unit.title()])), "interval": interval}
    return {**made, "schedule": schedule} if any(schedule.values()) else made


gaps = st.sampled_from(["skip", "next_valid", "shift"])
overlaps = st.sampled_from(["first", "second", "both"])
overflows = st.sampled_from(["skip", "clamp", "next"])
_STEPS = [
    1,
    10,
    60,
    840,
    900,
    1800,
    2400,
    3600,
    7200,
    10_800,
    21_600,
    25_200,
    43_200,
    86_400,
    172_800,
    604_800,
    47_347_200,
]
everies = st.one_of(
    st.sampled_from(_STEPS).map("PT{}S".format),
    st.integers(1, 548).map("{} days".format),
    st.integers(1, 18).map("P{}M".format),
    st.just("P1Y"),
)


@st.composite
def _every(draw: st.DrawFn) -> dict[str, object]:
    text = draw(everies)
    months = text.startswith("P") and text[-1] in "MY"
    aligns = ["start", "clock", "epoch"] + ([] if months else ["actual_start"])
    align = draw(st.sampled_from(aligns))
    if align == "clock" and not months and 86_400 % max(1, duration.read(text, "every").seconds):
        align = "epoch"
    return {"every": text, "align": align, "monthOverflow": draw(overflows)}


_moving = st.fixed_dictionaries(
    {"cron": crons.filter(lambda text: text.split()[2][:2] != "*/"), "monthOverflow": overflows}
)
BY_NOTATION: dict[str, st.SearchStrategy[dict[str, object]]] = {
    "at": zones.flatmap(seconds).map(lambda second: {"at": text_of(second)}),
    "every": _every(),
    "cron": st.fixed_dictionaries({"cron": crons}) | _moving,
    "eventBridge": st.fixed_dictionaries({"eventBridge": event_bridges}),
    "sapCron": st.fixed_dictionaries({"sapCron": sap_crons}),
    "time": st.fixed_dictionaries({"time": times}),
    "repeatAt": st.fixed_dictionaries({"repeatAt": daily_times}),
    "rrule": st.fixed_dictionaries({"rrule": rrules()}),
    "recurrence": st.fixed_dictionaries({"recurrence": recurrences(), "monthOverflow": overflows}),
}
"""The members of a notation's own. A new notation joins the shared properties by its line here."""


@st.composite
def fields(draw: st.DrawFn) -> dict[str, object]:
    """Draws the timing members of a schedule, with or without a window, jitter and its own rules."""
    name = draw(zones)
    kind = draw(st.sampled_from(list(BY_NOTATION)))
    made = {"timezone": name, "dstGap": draw(gaps), "dstOverlap": draw(overlaps), **draw(BY_NOTATION[kind])}
    if draw(st.booleans()):
        made["jitterSeconds"] = draw(st.sampled_from([1, 30, 3600]))
    if kind not in ("at", "time") and draw(st.booleans()):
        start = draw(seconds(name))
        made["startTime"] = text_of(start)
        if draw(st.booleans()):
            made["endTime"] = text_of(min(start + draw(st.integers(0, 10**9)), LAST_SECOND))
    return {member: value for member, value in made.items() if draw(st.integers(0, 5)) or member in NOTATIONS}


def text_of(second: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")


def instants(name: str) -> st.SearchStrategy[datetime]:
    return seconds(name).map(to_instant)
