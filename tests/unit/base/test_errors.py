"""Refusals: each keeps its class and its members, however often it is wrapped; mistakes are bounded."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import sweephand
from sweephand.base.errors import MOST_SHOWN, InvalidRequest, Mistakes
from sweephand.schedules.rule import Undecided
from sweephand.server.facades.native.context import in_query


def classes(of: type = InvalidRequest) -> Iterator[type[InvalidRequest]]:
    yield of
    for each in of.__subclasses__():
        yield from classes(each)


def every_refusal() -> list[InvalidRequest]:
    """Returns one refusal of each class of the package that has a reason of its own."""
    for module in pkgutil.walk_packages(sweephand.__path__, "sweephand."):
        if module.name.startswith(
            ("sweephand.base.errors", "sweephand.schedules", "sweephand.domain", "sweephand.server.flow")
        ):
            importlib.import_module(module.name)
    return [each("cron", "is wrong") for each in classes()]


@pytest.fixture(params=every_refusal(), ids=lambda refusal: type(refusal).__name__)
def refusal(request: pytest.FixtureRequest) -> InvalidRequest:
    refused: InvalidRequest = request.param
    return refused.changed(position=3, code="NEVER_FIRES", others=(refused, InvalidRequest("every", "is wrong too")))


def test_the_package_has_refusals_of_more_than_one_class() -> None:
    assert {InvalidRequest, Undecided} <= {type(each) for each in every_refusal()}


def test_a_refusal_within_another_member_keeps_its_class_and_members(refusal: InvalidRequest) -> None:
    inner = refusal.within("schedules[0]").within("jobs[2]")

    assert type(inner) is type(refusal)
    assert (inner.field, inner.reason, str(inner)) == ("jobs[2].schedules[0].cron", "is wrong", "is wrong")
    assert (inner.position, inner.code) == (3, "NEVER_FIRES")
    assert [each.field for each in inner.others] == ["jobs[2].schedules[0].cron", "jobs[2].schedules[0].every"]
    assert type(inner.others[0]) is type(refusal)


def test_a_refusal_alone_keeps_all_but_the_others(refusal: InvalidRequest) -> None:
    single = refusal.alone()

    assert type(single) is type(refusal)
    assert vars(single) == {**vars(refusal), "others": ()}


def test_collected_mistakes_keep_their_classes(refusal: InvalidRequest) -> None:
    mistakes = Mistakes()
    mistakes.add(InvalidRequest("at", "is wrong"))
    mistakes.add(refusal)

    with pytest.raises(InvalidRequest) as refused:
        mistakes.check()

    assert [each.field for each in refused.value.all] == ["at", "cron", "every"]
    assert type(refused.value.all[1]) is type(refusal)


def test_a_refusal_of_a_query_keeps_its_class_and_the_others(refusal: InvalidRequest) -> None:
    with pytest.raises(InvalidRequest) as refused, in_query():
        raise refusal

    assert type(refused.value) is type(refusal)
    assert {each.code for each in refused.value.all} == {"INVALID_QUERY"}
    assert [each.field for each in refused.value.all] == ["cron", "cron", "every"]


def test_reading_stops_at_the_first_mistake_beyond_those_shown() -> None:
    mistakes, read = Mistakes(), []

    def refuse(n: int) -> object:
        read.append(n)
        raise InvalidRequest(f"m{n}", "is wrong")

    with pytest.raises(InvalidRequest) as refused:
        all(mistakes.of(refuse, n) is None for n in range(10_000))

    assert len(read) == MOST_SHOWN + 1
    assert [each.field for each in refused.value.all] == [f"m{n}" for n in range(MOST_SHOWN + 1)]


def test_mistakes_in_parts_stop_the_whole() -> None:
    mistakes, parts = Mistakes(), []

    def part(n: int) -> object:
        parts.append(n)
        own = Mistakes()
        for m in range(20):
            own.add(InvalidRequest(f"part[{n}].m{m}", "is wrong"))
        return own.check()

    with pytest.raises(InvalidRequest) as refused:
        all(mistakes.of(part, n) is None for n in range(500))

    assert parts == [0, 1, 2]
    assert len(refused.value.all) == 60


def test_a_field_keeps_its_first_reason() -> None:
    mistakes = Mistakes()
    for n in range(1_000):
        mistakes.add(InvalidRequest("cron", f"reason {n}"))

    assert [each.reason for each in mistakes.all] == ["reason 0"]
