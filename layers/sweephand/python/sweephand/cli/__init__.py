"""Commands for a user's machine. The functions' layer does not contain them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from sweephand.lazy import lazy

with lazy():
    from sweephand.cli import import_azure as azure
    from sweephand.cli import import_sap as sap


def main(arguments: Sequence[str]) -> int:
    """Runs a command. Returns the exit status: 0 done, 1 partly failed, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m sweephand", description="Sweephand from the command line.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    importing = commands.add_parser("import", help="copy jobs from another service")
    systems = importing.add_subparsers(dest="system", required=True, metavar="SYSTEM")
    azure.add_arguments(systems.add_parser("azure", help="from templates and exports of Azure Scheduler"))
    sap.add_arguments(systems.add_parser("sap", help="from SAP Job Scheduling Service"))
    options = parser.parse_args(arguments)
    return azure.run(options) if options.system == "azure" else sap.run(options)
