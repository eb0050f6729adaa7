"""Table and queues as the template has them: there is one schema, and it is there."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).resolve().parents[2]


@cache
def resources() -> dict[str, Any]:
    declared: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text())["Resources"]
    return declared


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
