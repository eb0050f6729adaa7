"""The base of all kinds of actions. A kind is one class: its members, and what it does when it runs.

A subclass declares its members with `member`, in the order in which responses show them, and carries out one attempt in
`perform`. Reading, storing, the API's schemas and the hints for misspelled names follow from the members. For a class
that is marked as final, mypy reports what it lacks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from sweephand.base.errors import InvalidRequest, Mistakes
from sweephand.base.json_schema import Schema, one_of, text, whole
from sweephand.base.members import fields as read
from sweephand.base.members.fields import below
from sweephand.base.records import dataclass
from sweephand.domain.job import MASK, needed_again
from sweephand.server.actions import payloads
from sweephand.server.actions.payloads import check_size, parse_payload

if TYPE_CHECKING:
    from datetime import datetime

    from sweephand.domain.job import Payload
    from sweephand.domain.run import Outcome
    from sweephand.server.actions.call import Call
    from sweephand.server.security.guard import GuardSettings, Outbound

R = TypeVar("R")
_MEMBER = "member"


class Reading:
    """An action that is being read. values: the members read so far, by attribute; None if one was refused.

    secrets: the secrets in the members, by their path within the action, without `***`.
    """

    def __init__(self, kind: str, guard: GuardSettings) -> None:
        self.kind = kind
        self.guard = guard
        self.values: dict[str, Any] = {}
        self.secrets: dict[str, str] = {}

    def keep(self, secrets: Mapping[str, str]) -> None:
        """Keeps secrets by name, except the masks that stand for stored ones."""
        self.secrets |= {name: secret for name, secret in secrets.items() if secret != MASK}


@contextmanager
def within(path: str) -> Iterator[None]:
    """Adds the path of the member to a refusal by security/, which does not know members."""
    try:
        yield
    except InvalidRequest as wrong:
        raise wrong if wrong.field else wrong.within(path) from wrong


Reader = Callable[[Any, str, Reading], Any]
"""Takes the value that a caller gave, its path, and the reading. Raises InvalidRequest."""


@dataclass(frozen=True)
class Member:
    """A member of an action. name: its name in the API. nullable: whether a response shows null if it was not given.

    shown: the schema in responses, if it differs. stored, loaded: convert the attribute to JSON and back.
    """

    name: str
    schema: Schema
    read: Reader
    required: bool = False
    nullable: bool = False
    shown: Schema | None = None
    stored: Callable[[Any], Any] | None = None
    loaded: Callable[[Any], Any] | None = None


def member(
    name: str,
    schema: Schema,
    read: Reader,
    *,
    shown: Schema | None = None,
    stored: Callable[[Any], Any] | None = None,
    loaded: Callable[[Any], Any] | None = None,
    **of_field: Any,
) -> Any:
    """Declares a member of an action. It is required unless it has a default; a default of None is null in responses.

    of_field: see dataclasses.field.
    """
    required = not of_field.keys() & {"default", "default_factory"}
    nullable = not required and of_field.get("default", ...) is None
    made = Member(name, schema, read, required, nullable, shown, stored, loaded)
    return field(**of_field, metadata={_MEMBER: made})


def string(
    name: str,
    shortest: int,
    longest: int,
    *,
    like: tuple[str, str] | None = None,
    more: Schema | None = None,
    **of_field: Any,
) -> Any:
    """Declares a string of this many characters. like: a regular expression, and the reason for refusing others.

    more: further members of its schema.
    """
    reader = read.matching(*(like or (r"[\s\S]*", "")), shortest, longest)
    return member(name, text(shortest, longest, **(more or {})), reader, **of_field)


def choice(name: str, choices: Collection[str], *, more: Schema | None = None, **of_field: Any) -> Any:
    """Declares a string that is one of several. more: further members of its schema."""
    schema = one_of(choices, **(more or {}))
    return member(name, schema, lambda value, path, _: read.one_of(value, path, choices), **of_field)


def checked(check: Callable[[str, GuardSettings], str]) -> Reader:
    """Returns a reader of AWS names. check: returns the value to store, or raises InvalidRequest without a member."""

    def reader(value: Any, path: str, reading: Reading) -> str:
        text = read.text(value, path, 1, 2_048)
        with within(path):
            return check(text, reading.guard)

    return reader


def number(name: str, lowest: int, highest: int, **of_field: Any) -> Any:
    """Declares a whole number within bounds."""
    schema = whole(lowest, highest)
    return member(name, schema, lambda value, path, _: read.whole(value, path, lowest, highest), **of_field)


def _members_of(kind: type[Any]) -> Mapping[str, Member]:
    declared = {each.name: each.metadata[_MEMBER] for each in fields(kind) if _MEMBER in each.metadata}
    return dict(sorted(declared.items(), key=lambda each: each[1].name == "outcome"))


members_of: Callable[[type[Any]], Mapping[str, Member]] = cache(_members_of)  # type: ignore[assignment]
"""Returns the members of a record by attribute, in order. `outcome` is the last."""


def stored_members(record: Any) -> dict[str, Any]:
    """Returns the members of a record as they are stored, under the API's names."""
    return {
        each.name: each.stored(getattr(record, attribute)) if each.stored else getattr(record, attribute)
        for attribute, each in members_of(type(record)).items()
    }


def loaded_members(kind: type[R], stored: Mapping[str, Any]) -> R:
    """Returns the record whose members `stored_members` wrote."""
    return kind(
        **{
            attribute: each.loaded(stored[each.name]) if each.loaded else stored[each.name]
            for attribute, each in members_of(kind).items()
            if each.name in stored
        }
    )


@dataclass(frozen=True)
class Action(ABC):
    """An action of a job. payload and secrets are set only after `parse`, because they are stored elsewhere.

    A secret that the caller left out or gave as `***` is missing in `secrets` although `secret_fields` names it.
    """

    payload: Payload | None = field(default=None, kw_only=True)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False, kw_only=True)

    kind: ClassVar[str]
    shows: ClassVar[tuple[str, ...]]
    """The ways in which it authenticates to its target. Each is a row of the table in docs/actions.md."""
    never: ClassVar[Mapping[str, str]] = {}
    """The impossible cells of that table with their reasons, by outcome or by `shows outcome`."""
    description: ClassVar[str | None] = None
    payload_schema: ClassVar[Schema] = payloads.ANYTHING
    body_schema: ClassVar[Schema] = payloads.TEXT_BODY
    redirectable: ClassVar[bool] = False
    """Whether the redirects of a collection may send it to another target."""
    components: ClassVar[Mapping[str, Schema]] = {}
    """Schemas that its members refer to, by name."""
    moved: ClassVar[str] = "the destination"
    """The name of `destination` in a refusal to keep its secret."""

    # Reading

    @classmethod
    def known_members(cls) -> tuple[str, ...]:
        """Returns the names of the members that a caller may send."""
        return ("type", *(each.name for each in members_of(cls).values()), "payload", "body", "retry")

    @classmethod
    def parse(cls, fields: object, *, field: str, guard: GuardSettings) -> Self:
        """Reads the members that a caller sent; `retry` is read elsewhere. Raises InvalidRequest with all mistakes."""
        wrong = Mistakes()
        members = members_of(cls)
        sent = read.members(fields, field, cls.known_members(), wrong)
        reading = Reading(cls.kind, guard)
        for attribute, each in members.items():
            if each.name in sent:
                reading.values[attribute] = wrong.of(each.read, sent[each.name], below(field, each.name), reading)
            elif each.required:
                wrong.add(InvalidRequest(below(field, each.name), "is required"))
        own = wrong.of(parse_payload, sent, field)
        wrong.check()
        where, payload = own
        made = cls(**reading.values, payload=payload, secrets=reading.secrets)
        wrong.of(made.check, field, guard)
        if payload is not None:
            wrong.of(made.check_payload, payload, where)
        wrong.check()
        return made

    def check(self, field: str, guard: GuardSettings) -> None:  # noqa: B027 - most kinds have nothing to check
        """Raises InvalidRequest if members cannot be combined."""

    def check_payload(self, payload: Payload, field: str) -> None:
        """Raises InvalidRequest for a payload, its own or one that replaces it, that this action cannot send."""
        check_size(payload, field)

    def check_lasting(self, secrets: Collection[str], field: str, now: datetime) -> None:  # noqa: B027 - as above
        """Raises InvalidRequest if a given secret has expired. secrets: the names of those that were given."""

    # Storing

    def to_json(self) -> dict[str, Any]:
        """Returns the stored form, under the API's names: secrets as `***`, no payload."""
        return {"type": self.kind, **stored_members(self)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Returns the action that `to_json` wrote."""
        return loaded_members(cls, stored)

    # Secrets

    @property
    def secret_fields(self) -> Collection[str]:
        """Returns the names of the secrets that a call needs."""
        return ()

    @property
    def destination(self) -> object:
        """Returns where its secrets are sent, and whose identity they prove."""
        return None

    def kept_secrets(self, old: Self | None, *, field: str, guard: GuardSettings) -> frozenset[str]:  # noqa: ARG002
        """Returns the secrets of a change that keep their stored value: those that it needs and does not contain.

        old: the stored action; None at creation. Raises InvalidRequest if there is nothing to keep, or if the secret
        would be sent elsewhere: nobody who may edit a job may send its password to another host.
        """
        missing = [name for name in self.secret_fields if name not in self.secrets]
        for name in missing:
            if old is None or name not in old.secret_fields:
                raise InvalidRequest(below(field, name), "is required")
            if self.destination != old.destination:
                raise needed_again(below(field, name), self.moved)
        return frozenset(missing)

    def carried_over(self, old: Self, kept: Collection[str]) -> Self:  # noqa: ARG002 - few secrets show anything
        """Returns the action of a change that keeps some secrets, with the shown members of these."""
        return self

    # Acting

    @property
    def own_headers(self) -> frozenset[str]:
        """Returns the headers of its authentication, in lower case. Editing a run cannot set them."""
        return frozenset()

    @property
    def starts_job(self) -> str | None:
        """Returns the id of the job that it runs; None if it runs none."""
        return None

    def sends_callback(self, *, with_payload: bool) -> bool:  # noqa: ARG002 - most have a place of their own for it
        """Returns whether the target learns where, and with which token, it reports its result."""
        return True

    @abstractmethod
    def perform(self, call: Call, outbound: Outbound) -> Outcome:
        """Carries out one attempt. Returns an Outcome whatever the network or the target does."""
