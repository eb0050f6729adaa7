"""The image that `sam local` runs functions in: AWS's own if it can be had, else one of the same shape.

Ours is Debian with CPython 3.13 and AWS's runtime client from its package, so the handlers meet the same interpreter,
the same client and the same folders (/var/task, /opt). SAM adds the layers and AWS's runtime interface emulator to
either.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sweephand.local.settings import CHECKOUT
from tests.sam_local.engine import Engine, NotPrepared, apt_get, machine

MADE = "sweephand.test-image"
"""A label: one of ours under AWS's name, which must not stay in an engine that others use."""
SUITE = "trixie"  # the Debian whose python3 is 3.13
LOCK = CHECKOUT / "requirements" / "runtime_image.txt"
CACHE = CHECKOUT / ".cache" / "sam_local"
PULL_WITHIN_S = 180.0
BOOTSTRAP = """#!/bin/sh
export PYTHONPATH=/var/task:/opt/python:/var/runtime
exec /usr/bin/python3 -m awslambdaric "$_HANDLER"
"""
SETTINGS = (
    f"LABEL {MADE}=true",
    "WORKDIR /var/task",
    "ENV LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8",
)


def ensure(engine: Engine, *, build: bool) -> str:
    """Returns how the image came here, as a word. build: whether one may be made if AWS's cannot be had.

    Raises NotPrepared.
    """
    name = wanted()
    if engine.docker("image", "inspect", name, check=False).returncode == 0:
        return "present"
    refused = _pull(engine, name)
    if refused is None:
        return "pulled"
    if not build:
        raise NotPrepared(f"docker pull {name}: {refused}")
    archive = CACHE / f"image-{machine()}-{_recipe()}.tar"
    cached = archive.exists()
    if not cached:
        _make(archive)
    changes = [argument for change in SETTINGS for argument in ("--change", change)]
    engine.docker("import", *changes, str(archive), name)
    return "from the cache" if cached else "built"


def forget(engine: Engine) -> None:
    """Takes AWS's name from an image that we made, in an engine that was there before."""
    if engine.ours:
        return
    name, label = wanted(), f'{{{{index .Config.Labels "{MADE}"}}}}'
    if engine.docker("image", "inspect", name, "--format", label, check=False).stdout.strip():
        engine.docker("image", "rm", "--no-prune", name, check=False)


@functools.cache
def wanted() -> str:
    """Returns the name under which the SAM CLI looks for it."""
    prefix = "from samcli.local.docker.lambda_image import LambdaImage; print(LambdaImage._INVOKE_REPO_PREFIX)"
    python = str(CHECKOUT / ".venv-sam" / "bin" / "python")
    done = subprocess.run([python, "-c", prefix], capture_output=True, text=True, check=True)
    return f"{done.stdout.strip()}/python:3.13-{machine()}"


def _pull(engine: Engine, name: str) -> str | None:
    """Returns None if it worked, else why it did not."""
    try:
        answer = engine.docker("pull", "--quiet", name, check=False, timeout=PULL_WITHIN_S)
    except subprocess.TimeoutExpired:
        return f"nothing within {PULL_WITHIN_S:.0f} s"
    return None if answer.returncode == 0 else answer.stderr.strip()[-300:]


def _recipe() -> str:
    """Changes with everything that goes into the image."""
    parts = [SUITE, BOOTSTRAP, LOCK.read_text(), Path(__file__).read_text()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _make(archive: Path) -> None:
    if shutil.which("debootstrap") is None:
        apt_get("update", "-qq")
        apt_get("install", "-y", "-qq", "--no-install-recommends", "debootstrap")
    with tempfile.TemporaryDirectory(prefix="sweephand-image-") as name:
        root = Path(name) / "root"
        _run("debootstrap", "--variant=minbase", "--include=python3,ca-certificates", SUITE, str(root))
        _add_runtime(root)
        archive.parent.mkdir(parents=True, exist_ok=True)
        draft = archive.with_suffix(".draft")
        _run("tar", "--directory", str(root), "--numeric-owner", "--create", "--file", str(draft), ".")
        draft.replace(archive)


def _add_runtime(root: Path) -> None:
    platforms = [f"manylinux{glibc}_{_wheel_machine()}" for glibc in ("2014", "_2_28")]
    _run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"),
        *("--require-hashes", "--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", "3.13"),
        *(argument for platform in platforms for argument in ("--platform", platform)),
        *("--target", str(root / "var" / "runtime"), "--requirement", str(LOCK)),
    )
    bootstrap = root / "var" / "runtime" / "bootstrap"
    bootstrap.write_text(BOOTSTRAP)
    bootstrap.chmod(0o755)
    for folder in ("var/task", "var/rapid", "opt"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    # Nobody installs anything in it any more, and each import of the image has to write all this.
    for folder in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"):
        shutil.rmtree(root / folder, ignore_errors=True)


def _wheel_machine() -> str:
    return {"arm64": "aarch64"}.get(machine(), "x86_64")


def _run(*command: str) -> None:
    done = subprocess.run(
        command, env=os.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NotPrepared(f"{command[0]} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2_000:]}")
