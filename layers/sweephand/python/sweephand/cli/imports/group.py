"""The group `import`."""

from __future__ import annotations

import click

from sweephand.cli.commands.call import Group
from sweephand.cli.imports import import_azure, import_sap


def made(_name: str) -> click.Group:
    """Returns the group `import`."""
    group = Group("import", no_args_is_help=True)
    group.add_command(import_azure.command())
    group.add_command(import_sap.command())
    return group
