"""Whatever two tenants do under equal names, each sees its own."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.native.api import JOB
from tests.contract.native.api import api as made
from tests.contract.native.everything import job
from tests.contract.native.test_lists import pages

TENANTS = ("acme", "globex")


def test_equal_names_of_two_tenants_do_not_collide(api):
    one, other = (api.create(job(), caller=tenant) for tenant in TENANTS)

    assert one["id"] != other["id"]
    assert api("DELETE", f"/v1/jobs/{one['id']}").status == 204
    assert api.get(f"/v1/jobs/{other['id']}", caller="globex").status == 200
    found = api.get("/v1/jobs", query={"collection": "default", "name": one["name"]}, caller="globex").json["items"]
    assert [each["id"] for each in found] == [other["id"]]


NAMES = st.sampled_from(["a", "b", "a#b", "a%23b", "NAME#a", "%", "#", "acme", "globex"])
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(TENANTS), st.sampled_from(["create", "delete", "rename", "pause", "run"]), NAMES, NAMES, NAMES
    ),
    max_size=12,
)


@settings(max_examples=20)
@given(operations=OPERATIONS)
def test_two_tenants_see_only_their_own_data_in_every_history(operations):
    """Against a model of two dictionaries, with names that try to be keys."""
    model = {tenant: {} for tenant in TENANTS}
    with made() as api:
        for tenant, verb, name, other, tag in operations:
            own = model[tenant]
            place = f"/v1/jobs/{own[name][0]}" if name in own else None
            if verb == "create":
                reply = api("POST", "/v1/jobs", JOB | {"name": name, "tags": [tag]}, caller=tenant)
                assert reply.status == (409 if name in own else 201)
                if reply.status == 201:
                    own[name] = (reply.id, tag)
            elif place and verb == "delete":
                assert api("DELETE", place, caller=tenant).status == 204
                del own[name]
            elif place and verb == "rename":
                reply = api("PATCH", place, {"name": other}, caller=tenant)
                assert reply.status == (409 if other in own and other != name else 200)
                if reply.status == 200:
                    own[other] = own.pop(name)
            elif place:
                assert api("POST", f"{place}/{verb}", caller=tenant).status < 300
            api.stage.clock.advance(1)
        for tenant in TENANTS:
            check(api, tenant, model[tenant])


def check(api, tenant, own):
    listed = [item for page in pages(api, "/v1/jobs", 2, "collection=default", caller=tenant) for item in page]
    assert {each["name"]: each["id"] for each in listed} == {name: made for name, (made, _) in own.items()}
    assert api.get("/v1/collections/default", caller=tenant).json["jobCount"] == len(own)
    for tag in {tag for _, tag in own.values()}:
        found = api.get("/v1/jobs", query={"tag": tag}, caller=tenant).json["items"]
        assert {each["name"] for each in found} == {name for name, (_, its) in own.items() if its == tag}
    for name, (job_id, _) in own.items():
        found = api.get("/v1/jobs", query={"collection": "default", "name": name}, caller=tenant).json["items"]
        assert [each["id"] for each in found] == [job_id]
    (stranger,) = set(TENANTS) - {tenant}
    assert all(api.get(f"/v1/jobs/{job_id}", caller=stranger).status == 404 for job_id, _ in own.values())
