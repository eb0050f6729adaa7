"""Guards of the key of the organisation: what it encrypts, if the stack is given one."""

from __future__ import annotations

import json
import re

import pytest

from tests.template.cloudformation import ROOT, of_type
from tests.template.test_functions import KEY

ARN = f"arn:aws:kms:eu-central-1:123456789012:key/{KEY}"
KEPT = {
    "AWS::DynamoDB::Table": {"SSESpecification": {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": KEY}},
    "AWS::Events::EventBus": {"KmsKeyIdentifier": KEY},
    "AWS::Lambda::Function": {"KmsKeyArn": ARN},
    "AWS::Logs::LogGroup": {"KmsKeyId": ARN},
    "AWS::S3::Bucket": {
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [
                {
                    "ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY},
                    "BucketKeyEnabled": True,
                }
            ]
        }
    },
    "AWS::SQS::Queue": {"KmsMasterKeyId": KEY},
    "AWS::SecretsManager::Secret": {"KmsKeyId": KEY},
}
"""Types of resources that can have a key -> the properties that name it."""
WITHOUT = {
    "AWS::ApiGatewayV2::Api": "keeps nothing",
    "AWS::ApiGatewayV2::Stage": "keeps nothing",
    "AWS::CloudWatch::Alarm": "takes no key",
    "AWS::CloudWatch::Dashboard": "takes no key",
    "AWS::Events::Rule": "has the key of its bus; these are on the bus of the account",
    "AWS::IAM::Role": "takes no key",
    "AWS::KMS::Key": "is a key",
    "AWS::Lambda::EventInvokeConfig": "keeps nothing",
    "AWS::Lambda::EventSourceMapping": "would encrypt only its filters, and has none",
    "AWS::Lambda::LayerVersion": "has published code, and takes no key",
    "AWS::Lambda::Permission": "keeps nothing",
    "AWS::Logs::MetricFilter": "keeps nothing",
    "AWS::S3::BucketPolicy": "keeps nothing",
    "AWS::SQS::QueuePolicy": "keeps nothing",
    "AWS::SSM::Parameter": "CloudFormation makes none with a key; its lists are parameters of the template, no secrets",
}
SERVICES = {
    "AWS::DynamoDB::Table": "dynamodb",
    "AWS::Lambda::Function": "lambda",
    "AWS::S3::Bucket": "s3",
    "AWS::SQS::Queue": "sqs",
    "AWS::SecretsManager::Secret": "secretsmanager",
}
"""Services that use the key for whoever calls them. Logs and events use it on their own behalf."""


def test_each_type_of_resource_has_the_key_or_a_reason_to_have_none(stack):
    assert {resource["Type"] for resource in stack["Resources"].values()} == KEPT.keys() | WITHOUT.keys()


@pytest.mark.parametrize("kind", KEPT)
def test_all_that_is_kept_has_the_key_of_the_organisation_if_it_names_one(stack, deployed, kind):
    without = of_type(stack, kind)
    for name, properties in of_type(deployed(KmsKeyId=KEY), kind).items():
        assert {member: properties[member] for member in KEPT[kind]} == KEPT[kind], name
        assert "SqsManagedSseEnabled" not in properties, "SQS refuses both"
        assert KEPT[kind].keys() & without[name].keys() <= {"BucketEncryption"}, name


def test_events_that_the_key_cannot_encrypt_leave_evidence(deployed):
    """TickDeadLetterAlarm reports them."""
    resources = deployed(KmsKeyId=KEY)["Resources"]
    (allowed,) = (
        statement
        for statement in resources["TickDeadLetterPolicy"]["Properties"]["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    )

    letters = {"Fn::GetAtt": ["TickDeadLetterQueue", "Arn"]}
    assert resources["EventBus"]["Properties"]["DeadLetterConfig"] == {"Arn": letters}
    assert {"Fn::GetAtt": ["EventBus", "Arn"]} in allowed["Condition"]["ArnEquals"]["aws:SourceArn"]


def test_the_key_policy_of_the_page_admits_every_service_that_has_the_key():
    page = (ROOT / "docs" / "operate" / "enterprise.md").read_text()
    (text,) = re.findall(r"```json\n(\[\{.*?)```", page, re.DOTALL)
    policy = {statement["Sid"]: statement for statement in json.loads(text)}

    through = policy["ForTheAccountThroughTheServices"]["Condition"]["StringEquals"]["kms:ViaService"]
    itself = {each["Principal"].get("Service") for each in policy.values()} - {None}
    assert {each.partition(".")[0] for each in through} == set(SERVICES.values())
    assert {each.partition(".")[0] for each in itself} == {"logs", "events"}
    assert KEPT.keys() - SERVICES.keys() == {"AWS::Logs::LogGroup", "AWS::Events::EventBus"}
