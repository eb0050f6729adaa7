"""The program and its commands. Each is imported on first use, because shell completion starts the program often."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import click

from sweephand import __version__
from sweephand.base.lazy import lazy

with lazy():
    from sweephand.cli.commands import completion, dev, doctor, following, job_sets, profiles, raw, resources, statuses
    from sweephand.cli.imports import group

COMMANDS: Mapping[str, tuple[str, ModuleType]] = {
    "jobs": ("Create, list, change, run, pause and delete jobs.", resources),
    "schedules": ("Add, list, change and delete the schedules of a job.", resources),
    "preview": ("Show when a schedule would run.", resources),
    "explain": ("Explain why a schedule runs at an instant, or does not.", resources),
    "runs": ("List, follow, rerun, cancel and export runs.", following),
    "messages": ("Send calls once, now or later, and read or revoke them.", resources),
    "overview": ("See what happened to all jobs, and what will happen.", resources),
    "errors": ("List failed runs in groups, archive them, run them again.", resources),
    "redirects": ("Let another job run the failed runs of a job.", resources),
    "ops": ("List, watch, pause and cancel operations (long work).", following),
    "plan": ("Show what applying a file with a job set would change.", job_sets),
    "apply": ("Create, change and delete the jobs of a set as a file says.", job_sets),
    "diff": ("Show what others have changed since a file was applied.", job_sets),
    "sets": ("List, show, release and delete job sets.", resources),
    "applications": ("Manage the applications of workers.", resources),
    "consumers": ("Manage programs that receive events, and their leases.", resources),
    "collections": ("Manage collections: groups of jobs with quotas.", resources),
    "calendars": ("Manage calendars: the days and hours of schedules.", resources),
    "flow-keys": ("Manage flow keys: limits that jobs share.", resources),
    "signing-keys": ("Manage the keys that sign requests to targets.", resources),
    "credentials": ("Create, list, rotate and delete credentials.", resources),
    "tenants": ("Manage tenants, as a provider.", resources),
    "subscriptions": ("Subscribe tenants to applications, as a provider.", resources),
    "api": ("Call any path of the API.", raw),
    "whoami": ("Show the credential, where it comes from, its tenant and its scopes.", doctor),
    "doctor": ("Check the address, the credential, the clock and the versions.", doctor),
    "dev": ("Run the whole service on this machine.", dev),
    "login": ("Save an address and a credential as a profile.", profiles),
    "logout": ("Remove a profile.", profiles),
    "import": ("Copy jobs from another service.", group),
    "completion": ("Print the completion script of a shell.", completion),
}
"""Each command with its help, and the module whose function `made` returns it."""


class _Program(click.Group):
    """The commands of the table. Listing them imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click passes it
        if cmd_name not in COMMANDS:
            return None
        about, module = COMMANDS[cmd_name]
        command: click.Command = module.made(cmd_name)
        if isinstance(command, click.Group):
            command.help = about
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (about, _) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return completion.of_names({name: about for name, (about, _) in COMMANDS.items()}, incomplete)


def program() -> click.Group:
    """Returns the program."""
    about = "Schedule jobs and see their runs with Sweephand."
    names = {"help_option_names": ["-h", "--help"]}
    known = {name: click.Command(name) for name in COMMANDS}  # click suggests one of them for a wrong name
    made = _Program("sweephand", commands=known, help=about, no_args_is_help=True, context_settings=names)
    return click.version_option(__version__, prog_name="sweephand")(made)


WITH_VALUE, WITHOUT = {"--url", "--profile", "--tenant"}, {"--json", "--local"}
"""The options of all commands, which may also stand before the command."""


def options_last(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments with the options that stand before the command after it."""
    first = 0
    while first < len(arguments):
        name, value, _ = arguments[first].partition("=")
        if name not in WITH_VALUE | WITHOUT:
            break
        first += 2 if name in WITH_VALUE and not value else 1
    options, rest = list(arguments[:first]), list(arguments[first:])
    end = rest.index("--") if "--" in rest else len(rest)
    return [*rest[:end], *options, *rest[end:]] if rest else options


def run(arguments: Sequence[str] | None) -> int:
    """Runs a command. Returns the exit status."""
    ordered = options_last(sys.argv[1:] if arguments is None else arguments)
    try:
        return int(program().main(ordered, prog_name="sweephand", standalone_mode=False) or 0)
    except click.UsageError as error:
        return statuses.of_error(error, as_json="--json" in (sys.argv[1:] if arguments is None else arguments))
    except click.Abort:  # Ctrl-C, or the end of input at a prompt
        return statuses.INTERRUPTED
