"""Table and queues as the template has them: there is one schema, and it is there."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse

from sweephand.domain.schedule import Lane
from tests.support.queues import Queue

ROOT = Path(__file__).resolve().parents[2]
DEAD, ARCHIVE = "https://queue/dead", "https://queue/archive"
BUS = "sweephand-test"
URLS = {
    Lane.FAST: "https://queue/fast",
    Lane.SLOW: "https://queue/slow",
    Lane.OPERATIONS: "https://queue/operations",
}


@cache
def resources() -> dict[str, Any]:
    found: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text())["Resources"]
    return found


def table_request(name: str) -> dict[str, Any]:
    """Returns CreateTable's arguments for the template's table."""
    table = resources()["Table"]["Properties"]
    indexes = [
        {member: index[member] for member in ("IndexName", "KeySchema", "Projection")}
        for index in table["GlobalSecondaryIndexes"]
    ]
    return {
        "TableName": name,
        "BillingMode": table["BillingMode"],
        "AttributeDefinitions": table["AttributeDefinitions"],
        "KeySchema": table["KeySchema"],
        "GlobalSecondaryIndexes": indexes,
    }


def queues() -> dict[str, Queue]:
    """Returns the queues by URL."""
    dead = Queue(resources()["DeadLetterQueue"]["Properties"]["VisibilityTimeout"])
    found = {DEAD: dead, ARCHIVE: Queue(visibility_s=30)}
    for lane, name in ((Lane.FAST, "RunQueue"), (Lane.SLOW, "SlowQueue"), (Lane.OPERATIONS, "OperationsQueue")):
        properties = resources()[name]["Properties"]
        found[URLS[lane]] = Queue(properties["VisibilityTimeout"], properties["RedrivePolicy"]["maxReceiveCount"], dead)
    return found
