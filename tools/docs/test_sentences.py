"""The names of tests as sentences for people."""

from __future__ import annotations

import re

NAMES = {
    **{each.lower(): each for each in ("API", "AWS", "DynamoDB", "ECS", "SAP", "SQS")},
    **{each.lower(): each for each in ("Azure", "Fargate", "Lambda")},
}


def sentence(test: str) -> str:
    """Returns the name of a test with spaces, apostrophes and the spelling of names."""
    text = test.removeprefix("test_").replace("_", " ")
    text = re.sub(r"(\w) s\b", r"\1's", text)
    text = re.sub(r"(\d) (\d{3})\b", r"\1,\2", text)
    text = re.sub(r"\w+", lambda found: NAMES.get(found[0], found[0]), text)
    return text.replace("Azure scheduler", "Azure Scheduler")
