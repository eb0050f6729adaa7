"""Drives Microsoft's own client, 7.0.0 or 2.0.0: reads a call per line of JSON, writes its result or error.

The first line has `baseUrl`, `token` and `subscription`. A call has `group`, `method`, `arguments`, and `body`: the
name of a model with its JSON. Runs in an environment that has only the client.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from azure.mgmt.scheduler import SchedulerManagementClient, models

try:
    from azure.core.pipeline.policies import SansIOHTTPPolicy
    from azure.mgmt.core import ARMPipelineClient  # noqa: F401 - only the newer client has it

    NEW = True
except ImportError:
    from msrest.authentication import BasicTokenAuthentication

    NEW = False


def client_of(settings: dict[str, str]) -> SchedulerManagementClient:
    token, where = settings["token"], (settings["subscription"], settings["baseUrl"])
    if not NEW:
        return SchedulerManagementClient(BasicTokenAuthentication({"access_token": token}), *where)

    class Bearer(SansIOHTTPPolicy):
        """A policy in the place of the usual one, which refuses plain http."""

        def on_request(self, request: Any) -> None:
            request.http_request.headers["Authorization"] = f"Bearer {token}"

    return SchedulerManagementClient(object(), *where, authentication_policy=Bearer())


def plain(value: Any) -> Any:
    """Returns the result as JSON: pagers as lists, pollers as what they end with, models by their attributes."""
    if hasattr(value, "result") and hasattr(value, "wait"):
        return plain(value.result())
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if hasattr(value, "__next__") or hasattr(value, "by_page"):
        return [plain(each) for each in value]
    return value


def call(client: SchedulerManagementClient, asked: dict[str, Any]) -> Any:
    method = getattr(getattr(client, asked["group"]), asked["method"])
    arguments = list(asked["arguments"])
    if "body" in asked:
        name, body = asked["body"]
        model = getattr(models, name).deserialize(body)
        arguments.append(model if NEW or asked["group"] == "job_collections" else model.properties)
    return plain(method(*arguments, **asked.get("options", {})))


def main() -> None:
    client = client_of(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        try:
            told: dict[str, Any] = {"result": call(client, json.loads(line))}
        except Exception as wrong:  # noqa: BLE001 - whatever the client shows its user
            response = getattr(wrong, "response", None)
            told = {
                "error": type(wrong).__name__,
                "message": getattr(wrong, "message", str(wrong)),
                "status": getattr(wrong, "status_code", None) or getattr(response, "status_code", None),
            }
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


main()
