"""Changes made in the console: a job created and edited with its preview, failed runs run again, groups archived."""

from __future__ import annotations

import re

import pytest

from tests.local_stack.waiting import until


def _type(page, label, text):
    page.get_by_label(label, exact=True).fill(text)


def test_a_job_is_created_manually_and_its_preview_marks_the_clock_changes(opened, demo, stack, target):
    page = opened("/jobs")
    page.get_by_role("link", name="Create job").first.click()
    page.get_by_label("Name", exact=True).first.fill("made by hand")
    _type(page, "Address", f"{target}/ok")
    _type(page, "Rule", "30 2 * * *")
    page.get_by_role("combobox", name="Time zone").fill("Europe/Berlin")

    preview = page.get_by_role("complementary", name="Preview")
    preview.get_by_role("listitem").filter(has_text="jumps over").wait_for()
    preview.get_by_role("listitem").filter(has_text="twice").wait_for()
    page.get_by_role("button", name="Create job").click()

    page.get_by_role("heading", name="made by hand").wait_for()
    (made,) = stack.client().get("/v1/jobs", params={"name": "made by hand", "include": "total"}).json()["items"]
    assert made["action"]["url"] == f"{target}/ok"


@pytest.mark.parametrize(
    ("notation", "rule", "says"),
    [
        ("every", "PT15M", "Every 15 minutes"),
        ("rrule", "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "Friday"),
        ("eventBridge", "cron(30 2 ? * MON-FRI *)", "02:30"),
        ("repeatAt", "4:40pm", "16:40"),
        ("sapCron", "* * * * 2 30 0", "02:30"),
        ("recurrence", '{"frequency": "day", "interval": 2}', "2 days"),
    ],
)
def test_every_notation_has_a_preview_in_words(opened, demo, notation, rule, says):
    page = opened("/jobs/new")
    page.get_by_label("Notation").select_option(notation)
    _type(page, "Rule", rule)

    page.get_by_role("complementary", name="Preview").get_by_text(says).first.wait_for()


def test_an_unreadable_rule_is_marked_at_the_mistake(opened, demo):
    page = opened("/jobs/new")
    _type(page, "Rule", "30 25 * * *")

    page.get_by_text("hour must be 0 to 23, not").first.wait_for()
    assert page.locator(".position mark").text_content() == "2"


def test_a_change_made_meanwhile_is_shown_side_by_side_and_nothing_is_lost(opened, demo, stack):
    job = demo.jobs["orders"]
    page = opened(f"/jobs/{job}/edit")
    page.get_by_label("Description").fill("mine")
    assert stack.client().patch(f"/v1/jobs/{job}", json={"description": "theirs"}).status_code == 200
    page.get_by_role("button", name="Change job").click()

    both = page.get_by_role("dialog", name="Someone else changed this job")
    both.get_by_text('"description": "mine"').wait_for()
    both.get_by_text('"description": "theirs"').wait_for()
    both.get_by_role("button", name="Save my version").click()

    page.get_by_role("heading", name="orders", exact=True).wait_for()
    kept = stack.client().get(f"/v1/jobs/{job}", params={"include": "schedules"}).json()
    assert kept["description"] == "mine"
    assert [each["every"] for each in kept["schedules"]] == ["PT20M"]


def test_failed_runs_are_run_again_in_three_clicks_after_their_number_is_shown(opened, demo, stack):
    page = opened("/overview")
    needs = page.get_by_role("region", name="Needs attention").get_by_role("listitem").filter(has_text="payments")
    needs.get_by_role("link", name="Why").click()
    page.get_by_role("button", name=re.compile(r"Run \d+ runs? again")).click()
    asked = []
    page.on("request", lambda request: asked.append(request.post_data_json) if "redrive" in request.url else None)
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=re.compile(r"Run \d+ runs? again")).click()

    page.get_by_role("link", name="Run failed runs again").wait_for()
    begun = asked[-1]
    assert begun["expectedCount"] >= 1
    until(
        lambda: stack.client().get("/v1/operations").json()["items"],
        lambda items: items and items[0]["state"] == "DONE",
    )


def test_a_group_shows_how_many_runs_failed_again_after_a_rerun(opened, demo, stack, target):
    acme = stack.client()
    job = acme.post("/v1/jobs", json={"name": "stubborn", "action": {"type": "http", "url": f"{target}/fail"}}).json()
    acme.post(f"/v1/jobs/{job['id']}/run")
    group = until(lambda: acme.get("/v1/errors", params={"jobId": job["id"]}).json()["items"])[0]["id"]
    begun = acme.post("/v1/errors:redrive", json={"group": group, "expectedCount": 1})
    assert begun.status_code == 202, begun.text
    until(lambda: acme.get(f"/v1/errors/{group}/runs").json()["items"], lambda runs: len(runs) == 2)

    page = opened(f"/errors/{group}")
    page.get_by_text("1 failed again since").wait_for()
    page.get_by_role("link", name="Run failed runs again").click()

    page.get_by_text("1 failed again since").wait_for()
    page.get_by_role("link", name="View the group").wait_for()


def test_an_archived_group_can_be_restored_by_undo_or_on_its_page(opened, demo, stack):
    group = stack.client().get("/v1/errors").json()["items"][0]["id"]
    page = opened(f"/errors/{group}")
    page.get_by_label("Note").fill("the supplier knows")
    page.get_by_role("button", name="Add note").click()
    page.get_by_role("listitem").get_by_text("the supplier knows").wait_for()

    page.get_by_role("button", name="Archive group").click()
    page.get_by_role("button", name="Undo").click()

    page.get_by_role("button", name="Archive group").wait_for()


def test_a_run_that_was_not_started_last_night_is_explained_in_one_click(opened, demo):
    page = opened("/overview")
    page.get_by_role("row").filter(has_text="invoices").locator("a.mark").first.click()

    page.locator(".verdict.failed").wait_for()
