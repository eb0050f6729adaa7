"""An absent worker on the overview: no green for an instant without a row, and an item that needs attention."""

from __future__ import annotations

from datetime import timedelta

from tests.browser.test_overview import _text
from tests.local_stack.waiting import CLOCK


def _lane(**members):
    nothing = {"seconds": [], "leftOut": 0}
    start = CLOCK.now().replace(microsecond=0) - timedelta(days=1)
    lane = {"jobId": "job-1", "name": "billing/report", "revision": 1, "state": "ACTIVE", "sentence": None}
    lane |= {"schedules": [], "marks": [], "noFailure": {**nothing, "since": _text(start)}, "noRow": nothing}
    return {
        "now": _text(start + timedelta(days=1)),
        "from": _text(start),
        "until": _text(start + timedelta(days=2)),
        "marksFrom": _text(start),
        "since": "x",
        "items": [{**lane, "planned": nothing, **members}],
        "nextCursor": None,
        "readUnits": 1,
        "askAgainAfterSeconds": 30,
    }


def test_an_instant_without_a_row_is_not_green_and_the_application_needs_attention(opened, demo):
    page = opened("/jobs")
    seen = {"seconds": [3_600, 14_400], "leftOut": 0, "since": "2026-01-01T00:00:00Z"}
    shown = _lane(noFailure=seen, noRow={"seconds": [43_200, 72_000], "leftOut": 0})
    page.route("**/v1/timeline?**", lambda route: route.fulfill(json=shown))
    page.route("**/v1/attention", lambda route: route.fulfill(json=_attention()))

    page.get_by_role("link", name="Overview").click()

    lane = page.get_by_role("row").filter(has_text="billing/report")
    lane.get_by_text("2 without a recorded failure, 2 due with nothing recorded").wait_for(state="attached")
    assert (lane.locator(".dot.ok").count(), lane.locator(".dot.due").count()) == (2, 2)
    item = page.get_by_role("listitem").filter(has_text="No worker of billing has taken a run for 4 min")
    item.locator(".shape.failed").wait_for()


def test_an_instant_that_passes_while_the_page_is_open_does_not_turn_green(opened, demo):
    page = opened("/jobs")
    page.clock.install()
    page.route(
        "**/v1/timeline?**", lambda route: route.fulfill(json=_lane(planned={"seconds": [86_460], "leftOut": 0}))
    )
    page.route("**/v1/timeline:changes?**", lambda route: route.fulfill(json=_no_changes()))
    page.get_by_role("link", name="Overview").click()
    lane = page.get_by_role("row").filter(has_text="billing/report")
    lane.locator(".dot.planned").wait_for(state="attached")

    page.clock.run_for(130_000)

    lane.locator(".dot.unread").wait_for(state="attached")
    assert lane.locator(".dot.ok").count() == 0


def _attention():
    since = CLOCK.now() - timedelta(minutes=4)
    sentence = f"No worker of billing has taken a run for 4 min: 32 messages wait since {_text(since)}."
    item = {"kind": "application", "id": "billing", "name": "billing", "jobId": None, "since": _text(since)}
    step = {"verb": "start", "words": "Start a worker, or delete the application", "href": "/v1/applications/billing"}
    item |= {"lastAt": None, "count": 32, "reason": None, "sentence": sentence, "nextStep": step}
    rest = {"oldestDueAt": None, "behindSeconds": 0, "itemsLeftOut": 0, "readUnits": 1, "askAgainAfterSeconds": 300}
    return {"now": _text(CLOCK.now()), "items": [item], **rest}


def _no_changes():
    now = _text(CLOCK.now())
    return {"now": now, "marksFrom": now, "marks": [], "jobs": None, "since": "x", "readUnits": 1} | {
        "askAgainAfterSeconds": 30
    }
