"""People are left alone while data arrive: the focus, what they type, where they read, and what a dialog asks them."""

from __future__ import annotations

import pytest

from tests.browser.conftest import sign_in
from tests.browser.pages import settled, visit
from tests.local_stack.waiting import until

FOCUSED = "() => [document.activeElement.tagName, document.activeElement.textContent]"
REFRESH = "() => document.dispatchEvent(new Event('visibilitychange'))"
FAST_FINGERS = """() => {
    const replace = history.replaceState.bind(history);
    history.replaceState = (...given) => {
        replace(...given);
        history.replaceState = replace;
        const field = document.querySelector("[aria-label='Search by name']");
        setTimeout(() => {
            field.value = "nightl";
            field.dispatchEvent(new InputEvent("input", { bubbles: true }));
        });
    };
}"""
"""Types one more letter at the moment at which the letters before it come into the address."""


def _job(stack, target, name, path="/ok"):
    body = {"name": name, "action": {"type": "http", "url": f"{target}{path}"}}
    made = stack.client().post("/v1/jobs", json=body)
    assert made.status_code == 201, made.text
    return made.json()["id"]


def _refuse_once(page, where):
    """Answers the next POST there with a 401."""
    ended = []

    def refuse(route):
        if ended or route.request.method != "POST":
            route.fallback()
        else:
            ended.append(True)
            route.fulfill(status=401, json={"code": "UNAUTHENTICATED", "detail": "the token has ended"})

    page.route(where, refuse)


# ---- The focus ------------------------------------------------------------------------------------------------------


def test_a_page_whose_data_arrive_late_gets_the_focus_on_its_heading(opened, demo):
    page = opened("/jobs")

    page.get_by_role("link", name="nightly").click()

    page.wait_for_function(
        "() => document.activeElement.matches('h1') && document.activeElement.innerText === 'nightly'"
    )
    page.get_by_role("link", name="Errors", exact=True).click()
    page.wait_for_function(
        "() => document.activeElement.matches('h1') && document.activeElement.innerText === 'Errors'"
    )
    page.go_back()
    page.wait_for_function(
        "() => document.activeElement.matches('h1') && document.activeElement.innerText === 'nightly'"
    )


def test_the_title_of_the_tab_changes_with_the_heading(opened, demo):
    page = opened("/jobs")
    titles = """() => new Promise((done) => new MutationObserver(() => {
        const heading = document.querySelector("main h1");
        if (heading?.innerText === "Errors") done(document.title);
    }).observe(document.querySelector("main"), { childList: true, subtree: true }))"""

    title = page.evaluate(
        f"() => {{ const seen = ({titles})(); document.querySelector('nav a[href$=errors]').click(); return seen; }}"
    )

    assert title.startswith("Errors")


def test_a_button_that_is_replaced_by_its_own_action_leaves_the_focus_on_the_page(opened, stack, target):
    job = _job(stack, target, "paused by keyboard")
    assert stack.client().post(f"/v1/jobs/{job}/pause", json={}).status_code == 200
    page = opened(f"/jobs/{job}")

    page.get_by_role("button", name="Resume job").press("Enter")

    page.get_by_role("button", name="Pause job").wait_for()
    page.wait_for_function("() => document.activeElement.matches('main h1')")


def test_the_first_of_the_new_rows_gets_the_focus_when_they_are_shown(opened, demo, stack, target):
    job = _job(stack, target, "newest", "/fail")
    page = opened("/runs")
    page.locator("tbody tr").first.wait_for()
    run = stack.client().post(f"/v1/jobs/{job}/run").json()["runId"]
    until(lambda: run in [each["id"] for each in stack.client().get("/v1/runs").json()["items"]])
    page.evaluate(REFRESH)

    page.locator(".news button").press("Enter")

    page.wait_for_function("run => document.activeElement.href?.endsWith(run)", arg=run)


def test_the_menu_closes_when_somebody_goes_on_elsewhere(opened, demo):
    page = opened("/jobs")
    menu = page.locator(".menu")
    page.get_by_text("More", exact=True).click()
    menu.get_by_role("link", name="Calendars").wait_for()

    page.locator("main h1").click(position={"x": 5, "y": 5})

    menu.get_by_role("link", name="Calendars").wait_for(state="hidden")
    page.get_by_text("More", exact=True).press("Enter")
    menu.get_by_role("link", name="Calendars").wait_for()
    page.get_by_label("Search by name").focus()
    menu.get_by_role("link", name="Calendars").wait_for(state="hidden")


# ---- What is typed --------------------------------------------------------------------------------------------------


def test_the_search_of_the_overview_keeps_the_focus_while_lanes_are_found(opened, demo):
    page = opened("/overview")
    field = page.get_by_label("Search lanes by name")
    field.focus()
    page.keyboard.type("night")
    page.wait_for_url("**/overview?search=night")
    page.get_by_role("row").filter(has_text="invoices").wait_for(state="detached")

    page.keyboard.type("ly")

    page.wait_for_url("**/overview?search=nightly")
    assert field.input_value() == "nightly"


def test_a_letter_typed_while_the_search_begins_is_kept(opened, demo):
    page = opened("/jobs")
    page.evaluate(FAST_FINGERS)

    page.get_by_label("Search by name").fill("night")

    page.wait_for_url("**/jobs?search=nightl")
    page.get_by_role("link", name="nightly").wait_for()
    assert page.get_by_label("Search by name").input_value() == "nightl"


def test_the_client_id_stays_after_a_wrong_secret(visitor, stack):
    page = visitor().new_page()
    page.goto("/console")
    page.wait_for_function("() => document.activeElement.name === 'id'")
    page.keyboard.type(stack.file.tenants["acme"].client_id)
    page.get_by_label("Secret").fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="Not signed in").wait_for()

    assert page.get_by_label("Client id").input_value() == stack.file.tenants["acme"].client_id
    page.wait_for_function("() => document.activeElement.name === 'secret'")


def test_a_change_by_others_under_an_open_form_is_not_undone(opened, stack):
    acme = stack.client()
    assert acme.post("/v1/flow-keys", json={"name": "shared", "parallelism": 3}).status_code == 201
    page = opened("/flow-keys/shared")
    page.get_by_role("button", name="Edit flow key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Description").fill("mine")
    merge = {"Content-Type": "application/merge-patch+json"}
    assert acme.patch("/v1/flow-keys/shared", content='{"parallelism": 9}', headers=merge).status_code == 200
    page.evaluate(REFRESH)
    page.locator("main pre").get_by_text('"parallelism": 9').wait_for()

    dialog.get_by_role("button", name="Change flow key").click()

    dialog.get_by_text("Someone else changed it in the meantime.").wait_for()
    assert dialog.get_by_label("Description").input_value() == "mine"
    assert acme.get("/v1/flow-keys/shared").json()["parallelism"] == 9


def test_a_request_that_waits_at_a_sign_out_is_not_sent_by_the_next_person(opened, stack, demo):
    page = opened("/jobs/new")
    page.get_by_label("Name", exact=True).first.fill("of whom")
    page.get_by_label("Address").fill("http://127.0.0.1:1/x")
    held = []
    page.route("**/v1/jobs", lambda route: held.append(route))  # noqa: PLW0108 - a method has no signature here
    page.get_by_role("button", name="Create job").click()
    until(lambda: page.title() and held)
    other = page.context.new_page()
    other.goto("/console/runs")
    other.get_by_role("button", name="Sign out").click()
    page.get_by_label("Client id").wait_for()

    held[0].fulfill(status=401, json={"code": "UNAUTHENTICATED", "detail": "the token has ended"})
    sign_in(page, stack.file.tenants["globex"])

    page.get_by_role("heading", name="Create a job").wait_for()
    assert len(held) == 1


# ---- Where somebody reads -------------------------------------------------------------------------------------------


def test_an_older_answer_never_replaces_a_newer_one(opened, stack, target):
    job = _job(stack, target, "overtaken")
    page = opened(f"/jobs/{job}")
    held = []

    def hold(route):
        if held:
            route.fallback()
        else:
            held.append((route, route.fetch()))

    page.route(f"**/v1/jobs/{job}?**", hold)
    page.evaluate(REFRESH)
    until(lambda: page.title() and held)
    page.get_by_role("button", name="Pause job").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause job").click()
    page.get_by_role("button", name="Resume job").wait_for()

    route, older = held[0]
    with page.expect_response(f"**/v1/jobs/{job}?**"):
        route.fulfill(response=older)
    page.wait_for_timeout(300)

    assert page.get_by_role("button", name="Resume job").is_visible()


def test_going_back_returns_to_the_place_that_was_read(opened, demo):
    page = opened("/jobs", viewport={"width": 1280, "height": 300})
    page.get_by_role("link", name="nightly").wait_for()
    page.evaluate("scrollTo(0, 150)")
    page.evaluate("document.querySelector('tbody a').click()")
    page.get_by_role("link", name="Schedules").wait_for()
    assert page.evaluate("scrollY") == 0

    page.go_back()

    page.wait_for_function("() => scrollY === 150")


def test_a_row_that_is_gone_goes_and_one_that_moved_to_the_next_page_stays(opened, demo, stack):
    page = opened("/runs")
    page.locator("tbody tr").first.wait_for()
    job = stack.client().get(f"/v1/jobs/{demo.jobs['invoices']}").json()
    rows = [{**job, "id": f"id-{n}", "name": f"row-{n}", "lastRuns": []} for n in range(4)]
    answers = [[rows[0], rows[1], rows[2]], [rows[0], rows[2], rows[3]], [rows[3], rows[0]]]
    page.route("**/v1/jobs?**", lambda route: route.fulfill(json={"items": answers[0], "nextCursor": "x", "total": 9}))
    page.get_by_role("link", name="Jobs", exact=True).click()
    page.get_by_role("link", name="row-1").wait_for()

    answers.pop(0)
    page.evaluate(REFRESH)
    page.get_by_role("link", name="row-1").wait_for(state="detached")
    answers.pop(0)
    page.evaluate(REFRESH)
    page.get_by_role("button", name="Show 1 new job").wait_for()

    assert page.locator("td.main").all_inner_texts() == ["row-0", "row-2"]


def test_the_progress_of_many_changes_stays_when_no_job_matches_any_more(opened, demo, stack):
    operation = stack.client().get(f"/v1/operations/{demo.others['operation']}").json()
    running = {**operation, "kind": "delete_jobs", "state": "RUNNING"}
    page = opened("/jobs?tag=finance")
    page.get_by_label("Do with all 1 job").click()
    page.get_by_role("button", name="Delete them").click()
    page.route("**/v1/jobs?*expectedCount=1*", lambda route: route.fulfill(status=202, json={"operation": running}))
    page.route("**/v1/operations/*", lambda route: route.fulfill(json=running))
    page.route("**/v1/jobs?*limit=50*", lambda route: route.fulfill(json={"items": [], "nextCursor": None, "total": 0}))

    page.get_by_role("dialog").get_by_role("button", name="Delete 1 job").click()

    page.get_by_role("heading", name="No job matches").wait_for()
    page.get_by_role("link", name="Delete jobs").wait_for()


def test_an_operation_is_read_rarely_once_it_has_ended(opened, demo):
    page = opened("/jobs")
    page.clock.install()
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/v1/operations/" in request.url else None)
    visit(page, f"/operations/{demo.others['operation']}")
    page.get_by_text("Done").wait_for()
    asked.clear()

    for _ in range(10):
        page.clock.run_for(3_000)
        settled(page)

    assert len(asked) <= 30 / 15


def test_the_page_of_a_group_appears_by_itself_after_its_run_has_failed(opened, demo):
    page = opened("/jobs")
    group = demo.others["group"]
    missing = []

    def answer(route):
        if missing:
            route.fallback()
        else:
            missing.append(True)
            route.fulfill(status=404, json={"code": "NOT_FOUND", "detail": "there is no such group"})

    page.route(f"**/v1/errors/{group}", answer)
    page.evaluate(
        "to => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }",
        f"/console/errors/{group}",
    )
    page.get_by_text("If a run has just failed, its group appears here in a moment.").wait_for()

    page.get_by_role("heading", name="invoices").wait_for()


# ---- Dialogs --------------------------------------------------------------------------------------------------------


def test_the_only_sight_of_a_secret_survives_every_escape(opened, demo):
    page = opened("/access")
    page.get_by_role("button", name="Create credential").click()
    page.get_by_role("dialog").get_by_label("Name").fill("kept")
    page.get_by_role("dialog").get_by_role("button", name="Create credential").click()
    shown = page.get_by_role("dialog", name="The new secret")
    shown.wait_for()

    for _ in range(4):
        page.keyboard.press("Escape")
        page.wait_for_timeout(50)

    page.wait_for_function("() => document.querySelector('dialog[open]')")
    shown.get_by_role("button", name="I stored it").click()
    shown.wait_for(state="detached")


def test_a_new_sign_in_cannot_be_escaped(opened, stack, target):
    job = _job(stack, target, "signed in again")
    page = opened(f"/jobs/{job}")
    _refuse_once(page, "**/deactivate")
    page.get_by_role("button", name="Deactivate job").click()
    again = page.get_by_role("dialog", name="Sign in again")
    again.wait_for()

    for _ in range(4):
        page.keyboard.press("Escape")
        page.wait_for_timeout(50)
    page.wait_for_function("() => document.querySelector('dialog[open]')")
    sign_in(page, stack.file.tenants["acme"])

    page.get_by_role("button", name="Activate job").wait_for()


def test_the_number_in_a_confirmation_does_not_change_under_the_hand(opened, stack):
    acme = stack.client()
    assert acme.post("/v1/collections", json={"name": "counted"}).status_code == 201
    there = acme.get("/v1/collections/counted").json()
    page = opened("/collections/counted")
    page.get_by_role("button", name="Disable collection").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Its 0 jobs stop").wait_for()
    page.route("**/v1/collections/counted", lambda route: route.fulfill(json={**there, "jobCount": 7}))

    page.evaluate(REFRESH)
    page.locator("main").get_by_text("7 jobs").wait_for()

    dialog.get_by_text("Its 0 jobs stop").wait_for()


@pytest.mark.parametrize("page_of", ["secret", "command"])
def test_a_browser_that_does_not_let_a_page_copy_says_so(opened, demo, page_of):
    page = opened("/access" if page_of == "secret" else f"/runs/{demo.others['run']}")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new DOMException('denied')); }")
    if page_of == "secret":
        page.get_by_role("button", name="Create credential").click()
        page.get_by_role("dialog").get_by_label("Name").fill("copied")
        page.get_by_role("dialog").get_by_role("button", name="Create credential").click()

    page.get_by_role("button", name="Copy").click()

    page.get_by_text("This browser does not let the page copy.").wait_for()
