"""The command `dev`, which starts the local stack."""

from __future__ import annotations

from importlib.util import find_spec

import click

MISSING = 'sweephand dev needs the extra `local`: pip install "sweephand[local]" from where sweephand was installed'


def made(name: str) -> click.Command:
    """Returns the command."""
    about = """Run the whole service on this machine, until Ctrl-C.

    It is the template and the functions of a deployment, on an embedded AWS. Its state is kept in .local.
    """
    folder = click.Path(file_okay=False)
    options: list[click.Parameter] = [
        click.Option(["--state"], type=folder, metavar="DIR", help="The folder of its state, by default .local."),
        click.Option(["--port"], type=click.IntRange(0, 65_535), help="Its port, by default 8080; 0 for a free one."),
        click.Option(["--demo", "with_demo"], is_flag=True, help="Load some jobs and show their runs."),
        click.Option(["--once"], metavar="COMMAND", help="Run a shell command against a fresh stack, then end it."),
        click.Option(["--detach"], is_flag=True, help="Start it in the background and return."),
        click.Option(["--stop"], is_flag=True, help="Stop the one in the background."),
    ]
    return click.Command(name, params=options, callback=_dev, help=about, no_args_is_help=False)


def _dev(*, state: str | None, port: int | None, with_demo: bool, once: str | None, detach: bool, stop: bool) -> int:
    if sum((with_demo, once is not None, detach, stop)) > 1:
        raise click.UsageError("--demo, --once, --detach and --stop cannot be combined")
    if find_spec("ministack") is None:
        raise click.UsageError(MISSING)
    from sweephand.local import dev  # noqa: PLC0415 - an extra

    status: int = dev.run(state=state, port=port, with_demo=with_demo, once=once, detach=detach, ends=stop)
    return status
