from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sweephand.server.store.dynamo import keys

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
HOSTILE = st.one_of(TEXT, st.text("#%25TENANJOB", min_size=1, max_size=12))


@given(HOSTILE, HOSTILE)
def test_every_part_of_a_key_comes_back(tenant: str, name: str) -> None:
    assert keys.parts(keys.job(tenant, name)) == ["TENANT", tenant, "JOB", name]
    assert keys.parts(keys.runs(tenant, name)) == ["TENANT", tenant, "SCH", name]
    assert keys.parts(keys.name(name)) == ["NAME", name]


@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
def test_no_name_forges_the_key_of_another(tenant: str, name: str, other_tenant: str, other_name: str) -> None:
    if (tenant, name) != (other_tenant, other_name):
        assert keys.job(tenant, name) != keys.job(other_tenant, other_name)
        assert keys.names(tenant, name) != keys.names(other_tenant, other_name)
        assert keys.tag(tenant, name) != keys.tag(other_tenant, other_name)


@given(HOSTILE, HOSTILE)
def test_partitions_of_different_things_never_meet(tenant: str, name: str) -> None:
    made = [
        keys.tenant(tenant),
        keys.job(tenant, name),
        keys.runs(tenant, name),
        keys.names(tenant, name),
        keys.tag(tenant, name),
        keys.resource(tenant, name),
        keys.directory(tenant),
        keys.directory_part(tenant, 7),
        keys.directory_counts(tenant, 1),
        keys.idempotency(tenant, name),
    ]

    assert len(set(made)) == len(made)
    assert all(key.startswith(f"TENANT#{keys.part(tenant)}") for key in made)
    assert keys.STACK_TENANTS not in made


def test_attempts_of_a_run_sort_after_it_and_before_the_next_run() -> None:
    one, next_one = "00000000-0000-8000-8000-000000000001", "00000000-0000-8000-8000-000000000002"

    assert keys.run(one) < keys.attempt(one, 1) < keys.attempt(one, 9) < keys.attempt(one, 10) < keys.run(next_one)
