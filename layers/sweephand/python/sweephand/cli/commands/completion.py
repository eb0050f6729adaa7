"""Shell completion of commands and options."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click
from click.shell_completion import CompletionItem, get_completion_class

from sweephand.cli.commands.call import Argument, Command

VARIABLE = "_SWEEPHAND_COMPLETE"


def made(_name: str) -> click.Command:
    """Returns the command `completion`."""
    shell = Argument(["shell"], text="The shell.", type=click.Choice(["bash", "zsh", "fish"]))
    about = "Print the completion script of a shell, for its startup file."
    return Command("completion", help=about, params=[shell], callback=_print)


def _print(shell: str) -> None:
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    sys.stdout.write(shell_class(click.Command("sweephand"), {}, "sweephand", VARIABLE).source() + "\n")


def of_names(commands: Mapping[str, str], incomplete: str) -> list[CompletionItem]:
    """Returns the completions of a command's name. commands: the help of each, by name."""
    return [CompletionItem(each, help=about) for each, about in commands.items() if each.startswith(incomplete)]
