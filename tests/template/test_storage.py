"""Guards of what is kept: table, key, secret, files."""

from __future__ import annotations

import pytest

from sweephand.server.flow.bulk.export_runs import FILE_KEPT
from tests.template.cloudformation import of_type

KEPT = ("Table", "Key", "IdentityKey", "StackSecret", "FilesBucket", "FilesBucketPolicy")


@pytest.mark.parametrize("name", KEPT)
def test_kept_resources_survive_the_stack_and_their_own_replacement(stack, name):
    resource = stack["Resources"][name]

    assert resource["DeletionPolicy"] == ("Retain" if name == "Table" else "RetainExceptOnCreate")
    assert resource["UpdateReplacePolicy"] == "Retain"


@pytest.mark.parametrize("name", KEPT)
def test_kept_resources_have_no_physical_name_that_would_block_the_next_deploy(stack, name):
    properties = stack["Resources"][name]["Properties"]

    assert properties.keys().isdisjoint({"TableName", "Name", "AliasName", "KeyId", "BucketName"})


def test_a_protected_table_is_never_asked_to_be_deleted_so_that_rollbacks_finish(stack):
    """RetainExceptOnCreate would have a failed first deploy delete the table, and the protection would refuse."""
    table = stack["Resources"]["Table"]

    assert table["Properties"]["DeletionProtectionEnabled"] is True
    assert table["DeletionPolicy"] == "Retain"


def test_named_resources_are_deleted_with_the_stack_and_never_recreated_after_it(stack):
    """Else the next deploy would meet it: a late log line of a function recreates its group, if it may."""
    named = {
        name: resource
        for name, resource in stack["Resources"].items()
        if resource["Type"] in {"AWS::Logs::LogGroup", "AWS::Events::EventBus"}
    }
    rights = [
        action
        for role in of_type(stack, "AWS::IAM::Role").values()
        for policy in role["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    ]

    assert named.keys() - {"AccessLogs", "EventBus"} == {
        function["LoggingConfig"]["LogGroup"]["Ref"] for function in of_type(stack, "AWS::Lambda::Function").values()
    }
    assert all("DeletionPolicy" not in resource for resource in named.values())
    assert all("sweephand" in str(resource["Properties"]) for resource in named.values())
    assert not [right for right in rights if right.startswith("logs:CreateLogGroup")]


NAMES = {
    *("TableName", "QueueName", "FunctionName", "RoleName", "AliasName", "BucketName", "AlarmName", "DashboardName"),
    *("TopicName", "SecretName", "RuleName"),
}


def test_cloudformation_names_everything_else_so_that_two_stacks_fit_into_one_account(stack):
    refers = {"AWS::Lambda::Permission", "AWS::Lambda::EventInvokeConfig", "AWS::Lambda::EventSourceMapping"}
    for name, resource in stack["Resources"].items():
        if resource["Type"] not in refers:
            assert NAMES.isdisjoint(resource.get("Properties", {})), name


def test_the_table_cannot_be_deleted_by_one_call(stack):
    assert stack["Resources"]["Table"]["Properties"]["DeletionProtectionEnabled"] is True


def test_the_table_can_be_restored_to_any_second_of_the_last_weeks(stack):
    recovery = stack["Resources"]["Table"]["Properties"]["PointInTimeRecoverySpecification"]

    assert recovery == {"PointInTimeRecoveryEnabled": True}


def test_the_table_is_encrypted_with_dynamodbs_own_free_key(stack):
    """With SSEEnabled it would be a KMS key, whose requests are billed; without the property it is AWS's own."""
    assert "SSESpecification" not in stack["Resources"]["Table"]["Properties"]


@pytest.mark.parametrize("name", [name for name in KEPT if name != "Table"])
def test_a_failed_create_leaves_nothing_that_costs_money(stack, name):
    assert stack["Resources"][name]["DeletionPolicy"] == "RetainExceptOnCreate"


def test_the_table_deletes_expired_rows(stack):
    expiry = stack["Resources"]["Table"]["Properties"]["TimeToLiveSpecification"]

    assert expiry == {"AttributeName": "expires_at", "Enabled": True}


def test_the_table_is_billed_by_request(stack):
    table = stack["Resources"]["Table"]["Properties"]

    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert "ProvisionedThroughput" not in table


def test_the_table_is_keyed_by_partition_and_sort_key(stack):
    table = stack["Resources"]["Table"]["Properties"]

    assert _key(table) == ("pk", "sk")
    assert _types(table)["pk"] == _types(table)["sk"] == "S"


def test_the_next_run_index_sorts_each_shard_by_instant_and_holds_only_what_the_sweeper_needs(stack):
    table, index = _index(stack, "next-run")

    assert _key(index) == ("shard", "next_run_at")
    assert (_types(table)["shard"], _types(table)["next_run_at"]) == ("N", "N")
    assert index["Projection"] == {
        "ProjectionType": "INCLUDE",
        "NonKeyAttributes": ["sweep", "generation", "planned_total"],
    }


def test_the_catalogue_index_lists_schedules_by_their_keys_alone(stack):
    table, index = _index(stack, "catalogue")

    assert _key(index) == ("shard", "schedule_id")
    assert _types(table)["schedule_id"] == "S"
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_the_attention_index_lists_the_runs_of_a_day_by_their_keys_alone(stack):
    table, index = _index(stack, "attention")

    assert _key(index) == ("attention_day", "attention_at")
    assert (_types(table)["attention_day"], _types(table)["attention_at"]) == ("S", "N")
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_there_is_one_table_with_three_indexes(stack):
    tables = of_type(stack, "AWS::DynamoDB::Table")

    assert list(tables) == ["Table"]
    assert [index["IndexName"] for index in tables["Table"]["GlobalSecondaryIndexes"]] == [
        "next-run",
        "catalogue",
        "attention",
    ]


def test_the_table_is_not_warmed_by_default(stack):
    table = stack["Resources"]["Table"]["Properties"]

    assert "WarmThroughput" not in table
    assert all("WarmThroughput" not in index for index in table["GlobalSecondaryIndexes"])


def test_a_warmed_table_warms_the_indexes_that_runs_write(deployed):
    table = deployed(WarmUnits="20000")["Resources"]["Table"]["Properties"]

    warm = {"ReadUnitsPerSecond": "20000", "WriteUnitsPerSecond": "20000"}
    assert table["WarmThroughput"] == warm
    assert {i["IndexName"]: i.get("WarmThroughput") for i in table["GlobalSecondaryIndexes"]} == {
        "next-run": warm,
        "catalogue": None,
        "attention": warm,
    }


def test_the_key_is_symmetric_and_rotates(stack):
    key = stack["Resources"]["Key"]["Properties"]

    assert key["EnableKeyRotation"] is True
    assert key.get("KeySpec", "SYMMETRIC_DEFAULT") == "SYMMETRIC_DEFAULT"
    assert key.get("KeyUsage", "ENCRYPT_DECRYPT") == "ENCRYPT_DECRYPT"


def test_the_first_credential_is_created_in_the_account_and_is_in_no_file(stack):
    secret = stack["Resources"]["StackSecret"]["Properties"]

    assert "SecretString" not in secret
    assert secret["GenerateSecretString"] == {
        "SecretStringTemplate": '{"clientId": "provider.admin"}',
        "GenerateStringKey": "secret",
        "PasswordLength": 48,
        "ExcludePunctuation": True,
    }


def test_no_outsider_can_read_a_file_even_if_a_policy_allowed_it(stack):
    bucket = stack["Resources"]["FilesBucket"]["Properties"]

    closed = bucket["PublicAccessBlockConfiguration"]
    assert closed == dict.fromkeys(
        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
    )
    assert bucket["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}


def test_files_are_encrypted_with_s3s_own_key_so_that_links_give_no_access_to_secrets(stack):
    (rule,) = stack["Resources"]["FilesBucket"]["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]

    assert rule == {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}


def test_files_expire_with_their_links_and_interrupted_uploads_after_a_day(stack):
    rules = stack["Resources"]["FilesBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]

    assert rules == [
        {"Id": "files", "Status": "Enabled", "ExpirationInDays": FILE_KEPT.days},
        {"Id": "uploads", "Status": "Enabled", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}},
    ]


def test_the_bucket_keeps_no_versions_so_that_deleted_files_are_gone(stack):
    assert "VersioningConfiguration" not in stack["Resources"]["FilesBucket"]["Properties"]


def test_files_can_be_read_only_over_tls(stack):
    policy = stack["Resources"]["FilesBucketPolicy"]["Properties"]
    (statement,) = policy["PolicyDocument"]["Statement"]

    assert policy["Bucket"] == {"Ref": "FilesBucket"}
    assert statement == {
        "Sid": "OverTlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [{"Fn::GetAtt": ["FilesBucket", "Arn"]}, "${FilesBucket.Arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def _index(stack, name):
    table = stack["Resources"]["Table"]["Properties"]
    (index,) = (index for index in table["GlobalSecondaryIndexes"] if index["IndexName"] == name)
    return table, index


def _key(keyed):
    return tuple(part["AttributeName"] for part in sorted(keyed["KeySchema"], key=lambda part: part["KeyType"]))


def _types(table):
    return {attribute["AttributeName"]: attribute["AttributeType"] for attribute in table["AttributeDefinitions"]}
