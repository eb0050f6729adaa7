"""A generated file says so in its first lines, so that nobody edits it."""

from __future__ import annotations

import re
import subprocess

from tests.architecture.words import ROOT

WITHOUT_COMMENTS = {"layers/sweephand/python/sweephand/server/facades/native/openapi.json"}
"""A form that has no place for the sentence."""
SIGN = re.compile("[Gg]enerated (by|from)")


def generated() -> list[str]:
    """Returns the files that .gitattributes calls generated."""
    command = "git ls-files -z | git check-attr -z --stdin linguist-generated"
    told = subprocess.run(command, shell=True, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [name for name, value in zip(told[::3], told[2::3], strict=False) if value == "set"]


def test_every_generated_file_says_how_it_is_generated() -> None:
    names = generated()
    unsigned = [name for name in names if not SIGN.search(_first_lines(name))]

    assert len(names) > 100
    assert set(unsigned) == WITHOUT_COMMENTS


def test_no_other_file_says_that_it_is_generated() -> None:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    signed = [name for name in names.split("\0") if name and "Do not edit." in _first_lines(name)]

    assert set(signed) <= {*generated(), "functions/console/static/vendor.js"}


def _first_lines(name: str) -> str:
    """Returns the first two lines: an object of JSON begins with a bracket."""
    return "\n".join((ROOT / name).read_text(errors="replace").splitlines()[:2])
