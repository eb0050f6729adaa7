"""Resources with a page of their own, credentials, tenants, and changes of many jobs at once."""

from __future__ import annotations


def test_a_collection_is_created_and_changed_by_fields_with_the_apis_message_at_each(opened, demo, stack):
    page = opened("/collections")
    page.get_by_role("button", name="Create collection").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("by-hand")
    dialog.get_by_label("Maximum jobs").fill("many")
    dialog.get_by_label("Days to keep runs").fill("3")
    dialog.get_by_role("button", name="Create collection").click()
    for label in ("Maximum jobs", "Days to keep runs"):
        dialog.locator(".field.wrong", has_text=label).get_by_role("alert").wait_for()

    dialog.get_by_label("Maximum jobs").fill("7")
    dialog.get_by_label("Days to keep runs").fill("30")
    dialog.get_by_label("Events to publish").select_option("all")
    dialog.get_by_role("button", name="Create collection").click()
    page.get_by_role("heading", name="by-hand").wait_for()
    page.get_by_role("button", name="Edit collection").click()
    dialog.get_by_label("Maximum jobs").fill("")
    dialog.get_by_label("Shortest interval").fill("60")
    dialog.get_by_role("button", name="Change collection").click()
    page.get_by_text('"minIntervalSeconds": 60').wait_for()

    there = stack.client().get("/v1/collections/by-hand").json()
    assert {name: value for name, value in there["quota"].items() if value is not None} == {"minIntervalSeconds": 60}
    assert (there["retention"]["runDays"], there["events"]) == (30, "all")


def test_a_calendar_is_created_from_days_weekdays_and_ranges(opened, demo, stack):
    page = opened("/calendars")
    page.get_by_role("button", name="Create calendar").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("feasts")
    dialog.get_by_label("Days, one per line").fill("12-25\n2027-13-01\n")
    dialog.get_by_role("group", name="Days 1").get_by_role("button", name="Sat").click()
    dialog.get_by_label("From, days 1").fill("12:00")
    dialog.get_by_role("button", name="Add stretch").click()
    dialog.get_by_label("From, stretch 1").fill("2027-08-01")
    dialog.get_by_label("To, stretch 1").fill("2027-08-15")
    dialog.get_by_role("button", name="Create calendar").click()
    dialog.locator(".field.wrong", has_text="Days, one per line").get_by_role("alert").wait_for()

    dialog.get_by_label("Days, one per line").fill("12-25\n2027-12-01\n")
    dialog.get_by_role("button", name="Create calendar").click()
    page.get_by_role("heading", name="feasts").wait_for()

    there = stack.client().get("/v1/calendars/feasts").json()
    assert there["dates"] == ["12-25", "2027-12-01"]
    assert [(each["days"], each["from"]) for each in there["weekly"]] == [(["SUN"], "12:00")]
    assert there["ranges"] == [{"from": "2027-08-01", "to": "2027-08-15"}]


def test_a_flow_key_can_be_changed_by_fields_or_as_json(opened, demo, stack):
    assert stack.client().post("/v1/flow-keys", json={"name": "narrow", "parallelism": 3}).status_code == 201
    page = opened("/flow-keys/narrow")
    page.get_by_role("button", name="Edit flow key").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Calls at most").fill("60")
    dialog.get_by_label("per this many seconds").fill("30")
    dialog.get_by_role("button", name="Edit all members as JSON").click()
    text = dialog.get_by_label("Members (JSON)")
    text.fill(text.input_value().replace('"limit": 60', '"limit": 61'))
    dialog.get_by_role("button", name="Edit by fields").click()
    assert dialog.get_by_label("Calls at most").input_value() == "61"
    dialog.get_by_label("Calls at once").fill("")
    dialog.get_by_role("button", name="Change flow key").click()
    page.get_by_text('"limit": 61').wait_for()

    there = stack.client().get("/v1/flow-keys/narrow").json()
    assert (there["rate"], there["parallelism"]) == ({"limit": 61, "periodSeconds": 30}, None)


def test_a_redirect_between_jobs_is_created_by_their_names_and_ended(opened, demo, stack, target):
    for name in ("broken", "repaired"):
        body = {"name": name, "action": {"type": "http", "url": f"{target}/ok"}}
        assert stack.client().post("/v1/jobs", json=body).status_code == 201
    page = opened("/redirects")
    page.get_by_role("button", name="Create redirect").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Job whose runs failed").fill("broken")
    dialog.get_by_label("Job that runs them again").fill("repaired")
    dialog.get_by_role("button", name="Create redirect").click()

    row = page.get_by_role("row").filter(has_text="broken").filter(has_text="repaired")
    row.get_by_role("button", name="End redirect").click()
    page.get_by_role("dialog").get_by_role("button", name="End redirect").click()
    row.wait_for(state="detached")


def test_a_consumer_shows_its_lease_and_the_lease_can_be_ended(opened, demo, stack):
    assert stack.client().put("/v1/consumers/cellar/lease", json={"holder": "cellar-7"}).status_code == 200
    page = opened("/consumers")
    page.get_by_role("link", name="cellar").click()
    page.get_by_text("cellar-7").wait_for()

    page.get_by_role("button", name="End lease").click()
    page.get_by_role("dialog").get_by_role("button", name="End lease").click()
    page.get_by_text("Nobody holds its lease").wait_for()
    page.get_by_role("button", name="Delete consumer").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete consumer").click()

    page.get_by_role("heading", name="Consumers").wait_for()
    page.get_by_role("link", name="cellar").wait_for(state="detached")


def test_a_job_set_shows_outside_changes_and_its_job_count_before_it_is_deleted(opened, demo, stack, target):
    action = {"type": "http", "url": f"{target}/ok"}
    acme = stack.client()
    jobs = [{"key": key, "name": f"shop-{key}", "action": action} for key in ("one", "two")]
    assert acme.put("/v1/job-sets/shop", json={"jobs": jobs}).status_code == 200
    changed = next(each for each in acme.get("/v1/job-sets/shop").json()["jobs"] if each["key"] == "two")
    assert acme.patch(f"/v1/jobs/{changed['jobId']}", json={"description": "by hand"}).status_code == 200
    page = opened("/job-sets")
    page.get_by_role("link", name="shop").click()
    page.get_by_text("1 job is not as the set has it any more").wait_for()
    row = page.get_by_role("row").filter(has_text="two")
    row.get_by_text("changed by others").wait_for()
    row.get_by_text(stack.file.tenants["acme"].client_id).wait_for()

    page.get_by_role("button", name="Delete job set").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete 2 jobs").click()

    page.get_by_role("heading", name="Job sets").wait_for()
    page.get_by_role("link", name="shop").wait_for(state="detached")
    assert acme.get("/v1/job-sets/shop").status_code == 404


def test_a_collection_shows_how_many_jobs_stop_before_it_is_disabled(opened, stack, demo):
    stack.client().post("/v1/collections", json={"name": "switched"})
    page = opened("/collections/switched")
    page.get_by_role("button", name="Disable collection").click()
    page.get_by_text("Its 0 jobs stop").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Disable collection").click()

    page.get_by_role("button", name="Enable collection").wait_for()
    assert stack.client().get("/v1/collections/switched").json()["state"] == "DISABLED"


def test_a_secret_is_shown_once_and_can_be_rotated_and_its_former_value_ended(opened, demo):
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


def test_a_provider_acts_for_a_tenant_named_on_the_page_and_in_its_address(opened, demo):
    page = opened("/tenants", tenant="provider")
    page.get_by_role("row").filter(has_text="acme").get_by_role("link", name="Act for it").click()

    page.locator(".tenant", has_text="acme").wait_for()
    page.get_by_role("row").filter(has_text="nightly").first.wait_for()
    assert "as=acme" in page.url
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("link", name="nightly").wait_for()
    assert "acme" in page.title()


def test_many_jobs_are_changed_by_a_filter_after_their_number_is_shown(opened, demo, stack, target):
    acme = stack.client()
    for n in range(3):
        action = {"type": "http", "url": f"{target}/ok"}
        acme.post("/v1/jobs", json={"name": f"many-{n}", "tags": ["many"], "action": action})
    page = opened("/jobs?tag=many")
    sent = []
    page.on("request", lambda request: sent.append(request.url) if "jobs:pause" in request.url else None)

    menu = page.get_by_label("Do with all 3 jobs")
    menu.focus()
    for key in ("ArrowDown", "Enter", "Tab", "ArrowDown"):
        page.keyboard.press(key)
        assert not page.get_by_role("dialog").count()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Pause 3 jobs").click()

    page.get_by_role("row").filter(has_text="Paused").nth(2).wait_for()
    assert [("dryRun" in url, "expectedCount=3" in url, "tag=many" in url) for url in sent] == [
        *((True, False, True), (False, True, True)),
    ]


def test_a_count_that_changed_meanwhile_is_refused_and_nothing_happens(opened, demo, stack, target):
    acme = stack.client()
    body = {"tags": ["fewer"], "action": {"type": "http", "url": f"{target}/ok"}}
    acme.post("/v1/jobs", json={"name": "fewer-0", **body})
    page = opened("/jobs?tag=fewer")
    page.get_by_label("Do with all 1 job").click()
    page.get_by_role("button", name="Delete them").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete 1 job").wait_for()
    acme.post("/v1/jobs", json={"name": "fewer-1", **body})

    page.get_by_role("dialog").get_by_role("button", name="Delete 1 job").click()

    page.get_by_role("alert").filter(has_text="COUNT_MISMATCH").wait_for()
    assert len(acme.get("/v1/jobs", params={"tag": "fewer"}).json()["items"]) == 2


def test_a_refusal_by_a_quota_uses_the_apis_words_and_keeps_the_form(opened, demo, stack, target):
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
