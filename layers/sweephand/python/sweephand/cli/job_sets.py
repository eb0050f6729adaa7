"""Applies a file with the whole list of jobs of a set: shows the plan, applies it, shows what others have changed.

Exit status: 0 done; 1 refused or failed; 2 could not ask (usage, file, address, credential, scope); 3 differences, with
--exit-code; 4 a conflict, such as a plan that is out of date or deletes too many jobs, or a name that is taken.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from sweephand.errors import SweephandError
from sweephand.sdk.api_errors import NotFound, PlanStale, TooManyDeletes
from sweephand.sdk.errors import ApiError, ConfigError, InvalidArgument, TransportError
from sweephand.sdk.models import JobSet, JobSetChange, JobSetPlan
from sweephand.sdk.sync.client import Sweephand

DONE, REFUSED, NOT_ASKED, DIFFERENT, CONFLICT = range(5)
CONFLICTS = frozenset({409, 412})
NO_ACCESS = frozenset({401, 403})
MEMBERS = frozenset({"set", "jobs"})
SIGNS = {"created": "+", "updated": "~", "repaired": "!", "deleted": "-"}
TO_DO, MADE = ("create", "change", "repair", "delete"), ("created", "changed", "repaired", "deleted")
"""The words for the lists of SIGNS: of a plan, and of what was applied."""
_VARIABLE = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\}|(\{[^}]{0,40}\}?))")


class Unusable(Exception):
    """A file that cannot be read as a job set."""


@dataclass(frozen=True)
class SetFile:
    """A file with a job set. jobs: as the API takes them."""

    name: str
    jobs: list[Any]


def add_commands(commands: Any) -> None:
    """Adds the commands to an argparse object of subparsers."""
    plan = commands.add_parser("plan", help="show what applying a file with a job set would change")
    plan.add_argument("--exit-code", action="store_true", help="exit with 3 if there are differences")
    apply = commands.add_parser("apply", help="make the jobs of a set what a file says")
    apply.add_argument("--plan", metavar="TOKEN", help="apply exactly the plan that `plan` showed")
    apply.add_argument("--allow-deletes", metavar="N", type=int, help="delete this many jobs, although it is unusual")
    apply.add_argument(
        "--on-drift", choices=["keep_next", "run_now"], help="what jobs do that others have changed; default: keep_next"
    )
    diff = commands.add_parser("diff", help="show what others have changed since a file was applied")
    for parser, run in ((plan, _plan), (apply, _apply), (diff, _diff)):
        parser.add_argument("file", metavar="FILE", help="a job set in TOML or JSON")
        parser.add_argument("--url", help="base URL of the stack; default: SWEEPHAND_URL")
        parser.add_argument("--local", action="store_true", help="the stack of `make run`, by .local/stack.json")
        parser.add_argument("--json", action="store_true", help="print the answer of the API")
        parser.set_defaults(run=lambda options, run=run: _run(options, run))


def _run(options: argparse.Namespace, command: Any) -> int:
    """Runs a command with the credential of SWEEPHAND_CLIENT_ID and SWEEPHAND_SECRET. Returns the exit status."""
    try:
        wanted = read(Path(options.file), os.environ)
        with Sweephand.local() if options.local else Sweephand(options.url) as client:
            return int(command(client, wanted, options, sys.stdout, sys.stderr))
    except (Unusable, ConfigError, InvalidArgument, TransportError) as error:
        sys.stderr.write(f"{error}\n")
        return NOT_ASKED
    except ApiError as refused:
        _tell(refused, options, sys.stderr)
        return NOT_ASKED if refused.status in NO_ACCESS else CONFLICT if refused.status in CONFLICTS else REFUSED
    except SweephandError as error:
        sys.stderr.write(f"{error}\n")
        return REFUSED


def _tell(refused: ApiError, options: argparse.Namespace, err: TextIO) -> None:
    """Writes a refusal: a line for each mistake, or with --json one object."""
    if options.json:
        told = {"code": refused.code, "status": refused.status, "detail": refused.detail}
        mistakes = [{"field": each.field, "reason": each.reason} for each in refused.errors]
        err.write(json.dumps({**told, "errors": mistakes, "requestId": refused.request_id}) + "\n")
        return
    err.writelines(f"{each.field}: {each.reason}\n" for each in refused.errors)
    if not refused.errors:
        err.write(f"{refused.detail}\n")


# The file


def read(path: Path, environment: Mapping[str, str]) -> SetFile:
    """Reads a job set from TOML, or from JSON by the file's ending. `${NAME}` stands for a variable, `$$` for `$`.

    Raises Unusable.
    """
    try:
        text = path.read_text(encoding="utf-8")
        told = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        missing: dict[str, None] = {}
        told = _filled(told, environment, missing)
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from error
    except RecursionError as error:
        raise Unusable(f"{path}: is nested too deeply") from error
    except ValueError as error:  # of both parsers, and of bytes that are not UTF-8
        raise Unusable(f"{path}: {error}") from error
    if missing:
        raise Unusable(f"{path}: the environment has no variable {', '.join(missing)}")
    if not isinstance(told, dict) or not isinstance(told.get("set"), str) or not told["set"]:
        raise Unusable(f'{path}: must name its set, such as: set = "billing"')
    if not isinstance(told.get("jobs"), list):
        raise Unusable(f"{path}: must have a list `jobs`; an empty one, jobs = [], deletes all jobs of the set")
    if unknown := sorted(told.keys() - MEMBERS):
        raise Unusable(f"{path}: unknown member {unknown[0]}: a file has `set` and `jobs`")
    return SetFile(told["set"], told["jobs"])


def _filled(value: Any, environment: Mapping[str, str], missing: dict[str, None]) -> Any:
    """Returns the value with its variables filled in. Notes those that the environment does not have in `missing`."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _variable(found, environment, missing), value)
    if isinstance(value, dict):
        return {name: _filled(each, environment, missing) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, environment, missing) for each in value]
    return value


def _variable(found: re.Match[str], environment: Mapping[str, str], missing: dict[str, None]) -> str:
    name, wrong = found.groups()
    if wrong is not None:
        raise ValueError(f"{found[0]!r} is not a variable: write ${{NAME}}, or $${{ for the characters")
    if name is None:
        return "$"
    if name not in environment:
        missing[name] = None
    return environment.get(name, "")


# The commands


def _plan(client: Sweephand, wanted: SetFile, options: argparse.Namespace, out: TextIO, _err: TextIO) -> int:
    found = client.job_sets.put(wanted.name, jobs=wanted.jobs, plan=True)
    different = any(getattr(found, name) for name in SIGNS)
    if options.json:
        out.write(json.dumps(found.to_json()) + "\n")
    else:
        out.writelines(_lines(found, TO_DO))
        if different:
            out.write(f"apply with: sweephand apply {options.file} --plan {found.token}\n")
    return DIFFERENT if different and options.exit_code else DONE


def _apply(client: Sweephand, wanted: SetFile, options: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    """Applies the list until nothing remains; a request makes as many changes as it has time for."""
    token, failed = options.plan, False
    try:
        while True:
            done = client.job_sets.put(
                *(wanted.name,),
                jobs=wanted.jobs,
                token=token,
                allow_deletes=options.allow_deletes,
                on_drift=options.on_drift,
            )
            if options.json:
                out.write(json.dumps(done.to_json()) + "\n")
            else:
                out.writelines(_lines(done, MADE))
            for each in done.failed:
                failed = True
                err.write(f"{each.key}: {each.code} {each.reason}\n")
            if not done.remaining or failed:
                return REFUSED if failed else DONE
            token = done.token
    except (PlanStale, TooManyDeletes) as refused:
        _tell(refused, options, err)
        if not options.json:
            present = client.job_sets.put(wanted.name, jobs=wanted.jobs, plan=True)
            err.writelines(_lines(present, TO_DO))
        return CONFLICT


def _diff(client: Sweephand, wanted: SetFile, options: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    try:
        there = client.job_sets.get(wanted.name)
    except NotFound:
        err.write(f"there is no set {wanted.name} yet: `sweephand plan` shows what it would create\n")
        return REFUSED
    out.writelines([json.dumps(there.to_json()) + "\n"] if options.json else _drift(there))
    return DONE


def _lines(found: JobSetPlan, verbs: tuple[str, ...]) -> Iterator[str]:
    """Yields a line that counts, and one for each job that is not the same."""
    lists = {name: getattr(found, name) for name in SIGNS}
    counts = [f"{len(some)} {verb}" for some, verb in zip(lists.values(), verbs, strict=True) if some] or ["no change"]
    yield f"{found.set}: {', '.join([*counts, f'{found.unchanged} same'])}\n"
    for name, changes in lists.items():
        for each in changes:
            yield f"{SIGNS[name]} {each.key}{_of_a_change(each)}\n"


def _of_a_change(each: JobSetChange) -> str:
    facts = each.to_json()
    if facts.get("was"):
        return f"  was {facts['was']}"
    if facts.get("runs") is None:
        return ""
    open_runs = f", {facts['openRuns']} open will end" if facts.get("openRuns") else ""
    return f"  {facts['runs']} runs{open_runs}"


def _drift(there: JobSet) -> Iterator[str]:
    drifted = [each for each in there.jobs if each.state != "applied"]
    yield f"{there.name}: {len(drifted)} changed by others, {len(there.jobs) - len(drifted)} as applied\n"
    for each in drifted:
        yield f"! {each.key}  {each.state}\n"
        for change in each.changes or ():
            yield f"    {change.at:%Y-%m-%d %H:%M:%S}Z  {change.actor or 'the service'}  {change.operation}\n"
            for line in change.changes:
                yield f"        {line.path or 'schedule'}: {json.dumps(line.old)} -> {json.dumps(line.new)}\n"
