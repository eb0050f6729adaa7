"""Hypothesis strategies: recurrence rules of RFC 5545."""

from __future__ import annotations

from datetime import datetime

from hypothesis import strategies as st

from sweephand.schedules.zones.localtime import to_instant

WEEKDAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
SHORT = ("HOURLY", "MINUTELY", "SECONDLY")
FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", *SHORT)
starts = st.integers(365 * 86_400, 180 * 365 * 86_400).map(lambda second: to_instant(second).replace(tzinfo=None))


def numbers(low: int, high: int, most: int = 3) -> st.SearchStrategy[str]:
    both = st.integers(low, high).filter(bool) if low < 0 else st.integers(low, high)
    return st.lists(both, min_size=1, max_size=most, unique=True).map(lambda chosen: ",".join(map(str, chosen)))


weekday_lists = st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=5, unique=True).map(",".join)
ordinals = st.tuples(st.sampled_from([1, 2, 3, 4, 5, -1, -2, -5]), st.sampled_from(WEEKDAYS)).map("{0[0]}{0[1]}".format)
ordinal_lists = st.lists(ordinals, min_size=1, max_size=3, unique=True).map(",".join)


@st.composite
def rules(draw: st.DrawFn, frequency: str, start: datetime) -> str:  # noqa: C901 - a line for each part
    """Draws a rule that RFC 5545 allows. With hours and shorter steps, each list has the value of its beginning: it
    fires soon.
    """
    parts = {"FREQ": frequency}
    often = st.sampled_from([True, False, False])
    short = frequency in SHORT
    if draw(often):
        most = {"YEARLY": 4, "MONTHLY": 40, "SECONDLY": 20_000, "MINUTELY": 3_000}.get(frequency, 400)
        parts["INTERVAL"] = str(draw(st.integers(1, 12) | st.integers(1, most)))

    def some_of(name: str, low: int, high: int, own: int, most: int = 3) -> None:
        parts[name] = draw(numbers(low, high, most)) + (f",{own}" if short else "")

    rarely = frequency in ("MINUTELY", "SECONDLY")  # dateutil looks at each second of the days that a year leaves out
    if draw(often) and not rarely:
        some_of("BYMONTH", 1, 12, start.month)
    if draw(often) and frequency == "YEARLY":
        some_of("BYWEEKNO", -53, 53, 1)
    if draw(often) and frequency in ("HOURLY", "YEARLY"):
        some_of("BYYEARDAY", -366, 366, start.timetuple().tm_yday, 12)
    if draw(often) and frequency not in ("WEEKLY", "SECONDLY"):
        some_of("BYMONTHDAY", -31, 31, start.day, 12)
    if draw(often):
        days = weekday_lists
        if frequency == "MONTHLY" or (frequency == "YEARLY" and "BYWEEKNO" not in parts):
            days |= ordinal_lists
        if frequency == "YEARLY" and "BYWEEKNO" not in parts and "BYMONTH" not in parts:
            of_year = st.tuples(st.integers(-53, 53).filter(bool), st.sampled_from(WEEKDAYS))
            days |= of_year.map("{0[0]}{0[1]}".format)
        parts["BYDAY"] = draw(days) + (f",{WEEKDAYS[start.weekday()]}" if short else "")
    for name, high, own in (("BYHOUR", 23, start.hour), ("BYMINUTE", 59, start.minute), ("BYSECOND", 59, start.second)):
        if draw(often):
            some_of(name, 0, high, own, 4)
    if draw(st.booleans()) and any(name.startswith("BY") for name in parts):
        # dateutil never ends where a short period has no instant at a position: one always has a first
        parts["BYSETPOS"] = draw(numbers(-4, 4, 3)) + ",1" if short else draw(numbers(-366, 366, 3) | numbers(-4, 4, 3))
    if draw(often):
        parts["WKST"] = draw(st.sampled_from(WEEKDAYS))
    order = draw(st.permutations(sorted(parts)))
    return ";".join(f"{name}={parts[name]}" for name in order)


@st.composite
def rrules(draw: st.DrawFn) -> str:
    """Draws a text with its own beginning, some with an end, some with dates alone."""
    start = draw(starts)
    if draw(st.integers(0, 5)) == 0:
        named = ",".join(f"{each:%Y%m%dT%H%M%S}" for each in draw(st.lists(starts, min_size=1, max_size=5)))
        return f"DTSTART:{start:%Y%m%dT%H%M%S}\nRDATE:{named}"
    rule = draw(rules(draw(st.sampled_from(FREQUENCIES)), start))
    end = draw(st.sampled_from(["", "", ";COUNT=1", ";COUNT=30", f";UNTIL={start.year + 9}0601T120000Z"]))
    except_on = draw(st.sampled_from(["", f"\nEXDATE;VALUE=DATE:{start:%Y%m%d}"]))
    return f"DTSTART:{start:%Y%m%dT%H%M%S}\nRRULE:{rule}{end}{except_on}"
