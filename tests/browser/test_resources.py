"""Collections, calendars, flow keys, credentials, tenants, and changes of many jobs at once."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("page_of", "one", "members", "says"),
    [
        ("collections", "collection", '{"quota": {"maxJobs": 7}}', '"maxJobs": 7'),
        ("calendars", "calendar", '{"dates": ["12-25"]}', '"12-25"'),
        ("flow-keys", "flow key", '{"parallelism": 3}', '"parallelism": 3'),
    ],
)
def test_each_is_created_and_its_mistakes_are_the_api_s_own_sentence(opened, demo, page_of, one, members, says):
    page = opened(f"/{page_of}")
    page.get_by_role("button", name=f"Create {one}").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("no blank allowed")
    dialog.get_by_label("Members").fill(members)
    dialog.get_by_role("button", name=f"Create {one}").click()
    dialog.get_by_role("alert").first.wait_for()

    dialog.get_by_label("Name").fill(f"by-hand-{page_of}")
    dialog.get_by_role("button", name=f"Create {one}").click()

    page.get_by_role("heading", name=f"by-hand-{page_of}").wait_for()
    page.get_by_text(says).wait_for()


def test_a_collection_says_how_many_jobs_stop_before_it_is_disabled(opened, stack, demo):
    stack.client().post("/v1/collections", json={"name": "switched"})
    page = opened("/collections/switched")
    page.get_by_role("button", name="Disable collection").click()
    page.get_by_text("Its 0 jobs stop").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Disable collection").click()

    page.get_by_role("button", name="Enable collection").wait_for()
    assert stack.client().get("/v1/collections/switched").json()["state"] == "DISABLED"


def test_a_secret_is_shown_once_until_somebody_stored_it_then_rotated_and_the_former_one_ended(opened, demo):
    page = opened("/access")
    page.get_by_role("button", name="Create credential").click()
    page.get_by_role("dialog").get_by_label("Name").fill("by hand")
    page.get_by_role("dialog").get_by_role("button", name="Create credential").click()
    shown = page.get_by_role("dialog", name="The new secret")
    secret = shown.locator("code").nth(1).text_content()
    assert len(secret) > 20
    page.keyboard.press("Escape")
    assert shown.is_visible()
    shown.get_by_role("button", name="I stored it").click()
    assert secret not in page.content()

    row = page.get_by_role("row").filter(has_text="by hand")
    row.get_by_role("button", name="Rotate secret").click()
    page.get_by_role("dialog").get_by_role("button", name="Rotate secret").click()
    page.get_by_role("button", name="I stored it").click()

    row.get_by_text("accepted until").wait_for()
    row.get_by_role("button", name="End former secret").click()
    page.get_by_role("dialog").get_by_role("button", name="End former secret").click()
    row.get_by_text("none").wait_for()


def test_a_provider_acts_for_a_tenant_that_is_named_on_the_page_and_in_its_address(opened, demo):
    page = opened("/tenants", tenant="provider")
    page.get_by_role("row").filter(has_text="acme").get_by_role("link", name="Act for it").click()

    page.locator(".tenant", has_text="acme").wait_for()
    page.get_by_role("row").filter(has_text="nightly").first.wait_for()
    assert "as=acme" in page.url
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("link", name="nightly").wait_for()
    assert "acme" in page.title()


def test_many_jobs_are_changed_by_the_filter_with_their_number_first(opened, demo, stack, target):
    acme = stack.client()
    for n in range(3):
        action = {"type": "http", "url": f"{target}/ok"}
        acme.post("/v1/jobs", json={"name": f"many-{n}", "tags": ["many"], "action": action})
    page = opened("/jobs?tag=many")
    sent = []
    page.on("request", lambda request: sent.append(request.url) if "jobs:pause" in request.url else None)

    page.get_by_label("Do with all 3 jobs").select_option("pause")
    page.get_by_role("dialog").get_by_role("button", name="Pause 3 jobs").click()

    page.get_by_role("row").filter(has_text="Paused").nth(2).wait_for()
    assert [("dryRun" in url, "expectedCount=3" in url, "tag=many" in url) for url in sent] == [
        *((True, False, True), (False, True, True)),
    ]


def test_a_number_that_has_changed_meanwhile_is_refused_and_nothing_is_done(opened, demo, stack, target):
    acme = stack.client()
    body = {"tags": ["fewer"], "action": {"type": "http", "url": f"{target}/ok"}}
    acme.post("/v1/jobs", json={"name": "fewer-0", **body})
    page = opened("/jobs?tag=fewer")
    page.get_by_label("Do with all 1 job").select_option("delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete 1 job").wait_for()
    acme.post("/v1/jobs", json={"name": "fewer-1", **body})

    page.get_by_role("dialog").get_by_role("button", name="Delete 1 job").click()

    page.get_by_role("alert").filter(has_text="COUNT_MISMATCH").wait_for()
    assert len(acme.get("/v1/jobs", params={"tag": "fewer"}).json()["items"]) == 2


def test_a_quota_is_refused_in_the_api_s_words_and_the_form_stays(opened, demo, stack, target):
    stack.client().post("/v1/collections", json={"name": "full", "quota": {"maxJobs": 1}})
    body = {"name": "first", "collection": "full", "action": {"type": "http", "url": f"{target}/ok"}}
    assert stack.client().post("/v1/jobs", json=body).status_code == 201
    page = opened("/jobs/new")
    page.get_by_label("Name", exact=True).first.fill("one too many")
    page.get_by_label("Collection").fill("full")
    page.get_by_label("Address").fill(f"{target}/ok")

    page.get_by_role("button", name="Create job").click()

    page.get_by_role("alert").filter(has_text="QUOTA_EXCEEDED").wait_for()
    assert page.get_by_label("Name", exact=True).first.input_value() == "one too many"
