"""Stands in for every function. Answers like the API: tenants, credentials, a note a tenant; as the others: what
came.
"""

import base64
import json
import os

import boto3
import greeting

table = boto3.resource("dynamodb").Table(os.environ["TABLE_NAME"])
secrets = boto3.client("secretsmanager")


def handler(event, context):
    print("called")  # noqa: T201 - the emulator waits 50 ms for a first line
    if "requestContext" in event:
        status, body = api(event)
        return {"statusCode": status, "headers": {"content-type": "application/json"}, "body": json.dumps(body)}
    if "Records" in event:
        for record in event["Records"]:
            table.put_item(Item={"pk": f"got {record['body']}"})
        return {"batchItemFailures": []}
    table.put_item(Item={"pk": f"event {json.dumps(event, sort_keys=True)}"})
    return {"words": greeting.WORDS, "environment": dict(os.environ)}


def api(event):
    path, method = event["rawPath"], event["requestContext"]["http"]["method"]
    client, _, secret = (
        base64.b64decode(event["headers"].get("authorization", "").partition(" ")[2]).decode().partition(":")
    )
    if client == "provider.admin":
        kept = json.loads(secrets.get_secret_value(SecretId=os.environ["SECRET_ID"])["SecretString"])
        if kept != {"clientId": client, "secret": secret}:
            return 401, {"code": "UNAUTHENTICATED"}
        if path == "/v1/tenants":
            return 201, {}
        tenant = event["headers"]["sweephand-tenant"]
        made = {"clientId": f"{tenant}.1", "secret": os.urandom(8).hex()}
        table.put_item(Item={"pk": f"credential {made['clientId']}", "secret": made["secret"]})
        return 201, made
    known = table.get_item(Key={"pk": f"credential {client}"}).get("Item")
    if known is None or known["secret"] != secret:
        return 401, {"code": "UNAUTHENTICATED"}
    if path == "/v1/note" and method == "PUT":
        table.put_item(Item={"pk": f"note {client}", "text": event["body"]})
        return 200, {}
    if path == "/v1/note":
        return 200, {"text": table.get_item(Key={"pk": f"note {client}"}).get("Item", {}).get("text")}
    if path == "/v1/echo":
        return 200, event
    return 200, {"items": [], "nextCursor": None}
