"""The own hooks of a job's schedules, as stored and as shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from sweephand.base.records import dataclass
from sweephand.domain.job import ActionSpec, Job
from sweephand.domain.runs.run_action import policies_of
from sweephand.domain.schedule import Schedule
from sweephand.server.facades.native.members import defaults
from sweephand.server.facades.native.members.defaults import Filling

ByName = Mapping[str, ActionSpec]


@dataclass(frozen=True)
class StoredHooks:
    """The schedules that a change may refer to, each with its policies and own hooks.

    A schedule is found by its id, or else by its name, as in the change itself. single: True if there is only one,
    which matches any name. waits_s: see defaults.Filling.
    """

    job: Job
    schedules: Sequence[Schedule] = ()
    hooks: Mapping[str, ByName] = field(default_factory=dict)
    single: bool = False
    waits_s: int | None = None

    def find(self, schedule_id: object, name: object) -> Schedule | None:
        if self.single:
            return self.schedules[0]
        for each in self.schedules:
            if (each.id == schedule_id) if schedule_id is not None else (each.name == name):
                return each
        return None

    def shown(self, schedule: Schedule) -> dict[str, Any]:
        """Returns a schedule's hooks by name, with payloads, and with secrets as `***`."""
        filling, hooks = self.of(schedule)
        return {name: _body(hook, filling) for name, hook in hooks.items()}

    def of(self, schedule: Schedule | None) -> tuple[Filling, ByName]:
        """Returns the filling for a schedule's hooks, and the hooks."""
        hooks = self.hooks.get(schedule.id, {}) if schedule is not None else {}
        return Filling(policies_of(self.job, schedule), self.waits_s), hooks


def _body(hook: ActionSpec, filling: Filling) -> dict[str, Any]:
    body = {**defaults.shown_action(hook, filling), "payload": None, "body": None}
    payload = hook.inline.payload if hook.inline is not None else None
    if payload is not None:
        body["payload" if payload.is_json else "body"] = defaults.payload_value(payload)
    return body
