"""The program: its commands by name, each imported with its first use, because completion starts the program, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import click

from sweephand import __version__
from sweephand.lazy import lazy

with lazy():
    from sweephand.cli.commands import completion, doctor, following, job_sets, profiles, raw, resources, statuses
    from sweephand.cli.imports import group

COMMANDS: Mapping[str, tuple[str, ModuleType]] = {
    "jobs": ("Jobs: create, list, change, run, pause, delete.", resources),
    "schedules": ("The schedules of a job.", resources),
    "preview": ("Show when a schedule would run.", resources),
    "explain": ("Say why a schedule runs at an instant, or does not.", resources),
    "runs": ("Runs: list, follow, rerun, cancel, export.", following),
    "overview": ("All jobs at once: what happened, and what comes.", resources),
    "errors": ("Groups of failed runs: list, note, archive, redrive.", resources),
    "redirects": ("Jobs whose redriven runs go to another job.", resources),
    "ops": ("Long work: list, watch, pause, cancel.", following),
    "plan": ("Show what applying a file with a job set would change.", job_sets),
    "apply": ("Make the jobs of a set what a file says.", job_sets),
    "diff": ("Show what others have changed since a file was applied.", job_sets),
    "sets": ("Job sets.", resources),
    "applications": ("Applications of workers.", resources),
    "consumers": ("Programs that take events, and their leases.", resources),
    "collections": ("Collections of jobs.", resources),
    "calendars": ("Calendars.", resources),
    "flow-keys": ("Flow keys: shared rates, parallelism and circuits.", resources),
    "signing-keys": ("Keys that sign the requests to targets.", resources),
    "credentials": ("Credentials.", resources),
    "tenants": ("Tenants, for a credential of provider level.", resources),
    "subscriptions": ("Subscriptions of tenants.", resources),
    "api": ("Call any path of the API.", raw),
    "whoami": ("Show the credential, where it comes from, its tenant and its scopes.", doctor),
    "doctor": ("Check the address, the credential, the clock and the versions.", doctor),
    "login": ("Save an address and a credential as a profile.", profiles),
    "logout": ("Remove a profile.", profiles),
    "import": ("Copy jobs from another service.", group),
    "completion": ("Print the completion script of a shell.", completion),
}
"""Each command with its help, and the module whose function `made` returns it."""


class _Program(click.Group):
    """The commands of the table. Their help needs no import."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as click calls it
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as click calls it
        return COMMANDS[cmd_name][1].made(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - the same
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (about, _) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return completion.of_names({name: about for name, (about, _) in COMMANDS.items()}, incomplete)


def program() -> click.Group:
    """Returns the program."""
    made = _Program("sweephand", help="Sweephand from the command line.", no_args_is_help=True)
    return click.version_option(__version__, prog_name="sweephand")(made)


def run(arguments: Sequence[str] | None) -> int:
    """Runs a command. Returns the exit status."""
    try:
        return int(program().main(arguments, prog_name="sweephand", standalone_mode=False) or 0)
    except click.UsageError as error:
        return statuses.of_error(error, as_json=False)
    except click.Abort:  # Ctrl-C, or no more input to a question
        return statuses.INTERRUPTED
