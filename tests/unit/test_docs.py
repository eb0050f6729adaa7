"""The documentation holds: its tables are the code's, its links lead somewhere, what it names is there."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest

from sweephand.schedules.notations import NOTATIONS
from sweephand.server.actions import KINDS
from sweephand.server.facades.native.members.job_members import JOB
from tools.docs import action_table, pictures, tables
from tools.docs.decisions import CHAPTERS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / "README.md", ROOT / "CHANGELOG.md"),
    *sorted(page for folder in ("docs", "examples") for page in (ROOT / folder).rglob("*.md")),
]
PACKAGE = ROOT / "layers" / "sweephand" / "python" / "sweephand"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
MAKE = re.compile(r"(?:^|`|&& |\$ )(?:[A-Z_]+=\S+ )*make ([a-z][a-z-]*)", re.MULTILINE)


def _named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _anchor(heading: str) -> str:
    """Makes the anchor as code hosts do: lower case, blanks to hyphens, all else but letters, digits and hyphens
    away.
    """
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _anchors(page: Path) -> set[str]:
    prose = FENCE.sub("", page.read_text())
    return {_anchor(heading) for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE)}


@pytest.mark.parametrize("page", tables.pages(), ids=_named)
def test_generated_tables_are_those_of_the_code(page: Path):
    assert page.read_text() == tables.renewed(page.read_text()), "make docs"


def test_each_member_of_an_event_has_a_text():
    """The table of members is generated; a member without a description leaves its last cell empty."""
    lines = (ROOT / "docs" / "reference" / "events.md").read_text().splitlines()

    assert [line for line in lines if line.startswith("|") and line.endswith("|  |")] == []


@pytest.mark.parametrize("name", sorted(pictures.PICTURES))
def test_pictures_are_those_that_the_code_draws(name: str):
    picture = ROOT / "docs" / "pictures" / f"{name}.svg"

    assert picture.read_text() == pictures.PICTURES[name](), "make docs"


def test_every_picture_is_on_a_page():
    pages = [ROOT / "docs" / "index.md", *(ROOT / "docs" / "concepts").glob("*.md")]
    shown = "".join(page.read_text() for page in pages)

    assert all(f"pictures/{name}.svg" in shown for name in pictures.PICTURES)


def test_the_sentences_of_the_console_are_those_of_the_code():
    assert tables.WORDS.read_text() == tables.words(), "make docs"


def test_every_generated_table_has_a_page():
    marked = {name for page in tables.pages() for _, name, _ in tables.PLACE.findall(page.read_text())}

    assert marked == set(tables.TABLES)


def test_a_cell_of_the_actions_that_no_test_shows_fails_the_build(monkeypatch: pytest.MonkeyPatch):
    marks = list(action_table.marked())
    fewer = [mark for mark in marks if mark[0] != ("http", "bearer", "silence")]
    assert len(fewer) < len(marks)

    monkeypatch.setattr(action_table, "marked", lambda: fewer)
    with pytest.raises(ValueError, match=r"for \[\('http', 'bearer', 'silence'\)\]"):
        action_table.action_table()
    monkeypatch.setattr(action_table, "marked", lambda: [*marks, (("http", "digest", "success"), "test_x")])
    with pytest.raises(ValueError, match=r"do not exist: .*digest"):
        action_table.action_table()
    monkeypatch.setattr(action_table, "KINDS", {**action_table.KINDS, "fax": action_table.KINDS["sqs"]})
    with pytest.raises(ValueError, match="fax"):
        action_table.action_table()


@pytest.mark.parametrize("empty", ["seen", "shown"])
def test_a_fault_of_which_nothing_is_said_or_shown_fails_the_build(empty: str, monkeypatch: pytest.MonkeyPatch):
    promises = tables.promise_tables.promises
    line = {"what": "the sky falls", "seen": "rain", "shown": [["tests/a.py::test_b", "change: c"]]}
    monkeypatch.setattr(promises.tomllib, "loads", lambda _: {"failures": [line | {empty: type(line[empty])()}]})
    promises.tables.cache_clear()

    try:
        with pytest.raises(ValueError, match="the sky falls"):
            tables.TABLES["failures"]()
    finally:
        promises.tables.cache_clear()


@pytest.mark.parametrize("table", ["metrics", "alarms", "problem-sections"])
def test_a_table_that_lacks_a_line_fails_the_build(table: str, monkeypatch: pytest.MonkeyPatch):
    a_page_too_few = {"Resources": {"NewAlarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": ALARM_WITHOUT_PAGE}}}
    monkeypatch.setitem(tables.telemetry_tables.METRICS, "Unheard", "Count")
    monkeypatch.setattr(tables, "load", lambda _: a_page_too_few)
    monkeypatch.setitem(tables.STATUS, "UNHEARD", (418, "New"))

    with pytest.raises((KeyError, AssertionError), match=r"Unheard|NewAlarm|UNHEARD"):
        tables.TABLES[table]()


ALARM_WITHOUT_PAGE = {"AlarmDescription": {"Fn::Sub": "${AWS::StackName}: something is wrong"}}


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_relative_links_lead_to_a_file_and_a_heading(page: Path):
    for link in LINK.findall(FENCE.sub("", page.read_text())):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_make_targets_named_by_a_page_are_in_the_makefile(page: Path):
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(MAKE.findall(page.read_text())) <= targets


@pytest.mark.parametrize("page", PAGES, ids=_named)
def test_no_page_knows_the_machine_it_was_written_on(page: Path):
    assert not re.search(r"(?:^|[\s`'\"(])/(?:work|root|tmp|home/(?!you/))", page.read_text())


def test_the_walk_through_the_code_names_functions_that_exist():
    named = re.findall(r"`([a-z_/]+\.py)::(\w+)`", (ROOT / "docs/guide/one-occurrence.md").read_text())

    assert len(named) > 20
    for path, name in named:
        source = (ROOT / path if path.startswith("functions/") else PACKAGE / path).read_text()
        assert re.search(rf"^(?:def|class) {name}\b", source, re.MULTILINE), f"{path}::{name}"


PROMISED = re.compile(r"`(tests/[a-z_/]+\.py)::(test_[a-z0-9_]+)`")


def test_every_promise_of_the_page_on_security_names_tests_that_exist():
    rows = re.findall(r"^- (.+?)$(.*?)(?=^- |^#|\Z)", _promises(), re.MULTILINE | re.DOTALL)

    assert len(rows) > 30
    for promise, details in rows:
        held_by = re.sub(r"</?details>|<summary>\d+ tests?</summary>", "", details)
        assert PROMISED.findall(held_by), promise
        for path, test in PROMISED.findall(held_by):
            assert re.search(rf"^(async )?def {test}\(", (ROOT / path).read_text(), re.MULTILINE), f"{path}::{test}"
        assert not PROMISED.sub("", held_by).replace("<br>", "").strip(), promise


def _promises() -> str:
    page = (ROOT / "docs" / "security.md").read_text()
    return page[page.index("## Promises") : page.index("## After a leak")]


def test_decisions_are_numbered_once_and_fit_a_page():
    decisions = sorted((ROOT / "docs" / "decisions").rglob("*.md"))

    numbers = [page.name.partition("-")[0] for page in decisions]
    assert len(set(numbers)) == len(numbers)
    for page in decisions:
        text = page.read_text()
        assert text.startswith(f"# {page.name.partition('-')[0]}: "), page.name
        assert len(text.split()) <= 450, page.name
        assert not text.split("\n\n")[1].startswith("**"), f"{page.name}: say first what was decided"
        for part in ("**Situation.**", "**Choice.**", "**Rejected.**", "**What would change it.**"):
            assert part in text, f"{page.name}: {part}"


def test_a_decision_is_in_the_folder_of_a_chapter():
    folders = {page.parent.name for page in (ROOT / "docs" / "decisions").rglob("*.md")}

    assert folders == CHAPTERS.keys(), "move the page to its subject, then `make docs`"


def test_every_number_of_a_decision_leads_to_a_page():
    numbers = {page.name.partition("-")[0] for page in (ROOT / "docs" / "decisions").rglob("*.md")}
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    texts = (ROOT / name for name in listed.split("\0") if name.endswith((".py", ".md", ".yaml", ".toml", ".js")))

    lost = {
        (_named(path), number)
        for path in texts
        for number in re.findall(r"\b[Dd]ecisions? \[?(\d{4})\b", path.read_text())
        if number not in numbers
    }

    assert lost == set()


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("docs/guide/targets.md", KINDS.keys() - {"http"}),
        ("docs/guide/schedules.md", NOTATIONS.keys()),
        ("docs/reference/api.md", {*JOB.sent}),
    ],
    ids=["actions", "notations", "attributes of a job"],
)
def test_a_page_that_is_written_by_hand_names_everything_of_its_kind(page: str, names: Collection[str]) -> None:
    prose = FENCE.sub("", (ROOT / page).read_text())

    assert {name for name in names if f"`{name}`" not in prose} == set()


def test_programs_of_the_examples_take_their_port_as_an_option() -> None:
    programs = [path for path in (ROOT / "examples").rglob("*.py") if "HTTPServer((" in path.read_text()]

    assert programs
    assert [path.name for path in programs if "int(sys.argv" in path.read_text()] == []
