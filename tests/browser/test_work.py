"""A day's work in the console, each as a person does it: look, explain, run, pause."""

from __future__ import annotations

from tests.browser.conftest import HOSTILE, sign_in
from tests.browser.pages import settled
from tests.local_stack.waiting import until


def test_a_manual_run_is_followed_until_its_end(opened, demo):
    page = opened(f"/jobs/{demo.jobs['orders']}")

    page.get_by_role("button", name="Run job now").click()
    page.get_by_role("dialog").get_by_role("button", name="Run job now").click()

    page.get_by_role("heading", name="Succeeded").wait_for()


def test_a_failed_run_begins_with_the_reason_in_words(opened, demo):
    page = opened(f"/runs/{demo.others['run']}")

    page.locator(".verdict.failed", has_text="The target answered 503.").wait_for()
    page.get_by_role("row", name="Attempt 1").wait_for()


def test_the_author_of_a_change_is_shown_within_three_clicks(opened, demo, stack):
    page = opened("/jobs")
    page.get_by_role("link", name="nightly").click()
    page.get_by_role("link", name="Changes").click()

    page.get_by_text(stack.file.tenants["acme"].client_id).first.wait_for()
    page.get_by_role("row", name="description").get_by_text("Sends the report").wait_for()


def test_the_address_contains_the_filters_so_that_a_colleague_sees_the_same(opened, demo):
    page = opened("/jobs")
    page.get_by_role("button", name="Paused", exact=True).click()
    page.wait_for_url("**/jobs?state=PAUSED")
    page.get_by_role("link", name="backup").wait_for()
    page.get_by_role("link", name="nightly").wait_for(state="detached")

    page.get_by_label("Search by name").fill("nothing like it")
    page.get_by_role("heading", name="No job matches").wait_for()
    page.get_by_role("button", name="Clear the filters").click()
    page.get_by_role("link", name="nightly").wait_for()


def test_a_run_can_be_reached_by_keyboard_alone(opened, demo):
    page = opened("/jobs")

    page.keyboard.press("g")
    page.keyboard.press("r")
    page.get_by_role("heading", name="Runs").wait_for()
    page.locator("tbody tr").first.wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")

    page.get_by_role("heading", name="Failed").wait_for()


def test_hostile_text_is_shown_as_text_and_can_be_read_completely(opened, demo):
    page = opened("/jobs")
    name = next(name for name in demo.jobs if name.startswith(HOSTILE))

    row = page.get_by_role("row").filter(has_text="<img src=x onerror=alert(1)>")
    row.get_by_role("button", name="Show all").click()

    row.get_by_text(name.strip()).wait_for()
    assert page.locator("main img").count() == 0


def test_invisible_characters_are_shown_by_their_code_point(opened, demo):
    page = opened("/jobs?search=%E2%80%AE")

    script = page.locator("script[src]").get_attribute("src")
    parts = script.replace("app.js", "parts.js")
    show = "([from, text]) => import(from).then(parts => parts.visible(text))"
    family = "\U0001f469\U0001f3fd\u200d\U0001f467"
    assert page.evaluate(show, [parts, "a\u202eb\u0000"]) == "a⟨U+202E⟩b⟨U+0000⟩"
    assert page.evaluate(show, [parts, f"{family} a\u200db"]) == f"{family} a⟨U+200D⟩b"


def test_an_unavailable_api_leaves_the_page_in_place_and_shows_its_age(opened, demo):
    page = opened("/jobs")
    page.get_by_role("link", name="nightly").wait_for()
    page.route("**/v1/jobs?**", lambda route: route.abort())

    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

    page.get_by_text("The API does not answer.").wait_for()
    assert page.get_by_role("link", name="nightly").is_visible()


def test_a_refusal_shows_the_apis_own_message_and_the_time_to_wait(opened, demo):
    page = opened(f"/jobs/{demo.jobs['orders']}")
    refusal = {"code": "RATE_LIMITED", "detail": "3000 requests a minute are used up"}
    page.route("**/deactivate", lambda route: route.fulfill(status=429, json=refusal, headers={"retry-after": "30"}))

    page.get_by_role("button", name="Deactivate job").click()

    page.get_by_text("3000 requests a minute are used up. Try again in 30 s.").wait_for()
    assert page.get_by_role("button", name="Deactivate job").is_enabled()


def test_a_wrong_clock_is_reported_and_times_come_from_the_service(visitor, stack, demo):
    context = visitor()
    context.add_init_script("const own = Date.now; Date.now = () => own() - 3 * 3600e3;")
    page = context.new_page()
    page.goto("/console/jobs")
    sign_in(page, stack.file.tenants["acme"])

    page.get_by_text("The clock of this browser is 3 h slow.").wait_for()


def test_new_rows_wait_until_the_reader_shows_them(opened, demo, stack, target):
    body = {"name": "later", "action": {"type": "http", "url": f"{target}/fail"}}
    job = stack.client().post("/v1/jobs", json=body).json()["id"]
    page = opened("/runs")
    page.locator("tbody tr").first.wait_for()
    before = page.locator("tbody tr").all_text_contents()
    run = stack.client().post(f"/v1/jobs/{job}/run").json()["runId"]
    until(lambda: run in [each["id"] for each in stack.client().get("/v1/runs").json()["items"]])

    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.get_by_role("status").get_by_role("button", name="Show 1 new run").wait_for()

    assert len(page.locator("tbody tr").all()) == len(before)
    page.get_by_role("button", name="Show 1 new run").click()
    page.locator("tbody tr").nth(len(before)).wait_for()
    assert page.get_by_role("button", name="Show 1 new run").count() == 0


def test_a_hidden_tab_sends_no_requests(visitor, stack, demo):
    page = visitor().new_page()
    page.clock.install()
    page.goto("/console/jobs")
    sign_in(page, stack.file.tenants["acme"])
    page.get_by_role("link", name="nightly").wait_for()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(31_000)
    settled(page)
    assert len(asked) == 1

    page.evaluate("""
        Object.defineProperty(document, 'hidden', { value: true, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
    """)
    asked.clear()
    page.clock.run_for(120_000)

    assert asked == []
