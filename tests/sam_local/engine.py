"""The container engine that `sam local` uses: the one that answers here, else, in CI, one of our own.

An engine that is found is used as it is, and nothing of it is changed. Our own has its data and its socket in a folder
of its own; with `stop` it is gone, and so is everything it ran.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from sweephand.base.sources import SystemClock

CLOCK = SystemClock()
PACKAGES = ("docker.io", "iptables", "iproute2", "debootstrap")
# A network that hardly anybody has: our bridge must not take over an address in use.
GATEWAY = "172.31.250.1"
BRIDGE = "docker0"
ANSWERS_WITHIN_S = 60.0
ENDS_WITHIN_S = 30.0


class NoEngine(Exception):
    """There is none, and none may be installed here. The text says what the user can do."""


class NotPrepared(Exception):
    """Something that the tests need was to be made here, and that did not work."""


@dataclass
class Engine:
    """A running engine. folder, process: of our own, None if it was found. environment: for the docker client."""

    folder: Path | None = None
    process: subprocess.Popen[bytes] | None = None
    had_bridge: bool = True
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        return self.process is not None

    def docker(self, *arguments: str, check: bool = True, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Calls the docker client once."""
        return subprocess.run(
            ["docker", *arguments],
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=check,
            timeout=timeout,
        )

    def gateway(self) -> str | None:
        """Returns the address under which a container reaches this machine itself; None where the engine runs in its
        own machine (Docker Desktop), whose name for us reaches our loopback.
        """
        wanted = "{{(index .IPAM.Config 0).Gateway}}"
        answer = self.docker("network", "inspect", "bridge", "--format", wanted, check=False)
        address = answer.stdout.strip()
        return address if answer.returncode == 0 and _is_here(address) else None

    def stop(self) -> None:
        """Ends our engine and removes what it made; leaves any other alone."""
        if self.process is None or self.folder is None:
            return
        left = self.docker("ps", "--quiet", check=False).stdout.split()
        if left:
            self.docker("kill", *left, check=False)
        self.process.terminate()
        try:
            self.process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if not self.had_bridge:
            subprocess.run(["ip", "link", "delete", BRIDGE], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def _is_here(address: str) -> bool:
    """Tells whether the address is one of this machine's."""
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def find_or_start(*, install: bool) -> Engine:
    """Returns the engine that answers, or starts one if `install` is set.

    Raises NoEngine without that leave, NotPrepared if it cannot be done.
    """
    found = Engine()
    if shutil.which("docker") is not None and _answers(found):
        return found
    if not install:
        raise NoEngine("no container engine answers here; start Docker, or let CI=true install one (Debian, as root)")
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        raise NotPrepared("CI=true, but no engine answers, and only root on Linux can start one")
    if any(shutil.which(tool) is None for tool in ("dockerd", "docker", "ip", "iptables")):
        _install()
    return _start(Path(tempfile.mkdtemp(prefix="sweephand-engine-")))


def _answers(engine: Engine) -> bool:
    try:
        return engine.docker("info", check=False, timeout=20).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _install() -> None:
    apt_get("update", "-qq")
    apt_get("install", "-y", "-qq", "--no-install-recommends", *PACKAGES)


def apt_get(*arguments: str) -> None:
    """Raises NotPrepared, with the last lines of what apt-get said."""
    if shutil.which("apt-get") is None:
        raise NotPrepared(f"CI=true, but this system has no apt-get to install {', '.join(PACKAGES)} with")
    done = subprocess.run(
        ["apt-get", *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotPrepared(f"apt-get {' '.join(arguments)}:\n{(done.stdout + done.stderr)[-1_000:]}")


def _start(folder: Path) -> Engine:
    host = f"unix://{folder}/docker.sock"
    had_bridge = Path("/sys/class/net", BRIDGE).exists()
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                # However this process ends, the engine ends with it.
                *("setpriv", "--pdeathsig", "TERM", "dockerd"),
                *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
                *("--pidfile", str(folder / "pid"), "--host", host),
                # A container has to reach this machine, and nothing else: no rule of the machine's firewall is touched.
                *("--iptables=false", "--bip", f"{GATEWAY}/24"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    engine = Engine(folder, process, had_bridge, {"DOCKER_HOST": host})
    end = CLOCK.monotonic() + ANSWERS_WITHIN_S
    while not _answers(engine):
        if process.poll() is not None or CLOCK.monotonic() > end:
            words = log.read_text(errors="replace")[-2_000:]
            engine.stop()
            raise NotPrepared(f"the engine did not come up:\n{words}")
        CLOCK.sleep(0.2)
    return engine


def machine() -> str:
    """Returns the processor, in the words of the template's parameter Architecture."""
    return {"aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "x86_64")
