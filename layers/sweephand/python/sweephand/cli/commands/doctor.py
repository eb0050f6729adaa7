"""The commands `whoami` and `doctor`, which change nothing."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, NamedTuple

import click

from sweephand import __version__
from sweephand.base.errors import SweephandError
from sweephand.base.lazy import lazy
from sweephand.base.sources import SystemClock
from sweephand.cli.commands.call import Call, command, connect
from sweephand.cli.commands.stacks import NoCredential, Stack
from sweephand.cli.commands.statuses import DONE, NOT_ASKED
from sweephand.sdk.errors import ApiError, ConfigError, TransportError
from sweephand.sdk.transport import config, skew

with lazy():
    from sweephand.sdk.sync import http

FAR_OFF_S = 60
"""How far this machine's clock may be from the service's before it is a failure. A warning begins at skew.OFF_S."""
TIMEOUT_S = 10.0
OK, WARN, FAIL = "ok", "warn", "fail"


class Finding(NamedTuple):
    """The result of a check. then: the next step, unless the result is ok."""

    check: str
    level: str
    text: str
    then: str | None = None


def made(name: str) -> click.Command:
    """Returns the command `whoami` or `doctor`."""
    if name == "whoami":
        return command(name, _whoami, help="Show the credential, where it comes from, its tenant and its scopes.")
    about = "Check the address, TLS, the credential, its scopes, the clock and the versions. It changes nothing."
    return command(name, _doctor, help=about)


def identity(client: Any, stack: Stack) -> dict[str, Any]:
    """Returns the identity of the credential at the service. Raises ConfigError for one that the service refuses."""
    try:
        answer = client.call("POST", "/oauth/token", query={"grant_type": "client_credentials"})
    except ApiError as refused:
        if refused.status != HTTPStatus.UNAUTHORIZED:
            raise
        named = f"{stack.access.client_id} from {stack.source}"
        raise ConfigError(f"{named} is refused: the id or the secret is wrong, or it was deleted") from refused
    tenant, _, _ = stack.access.client_id.partition(".")
    try:
        scopes = json.loads(answer.content)["scope"].split()
    except (ValueError, LookupError, TypeError) as wrong:
        raise ConfigError(f"{stack.access.url} does not answer as a stack does: use its output ApiUrl") from wrong
    return {
        "url": stack.access.url,
        "clientId": stack.access.client_id,
        "source": stack.source,
        "tenant": tenant,
        "scopes": scopes,
    }


def _whoami(call: Call) -> int:
    stack = call.stack()
    with call.client() as client:
        caller = identity(client, stack)
    if call.as_json:
        call.out.json(caller)
    else:
        call.out.lines(f"{name}\t{' '.join(each) if isinstance(each, list) else each}" for name, each in caller.items())
    return DONE


def _doctor(call: Call) -> int:
    findings = []
    for each in _findings(call):
        findings.append(each)
        if not call.as_json:
            then = f"  -> {each.then}" if each.then else ""
            call.out.line(f"{each.level:4}  {each.check:10}  {each.text}{then}")
    if call.as_json:
        call.out.json([each._asdict() for each in findings])
    return NOT_ASKED if any(each.level == FAIL for each in findings) else DONE


def _findings(call: Call) -> Iterator[Finding]:
    """Yields the findings as they are made. Skips the checks that depend on one that failed."""
    python = platform.python_version()
    yield Finding("program", OK, f"sweephand {__version__}, Python {python} on {sys.platform}")
    try:
        stack = call.stack()
    except NoCredential as error:
        yield Finding("credential", FAIL, error.reason, error.then)
        return
    except ConfigError as error:
        yield Finding("address", FAIL, str(error), "set SWEEPHAND_URL, or run `sweephand login`")
        return
    url = stack.access.url
    yield Finding("address", OK, url)
    transport = http.HttpTransport()
    try:
        answer = transport.send("GET", f"{url}/v1/health", {"Accept": "application/json"}, None, TIMEOUT_S)
    except (TransportError, ConfigError) as error:
        yield Finding("connection", FAIL, str(error), "compare the address with the stack's output ApiUrl")
        return
    finally:
        transport.close()
    yield _connection(url)
    try:
        version = json.loads(answer.content)["version"]
    except (ValueError, LookupError, TypeError):
        reason = f"{url}/v1/health answered {answer.status}, but not as Sweephand does"
        yield Finding("service", FAIL, reason, "use the stack's output ApiUrl")
        return
    yield _versions(version)
    yield _clock(answer.headers.get("date"))
    yield from _credential(call, stack)


def _connection(url: str) -> Finding:
    if url.startswith("https://"):
        return Finding("connection", OK, "TLS, and the certificate is valid")
    try:
        config.check_secure(url, {})
    except ConfigError:
        return Finding("connection", WARN, "without TLS: others can read the secret", "use an address with https://")
    return Finding("connection", OK, "without TLS, to this machine")


def _versions(theirs: str) -> Finding:
    text = f"version {theirs}"
    if theirs.split(".")[:2] == __version__.split(".")[:2]:
        return Finding("service", OK, text)
    return Finding("service", WARN, f"{text}, but this program is {__version__}", "install the version of the service")


def _clock(date: str | None) -> Finding:
    """Compares this machine's clock with the answer's Date header, which is in whole seconds."""
    off_s = skew.ahead_s({"date": date or ""}, SystemClock().now())
    if off_s is None:
        return Finding("clock", WARN, "the answer has no valid Date to compare with")
    if abs(off_s) <= skew.OFF_S:
        return Finding("clock", OK, "as the service's")
    text = skew.in_words(off_s)
    return Finding("clock", WARN if abs(off_s) <= FAR_OFF_S else FAIL, text, "set the clock, such as by NTP")


def _credential(call: Call, stack: Stack) -> Iterator[Finding]:
    try:
        with connect(stack.access, None if call.local else call.tenant) as client:
            caller = identity(client, stack)
    except ConfigError as error:
        yield Finding("credential", FAIL, str(error), "ask for a new one, then `sweephand login`")
        return
    except SweephandError as error:
        yield Finding("credential", FAIL, str(error))
        return
    yield Finding("credential", OK, f"{stack.access.client_id} from {stack.source}, tenant {caller['tenant']}")
    scopes = " ".join(caller["scopes"])
    if "jobs:read" in caller["scopes"]:
        yield Finding("scopes", OK, scopes)
    else:
        then = "ask for a credential with jobs:read"
        yield Finding("scopes", WARN, f"{scopes or 'none'}: without jobs:read nothing can be listed", then)
