"""The commands as a whole: each method of the SDK has one, and starting is quick."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import click
import pytest

from sweephand.cli import app, main
from sweephand.cli.commands import resources, wording
from sweephand.cli.commands.call import Argument

ROOT = Path(__file__).resolve().parents[3]
KINDS = {
    *("str", "int", "bool", "float", "datetime", "None", "Any", "Json", "Named", "Revision"),
    *("Sequence[str]", "Sequence[Json]"),
}


BY_HAND = {
    "Apply": "Applies",
    "Call": "Calls",
    "Check": "Checks",
    "Copy": "Copies",
    "Follow": "Follows",
    "Print": "Prints",
    "Remove": "Removes",
    "Save": "Saves",
    "Wait": "Waits",
}
"""The verbs of commands that are written by hand, with their third person."""
WHICH_TWICE = 'the member "type" appears twice'
COMPLETES = """
import sys
from sweephand.cli import main
try:
    main([])
except SystemExit:
    pass
assert "httpx2" not in sys.modules
"""


def commands() -> dict[str, click.Command]:
    """Returns each command by its words."""
    found: dict[str, click.Command] = {}
    for name, (_, module) in app.COMMANDS.items():
        made = module.made(name)
        inner = made.commands if isinstance(made, click.Group) else {"": made}
        found |= {f"{name} {each}".strip(): command for each, command in inner.items()}
    return found


def _modules(*arguments: str, **environment: str) -> set[str]:
    code = f"import sys; from sweephand.cli import main; main({list(arguments)!r}); print(*sys.modules, sep='\\n')"
    shared = os.environ | {"PYTHONPATH": str(ROOT / "layers" / "sweephand" / "python")} | environment
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=shared)
    return set(done.stdout.split())


def test_every_resource_of_the_sdk_is_a_group():
    there = {path.stem for path in (ROOT / "layers/sweephand/python/sweephand/sdk/sync/resources").glob("[a-z]*.py")}

    assert set(resources.GROUPS.values()) == there - {"service"}
    assert set(resources.GROUPS) < set(app.COMMANDS)


def test_every_argument_of_a_method_has_a_type_that_the_commands_know():
    for resource in resources.GROUPS.values():
        module = import_module(f"sweephand.sdk.sync.resources.{resource}")
        (cls,) = (
            each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__
        )
        for name, function in vars(cls).items():
            for given in [] if name.startswith("_") else list(inspect.signature(function).parameters.values())[1:]:
                assert resources.Parameter.of(given).kinds <= KINDS, (resource, name, given)


def test_no_command_has_two_options_or_values_of_one_name():
    for words, command in commands().items():
        names = [each.name for each in command.params]
        options = [option for each in command.params for option in (*each.opts, *each.secondary_opts)]
        assert len(names) == len(set(names)), words
        assert len(options) == len(set(options)), words


def test_every_command_that_calls_prints_json_if_asked():
    silent = {"completion", "dev", "import azure", "import sap"}

    assert {
        words for words, each in commands().items() if not any("--json" in given.opts for given in each.params)
    } == silent


def test_the_commands_that_a_user_looks_for_are_there():
    there = set(commands())

    for group, names in {
        "jobs": "list get create edit delete run pause resume next changes",
        "runs": "list get tail rerun cancel export",
        "errors": "list get note archive redrive",
        "ops": "list watch cancel",
    }.items():
        assert {f"{group} {name}" for name in names.split()} <= there
    assert {"preview", "explain", "plan", "apply", "diff", "api", "whoami", "doctor", "completion"} <= there


@pytest.mark.parametrize("words", [[], ["jobs"], ["jobs", "list"], ["completion"]])
def test_the_short_option_prints_the_help_everywhere(capsys, words):
    assert main([*words, "-h"]) == 0

    assert capsys.readouterr().out.startswith(" ".join(["Usage: sweephand", *words]))


def test_an_icalendar_is_one_word():
    assert "--icalendar" in [option for each in commands()["calendars create"].params for option in each.opts]


def test_the_help_of_a_group_states_its_purpose_in_whole_sentences(capsys):
    for name, (about, module) in app.COMMANDS.items():
        if isinstance(module.made(name), click.Group):
            main([name, "--help"])

            _, _, after_usage = capsys.readouterr().out.partition("\n")
            shown = " ".join(after_usage.split())
            assert about in shown
            assert "..." not in shown


def test_the_help_of_a_command_names_options_and_no_api_members():
    for words, command in commands().items():
        assert not re.search(r"RFC|Idempotency-Key|ETag|the request|`[a-z]+[A-Z]\w*`", command.help or ""), words
    assert commands()["jobs delete-matching"].help.endswith("Give --expected-count, or --dry-run only to count them.")
    assert commands()["jobs edit"].help == "Change the given members of a job; --clear removes one."
    assert commands()["jobs create"].help == "Create a job with its action and schedules."


def test_the_help_of_every_command_begins_with_an_imperative():
    """Seen failing for 120 commands, from "Activates a job" to "Waits for an operation and shows its progress"."""
    verbs = set(wording.IMPERATIVES.values()) | set(BY_HAND)
    third_person = {each.lower() for each in wording.IMPERATIVES} | {each.lower() for each in BY_HAND.values()}

    for words, command in commands().items():
        first, *more = re.findall(r"[\w-]+", (command.help or "").partition(". ")[0])
        assert first in verbs, (words, command.help)
        joined = {after for before, after in pairwise([first, *more]) if before in {"and", "or"}}
        assert not joined & third_person, (words, command.help)
    assert commands()["jobs delete"].help.startswith("Delete a job with its schedules, and end its open runs. ")
    assert commands()["jobs get"].help.startswith("Show a job ")
    assert commands()["ops watch"].help == "Wait for an operation, and show its progress."


def test_every_argument_of_a_command_is_explained_in_its_help(capsys):
    """Seen failing for all commands: the help named the arguments in its first line only."""
    for words, command in commands().items():
        arguments = [each for each in command.params if isinstance(each, click.Argument)]
        assert all(isinstance(each, Argument) and each.text.endswith(".") for each in arguments), words
    main(["explain", "--help"])

    assert re.search(
        r"Arguments:\n  JOB +The id or the name of the job.\n  SCHEDULE +The id or the name of the schedule.\n",
        capsys.readouterr().out,
    )


def test_every_option_says_what_it_does():
    """Seen failing when the options were made without the texts of the API's parameters."""
    options = [
        (words, each) for words, made in commands().items() for each in made.params if isinstance(each, click.Option)
    ]

    assert len(options) > 1_000
    assert [(words, each.opts[0]) for words, each in options if not (each.help or "").strip().endswith(".")] == []
    for words, each in options:
        assert not re.search(r"412|`[a-z]+[A-Z]\w*` [a-z]+ --|the request|None", each.help), (words, each.help)


def test_an_option_has_the_text_of_its_parameter_with_option_names():
    def help_of(words: str, option: str) -> str:
        (found,) = (each for each in commands()[words].params if option in each.opts)
        return found.help

    assert help_of("jobs list", "--state").startswith("Only resources in this state. Values: `ACTIVE`, ")
    assert help_of("jobs list", "--offset") == "How many entries to skip."
    assert help_of("jobs create", "--tag") == "Labels by which lists can be filtered. May be repeated."
    assert help_of("jobs create", "--policies").endswith("lie in the past. Give JSON, or @FILE.")
    assert help_of("jobs delete-matching", "--expected-count") == (
        "Refused if another number matches. Required, except with --dry-run."
    )
    assert help_of("errors redrive", "--group").endswith("instead of --run or --filter.")
    assert help_of("runs list", "--job-id") == "The id or the name of the job."


def test_the_guide_has_every_command():
    guide = (ROOT / "docs" / "guide" / "cli.md").read_text()
    table = [line for line in guide.splitlines() if line.startswith("|")]

    assert [name for name in app.COMMANDS if not re.search(rf"`(sweephand )?{name}[ `]", guide)] == []
    for group in ("jobs", "schedules", "runs", "overview", "errors", "redirects", "ops"):
        (row,) = (line for line in table if f"`{group}`" in line.split("|")[1])
        assert [each for each in app.COMMANDS[group][1].made(group).commands if f"`{each}`" not in row] == []


def test_help_and_completion_load_no_http_client():
    """The count stands for the time: `sweephand --help` starts within that of httpx2 alone."""
    for arguments, environment in (
        (["--help"], {}),
        (["jobs", "--help"], {}),
        (["completion", "bash"], {}),
    ):
        loaded = _modules(*arguments, **environment)
        assert not {"httpx2", "httpcore2", "asyncio", "anyio"} & loaded, arguments
    assert "sweephand.sdk.models" not in _modules("--help")


def test_a_shell_completes_commands_and_options_without_an_http_client():
    for typed, wanted in (
        ("sweephand jo", "jobs"),
        ("sweephand jobs re", "resume"),
        ("sweephand jobs list --st", "--state"),
    ):
        asked = {"_SWEEPHAND_COMPLETE": "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
        code = COMPLETES
        shared = os.environ | {"PYTHONPATH": str(ROOT / "layers" / "sweephand" / "python")} | asked
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=shared)
        assert f"plain,{wanted}" in done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(capsys, shell):
    assert main(["completion", shell]) == 0
    assert "_SWEEPHAND_COMPLETE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["no-such"], "No such command"),
        (["jobs", "get"], "Missing argument"),
        (["jobs", "list", "--colour", "red"], "No such option"),
        (["jobs", "list", "--limit", "0"], "Invalid value for '--limit': 0 is not in the range x>=1"),
        (["runs", "list", "--limit", "-1"], "Invalid value for '--limit': -1 is not in the range x>=1"),
        (["import", "azure", "gone.json", "--to", "https://a.b"], "gone.json: there is no such file"),
        (["jobs", "create", "a"], "--action is missing"),
        (["jobs", "create", "--post", "u"], "NAME is missing"),
        (["jobs", "create", "a", "--post", "u", "--action", "{}"], "exclude each other"),
        (["jobs", "create", "a", "--post", "u", "--cron", "* * * * *", "--every", "PT1H"], "exclude each other"),
        (["jobs", "create", "a", "--post", "u", "--timezone", "UTC"], "--timezone belongs to"),
        (["jobs", "create", "a", "--payload", "1"], "--payload belongs to"),
        (["jobs", "create", "a", "--action", "{"], "--action must be JSON"),
        (["jobs", "create", "a", "--action", '{"type": "http", "url": "u", "type": "event"}'], WHICH_TWICE),
        (["jobs", "create", "a", "--post", "u", "--payload", '[{"type": {"type": 1, "type": 2}}]'], WHICH_TWICE),
        (["api", "POST", "/v1/jobs", "-d", '{"type": 1, "type": 1}'], WHICH_TWICE),
        (["jobs", "edit", "j", "--clear", "colour"], "there is no such member"),
        (["jobs", "run", "j", "--payload", "hello"], '"text" in quotes'),
        (["api", "GET", "/v1/jobs", "-q", "limit"], "NAME=VALUE"),
        (["api", "GET", "/v1/jobs", "-d", "[]"], "must be an object"),
        (["api", "GET", "v1/jobs"], "must begin with a slash"),
        (["import", "sap", "--inactive", "--switch"], "exclude each other"),
    ],
)
def test_wrong_usage_exits_with_status_2_and_one_sentence(capsys, arguments, why):
    assert main(arguments) == 2

    said = capsys.readouterr()
    assert said.out == ""
    assert why in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("arguments", "detail"),
    [
        (["jobs", "create", "a", "--json"], "--action is missing"),
        (["jobs", "get", "--json"], "Missing argument 'JOB'."),
        (["jobs", "run", "j", "--json", "--payload", '{"type": 1, "type": 2}'], f"--payload: {WHICH_TWICE}"),
    ],
)
def test_wrong_usage_is_one_json_object_if_asked(capsys, arguments, detail):
    assert main(arguments) == 2

    said = capsys.readouterr()
    assert (said.out, json.loads(said.err)) == ("", {"code": "ERROR", "detail": detail})


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("gone.json", None, "there is no such file"),
        ("a.json", "{", "line 1"),
        ("a.toml", "a = ", "Invalid value"),
        ("a.json", "[]", "must be an object with the members of the body"),
        ("a.json", '{"action": {"type": "http", "type": "event"}}', WHICH_TWICE),
        ("a.json", '{"colour": 1}', "unknown member colour"),
        ("a.json", "[" * 100_000, "nested too deeply"),
    ],
)
def test_an_unusable_file_exits_with_status_2_and_is_named(tmp_path, capsys, name, text, why):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)

    assert main(["jobs", "create", "a", "--file", str(path)]) == 2

    err = capsys.readouterr().err
    assert err.startswith(f"{path}: ")
    assert why in err


def test_no_text_for_users_names_a_target_of_the_makefile():
    """The wheel has no Makefile. settings.py names one only in a clone, and the site is only built in one."""
    targets = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.compile(rf"\bmake ({'|'.join(targets)})\b")
    package = ROOT / "layers/sweephand/python/sweephand"
    paths = [path for room in ("cli", "local", "sdk", "testing") for path in (package / room).rglob("*.py")]

    found = {path.name for path in paths if any(named.search(text) for text in _texts(path))}

    assert found == {"settings.py", "documentation.py"}


def _texts(path: Path) -> list[str]:
    """Returns the strings and docstrings of a module, without its own docstring, which nobody is shown."""
    module = ast.parse(path.read_text())
    nodes = (node for part in module.body[1:] for node in ast.walk(part))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
