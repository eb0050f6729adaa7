"""The state folder: who uses it now, what is kept in it, and whether it can be used by this version."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sweephand.local.failures import ForeignState

if TYPE_CHECKING:
    from pathlib import Path

    from sweephand.sources import Clock

FORMAT = 1
TAKE_ATTEMPTS = 10


def write_private(path: Path, value: Any) -> None:
    """Replaces `path` by `value` as JSON, whole or not at all, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
    draft.replace(path)


def read_json(path: Path) -> Any:
    """The JSON in `path`; None where there is no such file, or only the half of one that a kill left."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


@dataclass(frozen=True)
class StateFolder:
    """One folder, one stack. Everything that outlives a stop is in here."""

    root: Path

    @property
    def stack_file(self) -> Path:
        return self.root / "stack.json"

    @property
    def secrets_file(self) -> Path:
        return self.root / "secrets.json"

    @property
    def manifest_file(self) -> Path:
        return self.root / "manifest.json"

    @property
    def demo_file(self) -> Path:
        return self.root / "demo.json"

    @property
    def lock_file(self) -> Path:
        return self.root / "lock"

    @property
    def emulator(self) -> Path:
        return self.root / "emulator"

    @property
    def emulator_log(self) -> Path:
        return self.root / "emulator.log"

    @property
    def service_log(self) -> Path:
        return self.root / "stack.log"

    def clear_command(self) -> str:
        return f"rm -rf {shlex.quote(str(self.root))}"

    def check(self, data_shape: str) -> None:
        """Raises ForeignState if what is kept here was written by another emulator or with other keys.

        data_shape: what of the template cannot change under stored data (template.data_shape).
        """
        kept = read_json(self.manifest_file)
        if kept is None:
            if self.emulator.exists() and any((self.emulator / "state").glob("*.json")):
                self._refuse("of unknown origin")
            return
        if kept.get("format") != FORMAT:
            self._refuse(f"in format {kept.get('format')}, not {FORMAT}")
        if kept.get("emulator") != emulator_version():
            self._refuse(f"written by MiniStack {kept.get('emulator')}, not {emulator_version()}")
        if kept.get("dataShape") != data_shape:
            self._refuse("written for a template with other keys or shards")

    def _refuse(self, why: str) -> None:
        raise ForeignState(f"The state in {self.root} is {why}. To start empty: {self.clear_command()}")

    def stamp(self, data_shape: str) -> None:
        """Notes who writes here, so that `check` can tell the next version."""
        kept = {"format": FORMAT, "emulator": emulator_version(), "dataShape": data_shape}
        write_private(self.manifest_file, kept)


def emulator_version() -> str:
    return version("ministack")


class Lock:
    """Held by the process that runs the stack, and by its emulator: the kernel frees it when the last of them has gone,
    whatever killed it. So nobody reads a state that an orphaned emulator is still saving."""

    def __init__(self, folder: StateFolder) -> None:
        folder.root.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(folder.lock_file, os.O_RDWR | os.O_CREAT, 0o600)

    def take(self, clock: Clock) -> bool:
        """Whether it is ours now. The holder's process id is written into it."""
        for _ in range(TAKE_ATTEMPTS):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                clock.sleep(0.05)  # somebody may just be looking (`held`)
            else:
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)
                return True
        return False

    @property
    def descriptor(self) -> int:
        """For a child process that shall hold it too."""
        return self._descriptor

    def close(self) -> None:
        os.close(self._descriptor)


def held(folder: StateFolder) -> bool:
    """Whether a stack runs in the folder, or is still coming up or going down."""
    try:
        descriptor = os.open(folder.lock_file, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def holder(folder: StateFolder) -> int | None:
    """The process that runs the stack of the folder; None if there is none, or only its emulator is left."""
    if not held(folder):
        return None
    text = folder.lock_file.read_text(encoding="ascii", errors="replace")
    if not text.isdigit():
        return None
    try:
        os.kill(int(text), 0)
    except ProcessLookupError:
        return None
    return int(text)
