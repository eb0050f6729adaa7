"""Guards of what a user may set, and of what the stack says of itself."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from types import SimpleNamespace

import pytest

from sweephand.server.parameter_lists import Lists
from sweephand.server.security import oidc
from sweephand.server.settings import Settings
from sweephand.testing.sources import VirtualClock
from tests.template.cloudformation import ROOT, raw_template

PARAMETERS = raw_template()["Parameters"]
OUTPUTS = {
    "ApiUrl",
    "ConsoleUrl",
    "ConsoleRedirectUrl",
    "ConsoleFunctionName",
    "TableName",
    "RunQueueUrl",
    "SlowQueueUrl",
    "DeadLetterQueueUrl",
    "ArchiveQueueUrl",
    "TickDeadLetterQueueUrl",
    "EventBusName",
    "FilesBucketName",
    "StackSecretArn",
    "KeyArn",
    "ApiFunctionName",
    "SapApiFunctionName",
    "AzureApiFunctionName",
    "SweeperFunctionName",
    "ExecutorFunctionName",
    "ExecutorRoleArn",
    "ExecutorSlowRoleArn",
    "ExecutorSlowFunctionName",
    "AuditorFunctionName",
    "OperationsQueueUrl",
    "OperationsFunctionName",
}


FUNCTIONS = {name for name, each in raw_template()["Resources"].items() if each["Type"] == "AWS::Serverless::Function"}


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter_has_a_description(name):
    assert PARAMETERS[name]["Description"].endswith(".")


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter_has_bounds(name):
    parameter = PARAMETERS[name]

    if parameter["Type"] == "Number":
        assert "AllowedValues" in parameter or {"MinValue", "MaxValue"} <= parameter.keys()
    else:
        assert parameter["Type"] == "String"
        assert parameter.keys() & {"AllowedValues", "AllowedPattern"}


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_default_lies_within_its_bounds_so_that_a_deploy_needs_no_input(name):
    assert _allows(PARAMETERS[name], PARAMETERS[name]["Default"])


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter_is_used(raw, name):
    used = str({section: raw[section] for section in ("Conditions", "Globals", "Resources")})

    assert f"{{'Ref': '{name}'}}" in used or f"${{{name}}}" in used


def test_the_cloudformation_form_shows_every_parameter_once(raw):
    groups = raw["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]

    assert sorted(name for group in groups for name in group["Parameters"]) == sorted(PARAMETERS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PublicBaseUrl", "https://jobs.example.org"),
        (
            "ConsoleSignIn",
            "https://acme.auth.example.com/oauth2/authorize,https://acme.auth.example.com/oauth2/token,4a5b",
        ),
        ("ConsoleSignIn", "https://a.example/authorize,https://a.example/token,console,openid api/jobs:read"),
        ("AzureSuffixes", "core.chinacloudapi.cn,servicebus.chinacloudapi.cn"),
        ("AzureSuffixes", "http://core.localhost:10000,http://servicebus.localhost:5672"),
        ("PublicBaseUrl", "http://127.0.0.1:8080"),
        ("EndpointUrl", "http://host.docker.internal:4566"),
        ("AllowedPrivateTargets", "10.1.0.0/16"),
        ("AllowedPrivateTargets", "127.0.0.0/8,::1/128"),
        ("TargetRoleArns", "arn:aws:iam::*:role/sweephand-target-*,arn:aws:iam::123456789012:role/x/*"),
        ("PermissionsBoundary", "arn:aws-us-gov:iam::123456789012:policy/teams/boundary"),
        ("RolePath", "/"),
        ("RolePath", "/teams/jobs/"),
        ("KmsKeyId", "1234abcd-12ab-34cd-56ef-1234567890ab"),
        ("KmsKeyId", "mrk-1234abcd12ab34cd56ef1234567890ab"),
        ("VpcSubnets", "subnet-0a1b2c3d,subnet-0123456789abcdef0"),
        ("VpcSecurityGroups", "sg-0a1b2c3d"),
        ("WarmUnits", "12000"),
        ("WarmUnits", "200000"),
        ("MetricsOf", "acme/default,acme/app:billing.v2,globex/nightly"),
        ("ReservedConcurrency", "20,2,1000"),
        ("SweepWorkers", 5),
        ("Shards", 1024),
        ("OidcIssuers", "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbC;audience=4a5b"),
        ("OidcIssuers", "https://a.example/t;audience=x;tenant=acme;keys=https://a.example/k,http://a:9/;audience=x"),
        ("OidcIssuers", "https://a.example;audience=api://0000-11;audience=app!t12"),
        ("OidcClaims", "tenant=https://example.org/tenant,scopes=scope,scopes=realm_access.roles"),
        ("OidcScopes", "api/*=*"),
        ("OidcScopes", "Read=jobs:read,app!t1.Write=jobs:write+runs:write,all=provider:*,boss=admin"),
        ("OidcClaims", "tenant=t,scopes=scope,provider=groups=operators"),
    ],
)
def test_a_sensible_value_is_accepted(name, value):
    assert _allows(PARAMETERS[name], value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PublicBaseUrl", "jobs.example.org"),
        ("PublicBaseUrl", "https://jobs.example.org/"),
        ("PublicBaseUrl", "https://user@jobs.example.org"),
        ("EndpointUrl", "ftp://host"),
        ("AllowedPrivateTargets", "10.1.0.0"),
        ("AllowedPrivateTargets", "10.1.0.0/16, 10.2.0.0/16"),
        ("AllowedPrivateTargets", "*"),
        ("PlainHttpTargets", "yes"),
        ("ConsoleSignIn", "https://a.example/authorize"),
        ("ConsoleSignIn", "https://a.example/authorize,https://a.example/token"),
        ("AzureSuffixes", "core.windows.net"),
        ("TargetRoleArns", "*"),
        ("TargetRoleArns", "arn:aws:iam::*:role/*"),
        ("TargetRoleArns", "arn:aws:iam::123456789012:role/a*b"),
        ("PermissionsBoundary", "boundary"),
        ("RolePath", "teams"),
        ("RolePath", "/teams"),
        ("KmsKeyId", "alias/jobs"),
        ("KmsKeyId", "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"),
        ("KmsKeyId", "1234abcd-12ab-34cd-56ef-1234567890ab,1234abcd-12ab-34cd-56ef-1234567890ac"),
        ("VpcSubnets", "vpc-0a1b2c3d"),
        ("VpcSecurityGroups", "default"),
        ("WarmUnits", "11999"),
        ("AlarmActionArns", ",".join(["arn:aws:sns:us-east-1:123456789012:night-watch"] * 6)),
        ("MetricsOf", "acme"),
        ("MetricsOf", "acme/*"),
        ("MetricsOf", ",".join(["a/b"] * 11)),
        ("ReservedConcurrency", "0,1,2"),
        ("ReservedConcurrency", "7"),
        ("ReservedConcurrency", "1,2,1001"),
        ("ReservedConcurrency", "1, 2, 3"),
        ("SweepWorkers", 6),
        ("SweepWorkers", 0),
        ("Shards", 16),
        ("Shards", 2048),
        ("LookAheadSeconds", 60),
        ("LookAheadSeconds", 900),
        ("FastConcurrency", 1),
        ("OidcIssuers", "a.example;audience=a"),
        ("OidcIssuers", "https://a.example"),
        ("OidcIssuers", "https://a.example;tenant=acme"),
        ("OidcIssuers", "https://a.example;audience=a b"),
        ("OidcIssuers", "https://a.example;audience=a, https://b.example;audience=a"),
        ("OidcIssuers", "https://a.example;audience=a;colour=red"),
        ("OidcIssuers", ",".join(["https://a.example;audience=a"] * 11)),
        ("OidcClaims", ""),
        ("OidcClaims", "scopes=scope"),
        ("OidcClaims", "tenant=t,scopes=scope,provider=groups"),
        ("OidcScopes", "jobs:read"),
        ("OidcScopes", "read=jobs"),
    ],
)
def test_an_unusable_value_is_refused_before_anything_is_created(name, value):
    assert not _allows(PARAMETERS[name], value)


@pytest.mark.parametrize("name", [name for name in PARAMETERS if name.startswith("Oidc")])
def test_every_value_that_the_template_accepts_can_be_read(name):
    """Its patterns and the function's own parser agree."""
    texts = {
        "OidcIssuers": "https://a.example/x;audience=api://0000-11;audience=app!t12;tenant=acme;"
        "keys=https://a.example/k?v=1,http://127.0.0.1:9/;audience=a",
        "OidcClaims": "tenant=ext_attr.zdn,scopes=scope,scopes=scp,provider=groups=operators",
        "OidcScopes": "api/*=*,Read=jobs:read+admin",
    }
    assert _allows(PARAMETERS[name], texts[name])

    trusted = oidc.trust(issuers=texts["OidcIssuers"], claims=texts["OidcClaims"], scopes=texts["OidcScopes"])
    assert [len(each.audiences) for each in trusted.issuers.values()] == [2, 1]
    assert (trusted.tenant_claim, trusted.scope_claims) == ("ext_attr.zdn", ("scope", "scp"))
    assert trusted.provider == ("groups", "operators")


def test_the_consoles_sign_in_needs_an_issuer_whose_tokens_the_api_accepts(raw):
    rule = raw["Rules"]["TheConsolesSignInNeedsItsIssuer"]

    assert rule["RuleCondition"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "ConsoleSignIn"}, ""]}]}
    assert [each["Assert"] for each in rule["Assertions"]] == [
        {"Fn::Not": [{"Fn::Equals": [{"Ref": name}, ""]}]} for name in ("OidcIssuers",)
    ]


def test_scopes_without_an_issuer_are_refused_on_deployment(raw):
    rule = raw["Rules"]["ScopesNeedTheirIssuer"]

    assert rule["RuleCondition"] == {"Fn::Equals": [{"Ref": "OidcIssuers"}, ""]}
    assert [each["Assert"] for each in rule["Assertions"]] == [{"Fn::Equals": [{"Ref": "OidcScopes"}, ""]}]


def test_subnets_without_security_groups_are_refused_before_anything_is_created(raw):
    (assertion,) = raw["Rules"]["SubnetsNeedSecurityGroups"]["Assertions"]
    empty = [{"Fn::Equals": [{"Ref": name}, ""]} for name in ("VpcSubnets", "VpcSecurityGroups")]

    assert assertion["Assert"] == {"Fn::Or": [{"Fn::And": empty}, {"Fn::And": [{"Fn::Not": [each]} for each in empty]}]}


def test_rules_use_only_functions_that_cloudformation_evaluates_there(raw):
    def functions(node):
        if isinstance(node, dict):
            return {name for name in node if name.startswith("Fn::")}.union(*map(functions, node.values()))
        return set().union(*map(functions, node)) if isinstance(node, list) else set()

    assert functions(raw["Rules"]) <= {"Fn::And", "Fn::Contains", "Fn::Equals", "Fn::Not", "Fn::Or"}


LAMBDA_S_ENVIRONMENT = 4_096
LISTED = re.findall(r"\$\{(\w+)\}", raw_template()["Resources"]["Lists"]["Properties"]["Value"]["Fn::Sub"])
LARGEST_LISTS = 8_192
"""The largest value of a parameter of Systems Manager."""
PHYSICAL_NAME = "x" * 110
"""A name as long as the URL of a queue may get."""


def longest(name):
    """Returns the longest value of a parameter, or the longest that anybody is likely to give it."""
    facts = PARAMETERS[name]
    likely = {
        "AllowedPrivateTargets": ",".join(["2001:db8:1234:5678::/64"] * 20),
        "PublicBaseUrl": "y" * 100,
        "AzureSuffixes": "y" * 120,
        "TaskCluster": "y" * 100,
        "TaskNetwork": ",".join(["subnet-0123456789abcdef0"] * 16 + ["sg-0123456789abcdef0"] * 5 + ["public"]),
        "KmsKeyId": "y" * 36,
        "VpcSubnets": ",".join(["subnet-0123456789abcdef0"] * 16),
    }
    return likely.get(name) or ("y" * facts["MaxLength"] if "MaxLength" in facts else facts["Default"])


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_all_parameters_at_their_longest_fit_into_a_functions_environment_together(deployed, function):
    stack = deployed(**{name: longest(name) for name in PARAMETERS if PARAMETERS[name]["Type"] == "String"})
    variables = stack["Resources"][function]["Properties"]["Environment"]["Variables"]

    size = sum(len(key) + len(value if isinstance(value, str) else PHYSICAL_NAME) for key, value in variables.items())

    assert size <= LAMBDA_S_ENVIRONMENT


def test_all_lists_at_their_longest_fit_into_one_parameter_of_systems_manager(deployed):
    lists = deployed(**{name: longest(name) for name in PARAMETERS if PARAMETERS[name]["Type"] == "String"})
    value = lists["Resources"]["Lists"]["Properties"]["Value"]

    assert lists["Resources"]["Lists"]["Properties"]["Tier"] == "Intelligent-Tiering"
    assert 4 * 1_200 + 2 * 900 < len(value.encode()) <= LARGEST_LISTS
    unlimited = {name for name in LISTED if "MaxLength" not in PARAMETERS[name]}
    assert unlimited == {"TaskNetwork"}, "whose pattern limits it"


def test_the_functions_read_the_lists_as_the_template_writes_them(deployed):
    value = deployed(TargetRoleArns="arn:aws:iam::*:role/x*", OidcScopes="a=jobs:read,b=*")["Resources"]["Lists"][
        "Properties"
    ]["Value"]
    ssm = SimpleNamespace(get_parameter=lambda **_: {"Parameter": {"Value": value}})

    read = Lists(lambda: ssm, "Lists", VirtualClock()).read()

    assert read.keys() <= {each.name for each in fields(Settings)}
    assert (read["target_role_arns"], read["oidc_scopes"]) == ("arn:aws:iam::*:role/x*", "a=jobs:read,b=*")
    assert (read["oidc_claims"], read["oidc_issuers"]) == ("tenant=tenant,scopes=scope,scopes=scp", "")


def test_the_stack_outputs_the_addresses_of_its_parts(stack):
    assert stack["Outputs"].keys() == OUTPUTS
    assert all(output["Description"] for output in stack["Outputs"].values())


def test_no_output_shows_a_secret(stack):
    assert "resolve:secretsmanager" not in str(stack)


def test_sam_deploy_asks_before_any_change_and_takes_only_the_rights_it_needs():
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())["default"]

    assert config["deploy"]["parameters"]["confirm_changeset"] is True
    assert config["deploy"]["parameters"]["capabilities"] == "CAPABILITY_IAM"
    assert config["validate"]["parameters"]["lint"] is True


def _allows(parameter, value):
    if "AllowedValues" in parameter:
        return value in parameter["AllowedValues"]
    if "AllowedPattern" in parameter:
        return re.fullmatch(parameter["AllowedPattern"], value) is not None
    return parameter["MinValue"] <= value <= parameter["MaxValue"]
