"""The Python that measures cold starts: the runtime's version with boto3, else the one that runs the benchmark."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Python:
    """version: 3.13.0. is_runtime: of the same minor version as the functions' runtime."""

    path: str
    version: str
    is_runtime: bool

    @property
    def tag(self) -> str:
        """The tag after which its byte code is named."""
        major, minor, *_ = self.version.split(".")
        return f"cpython-{major}{minor}"


def measuring_python() -> Python:
    """Returns a Python of the runtime's version, in a separate environment under .cache with the boto3 that is
    installed here.
    """
    wanted = runtime_version()
    found = next((path for path in _candidates(wanted) if _version(path).startswith(f"{wanted}.")), None)
    path = _with_boto3(found, ROOT / ".cache" / f"bench-{wanted}") if found else None
    chosen = path or sys.executable
    version = _version(chosen)
    return Python(chosen, version, version.startswith(f"{wanted}."))


def runtime_version() -> str:
    """Returns 3.13, as the template has it."""
    found = re.search(r"^\s+Runtime: python([0-9.]+)$", (ROOT / "template.yaml").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def _candidates(wanted: str) -> Iterator[str]:
    """Yields where a Python may be: on the PATH, under pyenv. A shim of pyenv may exist without working."""
    yield from (path for name in (f"python{wanted}", "python3") if (path := shutil.which(name)))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{wanted}*/bin/python3")))


def _version(python: str) -> str:
    """Returns the version, or an empty string if it does not run."""
    code = "import platform; print(platform.python_version())"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _with_boto3(python: str, folder: Path) -> str | None:
    """Returns its path in an environment that has boto3; None if that cannot be made: no pip, or no network."""
    inside = folder / "bin" / "python"
    wanted = importlib.metadata.version("boto3")
    if not inside.exists():
        _runs(python, "-m", "venv", "--clear", str(folder))
    has = f"import boto3, sys; sys.exit(boto3.__version__ != '{wanted}')"
    if inside.exists() and not _runs(str(inside), "-c", has):
        _runs(str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"boto3=={wanted}")
    return str(inside) if inside.exists() and _runs(str(inside), "-c", has) else None


def _runs(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
