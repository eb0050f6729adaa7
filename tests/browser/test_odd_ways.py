"""Odd ways through the console: addresses that cannot be read, answers of strangers, a provider without a tenant, forms
that were left, and tables on a phone."""

from __future__ import annotations

import json
import re

import pytest

from tests.browser.conftest import sign_in
from tests.browser.pages import visit
from tests.local_stack.waiting import until

PHONE = {"width": 375, "height": 800}


def _job(stack, target, name, **more):
    body = {"name": name, "action": {"type": "http", "url": f"{target}/ok", "payload": {"for": name}}, **more}
    made = stack.client().post("/v1/jobs", json=body)
    assert made.status_code == 201, made.text
    return made.json()["id"]


# ---- Addresses and answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/jobs/%zz", "/collections/%E0%A4%A"])
def test_an_unreadable_address_is_shown_as_not_found(opened, demo, path):
    page = opened("/jobs")

    visit(page, path)

    page.get_by_role("heading", name="Not there").wait_for()


@pytest.mark.parametrize("month", ["2026-13", "abc", "0001-01"])
def test_an_invalid_month_shows_the_current_one(opened, demo, month):
    page = opened(f"/jobs/{demo.jobs['nightly']}?month={month}#month")

    page.get_by_role("table").get_by_role("cell").first.wait_for()


def test_the_month_of_a_frequent_job_continues_from_today_and_reads_a_day_on_request(opened, stack, target):
    often = _job(stack, target, "often", schedules=[{"cron": "*/10 * * * *"}])
    page = opened(f"/jobs/{often}#month")
    page.get_by_role("button", name="Next month").click()
    page.get_by_text("so often that not every day was read").wait_for()
    cell = page.get_by_role("cell").filter(has_text=re.compile("^9"))
    assert cell.get_by_text("140 more").count() == 0

    cell.get_by_role("button", name="Read 9").click()

    cell.get_by_text("140 more").wait_for()


def test_an_answer_that_is_not_from_the_api_is_reported_without_endless_waiting(opened, demo):
    page = opened("/jobs")
    page.route("**/v1/calendars?**", lambda route: route.fulfill(status=200, body="<html>Welcome to our Wi-Fi</html>"))

    page.get_by_text("More", exact=True).click()
    page.get_by_role("link", name="Calendars").click()

    page.get_by_role("alert").filter(has_text="Something else answered instead of the API").wait_for()


def test_a_refused_page_has_its_own_heading_and_title(opened, demo):
    page = opened("/jobs")

    visit(page, "/tenants/acme")

    page.get_by_role("heading", name="Not allowed").wait_for()
    page.get_by_text("does not have. Ask for this scope").wait_for()
    assert page.title().startswith("Not allowed")


def test_the_attention_list_is_read_again_soon_after_a_failure(opened, demo):
    page = opened("/jobs")
    page.clock.install()
    failing = []

    def answer(route):
        if failing:
            route.fallback()
        else:
            failing.append(True)
            route.abort()

    page.route("**/v1/attention", answer)
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("region", name="Needs attention").get_by_text("The API does not answer.").wait_for()

    page.clock.run_for(11_000)

    page.get_by_text("need attention").first.wait_for()


def test_the_load_ahead_is_shown_while_the_lanes_are_searched(opened, demo):
    page = opened("/overview?search=orders")

    page.get_by_role("region", name="Load ahead").wait_for()


def test_a_group_is_named_with_the_number_of_its_failures(opened, demo, stack):
    group = demo.others["group"]
    there = stack.client().get(f"/v1/errors/{group}").json()
    page = opened("/jobs")
    found = {}
    for count in (0, 1, 2):
        page.route(f"**/v1/errors/{group}", lambda route, _, n=count: route.fulfill(json={**there, "count": n}))
        visit(page, "/errors")
        visit(page, f"/errors/{group}")
        found[count] = page.locator("main h1").inner_text()

    assert found == {0: "invoices: no open failures", 1: "invoices failed once", 2: "invoices failed 2 times"}


# ---- Whose page it is -----------------------------------------------------------------------------------------------


def test_a_provider_starts_at_the_tenants_and_is_asked_to_choose_one(opened, demo):
    page = opened("", tenant="provider")

    page.get_by_role("heading", name="Tenants").wait_for()
    page.get_by_text("waiting in the queues").wait_for()
    pages = page.get_by_role("navigation", name="Pages")
    assert pages.get_by_role("link", name="Jobs").count() == 0
    visit(page, "/jobs")
    page.get_by_role("heading", name="Choose a tenant").wait_for()
    visit(page, "/overview?as=acme")
    page.get_by_text(re.compile(r"\d+ messages? waiting in the queues, last audit")).wait_for()


def test_one_tenants_data_is_never_shown_under_the_next_tenants_name(opened, demo):
    page = opened("/jobs?as=acme", tenant="provider")
    page.get_by_role("link", name="nightly").wait_for()
    page.route("**/v1/jobs?**", lambda _: None)

    visit_now = "to => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }"
    page.evaluate(visit_now, "/console/jobs?as=globex")
    page.locator(".tenant", has_text="globex").wait_for()

    page.get_by_text("Reading jobs").wait_for()
    assert page.get_by_role("link", name="nightly").count() == 0


def test_a_form_is_not_sent_to_another_tenant_after_a_new_sign_in(opened, stack, target):
    page = opened("/jobs/new")
    page.get_by_label("Name", exact=True).first.fill("of acme")
    page.get_by_label("Address").fill(f"{target}/ok")
    ended = []

    def refuse(route):
        if ended:
            route.fallback()
        else:
            ended.append(True)
            route.fulfill(status=401, json={"code": "UNAUTHENTICATED", "detail": "the token has ended"})

    page.route("**/v1/jobs", refuse)
    page.get_by_role("button", name="Create job").click()
    again = page.get_by_role("dialog", name="Sign in again")
    globex = stack.file.tenants["globex"]
    again.get_by_label("Client id").fill(globex.client_id)
    again.get_by_label("Secret").fill(globex.secret)
    again.get_by_role("button", name="Sign in", exact=True).click()
    again.get_by_text("This page belongs to acme, and this credential does not.").wait_for()

    sign_in(page, stack.file.tenants["acme"])

    page.get_by_role("heading", name="of acme").wait_for()
    assert stack.client("globex").get("/v1/jobs", params={"name": "of acme", "include": "total"}).json()["total"] == 0


def test_a_credential_starts_at_its_first_permitted_page_and_closed_forms_say_why(stack, visitor):
    made = stack.client().post("/v1/credentials", json={"name": "undo", "scopes": ["errors:edit"]}).json()
    page = visitor().new_page()
    page.goto("/console")
    page.get_by_label("Client id").fill(made["clientId"])
    page.get_by_label("Secret").fill(made["secret"])
    page.get_by_role("button", name="Sign in", exact=True).click()

    page.get_by_role("heading", name="Operations", exact=True).wait_for()
    visit(page, "/jobs/new")
    page.get_by_text("that needs the scope jobs:write").wait_for()
    assert page.get_by_role("button", name="Create job").is_disabled()


def test_a_reader_has_no_button_for_long_work_that_needs_another_scope(stack, visitor, demo):
    made = stack.client().post("/v1/credentials", json={"name": "looks", "scopes": ["jobs:read"]}).json()
    page = visitor().new_page()
    page.goto(f"/console/operations/{demo.others['operation']}")
    there = stack.client().get(f"/v1/operations/{demo.others['operation']}").json()
    page.route("**/v1/operations/*", lambda route: route.fulfill(json={**there, "state": "RUNNING"}))
    page.get_by_label("Client id").fill(made["clientId"])
    page.get_by_label("Secret").fill(made["secret"])
    page.get_by_role("button", name="Sign in", exact=True).click()

    page.get_by_text("Running").wait_for()
    assert page.get_by_role("button", name="Cancel").count() == 0


# ---- Forms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", ["null", "[1]", '"text"'])
def test_additional_members_that_are_not_an_object_are_refused_at_their_field(opened, demo, more):
    page = opened("/jobs/new")
    page.get_by_text("Other members as JSON").click()
    page.get_by_label("Members of the job").fill(more)

    page.get_by_role("button", name="Create job").click()

    page.locator(".field.wrong").filter(has_text="Members of the job").get_by_text("an object is needed").wait_for()


def test_a_change_sent_twice_at_once_is_made_once(opened, stack, target):
    job = _job(stack, target, "doubled")
    page = opened(f"/jobs/{job}/edit")
    sent = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "PUT" else None)
    page.get_by_label("Description").fill("once")

    page.evaluate(
        "() => { const button = document.querySelector('.editor .primary'); button.click(); button.click(); }"
    )

    page.get_by_role("heading", name="doubled", exact=True).wait_for()
    assert len(sent) == 1


def test_an_abandoned_form_is_restored_until_it_is_sent_or_discarded(opened, demo):
    page = opened("/jobs/new")
    page.get_by_label("Name", exact=True).first.fill("half a job")
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_role("heading", name="Runs").wait_for()
    page.go_back()
    page.get_by_text("You began this form before").wait_for()
    assert page.get_by_label("Name", exact=True).first.input_value() == "half a job"

    page.get_by_role("button", name="Discard what I wrote").click()
    page.get_by_role("heading", name="Jobs").wait_for()
    page.get_by_role("link", name="Create job").first.click()

    page.get_by_role("heading", name="Create a job").wait_for()
    assert page.get_by_label("Name", exact=True).first.input_value() == ""


def test_the_editor_of_a_run_starts_with_the_payload_of_its_job(opened, stack, target):
    job = _job(stack, target, "with payload")
    run = stack.client().post(f"/v1/jobs/{job}/run").json()["runId"]
    until(lambda: stack.client().get(f"/v1/runs/{run}").json()["status"] == "COMPLETED")
    page = opened(f"/runs/{run}")

    page.get_by_role("button", name="Edit and rerun").click()

    page.get_by_text("It begins as the job has it now.").wait_for()
    written = page.get_by_role("dialog").get_by_label("Payload (JSON)").input_value()
    assert json.loads(written) == {"for": "with payload"}


def test_the_timeline_of_a_run_shows_a_short_last_attempt(opened, stack, target):
    action = {"type": "http", "url": f"{target}/busy", "retry": {"type": "fixed", "delaySeconds": 3, "maxRetries": 1}}
    job = _job(stack, target, "twice in vain", action=action)
    run = stack.client().post(f"/v1/jobs/{job}/run").json()["runId"]
    until(lambda: stack.client().get(f"/v1/runs/{run}").json()["status"] == "COMPLETED")
    page = opened(f"/runs/{run}")
    row = page.get_by_role("row", name=re.compile("^Attempt 2"))
    row.wait_for()

    bar, cell = row.locator(".bar-of").bounding_box(), row.locator(".span").bounding_box()

    assert bar["width"] >= 1
    assert bar["x"] + bar["width"] <= cell["x"] + cell["width"] + 0.5


def test_a_schedule_without_a_name_is_shown_without_one(opened, demo):
    page = opened(f"/jobs/{demo.jobs['orders']}")
    page.get_by_role("heading", name="Schedule", exact=True).wait_for()

    visit(page, f"/jobs/{demo.jobs['orders']}/edit")

    assert page.locator(".schedule").get_by_label("Name").input_value() == ""


def test_a_signing_key_is_deleted_only_after_confirmation(opened, stack):
    acme = stack.client()
    assert acme.post("/v1/collections", json={"name": "signed"}).status_code == 201
    assert acme.post("/v1/collections/signed/signing-keys", json={}).status_code == 201
    page = opened("/collections/signed")
    page.get_by_role("button", name="Delete key").click()
    page.get_by_role("dialog", name="Delete signing key").get_by_role("button", name="Cancel").click()
    assert len(acme.get("/v1/collections/signed/signing-keys").json()["items"]) == 1

    page.get_by_role("button", name="Delete key").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete key").click()

    page.get_by_text("Calls of its jobs are not signed.").wait_for()


def test_runs_of_any_state_can_be_listed(opened, demo):
    page = opened("/runs")

    page.get_by_label("Other states").select_option("TIMEOUT")

    page.get_by_role("heading", name="No run matches").wait_for()
    assert page.url.endswith("?state=TIMEOUT")


def test_a_button_pressed_twice_at_once_acts_once(opened, stack, target):
    job = _job(stack, target, "pressed")
    page = opened(f"/jobs/{job}")
    sent = []
    page.on("request", lambda request: sent.append(request.url) if request.url.endswith("/run") else None)
    page.get_by_role("button", name="Run job now").click()

    page.evaluate("() => { const button = document.querySelector('dialog .primary'); button.click(); button.click(); }")

    page.get_by_role("heading", name="Succeeded").wait_for()
    assert len(sent) == 1


# ---- A phone --------------------------------------------------------------------------------------------------------

SIDEWAYS = """() => [...document.querySelectorAll(".scroll, .tabs, main")]
    .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.ariaLabel ?? each.className)"""


def test_the_change_log_does_not_scroll_the_page_sideways_on_a_phone(opened, stack, demo):
    backup, note = demo.jobs["backup"], "waits-for-the-new-contract-" * 8
    acme = stack.client()
    assert acme.post(f"/v1/jobs/{backup}/resume").status_code == 200
    assert acme.post(f"/v1/jobs/{backup}/pause", json={"note": note}).status_code == 200

    page = opened(f"/jobs/{backup}#changes", viewport={"width": 390, "height": 844})

    page.locator(".diff").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_no_table_scrolls_sideways_on_a_phone(opened, demo):
    page = opened("/access", viewport=PHONE)
    wrong = {}
    for path in (
        *("/overview", "/jobs", "/runs", "/errors", "/operations", "/collections/reports", "/calendars/holidays"),
        *("/flow-keys", "/job-sets/crm", "/consumers", "/redirects", "/access"),
        *(
            "/jobs/{nightly}#month",
            "/jobs/{nightly}#changes",
            "/jobs/{invoices}#runs",
            "/runs/{run}",
            "/errors/{group}",
        ),
    ):
        visit(page, path.format(**demo.jobs, **demo.others))
        if found := page.evaluate(SIDEWAYS):
            wrong[path] = found

    assert wrong == {}


def test_a_row_on_a_phone_remains_a_table_row_for_screen_readers(opened, demo):
    page = opened("/jobs", viewport=PHONE)

    row = page.get_by_role("table").get_by_role("row").filter(has_text="nightly")

    row.get_by_role("cell").filter(has_text="Active").wait_for()


def test_a_row_on_a_phone_shows_every_column_that_has_something_to_say(opened, demo):
    page = opened("/jobs?tag=finance", viewport=PHONE)
    row = page.locator("tbody").get_by_role("row").first
    row.wait_for()

    titles = row.locator("td:visible").evaluate_all("each => each.map((cell) => cell.dataset.title)")

    assert {"Target", "Collection", "Tags"} <= set(titles)
    visit(page, "/jobs/{invoices}#runs".format(**demo.jobs))
    page.locator("td[data-title=Message]:visible").first.wait_for()


# ---- Words and colours ----------------------------------------------------------------------------------------------

COLOUR = "each => getComputedStyle(each).backgroundColor"


def test_the_button_that_deletes_is_red_and_other_primary_buttons_are_not(opened, demo):
    page = opened(f"/jobs/{demo.jobs['nightly']}")
    primary = page.locator("button.primary").first.evaluate(COLOUR)
    page.get_by_role("button", name="Delete job").click()

    confirm = page.get_by_role("dialog").get_by_role("button", name="Delete job")

    assert confirm.evaluate(COLOUR) == "rgb(192, 35, 44)" != primary


def test_a_refusal_shows_its_title_first_and_its_code_last(opened, demo):
    page = opened(f"/jobs/{demo.jobs['nightly']}")
    page.get_by_role("button", name="Pause job").click()
    page.get_by_label("Resume at").fill("2020-01-01T00:00")
    page.get_by_role("dialog").get_by_role("button", name="Pause job").click()

    problem = page.get_by_role("dialog").locator(".problem")
    problem.wait_for()

    assert problem.locator("strong").text_content() == "A field breaks a rule"
    assert "must be in the future" in problem.text_content()
    assert problem.locator("code").last.text_content() == "INVALID_FIELD"


def test_a_failed_run_leads_to_its_error_group(opened, demo):
    page = opened("/runs/{run}".format(**demo.others))

    page.get_by_role("link", name="failures with the same cause").click()

    page.wait_for_url("**/errors/{group}".format(**demo.others))
    page.get_by_role("heading", name="invoices failed").wait_for()
