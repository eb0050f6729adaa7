"""A desired list against what a set owns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sweephand.domain.job_set import Member, Plan, Verb, Wanted, plan, with_missing

A = Member("a", "job-a", "1", 1)


def verbs(made: Plan) -> list[tuple[str, str]]:
    return [(each.verb.value, each.key) for each in made.changes]


@pytest.mark.parametrize(
    ("stored", "verb"),
    [
        (None, "create"),
        (A, None),
        (replace(A, digest="0"), "update"),
        (replace(A, digest=None, revision=2), "repair"),
        (replace(A, digest=None, revision=None), "repair"),
        (replace(A, missing=True), None),
        (replace(A, digest="0", missing=True), "create"),
    ],
)
def test_the_next_step_of_an_entry_follows_from_the_applied_one(stored: Member | None, verb: str | None) -> None:
    made = plan("s", [Wanted("a", "1", 0)], [stored] if stored else [])

    assert verbs(made) == ([(verb, "a")] if verb else [])
    assert made.unchanged == (verb is None)


def test_deletes_come_first_and_creations_last() -> None:
    stored = [A, Member("b", "job-b", "0", 1), Member("c", "job-c", None, 1)]

    made = plan("s", [Wanted("new", "1", 0), Wanted("b", "1", 1), Wanted("c", "1", 2)], stored)

    assert verbs(made) == [("delete", "a"), ("update", "b"), ("repair", "c"), ("create", "new")]


def test_a_renamed_entry_takes_over_its_former_job_unless_it_has_one() -> None:
    renamed = plan("s", [Wanted("b", "1", 0, was="a")], [A])
    done = plan("s", [Wanted("b", "1", 0, was="a")], [replace(A, key="b")])

    assert [(each.verb, each.member) for each in renamed.changes] == [(Verb.UPDATE, A)]
    assert done.changes == ()


def test_a_deleted_job_only_leaves_the_set() -> None:
    (missing,) = with_missing([A], {"job-a"})

    made = plan("s", [], [missing])

    assert (verbs(made), made.deletes, made.stored) == ([("delete", "a")], 0, 0)


@pytest.mark.parametrize(("stored", "most"), [(0, 10), (54, 10), (55, 11), (1_000, 200)])
def test_a_fifth_of_the_set_or_ten_jobs_can_be_deleted(stored: int, most: int) -> None:
    assert plan("s", [], [Member(str(n), str(n), "1", 1) for n in range(stored)]).deletes_most == most


def test_a_token_covers_the_list_and_the_seen_state_but_not_the_order() -> None:
    wanted, stored = [Wanted("b", "1", 0), Wanted("c", "1", 1)], [A]
    made = plan("s", wanted, stored)

    others = [
        plan("t", wanted, stored),
        plan("s", wanted[:1], stored),
        plan("s", [Wanted("b", "2", 0), wanted[1]], stored),
        plan("s", wanted, [replace(A, revision=2)]),
        plan("s", wanted, [replace(A, job_id="job-z")]),
        made.without({"b"}),
    ]

    assert made.token == plan("s", [Wanted("c", "1", 0), Wanted("b", "1", 1)], stored).token
    assert made.token not in {each.token for each in others}
