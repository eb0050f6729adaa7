"""An effect once for a key: what each death, each lost answer and each second process does to it, in both stores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from moto import mock_aws

from sweephand.sdk.errors import InvalidArgument, TransportError
from sweephand.sdk.worker import Dedupe, DynamoMarks, InProgress, MemoryMarks, Unsure
from sweephand.testing.sources import SeededChance, VirtualClock

WEEK_S = 7 * 86_400
PROCESSES = count(1)


class Death(BaseException):
    """The end of the process in the middle of a call."""


class Faulty:
    """A store whose next call of `method` ends with a fault, before or after it has acted."""

    def __init__(self, marks: Any) -> None:
        self._marks = marks
        self._planned: list[tuple[str, str, BaseException]] = []

    def plan(self, method: str, when: str, fault: BaseException) -> None:
        self._planned.append((method, when, fault))

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            planned = [each for each in self._planned if each[0] == method]
            self._planned = [each for each in self._planned if each[0] != method]
            for _, when, fault in planned:
                if when == "before":
                    raise fault
            answer = getattr(self._marks, method)(*arguments, **named)
            for _, _, fault in planned:
                raise fault
            return answer

        return call


def with_table():
    """Returns a client of DynamoDB with the table of effects."""
    client = boto3.client("dynamodb", region_name="eu-central-1", aws_access_key_id="a", aws_secret_access_key="b")
    client.create_table(
        TableName="effects",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return client


@pytest.fixture(params=["memory", "dynamodb"])
def marks(request):
    if request.param == "memory":
        yield Faulty(MemoryMarks())
        return
    with mock_aws():
        client = with_table()
        yield Faulty(DynamoMarks("effects", client=client))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def made(marks, clock, **more) -> Dedupe:
    return Dedupe(marks, clock=clock, chance=SeededChance(next(PROCESSES)), **more)


def attempt(dedupe: Dedupe, effects: list[str], key: str = "pay/1", fault: BaseException | None = None) -> None:
    with dedupe(key) as first:
        if first:
            effects.append(key)
            if fault is not None:
                raise fault


def test_an_effect_happens_once_for_its_key(marks, clock):
    effects: list[str] = []

    for key in ("pay/1", "pay/1", "pay/2", "pay/1"):
        attempt(made(marks, clock), effects, key)

    assert effects == ["pay/1", "pay/2"]


def test_an_effect_is_remembered_for_seven_days_after_it(marks, clock):
    effects: list[str] = []
    with made(marks, clock)("pay/1"):
        effects.append("pay/1")
        clock.advance(50)  # a long effect

    clock.advance(WEEK_S - 1)
    attempt(made(marks, clock), effects)
    assert len(effects) == 1
    clock.advance(2)
    attempt(made(marks, clock), effects)
    assert len(effects) == 2


@pytest.mark.parametrize("at_most_once", [False, True])
def test_an_effect_that_fails_frees_its_key_at_once(marks, clock, at_most_once):
    effects: list[str] = []
    dedupe = made(marks, clock, at_most_once=at_most_once)

    with pytest.raises(ValueError, match="refused"):
        attempt(dedupe, effects, fault=ValueError("refused"))
    attempt(dedupe, effects)
    attempt(dedupe, effects)

    assert len(effects) == 2


def test_a_second_process_waits_until_the_claim_ends(marks, clock):
    effects: list[str] = []
    one, other = made(marks, clock), made(marks, clock)

    with one("pay/1") as first:
        assert first
        clock.advance(20)
        with pytest.raises(InProgress, match='"pay/1" is claimed by another process for') as waits:
            attempt(other, effects)
    attempt(other, effects)

    assert 39 <= waits.value.wait_s <= 41
    assert effects == []


DEATHS = [("claim", "before"), ("claim", "after"), ("effect", ""), ("confirm", "before"), ("confirm", "after")]
HAPPENED = {("claim", "before"): 0, ("claim", "after"): 0}


def die(marks, clock, effects, method: str, when: str, **more) -> None:
    if method != "effect":
        marks.plan(method, when, Death())
    with pytest.raises(Death):
        attempt(made(marks, clock, **more), effects, fault=Death() if method == "effect" else None)


@pytest.mark.parametrize(("method", "when"), DEATHS)
def test_a_death_repeats_the_effect_at_least_once_after_the_lease(marks, clock, method, when):
    effects: list[str] = []
    die(marks, clock, effects, method, when)
    before = len(effects)

    later = made(marks, clock)
    claimed = (method, when) not in {("claim", "before"), ("confirm", "after")}
    if claimed:
        with pytest.raises(InProgress):
            attempt(later, effects)
    clock.advance(61)
    attempt(later, effects)
    attempt(later, effects)

    assert before == HAPPENED.get((method, when), 1)
    assert len(effects) - before == (0 if (method, when) == ("confirm", "after") else 1)


@pytest.mark.parametrize(("method", "when"), DEATHS)
def test_a_death_never_repeats_an_effect_that_happens_at_most_once(marks, clock, method, when):
    effects: list[str] = []
    die(marks, clock, effects, method, when, at_most_once=True)

    later = made(marks, clock, at_most_once=True)
    clock.advance(61)
    if (method, when) in {("claim", "before"), ("confirm", "after")}:
        attempt(later, effects)
    else:
        for _ in range(2):
            with pytest.raises(Unsure, match='"pay/1" was begun, and it is unknown whether it happened'):
                attempt(later, effects)

    assert len(effects) == (0 if (method, when) == ("claim", "after") else 1)


@pytest.mark.parametrize("at_most_once", [False, True])
def test_a_claim_whose_answer_is_lost_is_abandoned_before_the_effect(marks, clock, at_most_once):
    effects: list[str] = []
    dedupe = made(marks, clock, at_most_once=at_most_once)
    marks.plan("claim", "after", TransportError("no answer"))

    with pytest.raises(TransportError):
        attempt(dedupe, effects)
    attempt(dedupe, effects)

    assert len(effects) == 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_confirmation_without_an_answer_is_logged_and_raises_nothing(marks, clock, caplog, when):
    effects: list[str] = []
    marks.plan("confirm", when, TransportError("no answer"))

    attempt(made(marks, clock), effects)

    assert len(effects) == 1
    assert 'the effect "pay/1" happened but may not be remembered' in caplog.text


def test_a_release_without_an_answer_keeps_the_error_of_the_effect_and_the_lease(marks, clock):
    effects: list[str] = []
    dedupe = made(marks, clock)
    marks.plan("release", "before", TransportError("no answer"))

    with pytest.raises(ValueError, match="refused"):
        attempt(dedupe, effects, fault=ValueError("refused"))
    with pytest.raises(InProgress):
        attempt(dedupe, effects)
    clock.advance(61)
    attempt(dedupe, effects)

    assert len(effects) == 2


def test_a_slow_process_that_fails_does_not_free_the_claim_of_another(marks, clock):
    slow, quick, third = made(marks, clock), made(marks, clock), made(marks, clock)

    one = slow("pay/1")
    one.__enter__()
    clock.advance(61)
    with quick("pay/1") as taken_over:
        one.__exit__(ValueError, ValueError("too late"), None)
        with pytest.raises(InProgress):
            attempt(third, [])

    assert taken_over


def test_an_effect_that_happened_stays_recorded_if_a_second_one_fails(marks, clock):
    slow, quick = made(marks, clock), made(marks, clock)
    third: list[str] = []

    one, two = slow("pay/1"), quick("pay/1")
    one.__enter__()
    clock.advance(61)
    two.__enter__()
    one.__exit__(None, None, None)
    two.__exit__(ValueError, ValueError("failed"), None)
    attempt(quick, third)

    assert third == []


@pytest.mark.parametrize("at_most_once", [False, True])
def test_an_effect_whose_answer_was_lost_keeps_its_claim(marks, clock, at_most_once):
    effects: list[str] = []
    dedupe = made(marks, clock, at_most_once=at_most_once)

    with pytest.raises(Unsure, match="no answer of the bank"):
        attempt(dedupe, effects, fault=Unsure("no answer of the bank"))
    with pytest.raises(InProgress):
        attempt(dedupe, effects)


def test_an_async_effect_happens_once(marks, clock):
    effects: list[str] = []
    dedupe = made(marks, clock)

    async def attempt_async(fault: Exception | None = None) -> None:
        async with dedupe("pay/1") as first:
            if first:
                effects.append("pay/1")
                if fault is not None:
                    raise fault

    with pytest.raises(ValueError, match="refused"):
        asyncio.run(attempt_async(ValueError("refused")))
    asyncio.run(attempt_async())
    asyncio.run(attempt_async())

    assert len(effects) == 2


@pytest.mark.parametrize("key", ["", "k" * 1_025])
def test_a_key_has_1_to_1024_characters(key):
    with pytest.raises(InvalidArgument, match=f"key must have 1 to 1024 characters, not {len(key)}"):
        Dedupe(MemoryMarks())(key)


@pytest.mark.parametrize("key", [None, 5, b"pay/1"])
def test_a_key_is_a_string(key):
    with pytest.raises(InvalidArgument) as refused:
        Dedupe(MemoryMarks())(key)
    assert str(refused.value) == f"key must be a string, such as the id of the run, not {key!r}"


def test_a_lease_is_shorter_than_the_retention():
    with pytest.raises(InvalidArgument, match="lease_s must be at least 1 and shorter than keep, not 0"):
        Dedupe(MemoryMarks(), lease_s=0)


def test_a_claim_that_botocore_sends_twice_is_recognized(clock):
    with mock_aws():
        client = with_table()
        put = client.put_item
        client.put_item = lambda **arguments: (put(**arguments), put(**arguments))[1]
        dedupe = made(DynamoMarks("effects", client=client), clock)

        with dedupe("pay/1") as first:
            assert first


def test_a_table_that_does_not_answer_is_named(clock):
    class Away:
        def put_item(self, **_):
            raise EndpointConnectionError(endpoint_url="https://dynamodb")

        delete_item = put_item

    with pytest.raises(TransportError, match="put_item of the table effects: Could not connect"):
        attempt(made(DynamoMarks("effects", client=Away()), clock), [])
