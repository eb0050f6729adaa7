"""Jobs: created, read, replaced, patched, deleted, switched on and off."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from sweephand.base.json_text import Number
from sweephand.server.store.jobs import jobs
from sweephand.testing.service import URLS
from sweephand.testing.sources import START
from tests.contract.calls import CANARY
from tests.contract.native import shapes
from tests.contract.native.api import EXAMPLE, JOB, example

SECRET = {"type": "basic", "username": "me", "password": f"{CANARY}-password"}


def job(**members):
    return JOB | members


def without_extras(shown, asked):
    """Returns the part of an answer that the caller had asked for."""
    if isinstance(asked, dict):
        return {name: without_extras(shown.get(name), value) for name, value in asked.items()}
    if isinstance(asked, list):
        return [without_extras(*pair) for pair in zip(shown, asked, strict=True)]
    return shown


def test_the_documented_example_is_accepted_word_for_word_and_read_back_unchanged(api):
    made = api("POST", "/v1/jobs", raw=EXAMPLE)
    read = api.get(f"/v1/jobs/{made.id}", query="include=schedules")

    assert (made.status, read.status) == (201, 200)
    assert made.json == read.json
    assert without_extras(read.json, example()) == example()
    shapes.check_job(read.json, schedules=True)


def test_a_new_job_is_answered_with_its_location_revision_and_five_next_runs_a_schedule(api):
    made = api("POST", "/v1/jobs", raw=EXAMPLE)

    assert made.headers["location"] == f"/v1/jobs/{made.id}"
    assert made.headers["etag"] == '"1"'
    assert made.headers["content-type"] == "application/json"
    weekdays, beat, once = made.json["schedules"]
    assert weekdays["nextRuns"] == [f"2027-03-0{day}T01:30:00Z" for day in (2, 3, 4, 5, 8)]
    assert beat["nextRuns"] == [f"2027-03-01T12:00:{second}Z" for second in (11, 21, 31, 41, 51)]
    assert once["nextRuns"] == ["2027-04-01T08:00:00Z"]
    assert made.json["nextRunAt"] == beat["nextRunAt"] == beat["nextRuns"][0]


def test_the_smallest_job_shows_all_defaults(api):
    made = api("POST", "/v1/jobs", {"action": {"type": "http", "url": "https://example.org/run"}}).json

    assert made["name"] == made["id"]
    assert (made["collection"], made["active"], made["state"], made["tags"]) == ("default", True, "ACTIVE", [])
    assert made["schedules"] == []
    assert made["nextRunAt"] is None
    assert made["errorAction"] is None
    assert made["hooks"] == {}
    assert made["action"] == {
        "type": "http",
        "method": "POST",
        "url": "https://example.org/run",
        "headers": {},
        "payload": None,
        "body": None,
        "authentication": {"type": "none"},
        "outcome": {
            "answerTimeoutSeconds": 15,
            "successStatuses": ["2xx"],
            "on202": "success",
            "onNoAnswer": "fail",
            "callbackTimeoutSeconds": 1_800,
        },
        "retry": {"type": "none"},
    }
    assert made["policies"] == {
        "misfire": {"type": "sap", "ratePerMinute": 60, "maxLatenessSeconds": None},
        "overlap": "allow",
        "onPastStart": "refuse",
        "onEnable": "skip",
        "onCreate": "schedule",
        "onNothingLeft": "refuse",
        "onUnreachable": "deactivate",
        "onNoResult": "end",
        "afterEnd": "open",
        "delivery": "at_least_once",
        "keepAnswer": "failures",
        "callbackToken": False,
        "totals": "planned",
        "hooks": ["onSuccess", "onFailure", "onMissed"],
        "flowKey": None,
    }


def test_a_job_is_read_without_its_schedules_unless_they_are_included(api):
    made = api.create()

    read = api.get(f"/v1/jobs/{made['id']}")

    shapes.check_job(read.json)
    assert read.headers["etag"] == '"1"'


PAYLOAD = (
    '{"a":1.10,"b":-0,"c":1E2,"d":12345678901234567890123456789012345678901234567890,"e":-0.0,"z":null,"y":[[],{}],'
    '"f":0.1000,"g":"\\u00e9\\ud83d\\ude00","1":[null]}'
)
WRITTEN = PAYLOAD.replace("\\u00e9\\ud83d\\ude00", "é😀")


@pytest.mark.parametrize("member", ["action", "errorAction", "schedule"])
def test_a_payload_is_returned_with_the_same_digits_and_order(api, member):
    place = {
        "action": '"action": {"type": "http", "url": "https://x.org/", "payload": %s}',
        "errorAction": '"errorAction": {"type": "http", "url": "https://x.org/", "payload": %s}, '
        '"action": {"type": "http", "url": "https://x.org/"}',
        "schedule": '"schedules": [{"every": "PT1H", "payload": %s}], "action": {"type": "http", "url": "https://x.org/"}',
    }[member]

    made = api("POST", "/v1/jobs", raw="{%s}" % (place % PAYLOAD))
    read = api.get(f"/v1/jobs/{made.id}", query="include=schedules")
    again = api("PUT", f"/v1/jobs/{made.id}", read.json)

    for reply in (made, read, again):
        assert f'"payload":{WRITTEN}' in reply.text
    assert again.revision == 1


def test_a_string_body_is_sent_and_shown_unchanged(api):
    action = {"type": "http", "url": "https://x.org/", "body": "a=1\r\n&b=\u0000\U0001f600"}

    made = api.create(action=action)

    assert (made["action"]["body"], made["action"]["payload"]) == (action["body"], None)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(example(), id="the example"),
        pytest.param(JOB, id="the least"),
        pytest.param(
            job(action={"type": "http", "url": "https://x.org/", "authentication": SECRET, "body": "text"}), id="basic"
        ),
        pytest.param(
            job(action={"type": "http", "url": "https://x.org/", "headers": {"Authorization": f"x {CANARY}"}}),
            id="a header",
        ),
        pytest.param(
            job(
                action={"type": "http", "url": "https://x.org/", "authentication": SECRET},
                errorAction={
                    "type": "http",
                    "url": "https://y.org/",
                    "authentication": {"type": "bearer", "token": f"{CANARY}-token"},
                    "retry": {"type": "two_level"},
                },
            ),
            id="two secrets",
        ),
        pytest.param(
            job(
                hooks={
                    "onSuccess": {"type": "http", "url": "https://x.org/", "authentication": SECRET, "payload": [1]},
                    "onMissed": {"type": "event", "detailType": "late"},
                },
                policies={"hooks": ["onMissed", "onSuccess"]},
                schedules=[{"every": "PT5M", "policies": {"hooks": []}}],
            ),
            id="hooks",
        ),
        pytest.param(
            job(
                schedules=[
                    {"every": "P1M", "align": "clock", "timezone": "Asia/Tokyo", "count": 7, "jitterSeconds": 3},
                    {"at": "2027-03-28T02:30:00", "timezone": "Europe/Berlin", "dstGap": "shift"},
                    {"every": "PT5M", "align": "actual_start", "startTime": "2027-03-02T00:00:00Z"},
                    {"every": "PT5M", "align": "epoch", "active": False, "policies": {"onCreate": "run_now"}},
                ],
                startTime="2027-03-02T00:00:00Z",
                endTime="2027-06-01T00:00:00.5Z",
                active=False,
                description="",
            ),
            id="every timing",
        ),
    ],
)
def test_putting_back_an_answer_changes_nothing(api, body):
    made = api("POST", "/v1/jobs", body)
    assert made.status == 201, made.text
    api.stage.clock.advance(3)
    read = api.get(f"/v1/jobs/{made.id}", query="include=schedules")

    with api.unchanged():
        put = api("PUT", f"/v1/jobs/{made.id}", read.json)
        patched = api("PATCH", f"/v1/jobs/{made.id}", read.json)
        empty = api("PATCH", f"/v1/jobs/{made.id}", {})
        for schedule in read.json["schedules"]:
            place = f"/v1/jobs/{made.id}/schedules/{schedule['id']}"
            assert api("PUT", place, schedule).revision == 1
            assert api("PATCH", place, schedule).revision == 1
            assert api("PATCH", place, {}).json == api.get(place).json

    for reply in (put, patched, empty):
        assert (reply.status, reply.revision) == (200, 1)
        assert reply.json["schedules"] == read.json["schedules"]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_jobs_id_cannot_be_changed(api, method):
    made, other = api.create(), api.create()

    with api.unchanged():
        reply = api(method, f"/v1/jobs/{made['id']}", job(id=other["id"]))

    assert (reply.status, reply.fields) == (422, ["id"])


def test_a_put_without_schedules_keeps_them_and_an_empty_list_removes_them(api):
    made = api.create(example())
    place = f"/v1/jobs/{made['id']}"
    body = {name: value for name, value in example().items() if name != "schedules"}

    kept = api("PUT", place, body | {"description": "new"})
    emptied = api("PUT", place, body | {"schedules": []})

    assert [each["id"] for each in kept.json["schedules"]] == [each["id"] for each in made["schedules"]]
    assert emptied.json["schedules"] == []
    assert (kept.revision, emptied.revision) == (2, 3)


def test_a_put_matches_schedules_by_id_then_by_name_and_deletes_the_others(api):
    made = api.create(example())
    weekdays, beat, once = made["schedules"]
    wanted = [
        {"id": weekdays["id"], "name": "renamed", "cron": weekdays["cron"], "timezone": "Europe/Berlin"},
        {"name": "beat", "every": "PT20S"},
        {"name": "new", "every": "PT1H"},
    ]

    put = api("PUT", f"/v1/jobs/{made['id']}", job(schedules=wanted)).json["schedules"]

    assert {each["name"]: each["id"] for each in put} == {
        "renamed": weekdays["id"],
        "beat": beat["id"],
        "new": put[-1]["id"],
    }
    assert put[-1]["id"] not in {weekdays["id"], beat["id"], once["id"]}
    assert api.get(f"/v1/jobs/{made['id']}/schedules/{once['id']}").status == 404


def test_a_put_with_another_jobs_schedule_or_a_duplicate_is_refused(api):
    made, other = api.create(example()), api.create()
    place = f"/v1/jobs/{made['id']}"
    foreign = {"id": other["schedules"][0]["id"], "every": "PT1H"}
    own = {"id": made["schedules"][0]["id"], "every": "PT1H"}

    with api.unchanged():
        unknown = api("PUT", place, job(schedules=[foreign]))
        twice = api("PUT", place, job(schedules=[own, own]))
        by_both = api("PUT", place, job(schedules=[own, {"name": "weekdays", "every": "PT1H"}]))
        same_name = api("PUT", place, job(schedules=[{"name": "a", "every": "PT1H"}, {"name": "a", "every": "PT2H"}]))

    assert [unknown.fields, twice.fields] == [["schedules[0].id"], ["schedules[1]"]]
    assert [by_both.fields, same_name.fields] == [["schedules[1]"], ["schedules[1].name"]]
    assert {each.status for each in (unknown, twice, by_both, same_name)} == {422}


def test_the_schedules_keep_the_order_of_the_request(api):
    names = [f"s{n:02d}" for n in range(40)]

    made = api.create(schedules=[{"name": name, "every": "PT1H"} for name in names])
    read = api.get(f"/v1/jobs/{made['id']}", query="include=schedules").json

    assert [each["name"] for each in made["schedules"]] == names
    assert [each["name"] for each in read["schedules"]] == names


def test_a_merge_patch_merges_objects_replaces_values_and_removes_nulls(api):
    made = api.create(example())
    patch = {
        "description": "text",
        "resourceId": None,
        "tags": ["a", "b"],
        "action": {
            "headers": {"X-A": None, "X-C": "d"},
            "payload": {"r": None, "s": [1, None]},
            "retry": {"maxRetries": 2},
        },
        "errorAction": None,
        "policies": {"keepAnswer": "all"},
    }

    patched = api("PATCH", f"/v1/jobs/{made['id']}", patch, headers={"content-type": "application/merge-patch+json"})
    after = patched.json

    assert (patched.status, patched.revision) == (200, 2)
    assert (after["description"], after["resourceId"], after["tags"]) == ("text", None, ["a", "b"])
    assert after["action"]["headers"] == {"X-C": "d"}
    assert after["action"]["payload"] == {"s": [1, None]}
    assert after["action"]["retry"] == {**made["action"]["retry"], "maxRetries": 2}
    assert after["errorAction"] is None
    assert after["policies"] == {**made["policies"], "keepAnswer": "all"}
    assert after["schedules"] == made["schedules"]
    assert after["name"] == made["name"]
    unchanged = made.keys() - patch.keys() - {"revision", "modifiedAt"}
    assert {name: after[name] for name in unchanged} == {name: made[name] for name in unchanged}


def test_a_patch_cannot_remove_required_members(api):
    made = api.create()

    with api.unchanged():
        reply = api("PATCH", f"/v1/jobs/{made['id']}", {"action": None})

    assert (reply.status, reply.fields) == (422, ["action"])


def test_a_patch_of_description_tags_and_name_keeps_the_schedules(api):
    made = api.create()
    (before,) = api.stage.waiting().items()

    reply = api("PATCH", f"/v1/jobs/{made['id']}", {"name": "other", "tags": ["x"], "description": "y"})

    assert reply.status == 200
    assert list(api.stage.waiting().items()) == [before]
    assert api.get("/v1/jobs", query={"collection": "default", "name": "other"}).json["items"][0]["id"] == made["id"]
    assert api.get("/v1/jobs", query={"collection": "default", "name": made["name"]}).json["items"] == []


def test_a_change_that_plans_nothing_sends_no_message(api):
    made = api.create(example())
    sent = [len(api.stage.sqs.bodies(url)) for url in URLS.values()]

    api("PATCH", f"/v1/jobs/{made['id']}", {"description": "new"})
    api("PATCH", f"/v1/jobs/{made['id']}", {"schedules": api.get(f"/v1/jobs/{made['id']}/schedules").json["items"]})

    assert [len(api.stage.sqs.bodies(url)) for url in URLS.values()] == sent


# Secrets


def secrets_of(api, job_id):
    """Returns what the executor would decrypt: field -> text."""
    job = jobs.read_job(api.stage.world.table, "acme", job_id)
    if job.secret_version is None:
        return {}
    sealed = jobs.read_secrets(api.stage.world.table, "acme", job_id, job.secret_version)
    return {
        field: api.stage.world.secrets.decrypt("acme", job_id, field, ciphertext)
        for field, ciphertext in sealed.items()
    }


def protected(url="https://x.org/run", **authentication):
    return {"type": "http", "url": url, "authentication": SECRET | authentication}


def test_secrets_are_masked_in_every_answer_and_stored_encrypted(api):
    made = api.create(action=protected() | {"headers": {"X-A": "b"}})

    assert made["action"]["authentication"] == {"type": "basic", "username": "me", "password": "***"}
    assert secrets_of(api, made["id"]) == {"action.authentication.password": f"{CANARY}-password"}
    assert CANARY not in "".join(api.picture())


@pytest.mark.parametrize("password", [{"password": "***"}, {}], ids=["masked", "absent"])
def test_a_secret_is_kept_while_its_destination_and_identity_stay_the_same(api, password):
    made = api.create(action=protected())
    action = protected("https://x.org/elsewhere")
    action["authentication"] = {"type": "basic", "username": "me", **password}

    put = api("PUT", f"/v1/jobs/{made['id']}", job(action=action))

    assert (put.status, put.revision) == (200, 2)
    assert secrets_of(api, made["id"]) == {"action.authentication.password": f"{CANARY}-password"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"url": "https://y.org/run"}, id="host"),
        pytest.param({"url": "https://x.org:8443/run"}, id="port"),
        pytest.param({"authentication": {"username": "you"}}, id="user"),
        pytest.param({"authentication": {"type": "bearer", "username": None, "password": None}}, id="type"),
    ],
)
def test_a_secret_is_never_sent_to_another_destination_or_identity(api, change):
    made = api.create(action=protected())

    with api.unchanged():
        reply = api("PATCH", f"/v1/jobs/{made['id']}", {"action": change})

    assert reply.status == 422
    assert reply.fields[0].startswith("action.")


def _certificate(year=2027):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "me")])
    begin, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    certificate = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, end).sign(key, hashes.SHA256())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return (private + certificate.public_bytes(Encoding.PEM)).decode()


KINDS = {
    "bearer": ({"token": f"{CANARY}-token"}, {}),
    "apiKey": ({"value": f"{CANARY}-value"}, {"header": "X-Api-Key"}),
    "oauth2": (
        {"secret": f"{CANARY}-secret"},
        {"tokenUrl": "https://x.org/token", "clientId": "me", "scope": "a"}
        | dict.fromkeys(("audience", "resource", "credentialsIn")),
    ),
    "clientCertificate": ({"pem": _certificate()}, {}),
}


def shows(year):
    return {"type": "http", "url": "https://x.org/run", "authentication": _shows(year)}


def _shows(year):
    return {"type": "clientCertificate", "pem": _certificate(year)}


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"action": shows(2026)}, "action"),
        ({"errorAction": shows(2026)}, "errorAction"),
        ({"hooks": {"onMissed": shows(2026)}}, "hooks.onMissed"),
        ({"schedules": [{"every": "PT1H", "hooks": {"onFailure": shows(2026)}}]}, "schedules[0].hooks.onFailure"),
    ],
)
def test_an_expired_certificate_is_refused(api, members, field):
    with api.unchanged():
        reply = api("POST", "/v1/jobs", job() | members)

    assert (reply.status, reply.fields) == (422, [f"{field}.authentication"])
    assert reply.json["errors"][0]["reason"] == "the certificate ended at 2027-01-01T00:00:00Z"


def test_a_future_certificate_is_accepted_and_a_kept_one_is_not_checked_again(api):
    later, there = api.create(action=shows(2028)), api.create(action=shows(2027))
    api.stage.pass_time(400 * 86_400)

    renamed = api("PATCH", f"/v1/jobs/{there['id']}", {"name": "other"})
    same = api("PATCH", f"/v1/jobs/{there['id']}", {"action": {"authentication": {"pem": "***"}}})
    given = api("PATCH", f"/v1/jobs/{there['id']}", {"action": {"authentication": {"pem": _certificate(2027)}}})

    assert later["action"]["authentication"]["certificate"]["notBefore"] == "2028-01-01T00:00:00Z"
    assert (renamed.status, same.status) == (200, 200)
    assert (given.status, given.fields) == (422, ["action.authentication"])


def test_the_stacks_own_identity_has_no_secret_to_keep(api):
    action = {"type": "http", "url": "https://x.org/run", "authentication": {"type": "sweephand"}}

    made = api.create(action=action)
    moved = api("PATCH", f"/v1/jobs/{made['id']}", {"action": {"url": "https://y.org/run"}})

    assert made["action"]["authentication"] == {"type": "sweephand"}
    assert (moved.status, secrets_of(api, made["id"])) == (200, {})


@pytest.mark.parametrize("kind", KINDS)
def test_every_authentication_hides_its_secret_and_keeps_it_only_for_its_destination(api, kind):
    secret, shown = KINDS[kind]
    given = {"type": "http", "url": "https://x.org/run", "authentication": {"type": kind, **secret, **shown}}

    made = api.create(action=given)

    there = made["action"]["authentication"]
    (member,) = secret
    assert there.items() >= {"type": kind, member: "***", **shown}.items()
    assert list(secrets_of(api, made["id"])) == [f"action.authentication.{member}"]
    before = secrets_of(api, made["id"])
    picture = "".join(api.picture())
    assert CANARY not in picture
    assert "PRIVATE KEY" not in picture
    elsewhere = api("PATCH", f"/v1/jobs/{made['id']}", {"action": {"url": "https://y.org/run"}})
    assert (elsewhere.status, elsewhere.fields) == (422, [f"action.authentication.{member}"])
    action = {"type": "http", "url": "https://x.org/2", "authentication": there}
    put = api("PUT", f"/v1/jobs/{made['id']}", job(action=action))
    assert put.status == 200
    assert put.json["action"]["authentication"] == there
    assert secrets_of(api, made["id"]) == before


def test_a_new_secret_replaces_the_old_one(api):
    made = api.create(action=protected())

    reply = api("PATCH", f"/v1/jobs/{made['id']}", {"action": {"authentication": {"password": f"{CANARY}-2"}}})

    assert reply.revision == 2
    assert secrets_of(api, made["id"]) == {"action.authentication.password": f"{CANARY}-2"}


def test_a_mask_is_refused_as_the_secret_of_a_new_job(api):
    with api.unchanged():
        reply = api("POST", "/v1/jobs", job(action=protected(password="***")))

    assert (reply.status, reply.fields) == (422, ["action.authentication.password"])


# Preconditions and repetition


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("given", ['"2"', 'W/"7"', '"0"', '"999999999999999"'])
def test_if_match_with_another_revision_changes_nothing(api, method, given):
    made = api.create()

    with api.unchanged():
        reply = api(method, f"/v1/jobs/{made['id']}", JOB if method != "DELETE" else None, headers={"if-match": given})

    assert (reply.status, reply.code) == (412, "REVISION_MISMATCH")


@pytest.mark.parametrize("given", ['"1"', "*", ' "1" '])
def test_if_match_with_the_current_revision_allows_the_change(api, given):
    made = api.create()

    reply = api("PATCH", f"/v1/jobs/{made['id']}", {"description": "x"}, headers={"if-match": given})

    assert (reply.status, reply.revision) == (200, 2)


@pytest.mark.parametrize("verb", ["pause", "resume", "activate", "deactivate"])
def test_if_match_applies_to_the_verbs_too(api, verb):
    made = api.create()

    with api.unchanged():
        reply = api("POST", f"/v1/jobs/{made['id']}/{verb}", headers={"if-match": '"2"'})

    assert reply.status == 412


def test_runs_do_not_change_the_users_revision(api):
    made = api.create(schedules=[{"every": "PT10S"}])

    api.stage.run(300)
    read = api.get(f"/v1/jobs/{made['id']}", query="include=schedules")

    assert read.headers["etag"] == '"1"'
    assert read.json["totals"]["succeeded"] > 25


def test_a_repeated_create_with_one_key_makes_one_job(api):
    key = {"idempotency-key": "order-4711"}

    first = api("POST", "/v1/jobs", JOB, headers=key)
    api.stage.clock.advance(86_000)
    with api.unchanged():
        again = api("POST", "/v1/jobs", JOB, headers=key)

    assert (again.status, again.id, again.headers["location"]) == (201, first.id, first.headers["location"])
    assert again.json == api.get(f"/v1/jobs/{first.id}", query="include=schedules").json


def test_a_key_reused_with_another_body_is_refused(api):
    key = {"idempotency-key": "order-4711"}
    api("POST", "/v1/jobs", JOB, headers=key)

    with api.unchanged():
        reply = api("POST", "/v1/jobs", job(name="x"), headers=key)

    assert (reply.status, reply.code, reply.fields) == (422, "KEY_REUSED", ["Idempotency-Key"])


def test_a_key_expires_after_a_day_and_belongs_to_its_tenant_and_route(api):
    key = {"idempotency-key": "order-4711"}
    first = api("POST", "/v1/jobs", JOB, headers=key)

    other = api("POST", "/v1/jobs", JOB, headers=key, caller="globex")
    run = api("POST", f"/v1/jobs/{first.id}/run", headers=key)
    api.stage.clock.advance(86_401)
    later = api("POST", "/v1/jobs", JOB, headers=key)

    assert len({first.id, other.id, later.id}) == 3
    assert run.status == 202


# Names, quotas, deletion


def test_a_job_name_is_unique_in_its_collection(api):
    api("POST", "/v1/collections", {"name": "other"})
    api.create(name="report")

    with api.unchanged():
        taken = api("POST", "/v1/jobs", job(name="report"))
    elsewhere = api("POST", "/v1/jobs", job(name="report", collection="other"))

    assert (taken.status, taken.code) == (409, "NAME_TAKEN")
    assert elsewhere.status == 201


def test_a_job_can_move_to_another_collection_unless_its_name_is_taken_there(api):
    api("POST", "/v1/collections", {"name": "other"})
    one, _ = api.create(name="a"), api.create(name="a", collection="other")

    with api.unchanged():
        taken = api("PATCH", f"/v1/jobs/{one['id']}", {"collection": "other"})
    moved = api("PATCH", f"/v1/jobs/{one['id']}", {"collection": "other", "name": "b"})

    assert (taken.status, taken.code) == (409, "NAME_TAKEN")
    assert moved.json["collection"] == "other"
    assert api.get("/v1/collections/other").json["jobCount"] == 2
    assert api.get("/v1/collections/default").json["jobCount"] == 0


def test_a_job_in_a_missing_collection_is_refused(api):
    with api.unchanged():
        reply = api("POST", "/v1/jobs", job(collection="nowhere"))

    assert (reply.status, reply.fields) == (422, ["collection"])


def test_a_deleted_job_disappears_from_every_list_and_frees_its_name(api):
    made = api.create(example())
    place = f"/v1/jobs/{made['id']}"

    deleted = api("DELETE", place)

    assert (deleted.status, deleted.text) == (204, "")
    for path in ("", "/schedules", "/next", "/occurrences", f"/schedules/{made['schedules'][0]['id']}"):
        assert api.get(place + path).status == 404
    for query in ("", "tag=finance", "resourceId=inv-4711", "collection=default"):
        assert api.get("/v1/jobs", query=query).json["items"] == []
    assert api("DELETE", place).status == 404
    assert api("POST", "/v1/jobs", raw=EXAMPLE).status == 201


def test_a_job_takes_40_schedules_at_once_and_1000_in_total(api):
    made = api.create(schedules=[])
    many = [{"name": f"s{n}", "every": "PT1H"} for n in range(1_001)]

    with api.unchanged():
        at_once = api("POST", "/v1/jobs", job(schedules=many[:41]))
        too_many = api("PUT", f"/v1/jobs/{made['id']}", job(schedules=many))

    assert (at_once.status, at_once.fields) == (422, ["schedules"])
    assert (too_many.status, too_many.fields) == (422, ["schedules"])


def test_more_schedules_with_payloads_than_one_transaction_holds_can_be_put_repeatedly(api):
    made = api.create(schedules=[])
    place = f"/v1/jobs/{made['id']}"
    many = [{"name": f"s{n:02d}", "every": "PT1H", "payload": {"n": n}} for n in range(45)]

    put = api("PUT", place, job(name=made["name"], schedules=many))
    read = api.get(place, query="include=schedules").json
    with api.unchanged():
        again = api("PUT", place, read)
    changed = api("PUT", place, job(schedules=[each | {"payload": {"n": -1}} for each in many]))
    fewer = api("PUT", place, job(schedules=many[:5]))

    assert (put.status, again.status, changed.status, fewer.status) == (200, 200, 200, 200)
    assert [each["payload"]["n"] for each in read["schedules"]] == list(range(45))
    assert {each["payload"]["n"] for each in api.get(f"{place}/schedules", query="limit=200").json["items"]} == set(
        range(5)
    )
    assert {each["payload"]["n"] for each in changed.json["schedules"]} == {-1}


# On and off


@pytest.mark.parametrize(
    ("there", "back", "state", "schedule_state", "reason"),
    [
        ("deactivate", "activate", "INACTIVE", "INACTIVE", "JOB_INACTIVE"),
        ("pause", "resume", "PAUSED", "PAUSED", "BY_USER"),
    ],
)
def test_a_job_can_be_deactivated_and_activated_again(api, there, back, state, schedule_state, reason):
    made = api.create()
    place = f"/v1/jobs/{made['id']}"

    off = api("POST", f"{place}/{there}")
    with api.unchanged():
        assert api("POST", f"{place}/{there}").revision == 2
    waiting = api.stage.waiting()
    on = api("POST", f"{place}/{back}", {})

    (schedule,) = off.json["schedules"]
    assert (off.status, off.json["state"], off.json["nextRunAt"]) == (200, state, None)
    assert (schedule["state"], schedule["stateReason"]) == (schedule_state, reason)
    assert (schedule["nextRunAt"], schedule["nextRuns"]) == (None, [])
    assert waiting == {}
    assert (on.json["state"], on.json["schedules"][0]["state"], on.revision) == ("ACTIVE", "ACTIVE", 3)
    assert on.json["nextRunAt"] == made["nextRunAt"]


def test_a_pause_shows_its_note(api):
    place = f"/v1/jobs/{api.create()['id']}"

    first = api("POST", f"{place}/pause", {"note": "holidays\nuntil May"}).json["pause"]
    api.stage.clock.advance(100)
    second = api("POST", f"{place}/pause", {"note": "longer"}).json["pause"]
    resumed = api("POST", f"{place}/resume").json["pause"]

    assert first == {"since": "2027-03-01T12:00:00.250Z", "note": "holidays\nuntil May", "until": None}
    assert second == {"since": first["since"], "note": "longer", "until": None}
    assert resumed is None


def test_the_next_run_of_a_job_names_its_schedule(api):
    made = api.create(example())
    silent = api.create(schedules=[])

    reply = api.get(f"/v1/jobs/{made['id']}/next")

    exact = {"nextRunExact": True}
    assert reply.json == {"nextRunAt": "2027-03-01T12:00:11Z", "scheduleId": made["schedules"][1]["id"], **exact}
    assert api.get(f"/v1/jobs/{silent['id']}/next").json == {"nextRunAt": None, "scheduleId": None, **exact}


def test_a_jobs_window_limits_its_schedules(api):
    made = api.create(startTime="2027-03-05T00:00:00Z", endTime="2027-03-07T03:00:00Z")

    (schedule,) = made["schedules"]
    assert schedule["nextRuns"] == [f"2027-03-0{day}T03:00:00Z" for day in (5, 6, 7)]


def test_a_completed_job_shows_that_state(api):
    made = api.create(schedules=[{"at": "2027-03-01T12:05:00Z"}, {"every": "PT1M", "count": 2}])

    api.stage.run(1_200)
    read = api.get(f"/v1/jobs/{made['id']}", query="include=schedules").json

    assert read["state"] == "COMPLETED"
    assert [each["stateReason"] for each in read["schedules"]] == ["ONE_TIME_DONE", "COUNT_REACHED"]
    assert [each["totals"]["succeeded"] for each in read["schedules"]] == [1, 2]
    assert read["totals"] == {
        "planned": 3,
        "open": 0,
        "succeeded": 3,
        "failed": 0,
        "failedAttempts": 0,
        "skipped": 0,
        "missed": 0,
        "exact": True,
    }


def test_a_head_request_is_answered_like_a_get_without_the_body(api):
    made = api.create()
    place = f"/v1/jobs/{made['id']}"

    head, get = api("HEAD", place), api.get(place)

    assert (head.status, head.text) == (200, "")
    assert {**head.headers, "x-request-id": ""} == {**get.headers, "x-request-id": ""}


def test_instants_without_an_offset_are_utc_and_fractions_round_up(api):
    made = api.create(startTime="2027-03-02T00:00:00.001", endTime="2027-04-02T02:00:00.000+02:00")

    assert (made["startTime"], made["endTime"]) == ("2027-03-02T00:00:01Z", "2027-04-02T00:00:00Z")


def test_numbers_made_by_the_service_are_not_floats(api):
    made = api.create(example())

    def numbers(value):
        if isinstance(value, dict):
            return [found for each in value.values() for found in numbers(each)]
        if isinstance(value, list):
            return [found for each in value for found in numbers(each)]
        return [value] if isinstance(value, int | float) else []

    assert not [each for each in numbers(json.loads(json.dumps(made))) if isinstance(each, float | Number)]


def test_a_time_that_has_just_passed_still_runs(api):
    past = (START - timedelta(seconds=59)).isoformat()

    made = api.create(schedules=[{"at": past}])
    api.stage.run(5)

    assert api.get(f"/v1/jobs/{made['id']}").json["totals"]["succeeded"] == 1


def test_a_patch_that_would_pause_is_refused_and_not_ignored(api):
    made = api.create()
    place = f"/v1/jobs/{made['id']}"

    with api.unchanged():
        for pause in ({"note": "x"}, {"until": "2027-04-01T00:00:00Z"}):
            reply = api("PATCH", place, {"pause": pause})
            assert (reply.status, reply.fields) == (422, ["pause"])
    assert api("PATCH", place, {"pause": None, "description": "d"}).status == 200
    api("POST", f"{place}/pause", {"note": "x"})
    paused = api.get(place).json
    assert api("PATCH", place, {"pause": paused["pause"], "description": "e"}).status == 200
    assert api("PATCH", place, {"pause": None}).status == 422


def test_hooks_are_changed_individually_and_keep_their_secrets(api):
    hook = {"type": "http", "url": "https://x.org/hook", "authentication": SECRET, "payload": {"n": 1}}
    made = api.create(hooks={"onSuccess": hook, "onFailure": hook})
    place = f"/v1/jobs/{made['id']}"
    assert made["hooks"]["onSuccess"]["authentication"]["password"] == "***"

    less = api("PATCH", place, {"hooks": {"onFailure": None, "onSuccess": {"method": "PUT"}}}).json

    assert less["hooks"].keys() == {"onSuccess"}
    assert (less["hooks"]["onSuccess"]["method"], less["hooks"]["onSuccess"]["payload"]) == ("PUT", {"n": 1})
    moved = api("PATCH", place, {"hooks": {"onSuccess": {"url": "https://y.org/"}}})
    assert (moved.status, moved.fields) == (422, ["hooks.onSuccess.authentication.password"])
    gone = {name: value for name, value in less.items() if name != "hooks"}
    assert api("PUT", place, gone).json["hooks"] == {}


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"hooks": {"onError": {"type": "http", "url": "https://x.org/"}}}, "hooks.onError"),
        ({"hooks": []}, "hooks"),
        ({"hooks": {"onSuccess": {"type": "http", "url": "ftp://x.org/"}}}, "hooks.onSuccess.url"),
        ({"policies": {"hooks": "onSuccess"}}, "policies.hooks"),
        ({"policies": {"hooks": ["onSuccess", "never"]}}, "policies.hooks[1]"),
    ],
)
def test_an_invalid_hook_is_refused_by_its_path(api, members, field):
    reply = api("POST", "/v1/jobs", {**JOB, **members})

    assert (reply.status, reply.fields) == (422, [field])
