from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.template import cloudformation
from tests.template.cloudformation import ROOT
from tests.template.sam_cli import SAM, run

if TYPE_CHECKING:
    from collections.abc import Callable

Stack = dict[str, Any]


@pytest.fixture(scope="session")
def raw() -> Stack:
    return cloudformation.raw_template()


@pytest.fixture(scope="session")
def translated(raw: Stack) -> Stack:
    """SAM's transform asks for a Region, and for nothing else of the outside."""
    before = os.environ.get("AWS_DEFAULT_REGION")
    os.environ["AWS_DEFAULT_REGION"] = "eu-central-1"
    try:
        return cloudformation.translated(raw)
    finally:
        if before is None:
            del os.environ["AWS_DEFAULT_REGION"]
        else:
            os.environ["AWS_DEFAULT_REGION"] = before


@pytest.fixture(scope="session")
def deployed(translated: Stack) -> Callable[..., Stack]:
    """deployed(SweepWorkers=3): the stack under these parameters."""
    return lambda **parameters: cloudformation.resolved(translated, **parameters)


@pytest.fixture(scope="session")
def stack(deployed: Callable[..., Stack]) -> Stack:
    """The stack with every parameter at its default."""
    return deployed()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of `sam build`, away from the one that a user may be working with."""
    folder = tmp_path_factory.mktemp("sam")
    done = run(
        [
            *(SAM, "build", "--config-file", ROOT / "samconfig.toml"),
            *("--build-dir", folder / "build", "--cache-dir", folder / "cache"),
        ]
    )
    assert done.returncode == 0, done.stderr
    return folder / "build"
