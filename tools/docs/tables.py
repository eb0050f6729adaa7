"""`make docs`: writes tables that follow from the code into the pages of the documentation.

A page marks a place with `<!-- generated: NAME -->` and `<!-- end -->`, and shows a file of the repository between
`<!-- file: PATH -->` and `<!-- end -->`. tests/unit/test_docs.py fails if a page differs from the generated one.
`python -m tools.docs.tables --check` changes nothing and names the pages that differ.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from pynamodb.attributes import UnicodeSetAttribute
from pynamodb.constants import NUMBER

from sweephand.base import errors
from sweephand.domain import event
from sweephand.domain.event import QUIET, USER_REASONS, EventType
from sweephand.domain.run import TERMINAL, Reason, State
from sweephand.domain.runs.reasons import MEANINGS
from sweephand.local.aws.template import load
from sweephand.schedules.explain.explain_instant import REASON_CODES
from sweephand.schedules.explain.preview_warnings import CAUTIONS
from sweephand.server import store
from sweephand.server.facades.native.problems import STATUS
from sweephand.server.facades.native.routes import ROUTES
from sweephand.server.facades.native.service.problem_pages import CAUSES
from sweephand.server.security.caller import PROVIDER_SCOPES, TENANT_SCOPES
from sweephand.server.store.dynamo import table
from tools.docs import action_table, costs, decisions, event_schemas, promise_tables, sizing, telemetry_tables

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "layers" / "sweephand" / "python" / "sweephand"
OF_THE_SERVICE = {"base", "domain", "formats", "schedules", "server"}
CLOSED_TABLES = {
    PACKAGE / "domain" / "event.py",
    PACKAGE / "domain" / "run.py",
    PACKAGE / "domain" / "runs" / "reasons.py",
    PACKAGE / "base" / "errors.py",
    PACKAGE / "server" / "facades" / "native" / "problems.py",
    PACKAGE / "server" / "facades" / "native" / "service" / "problem_pages.py",
}
PLACE = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
SHOWN = re.compile(r"(<!-- file: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
LANGUAGES = {".py": "python", ".ts": "typescript", ".toml": "toml", ".yaml": "yaml", ".json": "json", "": "text"}
"""The language of a block by the ending of its file."""

# A state or reason without a line here is an error, so that every new one is explained.
STATES: Mapping[State, str] = {
    State.SCHEDULED: "It is planned. The ledger has no row yet.",
    State.TRIGGERED: "An executor has claimed it and calls the target.",
    State.ACK_RECVD: "The target answered 202 and will report its result later.",
    State.ACK_NOT_RECVD: "The target gave no answer in time. The run still waits for its report.",
    State.RETRY_WAIT: "An attempt failed, for the reason given. The next one is due at `nextAttemptAt`.",
    State.HELD: "It waits for a consumer that is away.",
    State.QUEUED: "It has not begun: it is on its way to an executor, or waits for its turn.",
    State.SUCCESS: "The target answered with one of the job's success statuses.",
    State.ERROR: "It failed in the target or the service: for example 5xx, no answer, or not delivered.",
    State.REQUEST_ERROR: "The request could not be made or was refused: for example no connection, refused "
    "by the guard, or 4xx.",
    State.UNKNOWN: "The result is not known: its executors were lost, or no report came in time.",
    State.TIMEOUT: "Its [task](../guide/ecs.md) ran longer than allowed and was stopped.",
    State.SKIPPED: "It was due and did not run, because of a setting or a request of its owner.",
    State.MISSED: "It was due while nothing could run it, and the misfire policy dropped it. One row may cover many.",
    State.EXPIRED: "It would have begun too late.",
    State.CANCELLED: "It was ended before it finished.",
}
STATES_OF: Mapping[Reason, str] = {
    Reason.ON_TIME: "SUCCESS",
    Reason.LATE: "SUCCESS",
    Reason.HTTP_STATUS: "ERROR, REQUEST_ERROR",
    Reason.DNS: "REQUEST_ERROR",
    Reason.TLS: "REQUEST_ERROR",
    Reason.CONNECT: "REQUEST_ERROR",
    Reason.NO_ANSWER: "ERROR",
    Reason.GUARD: "REQUEST_ERROR",
    Reason.DEADLINE: "ERROR, TIMEOUT, UNKNOWN",
    Reason.CALLBACK: "ERROR",
    Reason.BAD_PAYLOAD: "ERROR, REQUEST_ERROR",
    Reason.TARGET_ERROR: "ERROR",
    Reason.NO_TARGET: "REQUEST_ERROR",
    Reason.UNKNOWN_TASK: "ERROR",
    Reason.EXECUTOR_LOST: "UNKNOWN",
    Reason.UNDELIVERED: "ERROR",
    Reason.CIRCUIT_OPEN: "ERROR, MISSED",
    Reason.OVERLAP: "SKIPPED",
    Reason.PAUSED: "SKIPPED",
    Reason.DISABLED: "SKIPPED",
    Reason.CALENDAR: "SKIPPED",
    Reason.BY_HAND: "SKIPPED",
    Reason.QUOTA: "SKIPPED",
    Reason.SERVICE_OUTAGE: "MISSED",
    Reason.CONSUMER_AWAY: "HELD, MISSED",
    Reason.MAX_LATENESS: "EXPIRED",
    Reason.MAX_AGE: "EXPIRED, ERROR, REQUEST_ERROR",
    Reason.RETENTION: "EXPIRED",
    Reason.BY_USER: "CANCELLED",
    Reason.REPLACED: "CANCELLED",
    Reason.OWNER_GONE: "CANCELLED",
}
"""The states that can have each reason."""


def rows(titles: Iterable[str], lines: Iterable[Iterable[str]], aligned: str = "left") -> str:
    """Returns a Markdown table. aligned: the alignment of all columns except the first."""
    titles = list(titles)
    rule = "--:" if aligned == "right" else "---"
    written = [titles, ["---", *[rule] * (len(titles) - 1)], *lines]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in written)


def routes() -> str:
    lines = []
    for route in ROUTES.all:
        scope = " or ".join(f"`{scope}`" for scope in route.scopes) or "none"
        body = {"none": "", "form": "form"}.get(route.body, f"JSON, {route.body}")
        query = ", ".join(f"`{name}`" for name in route.query)
        lines.append((f"`{route.method}`", f"`{route.path}`", scope, body, query, route.summary))
    return rows(("Method", "Path", "Scope", "Body", "Query", "What it does"), lines)


def problems() -> str:
    lines = [(str(status), f"`{code}`", f"{title}.{_later(_raised(code))}") for code, (status, title) in STATUS.items()]
    return rows(("Status", "Code", "Title"), sorted(lines))


def problem_sections() -> str:
    """Returns a section for each code, in alphabetical order."""
    parts = []
    for code, (status, title) in sorted(STATUS.items()):
        cause, cure = CAUSES[code]
        parts.append(f"### {code}\n\n{status}: {title}.{_later(_raised(code))}\n\n{cause} **Cure:** {cure}\n")
    return "\n".join(parts)


def preview_warnings() -> str:
    return rows(("Code", "Meaning"), ((f"`{code}`", _sentence(text)) for code, text in CAUTIONS.items()))


def explanations() -> str:
    return rows(("Code", "Meaning"), ((f"`{code}`", _sentence(text)) for code, text in REASON_CODES.items()))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# A scope without a line here is an error, so that every new one is explained.
SCOPES: Mapping[str, str] = {
    "admin": "create, rotate and delete credentials; create and delete signing keys",
    "errors:edit": "run groups of errors again; annotate, archive, restore and redirect errors",
    "jobs:read": "read everything of the tenant except credentials; preview schedules; export runs",
    "jobs:write": "create, change, switch and delete jobs, job sets, collections, calendars and flow keys; "
    "register applications; delete consumers",
    "messages:write": "send and revoke messages; `jobs:write` includes it",
    "provider:*": "do everything, for every tenant",
    "provider:admin": "create, change, switch and delete tenants; manage their subscriptions",
    "runs:write": "start, cancel and rerun runs; report results; act as a worker or consumer",
    "tasks:write": "with `jobs:write`, create, change and remove actions that run [tasks](ecs.md)",
}


def scopes() -> str:
    """Raises KeyError for a scope that no line describes."""
    names = sorted(TENANT_SCOPES | PROVIDER_SCOPES)
    lines = ((f"`{name}`", "provider" if name in PROVIDER_SCOPES else "tenant", SCOPES[name]) for name in names)
    return rows(("Scope", "Level", "Allows a caller to"), lines)


@cache
def _source() -> str:
    """Returns the source of the service, without the closed tables."""
    return "".join(
        path.read_text()
        for path in PACKAGE.rglob("*.py")
        if path not in CLOSED_TABLES and path.relative_to(PACKAGE).parts[0] in OF_THE_SERVICE
    )


def _written(member: State | Reason) -> bool:
    """Returns whether the service can write a state or reason: its code names it, and one reason of a final state."""
    if member in {Reason.ON_TIME, Reason.LATE, State.SCHEDULED}:
        return True  # by rules of the table itself
    named = re.search(rf"\b{type(member).__name__}\.{member.name}\b", _source()) is not None
    if isinstance(member, Reason) or member not in TERMINAL:
        return named
    return named and any(member in where.split(", ") and _written(reason) for reason, where in STATES_OF.items())


def _raised(code: str) -> bool:
    """Returns whether the service can answer with a code: its source names the code, or raises the error with it."""
    kinds = [kind.__name__ for _, kind in inspect.getmembers(errors, inspect.isclass) if vars(kind).get("code") == code]
    names = [rf'"{code}"', *(rf"\b{kind}\(" for kind in kinds)]
    return any(re.search(name, _source()) for name in names)


def _later(now: bool) -> str:
    return "" if now else " *Not by this version.*"


def states() -> str:
    lines = []
    for state in State:
        over = "yes" if state in TERMINAL else ""
        lines.append((f"`{state}`", state.status.value, over, STATES[state] + _later(_written(state))))
    return rows(("State", "Status", "Final", "Meaning"), lines)


def reasons() -> str:
    lines = ((f"`{each}`", STATES_OF[each], MEANINGS[each] + _later(_written(each))) for each in Reason)
    return rows(("Reason", "With state", "Meaning"), lines)


def events() -> str:
    lines = []
    for kind in EventType:
        states = [state for table in (event.OF_STATE, event.OF_LINE) for state in event_schemas.states_of(kind, table)]
        own = any(state in STATES_OF[reason].split(", ") for state in states for reason in USER_REASONS)
        told = "" if kind in QUIET else "yes, unless somebody asked for it" if own else "yes"
        sure = "best effort" if kind.value.startswith(event_schemas.BEST_EFFORT) else "at least once"
        file = f"[`{kind}`](../../events/schemas/{kind}.json)"
        lines.append((file, event_schemas.MEANING[kind] + _later(_told(kind)), told, "yes", sure))
    return rows(("Event", "What happened", "With `failures`", "With `all`", "Delivery"), lines)


def user_reasons() -> str:
    return rows(
        ("Reason", "Meaning"), ((f"`{reason}`", MEANINGS[reason]) for reason in Reason if reason in USER_REASONS)
    )


def _told(kind: EventType) -> bool:
    """Returns whether the service can send an event: one of its states has a reason that is written."""
    states = event_schemas.states_of(kind, event.OF_STATE)
    return not states or any(map(_written, states))


def event_members() -> str:
    """Lists each member once, with the events that have it. The members of an object follow it."""
    everywhere = event_schemas.of_all(EventType.RUN_FAILED)
    where: dict[str, list[EventType]] = {}
    facts: dict[str, Any] = {**everywhere}
    for kind in EventType:
        for name, schema in event_schemas.members_of(kind).items():
            where.setdefault(name, []).append(kind)
            facts.setdefault(name, schema)
    lines = []
    for name, schema in facts.items():
        kinds = "every event" if name in everywhere else _kinds(where[name])
        lines += [(f"`{path}`", kinds, meaning) for path, meaning in _described(name, schema)]
    return rows(("Member of `detail`", "In", "Meaning"), lines)


def _described(path: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields a member with its description, and then its own members by their paths."""
    yield path, schema.get("description", "")
    for name, inner in schema.get("properties", {}).items():
        yield from _described(f"{path}.{name}", inner)


def _kinds(kinds: Iterable[EventType]) -> str:
    """Returns the names of events, or of a group such as `run.*` if all of its events have the member."""
    kinds = list(kinds)
    said = []
    for group in dict.fromkeys(kind.value.partition(".")[0] for kind in kinds):
        mine = [kind for kind in kinds if kind.value.startswith(f"{group}.")]
        whole_group = len(mine) > 1 and len(mine) == sum(kind.value.startswith(f"{group}.") for kind in EventType)
        said += [f"`{group}.*`"] if whole_group else [f"`{kind}`" for kind in mine]
    return ", ".join(said)


def _template() -> dict[str, Any]:
    return load(ROOT / "template.yaml")


MOST_IN_A_CELL = 8
"""How many allowed values of a parameter a cell lists."""


def parameters() -> str:
    """Returns a section for each group of the console's form, with a table of its parameters."""
    template = _template()
    parts = []
    for group in template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]:
        lines = []
        for name in group["Parameters"]:
            facts = template["Parameters"][name]
            default = f"`{facts['Default']}`" if facts["Default"] != "" else "empty"
            lines.append((f"`{name}`", default, _bounds(facts), facts["Description"]))
        table = rows(("Parameter", "Default", "Bounds", "What it sets"), lines)
        parts.append(f"### {group['Label']['default']}\n\n{table}")
    return "\n".join(parts)


def _bounds(facts: Mapping[str, Any]) -> str:
    if "AllowedValues" in facts:
        values = [str(value) for value in facts["AllowedValues"]]
        many = len(values) > MOST_IN_A_CELL
        return f"{values[0]} to {values[-1]}, in the steps that AWS offers" if many else ", ".join(values)
    if "MinValue" in facts:
        return f"{facts['MinValue']} to {facts['MaxValue']}"
    return str(facts.get("ConstraintDescription", ""))


def metrics() -> str:
    return rows(("Metric", "Unit", "Meaning", "Written"), telemetry_tables.metrics())


def alarms() -> str:
    return rows(("Alarm", "Meaning", "Begins when", "What to do"), telemetry_tables.alarms(_template()))


def outputs() -> str:
    return rows(
        ("Output", "What it is"),
        ((f"`{name}`", facts["Description"]) for name, facts in _template()["Outputs"].items()),
    )


def indexes() -> str:
    properties = _template()["Resources"]["Table"]["Properties"]
    lines = [("(the table)", *_keys(properties["KeySchema"]), "everything")]
    for index in properties["GlobalSecondaryIndexes"]:
        projection = index["Projection"]
        more = ", ".join(f"`{name}`" for name in projection.get("NonKeyAttributes", ())) or "keys only"
        lines.append((f"`{index['IndexName']}`", *_keys(index["KeySchema"]), more))
    return rows(("Index", "Partition key", "Sort key", "Carries"), lines)


def _keys(schema: Iterable[Mapping[str, str]]) -> tuple[str, str]:
    by_type = {key["KeyType"]: f"`{key['AttributeName']}`" for key in schema}
    return by_type["HASH"], by_type["RANGE"]


def attributes() -> str:
    """Returns the models in the order of their modules. `?` marks optional attributes."""
    lines = []
    inherited = set(table.Item.get_attributes())
    found = (import_module(each.name) for each in walk_packages(store.__path__, "sweephand.server.store."))
    for number, module in enumerate(sorted(found, key=lambda module: (module is not table, module.__name__))):
        for name, model in inspect.getmembers(module, inspect.isclass):
            if issubclass(model, table.Item) and model.__module__ == module.__name__ and model is not table.Item:
                attributes = model.get_attributes().items()
                own = [_attribute(each, facts) for each, facts in attributes if each not in inherited]
                lines.append((number, inspect.getsourcelines(model)[1], f"`{name}`", ", ".join(own)))
    return rows(("Item", "Attributes in addition to `pk`, `sk` and `expires_at`"), (line[2:] for line in sorted(lines)))


def _attribute(name: str, facts: Any) -> str:
    kind = " (number)" if facts.attr_type == NUMBER else " (set)" if isinstance(facts, UnicodeSetAttribute) else ""
    return f"`{name}`{'?' if facts.null else ''}{kind}"


def kept() -> str:
    return rows(promise_tables.KEPT, promise_tables.kept())


def _computed(name: str) -> Callable[[], str]:
    titles, lines = {**costs.TABLES, **sizing.TABLES}[name]
    return lambda: rows(titles, lines(), aligned="left" if name == "sizing-limits" else "right")


TABLES: Mapping[str, Callable[[], str]] = {
    "actions": action_table.action_table,
    "alarms": alarms,
    "attributes": attributes,
    **{name: _computed(name) for name in (*costs.TABLES, *sizing.TABLES)},
    "decisions": decisions.contents,
    "event-members": event_members,
    "events": events,
    "explanations": explanations,
    "failures": partial(promise_tables.faults, "failures"),
    "fault-plans": partial(promise_tables.faults, "plans"),
    "indexes": indexes,
    "kept": kept,
    "metrics": metrics,
    "outputs": outputs,
    "user-reasons": user_reasons,
    "parameters": parameters,
    "preview-warnings": preview_warnings,
    "problem-sections": problem_sections,
    "problems": problems,
    "reasons": reasons,
    "routes": routes,
    "scopes": scopes,
    "states": states,
}


def renewed(text: str) -> str:
    """Returns the page with current tables and files. Raises KeyError for a mark without a table."""
    text = PLACE.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}{found[3]}", text)
    return SHOWN.sub(lambda found: f"{found[1]}{_block(ROOT / found[2])}{found[3]}", text)


def _block(file: Path) -> str:
    return f"```{LANGUAGES[file.suffix]}\n{file.read_text()}```\n"


WORDS = ROOT / "functions" / "console" / "static" / "words.js"


def words() -> str:
    """Returns the console's module of sentences about states and reasons."""
    tables = {
        "STATES": {state.value: _plain(text) for state, text in STATES.items()},
        "REASONS": {reason.value: _plain(MEANINGS[reason]) for reason in Reason},
    }
    exports = (f"export const {name} = {json.dumps(table, indent=2)};\n" for name, table in tables.items())
    return "// Generated by `make docs`: sentences about states and reasons. Do not edit.\n\n" + "\n".join(exports)


def _plain(text: str) -> str:
    """Returns Markdown without links and code marks."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")


def pages() -> list[Path]:
    all_pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in all_pages if PLACE.search(page.read_text()) or SHOWN.search(page.read_text())]


def main(arguments: list[str]) -> int:
    schemas = event_schemas.write(check="--check" in arguments)
    for path in schemas:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    differ = [page for page in pages() if renewed(page.read_text()) != page.read_text()]
    for page in differ:
        sys.stdout.write(f"{page.relative_to(ROOT)}\n")
        if "--check" not in arguments:
            page.write_text(renewed(page.read_text()))
    if not WORDS.exists() or WORDS.read_text() != words():
        differ.append(WORDS)
        sys.stdout.write(f"{WORDS.relative_to(ROOT)}\n")
        if "--check" not in arguments:
            WORDS.write_text(words())
    return 1 if differ + schemas and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
