"""The texts of the SDK's methods in the words of commands: imperatives, and options instead of parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sweephand.sdk.model import snake

IMPERATIVES: Mapping[str, str] = {
    "Activates": "Activate",
    "Adds": "Add",
    "Archives": "Archive",
    "Cancels": "Cancel",
    "Changes": "Change",
    "Claims": "Claim",
    "Computes": "Compute",
    "Counts": "Count",
    "Creates": "Create",
    "Deactivates": "Deactivate",
    "Delays": "Delay",
    "Deletes": "Delete",
    "Disables": "Disable",
    "Enables": "Enable",
    "Ends": "End",
    "Explains": "Explain",
    "Exports": "Export",
    "Extends": "Extend",
    "Gives": "Give",
    "Identifies": "Identify",
    "Lists": "List",
    "Maps": "Map",
    "Names": "Name",
    "Pauses": "Pause",
    "Redirects": "Redirect",
    "Rejects": "Reject",
    "Releases": "Release",
    "Reopens": "Reopen",
    "Replaces": "Replace",
    "Replans": "Replan",
    "Reports": "Report",
    "Resumes": "Resume",
    "Returns": "Show",
    "Runs": "Run",
    "Sends": "Send",
    "Shows": "Show",
    "Sorts": "Sort",
    "Starts": "Start",
    "Subscribes": "Subscribe",
    "Takes": "Take",
    "Writes": "Write",
}
"""The first words of the API's descriptions, with the words that commands use instead."""
OF_FLAGS: Mapping[str, str] = {
    "Only counts; changes nothing.": "Count only, and change nothing.",
    "Only shows what would change.": "Show what would change, and change nothing.",
}
_FIRST = re.compile(rf"^({'|'.join(IMPERATIVES)})\b")
_FURTHER = re.compile(rf"(, and |, or |: )({'|'.join(each.lower() for each in IMPERATIVES)})\b")


def imperative(text: str) -> str:
    """Returns a description whose first sentence has imperatives: "Delete a job, and end its runs." """
    text = OF_FLAGS.get(text, text)
    if not _FIRST.match(text):
        return text
    sentence, stop, rest = text.partition(". ")
    sentence = _FIRST.sub(lambda match: IMPERATIVES[match[1]], sentence)
    sentence = _FURTHER.sub(lambda match: match[1] + IMPERATIVES[match[2].capitalize()].lower(), sentence)
    return sentence + stop + rest


def of_command(text: str, options: Mapping[str, str]) -> str:
    """Returns a method's text for its command: names options instead of parameters, and leaves out API details.

    options: the command's options, by the names of their parameters in snake case.
    """
    text = " ".join(text.split()).replace(" (merge patch, RFC 7396); null removes a member", "; --clear removes one")
    text = re.sub(r" (`Idempotency-Key`|The ETag) [^.]*\.", "", text).replace("the request", "the command")
    text = re.sub(r" \(412\)| Not with `cursor`\.| The body may contain a payload and headers\.", "", text)
    text = re.sub(r"`(\w+)=(\w+)`", r"`\1` \2", text)

    def option(match: re.Match[str]) -> str:
        return options.get(snake(match[1]), match[0])

    return imperative(re.sub(r"`(\w+)`", option, text))
