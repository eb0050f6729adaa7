"""Commands for a user's machine. The functions' layer does not contain them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sweephand.lazy import lazy

with lazy():
    from sweephand.cli import import_azure as azure
    from sweephand.cli import import_sap as sap
    from sweephand.cli import job_sets


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command. Returns the exit status: 0 done, 1 refused or partly failed, 2 could not ask; more by command.

    arguments: without the program's name; None for those of the process.
    """
    parser = argparse.ArgumentParser(prog="sweephand", description="Sweephand from the command line.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    job_sets.add_commands(commands)
    importing = commands.add_parser("import", help="copy jobs from another service")
    systems = importing.add_subparsers(dest="system", required=True, metavar="SYSTEM")
    for system, module, where in (
        ("azure", azure, "from templates and exports of Azure Scheduler"),
        ("sap", sap, "from SAP Job Scheduling Service"),
    ):
        parser_of_system = systems.add_parser(system, help=where)
        module.add_arguments(parser_of_system)
        parser_of_system.set_defaults(run=module.run)
    options = parser.parse_args(arguments)
    return int(options.run(options))
