"""The embedded AWS with six calls: start, deploy, release_queues, base_url, credentials, stop.

Another emulator would replace this module together with launcher.py, child.py and deploy.py. No other module of the
local stack depends on the emulator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sweephand.local.aws import deploy as deploys
from sweephand.local.aws.deploy import Aws, Stack
from sweephand.local.aws.launcher import REGION, Launcher, choose_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sweephand.base.sources import Clock
    from sweephand.local.folder import StateFolder

STACK_NAME = "sweephand"


class Emulator:
    """An embedded AWS with its state in a folder."""

    def __init__(
        self,
        folder: StateFolder,
        clock: Clock,
        *,
        port: str | None = None,
        inherited: tuple[int, ...] = (),
        also_on: str | None = None,
    ) -> None:
        """Creates an emulator. port: of the AWS endpoint; None for 4570, or a free one if that is taken.

        inherited: descriptors that its process keeps open. also_on: an address in addition to loopback at which it
        listens, for functions in containers. It accepts every caller, so pass None without containers. Raises
        PortTaken.
        """
        self._clock = clock
        self._launcher = Launcher(folder, clock, choose_port(port), inherited, also_on)
        self._aws = Aws(endpoint_url=self._launcher.url, region=REGION)

    def start(self) -> None:
        """Starts it with the state of its folder. Returns when it answers. Raises EmulatorFailed."""
        self._launcher.start()

    def deploy(self, path: Path, parameters: Mapping[str, str]) -> Stack:
        """Deploys a SAM template. Does nothing if it is unchanged. Raises DeployFailed."""
        stack = deploys.deploy(self._aws, self._clock, path=path, stack_name=STACK_NAME, parameters=parameters)
        self.release_queues()
        return stack

    def release_queues(self) -> None:
        """Lets the event sources poll, which a start prevents. `deploy` calls it; call it if another tool deploys."""
        self._launcher.release_queues()

    def base_url(self, api_id: str) -> str:
        """Returns the address of an HTTP API without a slash at the end. The front serves it as a root URL."""
        return f"{self._launcher.url}/_aws/execute-api/{api_id}/$default"

    def credentials(self) -> Aws:
        """Returns the address and credentials for boto3."""
        return self._aws

    def running(self) -> bool:
        return self._launcher.running()

    @property
    def process_id(self) -> int:
        return self._launcher.process_id

    def stop(self) -> None:
        """Saves the state and ends the process."""
        self._launcher.stop()
