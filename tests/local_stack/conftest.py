"""Stacks for tests. `stack`: the real template and functions, one for the whole session. `sample`: a small stand-in,
which a test may stop, kill or break."""

from __future__ import annotations

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from sweephand.local import control
from sweephand.local.aws.deploy import Aws
from sweephand.local.failures import NotRunning
from sweephand.local.folder import StateFolder
from sweephand.local.settings import CHECKOUT, Settings
from tests.local_stack.waiting import CLOCK, WITHIN_S, until
from tests.support.examples import by_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sweephand.local.stack_file import StackFile

SAMPLE = Path(__file__).parent / "sample"
by_steps()

signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell that starts tests in the background lets all their children ignore Ctrl-C, which some of them are sent."""


@dataclass
class LocalStack:
    """A running stack. base_url: root of its API. file: the content of its stack.json."""

    base_url: str
    file: StackFile
    folder: StateFolder
    _clients: list[httpx.Client] = field(default_factory=list)

    def client(self, tenant: str = "acme", **more: Any) -> httpx.Client:
        """Returns an HTTP client with the tenant's credential (Basic). more: further arguments of httpx.Client."""
        credential = self.file.tenants[tenant]
        return self._client(credential.client_id, credential.secret, **more)

    def provider(self, for_tenant: str | None = None) -> httpx.Client:
        """Returns an HTTP client with the provider's credential, acting for a tenant if it is given."""
        headers = {} if for_tenant is None else {"Sweephand-Tenant": for_tenant}
        return self._client(self.file.provider.client_id, self.file.provider.secret, headers=headers)

    def anonymous(self) -> httpx.Client:
        return self._remember(httpx.Client(base_url=self.base_url, timeout=WITHIN_S, trust_env=False))

    def _client(self, client_id: str, secret: str, **more: Any) -> httpx.Client:
        auth = httpx.BasicAuth(client_id, secret)
        return self._remember(
            httpx.Client(**{"base_url": self.base_url, "auth": auth, "timeout": WITHIN_S, "trust_env": False, **more})
        )

    def _remember(self, client: httpx.Client) -> httpx.Client:
        self._clients.append(client)
        return client

    @property
    def aws(self) -> Aws:
        return Aws(endpoint_url=self.file.aws_endpoint_url, region=self.file.region)

    def boto(self, service: str) -> Any:
        """Returns a boto3 client of the embedded AWS."""
        return self.aws.client(service)

    def invoke(self, role: str, event: Any) -> Any:
        """Calls a function by its role (of stack.json: api, sweeper, executor, ...). DeployFailed if it raises."""
        return self.aws.invoke(self.file.functions[role], event)

    def close(self) -> None:
        for client in self._clients:
            client.close()


def patiently(send: Callable[[], httpx.Response]) -> httpx.Response:
    """Repeats a request as a client does that is asked to come again: many at once may take a busy machine longer than
    one waits.
    """
    return until(send, lambda answer: answer.status_code != 503)


def warm(client: httpx.Client, path: str, at_once: int) -> None:
    """Has as many functions started as will be asked at once. The emulator starts each in a process of its own: done
    meanwhile, that would take from the others the time that they have to answer. path: to read.
    """
    with ThreadPoolExecutor(at_once) as pool:
        reads = lambda _: until(lambda: client.get(path), lambda answer: answer.status_code < 500)  # noqa: E731
        list(pool.map(reads, range(at_once)))


def start(place: Settings) -> tuple[control.Running, LocalStack]:
    running = control.start(place, CLOCK, lambda _: None, owned=True)
    return running, LocalStack(running.stack.base_url, running.stack, place.folder)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """The real stack, on free ports, its state in a folder of its own. It ends with the session, however that ends."""
    folder = StateFolder(tmp_path_factory.mktemp("stack"))
    place = Settings(folder=folder, template=CHECKOUT / "template.yaml", port=0, aws_port="0")
    running, local = start(place)
    yield local
    local.close()
    control.release(running, place, CLOCK)


@pytest.fixture
def folder(tmp_path: Path, stack: LocalStack) -> Path:
    """A folder that looks like the checkout next to this running stack."""
    (tmp_path / ".local").symlink_to(stack.folder.root)
    (tmp_path / "examples").symlink_to(CHECKOUT / "examples")
    (tmp_path / "layers").symlink_to(CHECKOUT / "layers")
    return tmp_path


@dataclass
class Sample:
    """A copy of the sample project with its state folder, which tests start and stop."""

    project: Path
    place: Settings
    running: control.Running | None = None

    def start(self) -> LocalStack:
        self.reap()
        self.running, local = start(self.place)
        return local

    def stop(self) -> None:
        with suppress(NotRunning):
            control.stop(self.place, CLOCK)
        self.reap()

    def reap(self) -> None:
        """Takes leave of a background process that has ended, by whatever death."""
        if self.running is not None and self.running.process is not None:
            assert self.running.owner is not None
            with suppress(OSError):  # a test may have closed it
                os.close(self.running.owner)
            self.running.process.wait()
            self.running = None


@pytest.fixture
def sample(tmp_path: Path) -> Iterator[Sample]:
    project = tmp_path / "project"
    shutil.copytree(SAMPLE, project)
    place = Settings(folder=StateFolder(tmp_path / "state"), template=project / "template.yaml", port=0, aws_port="0")
    sample = Sample(project, place)
    yield sample
    sample.stop()


@pytest.fixture(scope="session")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """The sample, running, for tests that leave it alive. It was started by a user with AWS settings of his own."""
    folder = StateFolder(tmp_path_factory.mktemp("probe"))
    place = Settings(folder=folder, template=SAMPLE / "template.yaml", port=0, aws_port="0")
    with pytest.MonkeyPatch.context() as user:
        user.setenv("AWS_PROFILE", "production")
        user.setenv("AWS_ACCESS_KEY_ID", "AKIAUSER")
        user.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        user.setenv("MY_TOKEN", "secret")
        running, local = start(place)
    yield local
    local.close()
    control.release(running, place, CLOCK)
