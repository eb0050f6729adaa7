"""The state folder: its files, its lock, and the check that this version can use it."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sweephand import __version__
from sweephand.local.failures import ForeignState

if TYPE_CHECKING:
    from pathlib import Path

    from sweephand.base.sources import Clock

FORMAT = 1
TAKE_ATTEMPTS = 10


def write_private(path: Path, value: Any) -> None:
    """Writes `value` as JSON to `path` atomically, readable only by its owner."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
    draft.replace(path)


def read_json(path: Path) -> Any:
    """Returns the JSON in `path`; None if the file does not exist or is incomplete after a kill."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


@dataclass(frozen=True)
class StateFolder:
    """The folder of one stack, with everything that outlives a stop."""

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
        """Raises ForeignState if the state is of another format or emulator, or was written for other keys.

        data_shape: a hash of the parts of the template that must fit the stored data (template.data_shape).
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
            writer = f"Sweephand {kept['version']}" if "version" in kept else "another version"
            self._refuse(f"written by {writer}, whose table has other keys than {__version__}'s")

    def _refuse(self, why: str) -> None:
        raise ForeignState(f"The state in {self.root} is {why}. To start empty: {self.clear_command()}")

    def stamp(self, data_shape: str) -> None:
        """Writes the versions for `check` at the next start."""
        kept = {"format": FORMAT, "emulator": emulator_version(), "dataShape": data_shape, "version": __version__}
        write_private(self.manifest_file, kept)


def emulator_version() -> str:
    return version("ministack")


class Lock:
    """A lock that the process of the stack and its emulator share.

    The kernel frees it when both have ended, for whatever reason. No process therefore reads a state that an orphaned
    emulator is still saving.
    """

    def __init__(self, folder: StateFolder) -> None:
        folder.root.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(folder.lock_file, os.O_RDWR | os.O_CREAT, 0o600)

    def take(self, clock: Clock) -> bool:
        """Takes the lock and writes our process id into it. Returns False if another process holds it."""
        for _ in range(TAKE_ATTEMPTS):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                clock.sleep(0.05)  # another process may just be checking it (`held`)
            else:
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)
                return True
        return False

    @property
    def descriptor(self) -> int:
        """Returns the descriptor for a child process that must hold the lock as well."""
        return self._descriptor

    def close(self) -> None:
        os.close(self._descriptor)


def held(folder: StateFolder) -> bool:
    """Returns True if a stack runs in the folder, or is starting or stopping."""
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
    """Returns the id of the stack's process; None if there is none or only its emulator is left."""
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
