"""The addresses that problems name as their type: each opens, without a credential, with cause and cure."""

from __future__ import annotations

import ast
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import sweephand
from sweephand.server.facades.native.problems import STATUS, type_of
from sweephand.server.facades.native.service.problem_pages import CAUSES, HTML
from tests.contract.native.api import JOB

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("code", STATUS)
def test_the_page_of_every_problem_type_opens_without_a_credential(shared, code):
    reply = shared.get(type_of(code), caller=None)

    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    status, title = STATUS[code]
    assert {**reply.json, "cause": "", "cure": ""} == {
        "type": type_of(code),
        "title": title,
        "status": status,
        "code": code,
        "cause": "",
        "cure": "",
    }
    assert reply.json["cause"].endswith(".")
    assert reply.json["cure"].endswith(".")


@pytest.mark.parametrize("code", STATUS)
def test_a_browser_gets_a_page(shared, code):
    reply = shared.get(type_of(code), caller=None, headers=BROWSER)

    assert (reply.status, reply.headers["content-type"]) == (200, HTML)
    assert f"<code>{code}</code>" in reply.text
    assert_balanced(reply.text)


def test_the_type_in_an_answer_leads_to_its_page(shared):
    problem = shared("POST", "/v1/jobs", {**JOB, "nmae": "x"}).json

    assert shared.get(problem["type"], caller=None).json["code"] == problem["code"] == "UNKNOWN_MEMBER"


def test_the_index_names_every_problem(shared):
    listed = shared.get("/problems", caller=None)
    page = shared.get("/problems", caller=None, headers=BROWSER)

    assert [each["code"] for each in listed.json["items"]] == list(STATUS)
    assert set(re.findall('href="([^"]+)"', page.text)) == {type_of(code) for code in STATUS}
    assert_balanced(page.text)


@pytest.mark.parametrize("name", ["nothing", "INVALID_FIELD", "invalid-field-", "<script>", "a/b"])
def test_an_unknown_problem_is_not_found(shared, name):
    assert shared.get(f"/problems/{name}").status == 404


def test_every_problem_has_causes_and_every_cause_a_problem():
    assert CAUSES.keys() == STATUS.keys()


NOT_THE_API = {"sap", "cli", "local", "sdk"}
"""Folders whose refusals never leave the API as a problem: of another facade, or on the side of the caller."""


def test_every_error_code_of_the_package_is_in_the_table():
    raised = set()
    for path in Path(sweephand.__file__).parent.rglob("*.py"):
        if NOT_THE_API & set(path.relative_to(Path(sweephand.__file__).parent).parts):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "code" and isinstance(node.value, ast.Constant):
                raised.add(node.value.value)
            if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") for base in node.bases):
                raised |= {
                    each.value.value
                    for each in node.body
                    if isinstance(each, ast.Assign)
                    and getattr(each.targets[0], "id", "") == "code"
                    and isinstance(each.value, ast.Constant)
                }

    codes = {each for each in raised if isinstance(each, str) and re.fullmatch("[A-Z]+(_[A-Z]+)*", each)}
    assert codes - {"ERROR"} <= STATUS.keys()
    assert {"UNKNOWN_MEMBER", "QUOTA_EXCEEDED", "UNAVAILABLE"} <= codes


def assert_balanced(html: str) -> None:
    """Checks that every element that begins also ends, in its order."""
    open_: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, _attrs):
            if tag != "meta":
                open_.append(tag)

        def handle_endtag(self, tag):
            assert open_.pop() == tag

    Reader().feed(html)
    assert open_ == []
