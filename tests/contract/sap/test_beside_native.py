"""Jobs of the SAP facade as the native API shows and changes them."""

from __future__ import annotations

HOURLY = {"repeatInterval": "1 hour", "data": {"a": 1}, "description": "d"}


def test_a_job_made_here_can_be_read_and_put_back_natively(api):
    made = api.create(HOURLY, user="joe", password="canary-secret")
    (listed,) = api.native.get("/v1/jobs").json["items"]
    native = api.native.get(f"/v1/jobs/{listed['id']}").json
    before = api.get(f"/jobs/{made['_id']}", query={"displaySchedules": "true"}).json

    with api.native.unchanged():
        put = api.native("PUT", f"/v1/jobs/{listed['id']}", native)

    assert put.status == 200
    assert native["facade"] == "sap"
    assert native["action"]["outcome"]["callbackTimeoutSeconds"] is None
    assert api.get(f"/jobs/{made['_id']}", query={"displaySchedules": "true"}).json == before


def test_a_native_change_keeps_what_only_this_facade_knows(api):
    made = api.create(HOURLY, ansConfig={"onError": True})
    (listed,) = api.native.get("/v1/jobs").json["items"]

    patched = api.native("PATCH", f"/v1/jobs/{listed['id']}", {"description": "natively"})

    after = api.get(f"/jobs/{made['_id']}", query={"displaySchedules": "true"}).json
    assert patched.status == 200
    assert (after["description"], after["ansConfig"]) == ("natively", {"onError": True})
    assert after["schedules"][0]["description"] == "d"
