"""Makes commands with their own options, the options of all commands, and an exit status."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from sweephand.base.errors import SweephandError
from sweephand.base.lazy import lazy
from sweephand.cli.commands import stacks, statuses
from sweephand.cli.commands.show import Output
from sweephand.sdk.transport.config import Access

with lazy():
    from sweephand.sdk.sync import client

LONGEST_SUMMARY = 200
Run = Callable[..., int | None]


@dataclass(frozen=True)
class Call:
    """One call of a command. as_json: True to print JSON and nothing else."""

    as_json: bool = False
    url: str | None = None
    profile: str | None = None
    tenant: str | None = None
    local: bool | None = False
    out: Output = field(default_factory=Output)

    def stack(self) -> stacks.Stack:
        """Returns the stack to call. Raises ConfigError."""
        local = bool(self.local)
        return stacks.find(os.environ, url=self.url, profile=self.profile, tenant=self.tenant, local=local)

    def client(self) -> Any:
        """Returns a client of the stack, for a `with` statement. Raises ConfigError."""
        return connect(self.stack().access, None if self.local else self.tenant)


class Group(click.Group):
    """A group of commands. Its help shows whole summaries, which click would cut."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            names = self.list_commands(ctx)
            formatter.write_dl([(each, self.commands[each].get_short_help_str(LONGEST_SUMMARY)) for each in names])


class Argument(click.Argument):
    """An argument with a text for the help."""

    def __init__(self, names: Sequence[str], *, text: str, **more: Any) -> None:
        super().__init__(names, **more)
        self.text = text


class Command(click.Command):
    """A command whose help says what its arguments are."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        arguments = [each for each in self.get_params(ctx) if isinstance(each, Argument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([(each.make_metavar(ctx), each.text) for each in arguments])
        super().format_options(ctx, formatter)


def connect(access: Access, tenant: str | None) -> Any:
    """Returns a client of a stack."""
    return client.Sweephand(access.url, client_id=access.client_id, secret=access.secret, tenant=tenant)


def command(name: str, run: Run, parameters: Sequence[click.Parameter] = (), **more: Any) -> click.Command:
    """Returns a command. run: takes the Call and each parameter, and returns the exit status; None stands for 0."""

    def carry_out(as_json: bool, **arguments: Any) -> int:
        call = Call(
            as_json, **{each: arguments.pop(f"of_{each}", None) for each in ("url", "profile", "tenant", "local")}
        )
        try:
            return run(call, **arguments) or statuses.DONE
        except (statuses.Unusable, click.UsageError, SweephandError) as error:
            return statuses.of_error(error, as_json=as_json, options=options)

    options = {
        each.name.strip("_"): each.opts[0] for each in parameters if isinstance(each, click.Option) and each.name
    }
    own = {option for each in parameters for option in each.opts}
    shared = [each for each in _shared() if not own & set(each.opts)]
    return Command(name, callback=carry_out, params=[*parameters, *shared], **more)


def _shared() -> list[click.Parameter]:
    return [
        click.Option(["--json", "as_json"], is_flag=True, help="Print JSON, and nothing else."),
        click.Option(["--url", "of_url"], help="Base URL of the stack; default: SWEEPHAND_URL."),
        click.Option(["--profile", "of_profile"], help="A profile that `sweephand login` saved."),
        click.Option(["--tenant", "of_tenant"], help="The tenant for which a provider's credential acts."),
        click.Option(["--local", "of_local"], is_flag=True, help="The stack of `sweephand dev`: .local/stack.json."),
    ]
