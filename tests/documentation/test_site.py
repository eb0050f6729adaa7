"""The documentation's site as `make site` builds it: no warning, no request to others, and a form for programs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FETCHED = re.compile(r"<(?:script|img|source|link)\b[^>]*?\b(?:src|href)=\"(?:https?:)?//[^\"]*\"", re.IGNORECASE)
FETCHED_BY_STYLES = re.compile(r"(?:url\(|@import\s+)[\"']?(?:https?:)?//[^\"')]*", re.IGNORECASE)
OPENAPI = ROOT / "layers" / "sweephand" / "python" / "sweephand" / "server" / "facades" / "native" / "openapi.json"
VERBS = {"get", "post", "put", "patch", "delete"}
WITHOUT_METHOD = {
    "GET /.well-known/jwks.json",
    "GET /.well-known/openid-configuration",
    "GET /problems",
    "GET /problems/{problem}",
    "GET /v1/openapi.json",
    "GET /v1/runs:export",
    "POST /oauth/token",
}
"""Operations for others than the SDK, and the one export that it reads as a stream of pages."""
OF_THE_GENERATOR = {"genindex", "search"}
IN_THE_INDEX = re.compile(r"^- \[[^\]]+\]\(([^)]+)\.md\): \S", re.MULTILINE)


@pytest.fixture(scope="module")
def site() -> Path:
    """The built site. A warning fails the build: a link without a page or anchor, a page without a place."""
    built = subprocess.run(["make", "--silent", "site"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return (ROOT / ".cache" / "site").resolve()


def test_every_page_is_published_as_html_and_as_markdown(site: Path):
    pages = [page.relative_to(ROOT / "docs").with_suffix("") for page in (ROOT / "docs").rglob("*.md")]

    missing = [f"{page}{form}" for page in pages for form in (".html", ".md") if not (site / f"{page}{form}").exists()]

    assert pages
    assert not missing


def test_every_page_in_markdown_leads_to_the_list_of_all_pages(site: Path):
    lost = [
        str(page.relative_to(site))
        for page in site.rglob("*.md")
        for link in [re.search(r"^> .*\[llms\.txt\]\(([^)]+)\)", page.read_text())]
        if link is None or (page.parent / link[1]).resolve() != site / "llms.txt"
    ]

    assert lost == []


def test_a_page_sends_no_request_to_another_host(site: Path):
    asked = {
        f"{file.relative_to(site)}: {found}"
        for pattern, kind in ((FETCHED, "*.html"), (FETCHED_BY_STYLES, "*.css"))
        for file in site.rglob(kind)
        for found in pattern.findall(file.read_text())
    }

    assert not asked


def test_the_pattern_finds_everything_that_a_page_would_fetch():
    assert FETCHED.search('<script async src="https://cdn.example/x.js">')
    assert FETCHED.search('<link rel="stylesheet" href="//fonts.example/x.css">')
    assert FETCHED_BY_STYLES.search("@import 'https://fonts.example/x.css'")
    assert not FETCHED.search('<a href="https://example.com/">')


def test_the_index_for_programs_lists_every_page_with_its_subject(site: Path):
    listed = IN_THE_INDEX.findall((site / "llms.txt").read_text())
    there = {str(page.relative_to(site).with_suffix("")) for page in site.rglob("*.html")} - OF_THE_GENERATOR

    assert len(listed) == len(set(listed))
    assert set(listed) == there - {"index"}


def test_the_navigation_shows_sections_and_opens_the_current_one(site: Path):
    for page, opened in (
        ("index", "Start here"),
        ("guide/ledger", "See what happened"),
        ("decisions/cost/0015-a-cold-start-runs-without-garbage-collection-searches-or-spare-clients", "Contribute"),
    ):
        tree = (site / f"{page}.html").read_text().partition('<div class="sidebar-tree">')[2].partition("</div>")[0]
        sections = re.findall(r"<details([^>]*)>.*?caption-text\">([^<]+)<(.*?)</details>", tree, re.DOTALL)

        assert [title for state, title, _ in sections if " open" in state] == [opened]
        assert len(sections) == 12
        assert sum(part.count("<li") for _, _, part in sections) == tree.count("<li") > 80
        assert not re.search(r">\d{4}: ", tree)


def test_a_link_to_a_file_outside_the_site_shows_the_files_name(site: Path):
    promise = (site / "reference" / "faults.html").read_text()

    assert "tests/faults/test_plans.py" in promise
    assert "../../tests/" not in promise


def test_every_operation_of_the_api_has_an_example_and_its_sdk_method(site: Path):
    described = json.loads(OPENAPI.read_text())
    wanted = {
        f"{m.upper()} {path}": o for path, item in described["paths"].items() for m, o in item.items() if m in VERBS
    }
    text = "".join(page.read_text() for page in (site / "reference" / "operations").glob("*.md"))
    sections = {one.partition("`")[0]: one for one in text.split("\n`")}

    missing = [name for name in wanted if name not in sections]
    alone = {name for name, section in sections.items() if name in wanted and "\nPython: `sh." not in section}

    assert len(wanted) > 100
    assert not missing
    assert alone <= WITHOUT_METHOD
    assert text.count("\nAnswer, 2") > 100
