"""Signing in: the token stays in memory, a new tab gets it, and signing out ends it everywhere."""

from __future__ import annotations

from tests.browser.conftest import sign_in


def test_a_wrong_secret_is_refused_with_a_message(visitor, stack):
    page = visitor().new_page()
    page.goto("/console")
    page.get_by_label("Client id").fill(stack.file.tenants["acme"].client_id)
    page.get_by_label("Secret").fill("wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()

    page.get_by_role("alert").wait_for()
    assert page.get_by_label("Secret").is_visible()


def test_no_part_of_the_session_is_stored(opened, stack, demo):
    page = opened("/jobs")

    stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert "ey" not in stored
    assert stack.file.tenants["acme"].secret not in stored


def test_a_new_tab_is_signed_in_and_signing_out_ends_both(opened, demo):
    first = opened("/jobs")
    second = first.context.new_page()
    second.goto("/console/runs")
    second.get_by_role("heading", name="Runs").wait_for()

    second.get_by_role("button", name="Sign out").click()

    first.get_by_label("Client id").wait_for()
    second.get_by_label("Client id").wait_for()


def test_an_expired_token_asks_for_a_new_sign_in_and_keeps_the_page(opened, stack, demo):
    page = opened(f"/jobs/{demo.jobs['nightly']}")
    page.get_by_role("button", name="Pause job").click()
    page.get_by_label("Note").fill("in the middle of a form")
    ended = []

    def refuse(route):
        if ended:
            route.fallback()
        else:
            ended.append(True)
            route.fulfill(status=401, json={"code": "UNAUTHENTICATED", "detail": "the token has ended"})

    page.route("**/pause", refuse)
    page.get_by_role("dialog").get_by_role("button", name="Pause job").click()
    again = page.get_by_role("dialog", name="Sign in again")
    again.wait_for()
    assert page.get_by_label("Note").input_value() == "in the middle of a form"
    sign_in(page, stack.file.tenants["acme"])

    page.get_by_role("button", name="Resume job").click()
    page.get_by_role("button", name="Pause job").wait_for()
    paused = stack.client().get(f"/v1/jobs/{demo.jobs['nightly']}/changes").json()["items"][1]
    assert paused["operation"] == "pause"


def test_two_tenants_see_only_their_own_jobs(opened, demo):
    acme = opened("/jobs")
    acme.get_by_role("link", name="nightly").wait_for()
    assert "acme" in acme.title()

    globex = opened(f"/jobs/{demo.jobs['nightly']}", tenant="globex")

    globex.get_by_role("heading", name="Not there").wait_for()
    assert "nightly" not in globex.content()
    globex.get_by_role("link", name="Jobs").click()
    globex.get_by_role("heading", name="No jobs yet").wait_for()


def test_actions_without_a_scope_are_hidden(stack, visitor, demo):
    reader = stack.client().post("/v1/credentials", json={"name": "reader", "scopes": ["jobs:read"]}).json()
    page = visitor().new_page()
    page.goto(f"/console/jobs/{demo.jobs['nightly']}")
    page.get_by_label("Client id").fill(reader["clientId"])
    page.get_by_label("Secret").fill(reader["secret"])
    page.get_by_role("button", name="Sign in", exact=True).click()

    page.get_by_role("heading", name="nightly").wait_for()
    assert page.get_by_role("button", name="Run job now").count() == 0
    assert page.get_by_role("button", name="Delete job").count() == 0


def test_people_sign_in_at_an_issuer_with_a_code_and_pkce(visitor, demo):
    page = visitor().new_page()
    page.goto("/console/jobs")
    page.get_by_role("button", name="Sign in at").click()

    page.get_by_role("link", name="nightly").wait_for()
    stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    assert "ey" not in stored


def test_sign_in_uses_the_current_window_if_no_second_one_can_open(visitor, demo):
    context = visitor()
    context.add_init_script("window.open = () => null;")
    page = context.new_page()
    page.goto("/console/jobs?state=PAUSED")
    page.get_by_role("button", name="Sign in at").click()

    page.get_by_role("link", name="backup").wait_for()
    assert page.url.endswith("/console/jobs?state=PAUSED")


def test_an_answer_to_another_sign_in_is_refused(visitor, demo):
    page = visitor().new_page()
    page.goto("/console/sign-in?code=stolen&state=another")

    page.get_by_text("This answer belongs to another sign-in. Begin again.").wait_for()
