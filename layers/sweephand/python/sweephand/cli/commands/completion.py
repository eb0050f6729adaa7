"""Completion of commands and options by the shell."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click
from click.shell_completion import CompletionItem, get_completion_class

VARIABLE = "_SWEEPHAND_COMPLETE"


def made(_name: str) -> click.Command:
    """Returns the command `completion`."""
    shell = click.Argument(["shell"], type=click.Choice(["bash", "zsh", "fish"]))
    about = "Print the completion script of a shell, to be read at its start."
    return click.Command("completion", help=about, params=[shell], callback=_print)


def _print(shell: str) -> None:
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    sys.stdout.write(shell_class(click.Command("sweephand"), {}, "sweephand", VARIABLE).source() + "\n")


def of_names(commands: Mapping[str, str], incomplete: str) -> list[CompletionItem]:
    """Returns what completes the name of a command. commands: with their help."""
    return [CompletionItem(each, help=about) for each, about in commands.items() if each.startswith(incomplete)]
