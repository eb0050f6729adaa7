"""Short forms for request bodies: `http.post(url, payload=...)` for actions, `cron(...)` and others for schedules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sweephand.sdk.model import snake
from sweephand.sdk.transport.request import duration_text, instant_text, to_json

Body = dict[str, Any]
_ZONE, _START, _END = "timezone", "startTime", "endTime"


def cron(expression: str, *, zone: str | None = None, **members: Any) -> Body:
    """Returns a schedule for a five-field cron expression, such as `30 2 * * 1-5`.

    members: further members of the API's schedule, in snake case.
    """
    return _schedule({"cron": expression}, zone, members)


def every(interval: str | timedelta, *, zone: str | None = None, **members: Any) -> Body:
    """Returns a schedule for an interval: `5m`, `PT10S`, `10 seconds`, or a timedelta."""
    return _schedule({"every": duration_text(interval) if isinstance(interval, timedelta) else interval}, zone, members)


def at(instant: str | datetime, *, zone: str | None = None, **members: Any) -> Body:
    """Returns a schedule for one instant. A datetime without a zone is the wall time in `zone`."""
    return _schedule({"at": instant_text(instant) if isinstance(instant, datetime) else instant}, zone, members)


def rrule(rule: str, *, zone: str | None = None, **members: Any) -> Body:
    """Returns a schedule for a recurrence rule of RFC 5545, such as `FREQ=WEEKLY;BYDAY=MO`."""
    return _schedule({"rrule": rule}, zone, members)


def event(detail_type: str = "job", **members: Any) -> Body:
    """Returns an action that publishes an event on the stack's own bus."""
    return {"type": "event", "detailType": detail_type, **camel(members)}


def task(application: str, name: str, **members: Any) -> Body:
    """Returns an action that starts a task of an application's workers."""
    return {"type": "queue", "application": application, "task": name, **camel(members)}


class http:  # noqa: N801 - so that a call reads `http.post(...)`
    """Actions over HTTP: `http.post("https://example.org/run", payload={"report": 1})`."""

    @staticmethod
    def get(url: str, **members: Any) -> Body:
        return http.call("GET", url, **members)

    @staticmethod
    def post(url: str, **members: Any) -> Body:
        return http.call("POST", url, **members)

    @staticmethod
    def put(url: str, **members: Any) -> Body:
        return http.call("PUT", url, **members)

    @staticmethod
    def patch(url: str, **members: Any) -> Body:
        return http.call("PATCH", url, **members)

    @staticmethod
    def delete(url: str, **members: Any) -> Body:
        return http.call("DELETE", url, **members)

    @staticmethod
    def call(method: str, url: str, **members: Any) -> Body:
        """Returns an action that calls a URL with any method.

        members: further members of the action, such as `payload`, `headers`, `authentication`, `outcome` and `retry`.
        """
        return {"type": "http", "method": method, "url": url, **camel(members)}


def _schedule(timing: Body, zone: str | None, members: Mapping[str, Any]) -> Body:
    return {**timing, **({} if zone is None else {_ZONE: zone}), **camel(members)}


def camel(members: Mapping[str, Any]) -> Body:
    """Returns the members under their names in the API. Names inside their values stay as they are."""
    return {_camel_name(name): to_json(value) for name, value in members.items()}


def _camel_name(name: str) -> str:
    if snake(name) != name:
        return name
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
