"""Job sets: compares a list of desired jobs with the jobs that a set owns. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from sweephand.base.records import dataclass

MOST_JOBS = 1_000
DELETES_ALWAYS = 10
"""A plan may delete this many jobs, or a fifth of the set if that is more. For more, the caller states the number."""
DELETES_SHARE = 5


@dataclass(frozen=True)
class Member:
    """A job that a set owns, as the service stores it.

    digest: of the desired job that was applied last; None if a caller has changed or deleted the job since. revision:
    the job's, after its last change by a caller; None if a caller has deleted the job. missing: whether the job was not
    found.
    """

    key: str
    job_id: str
    digest: str | None
    revision: int | None
    missing: bool = False

    @property
    def gone(self) -> bool:
        return self.missing or self.revision is None


@dataclass(frozen=True)
class Membership:
    """The place that a job takes in a set with its next write.

    as_read: the member when the plan was made; None for a new one. job_id: the id of a job that is created; None for
    any id.
    """

    job_set: str
    key: str
    digest: str
    as_read: Member | None = None
    job_id: str | None = None


@dataclass(frozen=True)
class Wanted:
    """An entry of a desired list. place: its position. was: the key that it had before.

    digest: the digest of its text. refers: keys of the entries that its actions name by `jobKey`, in the order of the
    text.
    """

    key: str
    digest: str
    place: int
    was: str | None = None
    refers: tuple[str, ...] = ()

    def digest_with(self, ids: Mapping[str, str]) -> str:
        """Returns the digest of the entry and of the ids of jobs that it refers to.

        ids: by key; new jobs have none yet.
        """
        if not self.refers:
            return self.digest
        facts = json.dumps([self.digest, [ids.get(key) for key in self.refers]])
        return hashlib.sha256(facts.encode()).hexdigest()[:32]


class Verb(StrEnum):
    DELETE = "delete"
    UPDATE = "update"
    REPAIR = "repair"
    """Somebody changed or deleted the job since the set was applied. It becomes again what the list says."""
    CREATE = "create"


ORDER = tuple(Verb)
"""Deletes come first, because they free names and quotas."""


@dataclass(frozen=True)
class Change:
    """A change of one job. wanted: None if it is deleted. member: None if it is new."""

    verb: Verb
    wanted: Wanted | None
    member: Member | None

    @property
    def key(self) -> str:
        entry = self.wanted or self.member
        assert entry is not None
        return entry.key

    @property
    def deletes(self) -> bool:
        """Returns whether a job is lost. A job that no longer exists only leaves the set."""
        return self.verb is Verb.DELETE and self.member is not None and not self.member.gone


@dataclass(frozen=True)
class Plan:
    """The changes that turn a set into a desired list, in order. stored: how many jobs the set owns."""

    job_set: str
    changes: tuple[Change, ...]
    stored: int
    unchanged: int

    @property
    def deletes(self) -> int:
        return sum(each.deletes for each in self.changes)

    @property
    def deletes_most(self) -> int:
        """Returns how many jobs may be deleted unless the caller names the number."""
        return max(DELETES_ALWAYS, self.stored // DELETES_SHARE)

    def without(self, keys: Collection[str]) -> Plan:
        """Returns the plan that is left once the changes with these keys are made."""
        return replace(self, changes=tuple(each for each in self.changes if each.key not in keys))

    def settled(self, keys: Collection[str]) -> Plan:
        """Returns the plan in which the jobs with these keys stay as they are."""
        return replace(self.without(keys), unchanged=self.unchanged + len(keys))

    @property
    def token(self) -> str:
        """Returns a token that no other plan has. It covers each job with the state that the plan has read."""
        lines = [
            [each.verb, each.key, each.wanted and each.wanted.digest, each.member and _as_read(each.member)]
            for each in self.changes
        ]
        text = json.dumps([self.job_set, sorted(lines, key=lambda line: str(line[1]))])
        return f"p_{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _as_read(member: Member) -> list[str | int | None]:
    return [member.key, member.job_id, member.digest, member.revision]


def plan(job_set: str, wanted: Sequence[Wanted], stored: Sequence[Member], *, prune: bool = True) -> Plan:
    """Compares a desired list, whose keys are unique, with the members of the set.

    prune: whether to delete what the list lacks. A job also changes if a job to which it refers is new, because that
    will have another id. Each job comes after those to which it refers, unless they refer back to it.
    """
    ids = ids_of(wanted, stored)
    left = {member.key: member for member in stored}
    changes: list[Change] = []
    unchanged = 0
    for entry in wanted:
        stored_member = left.pop(entry.key, None)
        if stored_member is None and entry.was is not None:
            stored_member = left.pop(entry.was, None)
        verb = _verb(entry, stored_member, ids)
        if verb is None:
            unchanged += 1
        else:
            changes.append(Change(verb, entry, stored_member))
    changes += [Change(Verb.DELETE, None, member) for member in left.values() if prune]
    changes.sort(key=lambda each: ORDER.index(each.verb))
    return Plan(job_set, _referred_first(changes), sum(not member.gone for member in stored), unchanged)


def ids_of(wanted: Sequence[Wanted], stored: Sequence[Member]) -> dict[str, str]:
    """Returns the ids of the existing jobs of a desired list, by the keys of the list."""
    stored_ids = {member.key: member.job_id for member in stored if not member.gone}
    keys = {entry.key: entry.key if entry.key in stored_ids or entry.was is None else entry.was for entry in wanted}
    return {key: stored_ids[stored_as] for key, stored_as in keys.items() if stored_as in stored_ids}


def _referred_first(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Returns the changes in their order, but each after those to which it refers. A circle may begin anywhere."""
    by_key = {each.key: each for each in changes if each.wanted is not None}
    ordered: dict[str, Change] = {}
    for each in changes:
        path = {each.key: each}
        while path:
            last = next(reversed(path.values()))
            refers = last.wanted.refers if last.wanted is not None else ()
            ahead = next((key for key in refers if key in by_key and key not in ordered and key not in path), None)
            if ahead is None:
                ordered.setdefault(last.key, last)
                del path[last.key]
            else:
                path[ahead] = by_key[ahead]
    return tuple(ordered.values())


def _verb(entry: Wanted, member: Member | None, ids: Mapping[str, str]) -> Verb | None:
    if member is None:
        return Verb.CREATE
    if member.digest is None:
        return Verb.REPAIR
    if member.digest != entry.digest_with(ids) or member.key != entry.key:
        return Verb.CREATE if member.gone else Verb.UPDATE
    return None


def with_missing(stored: Sequence[Member], missing: Collection[str]) -> list[Member]:
    """Returns the members, marked as missing if their jobs (by id) were not found."""
    return [replace(member, missing=member.job_id in missing) for member in stored]
