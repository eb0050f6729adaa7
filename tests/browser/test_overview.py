"""The overview: one look at all jobs, cheap to keep open, and smooth with a thousand of them."""

from __future__ import annotations

from datetime import timedelta

from tests.local_stack.waiting import CLOCK

MOST_FRAME_MS = 20
MOST_REQUESTS = 5
LANES = 1_000


def test_every_job_has_a_lane_whose_failure_leads_to_the_run(opened, demo):
    page = opened("/overview")

    lane = page.get_by_role("row").filter(has_text="invoices")
    lane.locator(".mark .shape.failed").click()

    page.locator(".verdict.failed", has_text="The target answered 503.").wait_for()


def test_a_lane_describes_its_marks_to_screen_readers(opened, demo):
    page = opened("/overview")

    page.get_by_role("row").filter(has_text="invoices").get_by_text("1 failed").wait_for(state="attached")
    page.get_by_role("row").filter(has_text="backup").get_by_text("paused", exact=True).wait_for()


def test_the_overview_needs_few_requests_and_states_its_price(opened, demo):
    page = opened("/jobs")
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/v1/" in request.url else None)

    page.get_by_role("link", name="Overview").click()
    page.get_by_text("read units").wait_for()

    assert len([url for url in asked if "/v1/jobs" not in url]) <= MOST_REQUESTS


def test_the_runs_of_the_next_hour_are_two_clicks_away(opened, demo, stack):
    """At any hour of the day: the job that is not due runs tomorrow, a day after this test."""
    body = {
        "name": "tomorrow",
        "action": {"type": "event"},
        "schedules": [{"at": _text(CLOCK.now() + timedelta(days=1))}],
    }
    assert stack.client().post("/v1/jobs", json=body).status_code == 201
    page = opened("/overview")
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("button", name="Due within an hour").click()

    page.get_by_role("link", name="orders").wait_for()
    page.get_by_role("link", name="tomorrow").wait_for(state="detached")


def test_a_thousand_lanes_scroll_smoothly_from_a_fixed_pool_of_rows(opened, demo):
    page = opened("/jobs")
    page.route("**/v1/timeline?**", lambda route: route.fulfill(json=_timeline()))
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("row").first.wait_for()

    slowest_of_95 = min(_scrolled(page) for _ in range(3))  # other programs only add to it

    assert page.get_by_role("table", name="Jobs over").get_attribute("aria-rowcount") == str(LANES)
    assert page.locator(".lane").count() < 60
    assert 0 < slowest_of_95 < MOST_FRAME_MS


def test_the_first_lanes_are_shown_while_the_others_are_read(opened, demo):
    page = opened("/jobs")
    whole = _timeline()
    waiting = []

    def answer(route):
        if "cursor" in route.request.url:
            waiting.append(route)
        else:
            route.fulfill(json={**whole, "items": whole["items"][:100], "nextCursor": "next"})

    page.route("**/v1/timeline?**", answer)
    page.get_by_role("link", name="Overview").click()
    page.get_by_text("100 jobs so far; reading more").wait_for()
    page.get_by_role("link", name="job-0", exact=True).wait_for()

    waiting[0].fulfill(json={**whole, "items": whole["items"][100:]})

    page.get_by_text("1000 jobs. Reading it cost 2,000 read units").wait_for()
    assert page.get_by_role("table", name="Jobs over").get_attribute("aria-rowcount") == str(LANES)


def test_lanes_that_could_not_be_read_are_read_soon_after(opened, demo):
    page = opened("/jobs")
    page.clock.install()
    whole = _timeline()
    failing = []

    def answer(route):
        if "cursor" not in route.request.url:
            route.fulfill(json={**whole, "items": whole["items"][:100], "nextCursor": "next"})
        elif not failing:
            failing.append(True)
            route.abort()
        else:
            route.fulfill(json={**whole, "items": whole["items"][100:]})

    page.route("**/v1/timeline?**", answer)
    page.get_by_role("link", name="Overview").click()
    page.get_by_text("100 jobs so far; reading more").wait_for()
    page.get_by_role("status").filter(has_text="The API does not answer.").wait_for()

    page.clock.run_for(11_000)

    page.get_by_text("1000 jobs. Reading it cost 2,000 read units").wait_for()


def test_the_time_line_works_by_keyboard(opened, demo):
    page = opened("/jobs")
    page.route("**/v1/timeline?**", lambda route: route.fulfill(json=_timeline()))
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("row").first.wait_for()

    page.get_by_role("table", name="Jobs over").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")

    page.get_by_role("link", name=f"job-{LANES - 1}").wait_for()
    page.wait_for_function(f"() => document.activeElement.textContent === 'job-{LANES - 1}'")


def _scrolled(page):
    """Scrolls through the lanes and returns the 95th percentile of a frame on the page's thread, in ms of CPU time.

    CPU time, because other programs of a busy machine delay a frame and are no work of the page.
    """
    page.evaluate("document.querySelector('.lanes').scrollTop = 0")
    client = page.context.new_cdp_session(page)
    client.send("Performance.enable", {"timeDomain": "threadTicks"})

    def used():
        metrics = client.send("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration") * 1_000

    frames = []
    for _ in range(60):
        before = used()
        page.evaluate("""async () => {
            document.querySelector(".lanes").scrollTop += 70;
            await new Promise(requestAnimationFrame);
            await new Promise(requestAnimationFrame);
        }""")
        frames.append(used() - before)
    assert page.evaluate("document.querySelector('.lanes').scrollTop") == 60 * 70
    return sorted(frames)[int(len(frames) * 0.95)]


def _timeline():
    """Returns a thousand lanes with 40 marks each, as the API would answer."""
    now = CLOCK.now().replace(microsecond=0)
    start = now - timedelta(days=1)
    lanes = [
        {
            "jobId": f"job-{n}",
            "name": f"job-{n}",
            "revision": 1,
            "state": "ACTIVE",
            "sentence": None,
            "schedules": [],
            "marks": [],
            "noFailure": {"seconds": list(range(n % 60, 86_400, 4_320)), "leftOut": 0, "since": _text(start)},
            "planned": {"seconds": list(range(86_400 + n % 60, 172_800, 4_320)), "leftOut": 3},
        }
        for n in range(LANES)
    ]
    return {
        "now": _text(now),
        "from": _text(start),
        "until": _text(now + timedelta(days=1)),
        "marksFrom": _text(start),
        "since": "x",
        "items": lanes,
        "nextCursor": None,
        "readUnits": 1_000,
        "askAgainAfterSeconds": 30,
    }


def _text(instant):
    return instant.isoformat().replace("+00:00", "Z")
