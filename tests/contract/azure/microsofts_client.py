"""Microsoft's own clients of Azure Scheduler, 7.0.0 and 2.0.0, each in a process of its own environment.

`make setup-azure-client` installs them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.contract.azure.api import HTTP

ROOT = Path(__file__).resolve().parents[3]
DRIVE = ROOT / "tests" / "contract" / "azure" / "client" / "drive.py"
VERSIONS = {"7.0.0": ".venv-azure", "2.0.0": ".venv-azure-2"}
SUBSCRIPTION = "sub-1"
IN_COLLECTION = ["group", "Nightly"]
OF_JOB = [*IN_COLLECTION, "Report"]


class Refused(Exception):
    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told)
        self.kind, self.status, self.message = told["error"], told["status"], told["message"]


@dataclass
class Client:
    """The client in its process. version: its own. group: the resource group that it works in."""

    version: str
    process: subprocess.Popen[str]
    group: str = IN_COLLECTION[0]

    def __call__(self, group: str, method: str, *arguments: Any, body: Any = None, **options: Any) -> Any:
        """Returns the result. Raises Refused with what the client raises."""
        asked = {"group": group, "method": method, "arguments": arguments, "options": options}
        told = self.send(asked if body is None else asked | {"body": body})
        if "error" in told:
            raise Refused(told)
        return told["result"]

    def send(self, line: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def poll(self, method: str) -> str:
        """Returns the name of a long-running operation, which the newer client begins."""
        return f"begin_{method}" if self.version == "7.0.0" else method

    def collection(self, **properties: Any) -> Any:
        body = ("JobCollectionDefinition", {"location": "West US", "properties": properties})
        return self("job_collections", "create_or_update", self.group, IN_COLLECTION[1], body=body)

    def job(self, name: str = "Report", **properties: Any) -> Any:
        body = ("JobDefinition", {"properties": {"action": HTTP, **properties}})
        return self("jobs", "create_or_update", self.group, IN_COLLECTION[1], name, body=body)


@contextmanager
def driven(version: str, base_url: str, token: str) -> Iterator[Client]:
    """Yields a client that talks to the base URL."""
    process = subprocess.Popen(
        [ROOT / VERSIONS[version] / "bin" / "python", DRIVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    settings = {"baseUrl": base_url, "token": token, "subscription": SUBSCRIPTION}
    process.stdin.write(json.dumps(settings) + "\n")
    try:
        yield Client(version, process)
    finally:
        process.stdin.close()
        process.wait(timeout=30)
        assert process.stdout is not None
        process.stdout.close()
