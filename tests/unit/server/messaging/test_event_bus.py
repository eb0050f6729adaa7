from __future__ import annotations

import json

import pytest

from sweephand.domain import event
from sweephand.domain.event import Event, EventType
from sweephand.server.messaging.event_bus import EventBus
from sweephand.testing.bus import VirtualBus
from sweephand.testing.sources import SeededChance, VirtualClock
from sweephand.testing.taps import Taps
from tests.support.bus import first_entry_fails, refused_by_bus
from tests.support.taps import refused
from tests.unit.domain.nouns import NOW, job

PUT = "events.PutEvents"


class Bus:
    def __init__(self) -> None:
        self.clock, self.taps = VirtualClock(NOW), Taps()
        self.virtual = VirtualBus(self.taps, "the-bus")
        self.bus = EventBus(self.virtual, "the-bus", self.clock, SeededChance())


@pytest.fixture
def there() -> Bus:
    return Bus()


def events(count: int) -> list[Event]:
    return [
        event.of_job(EventType.JOB_CREATED, job(id=f"00000000-0000-7000-8000-{n:012d}", name=f"job {n}"))
        for n in range(count)
    ]


def test_all_entries_are_sent_ten_per_call(there: Bus) -> None:
    assert there.bus.publish(events(23)) == []

    assert [len(passing.request["Entries"]) for passing in there.taps.passed] == [10, 10, 3]
    assert [told.id for told in there.virtual.told] == [each.id for each in events(23)]


def test_an_entry_names_bus_source_type_and_time(there: Bus) -> None:
    (wanted,) = events(1)
    there.bus.publish([wanted])

    (entry,) = there.taps.passed[0].request["Entries"]
    assert (entry["EventBusName"], entry["Source"]) == ("the-bus", "sweephand")
    assert (entry["DetailType"], entry["Time"]) == ("job.created", wanted.at)
    assert json.loads(entry["Detail"]) == wanted.detail


def test_no_events_make_no_call(there: Bus) -> None:
    assert there.bus.publish([]) == []
    assert there.taps.passed == []


def test_only_events_that_the_bus_rejected_are_sent_again(there: Bus) -> None:
    with there.taps.once(PUT, first_entry_fails):
        assert there.bus.publish(events(3)) == []

    assert [len(passing.request["Entries"]) for passing in there.taps.passed] == [3, 1]
    assert sorted(told.id for told in there.virtual.told) == [each.id for each in events(3)]


@pytest.mark.parametrize("fault", [refused, refused_by_bus])
def test_events_refused_after_three_repeats_come_back(there: Bus, fault) -> None:
    with there.taps.faulty(fault):
        assert there.bus.publish(events(2)) == events(2)

    assert there.taps.count(PUT) == 4
    assert 0.1 < there.clock.slept_s < 2


def test_one_failing_call_does_not_delay_the_others(there: Bus) -> None:
    with there.taps.once(PUT, refused):
        assert there.bus.publish(events(12)) == []

    assert len(there.virtual.told) == 12


def test_a_bus_without_a_name_takes_nothing() -> None:
    """A function that was given no bus must not send to the account's own: botocore refuses the empty name."""
    from botocore.session import get_session  # noqa: PLC0415

    client = get_session().create_client(
        "events", region_name="eu-central-1", aws_access_key_id="none", aws_secret_access_key="none"
    )

    assert EventBus(client, "", VirtualClock(NOW), SeededChance()).publish(events(1)) == events(1)
