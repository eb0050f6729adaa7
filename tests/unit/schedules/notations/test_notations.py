"""A notation owns its schema and its defaults, and no list of the tests may miss one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sweephand.base.errors import InvalidRequest
from sweephand.base.json_text import dumps
from sweephand.schedules.notations import NOTATIONS, defaults_of
from sweephand.schedules.timing import TIMING_MEMBERS, Timing, parse
from sweephand.schedules.zones.localtime import Gap, MonthOverflow, Overlap
from sweephand.server.facades.native.members import defaults, idle
from tests.contract.native import filled, shapes
from tests.support.examples import scaled
from tests.unit.schedules import given as some
from tools.openapi import schedule_schemas

RULES = {"dstGap": Gap, "dstOverlap": Overlap, "monthOverflow": MonthOverflow}
EVERY_NOTATION = pytest.mark.parametrize("notation", sorted(NOTATIONS))
EDITOR = Path(__file__).parents[4] / "functions" / "console" / "static" / "pages" / "edit.js"
SLOW = settings(max_examples=scaled(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def test_the_lists_of_the_tests_include_every_notation() -> None:
    assert set(some.BY_NOTATION) == set(NOTATIONS)
    assert set(shapes.OF_NOTATION) == set(NOTATIONS)
    assert set(NOTATIONS) - set(filled.VALUES) == set()


def test_the_editor_of_the_console_offers_every_notation() -> None:
    """A schedule in a notation that it does not know would be shown as a cron, and saved as one."""
    (offered,) = re.findall(r"const NOTATIONS = \{(.*?)^\};", EDITOR.read_text(), re.DOTALL | re.MULTILINE)

    assert set(re.findall(r"(\w+): \[", offered)) == set(NOTATIONS)


def test_the_schemas_include_every_notation() -> None:
    assert set(schedule_schemas.NOTATIONS) == set(NOTATIONS)
    assert set(NOTATIONS) <= TIMING_MEMBERS


@EVERY_NOTATION
def test_a_notation_describes_its_member_in_plain_json(notation: str) -> None:
    schema = NOTATIONS[notation].SCHEMA

    assert schema["description"]
    assert schema.keys() & {"type", "oneOf", "anyOf"}
    assert dumps(schema)


@EVERY_NOTATION
def test_an_answer_shows_the_rules_that_a_notation_has_defaults_for(notation: str) -> None:
    assert shapes.OF_NOTATION[notation] == {notation, *NOTATIONS[notation].DEFAULTS}


@EVERY_NOTATION
@given(data=st.data())
@SLOW
def test_a_default_that_is_stated_changes_nothing(notation: str, data: st.DataObject) -> None:
    if not NOTATIONS[notation].DEFAULTS:
        return
    own, before = drawn(notation, data)
    # A schedule that runs through clock changes shows the rules of those that fix an hour, and takes none of them.
    assume("marked=False" not in repr(before.rule))

    for member, usual in defaults_of(notation, own[notation]).items():
        stated = before if member in own else parsed({**own, member: usual})
        assert stated is None or series(stated) == series(before)


@EVERY_NOTATION
@given(data=st.data())
@SLOW
def test_a_rule_shown_without_a_default_has_no_effect(notation: str, data: st.DataObject) -> None:
    own, before = drawn(notation, data)

    for member in RULES.keys() - defaults_of(notation, own[notation]).keys():
        for rule in RULES[member]:
            stated = parsed({**own, member: rule.value})
            assert stated is None or series(stated) == series(before)


@EVERY_NOTATION
@given(data=st.data())
@SLOW
def test_a_notation_knows_which_of_its_values_are_one_instant(notation: str, data: st.DataObject) -> None:
    own, timing = drawn(notation, data)

    assert idle.is_one_time(own) is not timing.recurring


@EVERY_NOTATION
@given(data=st.data())
@SLOW
def test_a_shown_schedule_means_the_same_when_sent_back(notation: str, data: st.DataObject) -> None:
    own, before = drawn(notation, data)

    shown = {name: value for name, value in defaults.shown_timing(own).items() if value not in (None, [])}
    again = parsed(defaults.without_defaults(shown, defaults.timing_defaults(shown)))

    assert again is not None
    assert series(again) == series(before)


def drawn(notation: str, data: st.DataObject) -> tuple[dict[str, object], Timing]:
    """Returns members of this notation in a zone whose clock changes, without rules, and their timing."""
    found = data.draw(some.BY_NOTATION[notation])
    own = {"timezone": "Europe/Berlin", **{name: value for name, value in found.items() if name not in RULES}}
    timing = parsed(own)
    assume(timing is not None)
    assert timing is not None
    return own, timing


def parsed(fields: dict[str, object]) -> Timing | None:
    """Returns None for what is refused."""
    try:
        return parse(fields, now=some.NOW)
    except InvalidRequest:
        return None


def series(timing: Timing) -> object:
    """Returns what two schedules that run alike share: the one instant, else the rule."""
    return timing.once_at or repr(timing.rule)
