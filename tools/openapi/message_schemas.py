"""Schemas of messages."""

from __future__ import annotations

from sweephand.base.json_schema import Schema, answer, items, ref, request, whole
from sweephand.domain.schema_words import FLAG, STATUS_CODE
from sweephand.server.facades.native.members import message_members
from sweephand.server.flow.messages.messages import MOST
from tools.openapi.pages_and_patches import page
from tools.openapi.run_schemas import OF_RUN

SCHEMAS: dict[str, Schema] = {
    "MessageDraft": request(message_members.REQUEST, ("action",)),
    "MessageRequest": request(
        {
            **message_members.REQUEST,
            "messages": items(
                ref("MessageDraft"),
                minItems=1,
                maxItems=MOST,
                description="Several messages in place of one; excludes all other members.",
            ),
        },
        oneOf=[{"required": ["action"]}, {"required": ["messages"]}],
    ),
    "Message": answer(
        {
            **OF_RUN,
            **message_members.MESSAGE.answer(),
            "deduplicated": {
                **FLAG,
                "description": "In the answer that sends it: True if an earlier request had the same `dedupeKey`.",
            },
        },
        ("deduplicated",),
    ),
    "ListedMessage": answer({**OF_RUN, **message_members.MESSAGE.answer(), "action": ref("ListedAction")}),
    "MessagePage": page("ListedMessage"),
    "MessageResults": answer({"items": items(ref("MessageResult"), description="One for each message, in order.")}),
    "MessageResult": answer(
        {
            "index": whole(description="The place of the message in the request, from 0."),
            "status": {
                **STATUS_CODE,
                "description": "The status that the message alone would have been answered with.",
            },
            "message": {**ref("Message"), "description": "The message; absent if it was refused."},
            "problem": {
                "oneOf": [ref(f"Problem{status}") for status in (403, 409, 422, 503)],
                "description": "Why it was refused; absent if it was accepted.",
            },
        },
        ("message", "problem"),
    ),
}
