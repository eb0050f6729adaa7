"""Texts that people read later, on a screen or in a terminal: none of them commands it, and every name can be seen."""

from __future__ import annotations

import pytest

from tests.contract.native.api import JOB
from tests.contract.native.everything import failed

COMMANDS = {
    "ESC": "\x1b[31m",
    "BEL": "\x07",
    "NUL": "\x00",
    "C1": "\x9b",
    "right to left": "\u202e",
    "isolate": "\u2066",
    "Arabic mark": "\u061c",
    "left-to-right mark": "\u200e",
    "tag": "\U000e0041",
    "byte order mark": "\ufeff",
}
INVISIBLE = {
    "zero width space": "\u200b",
    "word joiner": "\u2060",
    "soft hyphen": "\u00ad",
    "Hangul filler": "\u3164",
    "Braille blank": "\u2800",
    "two of them": "\u200b\u2060",
    "variation": "\ufe0f",
    "no-break space": "\u00a0\u200d",
}
commanding = pytest.mark.parametrize("strange", COMMANDS.values(), ids=COMMANDS)


def _refused(reply, field):
    assert reply.status == 422, reply.text
    assert reply.fields == [field]
    assert "U+" in reply.json["errors"][0]["reason"]
    assert "position" in reply.json["errors"][0]


@commanding
def test_no_text_written_by_a_caller_can_control_a_terminal(shared, strange):
    made = shared.create()
    job, text = f"/v1/jobs/{made['id']}", f"a{strange}b"
    group, run = failed(shared, "acme", made["id"])

    _refused(shared("POST", "/v1/jobs", {**JOB, "description": text}), "description")
    _refused(shared("POST", "/v1/jobs", {**JOB, "name": text}), "name")
    _refused(shared("POST", "/v1/jobs", {**JOB, "tags": [text]}), "tags[0]")
    _refused(shared("POST", "/v1/jobs", {**JOB, "resourceId": text}), "resourceId")
    _refused(shared("POST", f"{job}/schedules", {"every": "PT1H", "name": text}), "name")
    _refused(shared("PATCH", job, {"description": text}), "description")
    _refused(shared("POST", f"{job}/pause", {"note": text}), "note")
    _refused(shared("POST", f"/v1/errors/{group}/notes", {"text": text}), "text")
    _refused(shared("POST", f"/v1/errors/{group}/archive", {"reason": text}), "reason")
    _refused(shared("POST", "/v1/calendars", {"name": "c", "description": text}), "description")
    _refused(shared("POST", "/v1/flow-keys", {"name": "c", "description": text}), "description")
    _refused(shared("POST", "/v1/tenants", {"tenant": "t", "description": text}, caller="provider"), "description")
    _refused(shared("PUT", f"/v1/runs/{run}/result", {"success": True, "message": text}), "message")


def test_multi_line_texts_keep_line_breaks_and_tabs(shared):
    made = shared.create(description="one\n\ttwo\r\nthree \u00fc\u4e2d \U0001f600")

    assert shared.get(f"/v1/jobs/{made['id']}").json["description"] == "one\n\ttwo\r\nthree \u00fc\u4e2d \U0001f600"


@pytest.mark.parametrize("name", INVISIBLE.values(), ids=INVISIBLE)
def test_an_invisible_name_is_refused(shared, name):
    for body, field in (({"name": name}, "name"), ({"tags": [name]}, "tags[0]"), ({"resourceId": name}, "resourceId")):
        reply = shared("POST", "/v1/jobs", {**JOB, **body})
        assert (reply.status, reply.fields) == (422, [field]), reply.text


def test_names_in_every_script_are_accepted(shared):
    for name in (
        "Bericht",
        "\u62a5\u544a",
        "\u062a\u0642\u0631\u064a\u0631",
        "\u0939\u093f\u0928\u094d\u0926\u0940",
        "\U0001f468\u200d\U0001f4bb",
    ):
        assert shared.create(name=name)["name"] == name


@pytest.mark.parametrize(
    "host",
    [
        "exa\u200bmple.org",
        "exam\u00adple.org",
        "example\u2060.org",
        "xn--a.example.org",
        "xn--99999999.org",
        "a.xn--zzzzzz\u00e4.org",
    ],
)
def test_a_host_that_imitates_another_is_refused(shared, host):
    reply = shared("POST", "/v1/jobs", {"action": {"type": "http", "url": f"https://{host}/"}})

    assert (reply.status, reply.fields) == (422, ["action.url"]), reply.text
    assert "has no valid host" in reply.json["errors"][0]["reason"]


@pytest.mark.parametrize("host", ["b\u00fccher.example", "xn--bcher-kva.example", "\u4f8b\u3048.jp", "example.org."])
def test_a_host_in_one_script_is_accepted(shared, host):
    assert shared("POST", "/v1/jobs", {"action": {"type": "http", "url": f"https://{host}/"}}).status == 201
