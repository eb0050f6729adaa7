"""Defects and peculiarities of MiniStack 1.5.33. A failing test says: repaired upstream, drop the workaround.

Each defect is seen on a stack that runs without our repairs, next to the proof that the repair works.
"""

from __future__ import annotations

import json

import httpx
import pytest

from sweephand.local.aws import deploy
from sweephand.local.aws import template as templates
from tests.local_stack.conftest import SAMPLE, LocalStack
from tests.local_stack.waiting import CLOCK, until

pytestmark = pytest.mark.emulator

REPAIRED = "repaired upstream: drop the workaround"
BARE = "bare"


@pytest.fixture(scope="module")
def bare(probe: LocalStack) -> deploy.Stack:
    """The sample once more on the same emulator, as it comes out of CloudFormation."""
    packed, objects = templates.pack(templates.load(SAMPLE / "template.yaml"), SAMPLE, deploy.BUCKET)
    for key, content in objects.items():
        probe.boto("s3").put_object(Bucket=deploy.BUCKET, Key=key, Body=content)
    probe.boto("s3").put_object(Bucket=deploy.BUCKET, Key="bare.json", Body=json.dumps(packed, default=str).encode())
    url = f"{probe.aws.endpoint_url}/{deploy.BUCKET}/bare.json"
    deploy._put_stack(probe.aws, CLOCK, BARE, deploy._request(BARE, url, {}, "bare"))
    yield deploy.read_stack(probe.aws, BARE)
    probe.boto("cloudformation").delete_stack(StackName=BARE)


@pytest.fixture(scope="module")
def repaired(probe: LocalStack) -> deploy.Stack:
    return deploy.read_stack(probe.aws, "sweephand")


def test_the_emulator_omits_the_routes_of_an_http_api(probe, bare, repaired):
    gateway = probe.boto("apigatewayv2")

    assert gateway.get_routes(ApiId=bare.physical["Api"])["Items"] == [], REPAIRED
    routes = {item["RouteKey"] for item in gateway.get_routes(ApiId=repaired.physical["Api"])["Items"]}
    assert routes == {"ANY /v1/{proxy+}", "POST /oauth/token"}


def test_a_repaired_api_is_not_repaired_again(probe, repaired):
    gateway = probe.boto("apigatewayv2")
    before = [item["RouteId"] for item in gateway.get_routes(ApiId=repaired.physical["Api"])["Items"]]

    deploy.repair_routes(probe.aws, repaired)

    assert [item["RouteId"] for item in gateway.get_routes(ApiId=repaired.physical["Api"])["Items"]] == before


def test_the_emulator_omits_the_time_to_live_of_a_table(probe, bare, repaired):
    dynamodb = probe.boto("dynamodb")

    def status(stack: deploy.Stack) -> str:
        described = dynamodb.describe_time_to_live(TableName=stack.physical["Table"])["TimeToLiveDescription"]
        return described["TimeToLiveStatus"]

    assert status(bare) == "DISABLED", REPAIRED
    assert status(repaired) == "ENABLED"


def test_a_generated_secret_contains_punctuation_despite_the_template(probe, bare, repaired):
    def secret(stack: deploy.Stack) -> str:
        value = probe.boto("secretsmanager").get_secret_value(SecretId=stack.physical["StackSecret"])["SecretString"]
        return json.loads(value)["secret"]

    assert not secret(bare).isalnum(), REPAIRED
    assert secret(repaired).isalnum()
    assert secret(repaired) == probe.file.provider.secret


def test_a_concurrency_set_by_a_parameter_stops_the_polling(probe, bare):
    # Only a poll shows it: the SDK reads the text as a number.
    queue, table = bare.physical["RunQueue"], bare.physical["Table"]

    def send(text: str) -> None:
        probe.boto("sqs").send_message(QueueUrl=queue, MessageBody=text)

    def got(text: str) -> bool:
        return "Item" in probe.boto("dynamodb").get_item(TableName=table, Key={"pk": {"S": f"got {text}"}})

    send("before")
    CLOCK.sleep(2.0)  # that nothing comes cannot be awaited
    assert not got("before"), REPAIRED
    deploy.repair_concurrency(probe.aws)
    send("after")
    until(lambda: got("after"))


def test_the_root_of_an_api_answers_only_below_a_long_path(probe, repaired):
    address = probe.file.aws_endpoint_url
    host = f"{repaired.physical['Api']}.execute-api.localhost"

    by_host = httpx.get(f"{address}/health", headers={"Host": host}, trust_env=False)

    assert "services" in by_host.text, f"{REPAIRED}: the front is not needed if every path reaches the API by its host"


def test_a_function_error_reveals_its_message(probe, repaired):
    # On AWS: 500 {"message": "Internal Server Error"}. Ours must not raise; the front leaves the answer as it is.
    answer = httpx.get(f"{probe.base_url}/v1/x", headers={"Authorization": "Basic /w=="}, trust_env=False)

    assert answer.status_code == 502, REPAIRED
    assert "errorMessage" in answer.text


def test_the_emulator_accepts_a_delay_over_15_minutes(probe):
    answer = probe.boto("sqs").send_message(QueueUrl=probe.file.slow_queue_url, MessageBody="x", DelaySeconds=901)

    assert answer["MessageId"], f"{REPAIRED}: limits can be left to the emulator"


def test_preflight_requests_never_reach_the_function(probe):
    # On AWS an API without CORS hands OPTIONS to its ANY route.
    answer = probe.client().options("/v1/echo")

    assert answer.status_code == 403, REPAIRED
