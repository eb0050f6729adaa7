"""Options as people write them: those of all commands before the command too, and times with a unit."""

from __future__ import annotations

import click
import pytest

from sweephand.cli.app import WITH_VALUE, WITHOUT, options_last, run
from sweephand.cli.commands.call import command
from sweephand.cli.commands.following import Span


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("--profile x runs get id", "runs get id --profile x"),
        ("--profile=x --json runs get id", "runs get id --profile=x --json"),
        ("--local jobs list --limit 3", "jobs list --limit 3 --local"),
        ("--url u --tenant t api GET /v1/jobs -- -x", "api GET /v1/jobs --url u --tenant t -- -x"),
        ("runs get id --profile x", "runs get id --profile x"),
        ("--help", "--help"),
        ("--profile", "--profile"),
        ("--json", "--json"),
        ("", ""),
    ],
)
def test_options_of_all_commands_may_stand_before_the_command(written: str, means: str) -> None:
    assert options_last(written.split()) == means.split()


def test_every_option_of_all_commands_may_stand_before_the_command() -> None:
    shared = {name for each in command("x", lambda _: None).params for name in each.opts}

    assert shared == WITH_VALUE | WITHOUT


def test_an_option_before_the_command_acts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--profile", "nobody", "--json", "runs", "get", "x"]) != 0

    assert '"detail"' in (said := capsys.readouterr().err) or "nobody" in said


@pytest.mark.parametrize(
    ("written", "seconds"), [("60", 60), ("90s", 90), ("5m", 300), ("1h", 3_600), ("1d", 86_400), ("24h", 86_400)]
)
def test_a_time_may_have_a_unit(written: str, seconds: int) -> None:
    assert Span().convert(written, None, None) == seconds


@pytest.mark.parametrize("written", ["", "0", "0m", "2d", "-5", "1.5h", "5 m", "5M", "m", "99999999"])
def test_another_time_is_refused_with_the_right_forms(written: str) -> None:
    with pytest.raises(click.BadParameter, match="such as 90s, 5m, 1h or 1d"):
        Span().convert(written, None, None)
