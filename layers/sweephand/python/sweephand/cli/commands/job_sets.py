"""Commands for a file with all jobs of a set: they show the plan, apply it, and show what others have changed."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from sweephand.cli.commands.call import Argument, Call, command
from sweephand.cli.commands.files import unreadable
from sweephand.cli.commands.show import Output, cell
from sweephand.cli.commands.statuses import CONFLICT, DIFFERENT, DONE, REFUSED, Unusable, report
from sweephand.sdk.api_errors import NotFound, PlanStale, TooManyDeletes
from sweephand.sdk.each_once import each_once
from sweephand.sdk.models import JobSet, JobSetChange, JobSetPlan

OPTIONS = {"allow_deletes": "--allow-deletes"}
"""The options for the parameters that a refusal may name."""
MEMBERS = frozenset({"set", "jobs", "defaults"})
OF_ONE_JOB = ("key", "was", "name", "schedules")
"""Members that no two jobs share."""
NEVER_CONFIRMED = 10
"""The deletes that no set needs confirmed. To confirm more is never wrong."""
MERGED = ("action", "policies", "hooks")
"""Objects whose members have defaults one by one."""
SIGNS = {"created": "+", "updated": "~", "repaired": "!", "deleted": "-"}
TO_DO, MADE = ("create", "change", "repair", "delete"), ("created", "changed", "repaired", "deleted")
"""The verbs for the lists of SIGNS, in a plan and after it has been applied."""
_VARIABLE = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\}|(\{[^}]{0,40}\}?))")


@dataclass(frozen=True)
class SetFile:
    """The content of a file with a job set. jobs: as in the API."""

    name: str
    jobs: list[Any]


def made(name: str) -> click.Command:
    """Returns the command `plan`, `apply` or `diff`."""
    file = Argument(["file"], text="The file with the job set, in TOML or JSON.", metavar="FILE")
    prune = click.Option(
        ["--prune/--no-prune"],
        default=None,
        help="Whether to delete the jobs of the set that the file does not have; default: --prune.",
    )
    exit_code = click.Option(["--exit-code"], is_flag=True, help="Exit with 3 if there are differences.")
    applying = [
        click.Option(["--plan", "token"], metavar="TOKEN", help="Apply exactly the plan that `plan` showed."),
        click.Option(["--allow-deletes"], metavar="N", type=int, help="Confirm that this many jobs are to be deleted."),
        click.Option(
            ["--on-drift"],
            type=click.Choice(["keep_next", "run_now"]),
            help="The next run of jobs that others have changed; default: keep_next.",
        ),
        click.Option(["--reason"], help="Why the jobs are changed, for their change logs."),
    ]
    if name == "plan":
        return command(
            name, _plan, [file, prune, exit_code], help="Show what applying a file with a job set would change."
        )
    if name == "apply":
        return command(
            name, _apply, [file, prune, *applying], help="Create, change and delete the jobs of a set as a file says."
        )
    return command(name, _diff, [file], help="Show what others have changed since a file was applied.")


# The file


def read(path: Path, environment: Mapping[str, str]) -> SetFile:
    """Reads a job set from a TOML file, or from a JSON file if its name ends in .json.

    `${NAME}` stands for a variable of the environment, `$$` for `$`. Raises Unusable.
    """
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text, object_pairs_hook=each_once) if path.suffix == ".json" else tomllib.loads(text)
        missing: dict[str, None] = {}
        content = _filled(content, environment, missing)
    except (OSError, RecursionError, ValueError) as error:  # ValueError: from both parsers, and for invalid UTF-8
        raise Unusable(unreadable(path, error)) from error
    if missing:
        raise Unusable(f"{path}: the environment has no variable {', '.join(missing)}")
    if not isinstance(content, dict) or not isinstance(content.get("set"), str) or not content["set"]:
        raise Unusable(f'{path}: must name its set, such as: set = "billing"')
    if not isinstance(content.get("jobs"), list):
        raise Unusable(f"{path}: must have a list `jobs`; an empty list, jobs = [], deletes all jobs of the set")
    if unknown := sorted(content.keys() - MEMBERS):
        raise Unusable(f"{path}: unknown member {unknown[0]}: a file has `set`, `jobs` and `defaults`")
    defaults = content.get("defaults", {})
    if not isinstance(defaults, dict):
        raise Unusable(f"{path}: `defaults` must be a table with members of a job")
    if wrong := [name for name in OF_ONE_JOB if name in defaults]:
        instead = "; `schedule` has the members of each schedule" if wrong[0] == "schedules" else ""
        raise Unusable(f"{path}: defaults.{wrong[0]} must be in each job, because no two share it{instead}")
    return SetFile(content["set"], [_with_defaults(each, defaults) for each in content["jobs"]])


def _with_defaults(job: Any, defaults: Mapping[str, Any]) -> Any:
    """Returns an entry with the file's defaults for the members that it does not have."""
    if not isinstance(job, dict):
        return job
    usual = {name: value for name, value in defaults.items() if name != "schedule"}
    filled = usual | job
    for name in MERGED:
        if isinstance(usual.get(name), dict) and isinstance(job.get(name), dict):
            filled[name] = usual[name] | job[name]
    schedule, schedules = defaults.get("schedule", {}), job.get("schedules")
    if isinstance(schedule, dict) and isinstance(schedules, list):
        filled["schedules"] = [schedule | each if isinstance(each, dict) else each for each in schedules]
    return filled


def _filled(value: Any, environment: Mapping[str, str], missing: dict[str, None]) -> Any:
    """Returns the value with its variables replaced. Adds variables that the environment lacks to `missing`."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: _variable(match, environment, missing), value)
    if isinstance(value, dict):
        return {name: _filled(each, environment, missing) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, environment, missing) for each in value]
    return value


def _variable(match: re.Match[str], environment: Mapping[str, str], missing: dict[str, None]) -> str:
    name, wrong = match.groups()
    if wrong is not None:
        raise ValueError(f"{match[0]!r} is not a variable: write ${{NAME}}, or $${{ for a literal ${{")
    if name is None:
        return "$"
    if name not in environment:
        missing[name] = None
    return environment.get(name, "")


# The commands


def _plan(call: Call, file: str, prune: bool | None, exit_code: bool) -> int:
    wanted = read(Path(file), os.environ)
    with call.client() as client:
        plan = client.job_sets.put(wanted.name, jobs=wanted.jobs, plan=True, prune=prune)
    different = any(getattr(plan, name) for name in SIGNS)
    if call.as_json:
        call.out.json(plan)
    else:
        show(call.out, plan, planned=True)
        if different:
            keeps = " --no-prune" if prune is False else ""
            deletes = len(plan.deleted or ())
            confirms = f" --allow-deletes {deletes}" if deletes > NEVER_CONFIRMED else ""
            call.out.line(f"apply with: sweephand apply {file}{keeps}{confirms} --plan {plan.token}")
    return DIFFERENT if different and exit_code else DONE


def _apply(call: Call, file: str, token: str | None, **how: Any) -> int:
    """Applies the list until nothing remains. Each request makes as many changes as it has time for.

    how: the other parameters of the request: prune, allow_deletes, on_drift, reason.
    """
    wanted = read(Path(file), os.environ)
    with call.client() as client:
        try:
            while True:
                done = client.job_sets.put(wanted.name, jobs=wanted.jobs, token=token, **how)
                if call.as_json:
                    call.out.json(done)
                else:
                    show(call.out, done)
                sys.stderr.writelines(f"{each.key}: {each.code} {each.reason}\n" for each in done.failed)
                if done.failed or not done.remaining:
                    return REFUSED if done.failed else DONE
                token = done.token
        except (PlanStale, TooManyDeletes) as refused:
            report(refused, as_json=call.as_json, err=sys.stderr, options=OPTIONS)
            if not call.as_json and refused.plan is not None:
                show(Output(sys.stderr), refused.plan, planned=True)
            return CONFLICT


def _diff(call: Call, file: str) -> int:
    wanted = read(Path(file), os.environ)
    with call.client() as client:
        try:
            job_set = client.job_sets.get(wanted.name)
        except NotFound:
            sys.stderr.write(f"there is no set {wanted.name} yet: `sweephand plan` shows what it would create\n")
            return REFUSED
    if call.as_json:
        call.out.json(job_set)
    else:
        call.out.lines(_drift(job_set))
    return DONE


def show(out: Output, plan: JobSetPlan, *, planned: bool = False) -> None:
    """Writes a line with the counts, and one for each job that differs, with the members that change.

    planned: whether the changes are still to be made.
    """
    verbs = TO_DO if planned else MADE
    lists = {name: getattr(plan, name) for name in SIGNS}
    counts = [f"{len(some)} {verb}" for some, verb in zip(lists.values(), verbs, strict=True) if some] or ["no change"]
    out.line(f"{plan.set}: {', '.join([*counts, f'{plan.unchanged} same'])}")
    for name, changes in lists.items():
        for each in changes:
            facts = each.to_json()
            out.line("  ".join([f"{SIGNS[name]} {each.key}", *_facts(each, facts)]))
            out.below([_member(line) for line in facts.get("changes") or ()])
            if "changes" in facts and facts["changes"] is None:
                out.below([("its members are not shown, because the plan has too many",)])


def _facts(each: JobSetChange, facts: Mapping[str, Any]) -> Iterator[str]:
    if facts.get("was"):
        yield f"was {facts['was']}"
    if facts.get("runs") is not None:
        yield f"{facts['runs']} runs" + (f", {facts['openRuns']} open will end" if facts["openRuns"] else "")
    if "nextRunAt" in facts:
        old, new = (at and f"{at:%a %Y-%m-%d %H:%M:%S}Z" for at in (each.next_run_at_before, each.next_run_at))
        if facts["jobId"] is None:
            yield f"first {new or 'never'}"
        elif old == new:
            yield f"next {new or 'never'} as before"
        else:
            yield f"next {old or 'never'} -> {new or 'never'}"


def _member(line: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Returns a changed member as cells: its path, old and new value."""
    path = ": ".join(part for part in (line["schedule"], line["path"]) if part)
    return cell(path), json.dumps(line["old"], ensure_ascii=False), "->", json.dumps(line["new"], ensure_ascii=False)


def _drift(job_set: JobSet) -> Iterator[str]:
    drifted = [each for each in job_set.jobs if each.state != "applied"]
    yield f"{job_set.name}: {len(drifted)} changed by others, {len(job_set.jobs) - len(drifted)} as applied"
    for each in drifted:
        yield f"! {each.key}  {each.state}"
        for change in each.changes or ():
            yield f"    {change.at:%Y-%m-%d %H:%M:%S}Z  {change.actor or 'the service'}  {change.operation}"
            for line in change.changes:
                yield f"        {line.path or 'schedule'}: {json.dumps(line.old)} -> {json.dumps(line.new)}"
