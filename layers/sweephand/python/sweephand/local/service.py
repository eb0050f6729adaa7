"""The process that runs a stack: starts the emulator, deploys, creates tenants, sweeps and audits, then waits.

It runs in the background with a lock on the state folder. It sends messages through a pipe to the process that started
it, one JSON object per line: {"say": text}, {"failed": text, "status": n} or {"ready": true}.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sweephand.local import stack_file
from sweephand.local.api import Api, Refused, Unreachable
from sweephand.local.aws import template as templates
from sweephand.local.aws.deploy import put_secret
from sweephand.local.aws.emulator import Emulator
from sweephand.local.aws.launcher import LOOPBACK, bind
from sweephand.local.failures import DeployFailed, EmulatorFailed, LocalFailure
from sweephand.local.folder import Lock, read_json, write_private
from sweephand.local.front import Front, Upstream
from sweephand.local.settings import ALREADY_RUNNING, Settings, parameters
from sweephand.local.stack_file import PROVIDER_CLIENT, Credential

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sweephand.base.sources import Chance, Clock
    from sweephand.local.aws.deploy import Aws, Stack
    from sweephand.local.folder import StateFolder

WATCH_EVERY_S = 1.0
SWEEP_EVENT = {"worker": 0, "workers": 1}
AUDIT_EVENT = {"all": True}
TENANTS = ("acme", "globex")
TENANT_SCOPES = ("jobs:read", "jobs:write", "messages:write", "runs:write", "tasks:write", "errors:edit", "admin")
CREDENTIAL_NAME = "local stack"


class Service:
    """One stack from its start to its stop."""

    def __init__(
        self, settings: Settings, clock: Clock, chance: Chance, lock: Lock, say: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._lock = lock
        self._folder = settings.folder
        self._clock = clock
        self._chance = chance
        self._say = say
        self._front: Front | None = None
        self._emulator: Emulator | None = None

    def start(self) -> None:
        """Returns when everything answers and stack.json is written. Raises LocalFailure."""
        source = templates.load(self._settings.template)
        unknown = self._settings.chosen.keys() - source.get("Parameters", {}).keys()
        if unknown:
            raise LocalFailure(f"SWEEPHAND_PARAMETERS: the template has no parameter {', '.join(sorted(unknown))}.")
        shape = templates.data_shape(source)
        self._folder.check(shape)
        self._front = Front(bind(self._settings.port, name="SWEEPHAND_PORT"))
        base_url = f"http://{LOOPBACK}:{self._front.port}"
        self._emulator = Emulator(
            self._folder,
            self._clock,
            port=self._settings.aws_port,
            inherited=(self._lock.descriptor,),
            also_on=self._settings.aws_also_on,
        )
        self._folder.stamp(shape)
        self._say("Starting the emulator ...")
        self._emulator.start()
        self._say("Deploying the template ...")
        chosen = parameters(base_url, self._settings.chosen)
        stack = self._emulator.deploy(self._settings.template, chosen)
        aws = self._emulator.credentials()
        known = stored_credentials(self._folder, self._chance)
        put_secret(aws, stack.outputs["StackSecretArn"], known.provider.client_id, known.provider.secret)
        upstream = urlsplit(self._emulator.base_url(stack.physical["Api"]))
        self._front.serve(Upstream(LOOPBACK, upstream.port or 80, upstream.path))
        try:
            known = ensure_tenants(self._folder, base_url, known)
        except (Refused, Unreachable) as error:
            raise DeployFailed(f"The API of the stack refused its first requests: {error}") from error
        self._recover(aws, stack)
        described = stack_file.describe(base_url, aws, stack, provider=known.provider, tenants=known.tenants)
        stack_file.write(self._folder, described)

    def _recover(self, aws: Aws, stack: Stack) -> None:
        """Runs one sweep and the whole audit.

        The first tick comes after a minute, and whatever was due while the stack was down must not wait for it. A
        failure is reported and leaves the stack up, so that the user can inspect it.
        """
        for role, event in (("sweeper", SWEEP_EVENT), ("auditor", AUDIT_EVENT)):
            try:
                aws.invoke(stack.outputs[stack_file.FUNCTION_OUTPUTS[role]], event)
            except DeployFailed as failure:
                self._say(f"Warning: {failure}")

    def running(self) -> bool:
        return self._emulator is not None and self._emulator.running()

    def stop(self) -> None:
        """Stops everything that was started, even after an incomplete start. The state is saved."""
        self._folder.stack_file.unlink(missing_ok=True)
        if self._front is not None:
            self._front.close()
        if self._emulator is not None:
            self._emulator.stop()


class Report:
    """Our end of the pipe to the process that started us, which may end before we do."""

    def __init__(self, descriptor: int) -> None:
        self._pipe = os.fdopen(descriptor, "w", encoding="utf-8")

    def send(self, message: Mapping[str, Any]) -> None:
        with suppress(BrokenPipeError, ValueError):  # ValueError: already closed
            self._pipe.write(json.dumps(message) + "\n")
            self._pipe.flush()

    def close(self) -> None:
        with suppress(BrokenPipeError):
            self._pipe.close()


def serve(settings: Settings, clock: Clock, chance: Chance, *, report_to: int, owner: int | None) -> int:
    """Runs the background process. Returns its exit status.

    report_to: descriptor of the pipe. owner: descriptor of a pipe that closes when our owner ends, or None.
    """
    report = Report(report_to)
    lock = Lock(settings.folder)
    if not lock.take(clock):
        report.send({"failed": "Another process runs this stack.", "status": ALREADY_RUNNING})
        return ALREADY_RUNNING
    settings.folder.stack_file.unlink(missing_ok=True)  # a killed stack leaves it
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: over.set())
    if owner is not None:
        threading.Thread(target=_watch_owner, args=(owner, over), name="owner", daemon=True).start()
    service = Service(settings, clock, chance, lock, lambda text: report.send({"say": text}))
    try:
        service.start()
        report.send({"ready": True})
        report.close()
        while not over.wait(WATCH_EVERY_S):
            if not service.running():
                raise EmulatorFailed(f"The emulator stopped unexpectedly. See {settings.folder.emulator_log}")
    except LocalFailure as failure:
        sys.stderr.write(f"{failure}\n")
        report.send({"failed": str(failure), "status": failure.status})
        return failure.status
    finally:
        service.stop()
        lock.close()
    return 0


def _watch_owner(descriptor: int, over: threading.Event) -> None:
    while os.read(descriptor, 1):
        pass
    over.set()


# The credentials of the stack: the provider's, and those of two tenants, created through the public API. They are kept
# in the state folder, so that they stay the same after restarts.


@dataclass(frozen=True)
class Credentials:
    """The stored credentials. tenants: those that exist already."""

    provider: Credential
    tenants: Mapping[str, Credential]


def stored_credentials(folder: StateFolder, chance: Chance) -> Credentials:
    """Returns the stored credentials. Creates the provider's secret in a new folder, fit for a curl command."""
    stored = read_json(folder.secrets_file) or {}
    if "provider" not in stored:
        stored = {"provider": chance.token(32).hex(), "tenants": {}}
        write_private(folder.secrets_file, stored)
    return Credentials(
        provider=Credential(PROVIDER_CLIENT, stored["provider"]),
        tenants={tenant: Credential(*pair) for tenant, pair in stored["tenants"].items()},
    )


def ensure_tenants(folder: StateFolder, base_url: str, known: Credentials) -> Credentials:
    """Returns working credentials of both tenants, and creates missing ones. Raises Refused, Unreachable."""
    made = dict(known.tenants)
    for tenant in TENANTS:
        if tenant not in made or not _works(base_url, made[tenant]):
            made[tenant] = _make(base_url, known.provider, tenant)
            pairs = {name: [each.client_id, each.secret] for name, each in made.items()}
            write_private(folder.secrets_file, {"provider": known.provider.secret, "tenants": pairs})
    return Credentials(known.provider, {tenant: made[tenant] for tenant in TENANTS})


def _works(base_url: str, credential: Credential) -> bool:
    with closing(Api(base_url, credential)) as api:
        try:
            api.call("GET", "/v1/jobs", query={"limit": 1})
        except Refused as refused:
            if refused.status not in {401, 403}:
                raise
            return False
    return True


def _make(base_url: str, provider: Credential, tenant: str) -> Credential:
    with closing(Api(base_url, provider)) as api:
        try:
            api.call("POST", "/v1/tenants", {"tenant": tenant})
        except Refused as refused:
            if refused.status != 409:  # 409: the tenant exists
                raise
    with closing(Api(base_url, provider, for_tenant=tenant)) as acting:
        made = acting.call("POST", "/v1/credentials", {"name": CREDENTIAL_NAME, "scopes": list(TENANT_SCOPES)})
    return Credential(made["clientId"], made["secret"])
