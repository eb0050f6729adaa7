"""The commands of the API's resources, made from the methods of the SDK: `jobs list` calls `sh.jobs.list`.

A required positional parameter of a method becomes an argument of the command. All others become options of the
parameter's type, with the text of the method's docstring as their help. The members of a body may also come from a
file.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import click

from sweephand.base.lazy import lazy
from sweephand.cli.commands.call import Argument, Call, Group, command
from sweephand.cli.commands.files import json_value, read_file
from sweephand.cli.commands.show import Output, cell
from sweephand.cli.commands.statuses import Unusable
from sweephand.cli.commands.wording import of_command
from sweephand.sdk.model import Model, snake
from sweephand.sdk.transport.request import ABSENT

with lazy():
    from sweephand.cli.commands import job_names, job_sets, short_forms
    from sweephand.sdk import models
    from sweephand.sdk.sync.resources import schedules

GROUPS: Mapping[str, str] = {
    "jobs": "jobs",
    "schedules": "schedules",
    "runs": "runs",
    "messages": "messages",
    "overview": "overview",
    "errors": "errors",
    "redirects": "error_redirects",
    "ops": "operations",
    "sets": "job_sets",
    "consumers": "consumers",
    "applications": "applications",
    "collections": "collections",
    "calendars": "calendars",
    "flow-keys": "flow_keys",
    "signing-keys": "signing_keys",
    "credentials": "credentials",
    "tenants": "tenants",
    "subscriptions": "subscriptions",
}
"""The SDK's resource for each group."""
RENAMED = {"patch": "edit", "add_note": "note"}
ALONE = ("preview", "explain")
"""Methods of schedules that become commands without a group."""
LEFT_OUT = {("sets", "put"), *(("schedules", each) for each in ALONE)}
"""Methods that have commands of their own elsewhere."""
READS = frozenset({"get"})
"""Methods whose answer is a whole job. After a change, a terminal gets one line."""
RUN_IDS = frozenset({"run", "failed_run"})
PAGING = frozenset({"page_size", "max_items", "cursor"})
LARGEST_PAGE = 100
LONG_WORK = ("BulkDelete", "BulkSwitch", "Redrive", "Operation")
"""The answers of methods that may start an operation, for which `--wait` waits."""
ITEMS = "items"
"""The member of an answer that is a list: it is shown as a list, and the other members go to stderr."""
ITEMS_OF = {"JobSet": "jobs"}
"""The answers whose list has another name."""
OF_ARGUMENTS: Mapping[str, str] = {
    "job": "The id or the name of the job.",
    "schedule": "The id or the name of the schedule.",
    "message": "The id of the message.",
    "run": "The id of the run, or the end of it that `sweephand runs list` shows.",
    "failed_run": "The id of the failed run, or the end of it that `sweephand errors runs` shows.",
    "to": "The id of the job that runs them. It must not be redirected itself.",
}
"""The texts of arguments for which commands accept more than the API, or which they describe differently."""
_FILE = "body_file"
_NAMED, _JSON, _ANY = "Named", "Json", "Any"


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method.

    kinds: the types of its annotation. of_body: whether it is a member of the body. by_place: whether it becomes an
    argument of the command. text: its line of the docstring.
    """

    name: str
    kinds: frozenset[str]
    required: bool
    of_body: bool
    by_place: bool
    text: str = ""

    @classmethod
    def of(cls, parameter: inspect.Parameter, text: str = "") -> Parameter:
        kinds = frozenset(str(parameter.annotation).split(" | "))
        required = parameter.default is inspect.Parameter.empty
        of_body = "Absent" in kinds or (required and _NAMED not in kinds)
        by_place = required and parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not kinds & {_JSON}
        return cls(parameter.name, kinds - {"Absent"}, required, of_body, by_place, text)

    @property
    def option(self) -> str:
        """The name of the option. For a list, the name is singular, because the option is repeated."""
        word = self.name.strip("_").replace("i_calendar", "icalendar").replace("_", "-")
        return f"--{word.removesuffix('s') if self.is_list else word}"

    @property
    def is_list(self) -> bool:
        return "Sequence[str]" in self.kinds and "str" not in self.kinds

    @property
    def is_json(self) -> bool:
        return any(_JSON in kind or kind == _ANY for kind in self.kinds)

    def made(self, known: Mapping[str, Parameter]) -> click.Parameter:
        """Returns the command's argument or option. known: all parameters of the method."""
        text = of_command(self.text, _options(known))
        if self.by_place:
            return Argument([self.name], text=OF_ARGUMENTS.get(self.name, text), required=not self.of_body)
        if "bool" in self.kinds:
            return click.Option([f"{self.option}/--no-{self.option[2:]}", self.name], default=None, help=text)
        if self.is_list:
            return click.Option([self.option, self.name], multiple=True, help=f"{text} May be repeated.")
        if self.is_json:
            return click.Option([self.option, self.name], metavar="JSON", help=f"{text} Give JSON, or @FILE.")
        kind = int if "int" in self.kinds else float if "float" in self.kinds else str
        about = OF_ARGUMENTS["job"] if self.name in job_names.PARAMETERS and not self.of_body else text
        return click.Option([self.option, self.name], type=kind, help=about)

    def read(self, value: Any) -> Any:
        """Returns the value for the method. Raises UsageError."""
        if self.is_list:
            return list(value)
        if self.is_json:
            return json_value(self.option, value)
        return _revision(self.option, value) if "Revision" in self.kinds else value


def _revision(option: str, text: str) -> int:
    """Returns a revision, given as `3` or as the ETag `"3"`. Raises UsageError."""
    digits = text.strip('"')
    if not digits.isdecimal():
        raise click.UsageError(f"{option} must be a revision, such as 3, not {text}")
    return int(digits)


def made(name: str) -> click.Command:
    """Returns a group of commands, or a command without a group."""
    if name in ALONE:
        return of_method("schedules", name, getattr(schedules.Schedules, name))
    return group(name)


def group(name: str) -> click.Group:
    """Returns the commands of a resource."""
    module = import_module(f"sweephand.sdk.sync.resources.{GROUPS[name]}")
    (cls,) = (each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__)
    commands = Group(name, no_args_is_help=True)
    for method, function in vars(cls).items():
        if not method.startswith("_") and (name, method) not in LEFT_OUT:
            commands.add_command(of_method(GROUPS[name], method, function))
    return commands


def of_method(resource: str, method: str, function: Callable[..., Any], name: str | None = None) -> click.Command:
    """Returns the command of a method. name: None for the method's own."""
    signature = inspect.signature(function)
    about, texts = _read(inspect.getdoc(function) or "")
    declared = [
        Parameter.of(each, texts.get(each.name, "")) for each in signature.parameters.values() if each.name != "self"
    ]
    answers = str(signature.return_annotation)
    known = {each.name: each for each in declared if each.name not in PAGING or not answers.startswith("Pages")}
    parameters = [each.made(known) for each in known.values()]
    waits = answers.removeprefix("models.").removesuffix(" | None") in LONG_WORK and resource != "operations"
    if answers.startswith("Pages"):
        parameters.append(
            click.Option(["--limit", "max_items"], type=click.IntRange(1), help="List at most this many; default: all.")
        )
    if waits:
        parameters.append(click.Option(["--wait"], is_flag=True, help="Wait until the operation is done."))
    if any(each.of_body for each in known.values()):
        parameters.append(
            click.Option(["--file", _FILE], metavar="FILE", help="Members from a file of JSON or TOML; - is stdin.")
        )
    if method == "patch":
        parameters.append(
            click.Option(["--clear"], multiple=True, metavar="MEMBER", help="Remove the member; may be repeated.")
        )
    if (resource, method) in {("jobs", "create"), ("jobs", "patch")}:
        parameters += short_forms.options()
    run = partial(_run, resource, method, known, waits)
    told_as = RENAMED.get(method, method).replace("_", "-")
    return command(name or told_as, run, parameters, help=of_command(about, _options(known)))


def _options(known: Mapping[str, Parameter]) -> dict[str, str]:
    """Returns the option of each parameter, by the parameter's name."""
    return {name.strip("_"): each.option for name, each in known.items() if not each.by_place}


def _read(docstring: str) -> tuple[str, dict[str, str]]:
    """Returns the summary of a method, and the text of each argument."""
    summary, _, arguments = docstring.partition("\n\nArgs:\n")
    texts = (each.partition(": ") for each in re.split(r"\n {4}(?! )", f"\n{arguments}")[1:])
    return summary, {name: " ".join(text.split()) for name, _, text in texts}


def _run(resource: str, method: str, known: Mapping[str, Parameter], waits: bool, call: Call, /, **options: Any) -> int:
    arguments = _arguments(known, options, short_forms.take(options) if "post_url" in options else {})
    if method == "patch" and not any(parameter.of_body and name in arguments for name, parameter in known.items()):
        raise click.UsageError("no change is given: name a member by its option, or remove one by --clear")
    if options.get("max_items") is not None:
        arguments |= {"max_items": options["max_items"], "page_size": min(options["max_items"], LARGEST_PAGE)}
    with call.client() as client:
        for name in job_names.PARAMETERS & arguments.keys():
            if not known[name].of_body:
                arguments[name] = job_names.id_of(client, arguments[name])
        for name in RUN_IDS & arguments.keys():
            arguments[name] = job_names.run_id_of(client, arguments[name])
        if "schedule" in known and known["schedule"].by_place:
            arguments["schedule"] = job_names.schedule_id_of(client, arguments["job"], arguments["schedule"])
        answer = getattr(getattr(client, resource), method)(**arguments)
        if waits and options["wait"]:
            return wait(call, client, answer)
        show(call, answer, planned=bool(options.get("plan")), changed=method not in READS)
    return 0


def _arguments(known: Mapping[str, Parameter], options: Mapping[str, Any], short: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a method. Options take precedence over members of the file. Raises UsageError."""
    arguments: dict[str, Any] = _of_file(options[_FILE], known) if options.get(_FILE) else {}
    for member in options.get("clear", ()):
        if snake(member) not in known:
            raise click.UsageError(f"--clear {member}: there is no such member")
        arguments[snake(member)] = None
    arguments |= short
    for name, parameter in known.items():
        if options[name] not in (None, ()):
            arguments[name] = parameter.read(options[name])
    for name, parameter in known.items():
        if parameter.required and arguments.get(name, ABSENT) is ABSENT:
            shown = name.upper() if parameter.by_place else parameter.option
            raise click.UsageError(f"{shown} is missing")
    return arguments


def _of_file(path: str, known: Mapping[str, Parameter]) -> dict[str, Any]:
    """Returns a body's members from a file, by the names of the method's arguments. Raises Unusable."""
    members = read_file(path)
    if not isinstance(members, dict):
        raise Unusable(f"{path}: must be an object with the members of the body")
    for member in members:
        if (parameter := _argument(member, known)) is None or not parameter.of_body:
            raise Unusable(f"{path}: unknown member {member}")
    return {_argument(member, known).name: value for member, value in members.items()}  # type: ignore[union-attr]


def _argument(member: str, known: Mapping[str, Parameter]) -> Parameter | None:
    return known.get(snake(member)) or known.get(f"{snake(member)}_")


def show(call: Call, answer: Any, *, planned: bool = False, changed: bool = False) -> None:
    """Writes the answer of a method. planned: whether a job set's changes are still to be made. changed: see READS."""
    if answer is None:
        return
    if call.as_json:
        call.out.json(answer if isinstance(answer, Model) else list(answer))
    elif isinstance(answer, models.JobSetPlan):
        job_sets.show(call.out, answer, planned=planned)
    elif isinstance(answer, Model) and (items := ITEMS_OF.get(type(answer).__name__, ITEMS)) in type(answer).members:
        Output(sys.stderr).one(answer, without=items)
        call.out.table(getattr(answer, items))
    elif isinstance(answer, models.Job) and changed:
        call.out.changed(answer)
    elif isinstance(answer, Model):
        call.out.one(answer)
    else:
        call.out.table(answer)


def wait(call: Call, client: Any, begun: Any) -> int:
    """Waits for an operation, with a line on stderr for each step, and writes its result. Raises OperationFailed."""
    done = client.operations.wait(begun, partial(_progress, call))
    show(call, begun if done is None else done)
    return 0


def _progress(call: Call, now: models.Operation) -> None:
    if not call.as_json:
        cause = f"  {now.cause}" if now.cause else ""
        sys.stderr.write(f"{now.kind} {now.state}: {cell(now.progress.to_json())}{cause}\n")
