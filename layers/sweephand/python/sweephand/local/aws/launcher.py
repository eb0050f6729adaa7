"""The emulator as a child process: its environment, its port, its start and its stop."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx2

from sweephand.local.failures import EmulatorFailed, PortTaken
from sweephand.local.settings import PACKAGE_ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sweephand.base.sources import Clock
    from sweephand.local.folder import StateFolder

LOOPBACK = "127.0.0.1"
REGION = "us-east-1"
PREFERRED_PORT = 4570
READY_WITHIN_S = 60.0
STOP_WITHIN_S = 20.0
HOLD = "hold-queues"
CHILD = "import sys; sys.path.insert(0, sys.argv[1]); from sweephand.local.aws.child import main; main()"
# The variables that the child gets from the user's environment. No others, because the functions' workers inherit them.
INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "SYSTEMROOT")


def clean_environment(user: Mapping[str, str], home: Path, port: int, also_on: str | None = None) -> dict[str, str]:
    """Returns the emulator's environment. user: the environment of this process. home: the emulator's own folder.

    also_on: an address in addition to loopback at which it listens, or None.
    """
    return {
        **{name: user[name] for name in INHERITED if name in user},
        # The default is 0.0.0.0, with which anyone on the network could run code as a function.
        "BIND_HOST": LOOPBACK,
        # The port is part of each queue's key in the saved state, so it never changes. The child binds the real one.
        "GATEWAY_PORT": "4566",
        "SWEEPHAND_EMULATOR_PORT": str(port),
        **({} if also_on is None else {"SWEEPHAND_EMULATOR_ALSO_ON": also_on}),
        "SWEEPHAND_HOLD": str(home / HOLD),
        "AWS_ENDPOINT_URL": f"http://{LOOPBACK}:{port}",
        # Otherwise it opens 8883 on all interfaces if the package cryptography is installed.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "PERSIST_STATE": "1",
        "STATE_DIR": str(home / "state"),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(home / "s3"),
        # Workers unpack their code here. A kill leaves it there, so the folder is emptied at each start.
        "TMPDIR": str(home / "tmp"),
        "LAMBDA_EXECUTOR": "local",
        "LOG_LEVEL": "WARNING",
        # Inherited by the workers. Without a log line from them, each call waits 50 ms for the first one.
        "POWERTOOLS_LOG_LEVEL": "INFO",
        "MINISTACK_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        # The user's own profile and instance role must never be found.
        "HOME": str(home),
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "POWERTOOLS_TRACE_DISABLED": "1",
    }


def bind(port: int, *, name: str) -> socket.socket:
    """Returns a socket bound to loopback, not listening yet. port: 0 for a free one. name: the variable for the port.

    Raises PortTaken.
    """
    # The protocol is named because asyncio sets TCP_NODELAY only then; without it, an answer may wait 40 ms.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((LOOPBACK, port))
    except OSError as error:
        sock.close()
        raise PortTaken(
            f"Port {port} on {LOOPBACK} is taken ({error.strerror}). Choose another with {name}=<port>."
        ) from error
    return sock


def choose_port(wanted: str | None) -> int:
    """Returns the port: `wanted` (0: a free one); by default the usual one, or else a free one. Raises PortTaken."""
    if wanted is not None:
        return _free_port(int(wanted))
    try:
        return _free_port(PREFERRED_PORT)
    except PortTaken:
        return _free_port(0)


def _free_port(port: int) -> int:
    with bind(port, name="SWEEPHAND_AWS_PORT") as sock:
        return int(sock.getsockname()[1])


class Launcher:
    """A launcher of one emulator process."""

    def __init__(
        self,
        folder: StateFolder,
        clock: Clock,
        port: int,
        inherited: tuple[int, ...] = (),
        also_on: str | None = None,
    ) -> None:
        """Creates a launcher. inherited: descriptors for the child. also_on: an address in addition to loopback."""
        self._folder = folder
        self._clock = clock
        self._child: subprocess.Popen[bytes] | None = None
        self.url = f"http://{LOOPBACK}:{port}"
        self._port = port
        self._inherited = inherited
        self._also_on = also_on

    def start(self) -> None:
        """Returns when the emulator answers. Raises EmulatorFailed."""
        home = self._folder.emulator
        shutil.rmtree(home / "tmp", ignore_errors=True)
        for name in ("state", "s3", "tmp"):
            (home / name).mkdir(parents=True, exist_ok=True)
        (home / HOLD).touch()
        with self._folder.emulator_log.open("wb") as log:
            self._child = subprocess.Popen(  # noqa: S603 - our own interpreter and code
                [sys.executable, "-P", "-c", CHILD, str(PACKAGE_ROOT)],
                env=clean_environment(os.environ, home, self._port, self._also_on),
                stdin=subprocess.PIPE,  # the child stops when this pipe closes, so it never outlives us
                stdout=log,
                stderr=log,
                pass_fds=self._inherited,
                start_new_session=True,  # so that a Ctrl-C in the terminal reaches only us; we then stop the child
            )
        self._await_health()

    def release_queues(self) -> None:
        """Lets the event sources poll.

        Until then the functions of the previous start get no messages, because the deploy may replace them at any
        moment during a call.
        """
        (self._folder.emulator / HOLD).unlink(missing_ok=True)

    def _await_health(self) -> None:
        end = self._clock.monotonic() + READY_WITHIN_S
        with httpx2.Client(trust_env=False, timeout=2.0) as client:
            while self.running():
                try:
                    if client.get(f"{self.url}/_ministack/health").is_success:
                        return
                except httpx2.TransportError:
                    pass
                if self._clock.monotonic() > end:
                    self.stop()
                    raise EmulatorFailed(
                        f"The emulator did not answer within {READY_WITHIN_S:.0f} s. See {self._folder.emulator_log}"
                    )
                self._clock.sleep(0.05)
        raise EmulatorFailed(f"The emulator failed to start: {self._last_words()}. See {self._folder.emulator_log}")

    def _last_words(self) -> str:
        lines = self._folder.emulator_log.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "no output")

    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def process_id(self) -> int:
        assert self._child is not None
        return self._child.pid

    def stop(self) -> None:
        """Stops the emulator by SIGTERM, which saves the state; by a kill if that takes too long."""
        if self._child is None:
            return
        self._child.terminate()
        try:
            self._child.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        if self._child.stdin is not None:
            self._child.stdin.close()
