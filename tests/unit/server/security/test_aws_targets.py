from __future__ import annotations

import pytest

from sweephand.base.errors import InvalidRequest
from sweephand.domain.application import lane_of
from sweephand.server.actions import KINDS
from sweephand.server.security.aws_targets import OWN_RESOURCES, check_role, check_target
from sweephand.server.security.guard import AwsSettings, role_arns
from sweephand.server.settings import Settings
from sweephand.server.wiring import guard_settings
from tests.template.cloudformation import raw_template

ROLE = "arn:aws:iam::111122223333:role/path/jobs"
HERE = AwsSettings(
    roles=frozenset({ROLE}),
    account="111122223333",
    region="eu-central-1",
    stack_name="sweephand",
    bus_name="sweephand",
    application_queues="sweephand-1a2b-app-",
)
OF_SERVICE = {
    "sqs": ("orders", "orders.fifo", "a-b_c"),
    "sns": ("news", "news.fifo"),
    "events": ("event-bus/other", "event-bus/partner/x.y"),
    "lambda": ("function:f", "function:f:$LATEST", "function:f:live", "function:f:7"),
    "states": ("stateMachine:m", "stateMachine:m:3"),
}


def test_each_action_with_a_role_names_the_form_of_its_targets() -> None:
    """Without its form in aws_targets, creating a job of the kind would fail with an internal error."""
    assert OF_SERVICE.keys() == {name for name, kind in KINDS.items() if kind.shows == ("role",)}

    for service in OF_SERVICE:
        with pytest.raises(InvalidRequest, match=f"must be an ARN of the form arn:aws:{service}:"):
            check_target("nonsense", service, HERE)


def arn(service: str, resource: str, *, account: str = "444455556666", region: str = "us-east-1") -> str:
    return f"arn:aws:{service}:{region}:{account}:{resource}"


@pytest.mark.parametrize(
    ("service", "resource"), [(service, name) for service, names in OF_SERVICE.items() for name in names]
)
def test_a_resource_is_known_by_its_arn_and_says_its_region(service: str, resource: str) -> None:
    found = check_target(arn(service, resource), service, HERE)

    assert (found.region, found.account, found.resource) == ("us-east-1", "444455556666", resource)


@pytest.mark.parametrize("partition", ["aws-cn", "aws-us-gov"])
def test_other_partitions_have_targets_too(partition: str) -> None:
    assert check_target(f"arn:{partition}:sqs:cn-north-1:444455556666:q", "sqs", HERE).name == "q"


@pytest.mark.parametrize(
    ("service", "text"),
    [
        ("sqs", ""),
        ("sqs", "https://sqs.us-east-1.amazonaws.com/444455556666/q"),
        ("sqs", arn("sns", "q")),
        ("sqs", arn("sqs", "q/other")),
        ("sqs", arn("sqs", "q" * 81)),
        ("sqs", arn("sqs", "q") + "\n"),
        ("sqs", arn("sqs", "q", region="evil.example/")),
        ("sqs", arn("sqs", "q", account="1")),
        ("events", arn("events", "rule/x")),
        ("lambda", arn("lambda", "layer:x")),
        ("lambda", arn("lambda", "function:*")),
        ("states", arn("states", "execution:m:n")),
    ],
)
def test_another_form_is_refused(service: str, text: str) -> None:
    with pytest.raises(InvalidRequest, match="must be an ARN of the form arn:aws:" + service):
        check_target(text, service, HERE)


def own(logical_id: str, stack: str = "sweephand", chance: str = "1A2B3C4D5E6F") -> str:
    name = f"{stack}-{logical_id}-{chance}"
    if logical_id.endswith("Function"):
        return arn("lambda", f"function:{name}", account=HERE.account, region=HERE.region)
    return arn("sqs", name, account=HERE.account, region=HERE.region)


@pytest.mark.parametrize("logical_id", OWN_RESOURCES)
@pytest.mark.parametrize("stack", ["sweephand", "a-rather-long-name-of-a-stack-of-sweephand"])
def test_the_stacks_own_queues_and_functions_are_refused_as_targets(logical_id: str, stack: str) -> None:
    settings = AwsSettings(account=HERE.account, region=HERE.region, stack_name=stack)
    text = own(logical_id, stack[:24])
    service = text.split(":")[2]

    with pytest.raises(InvalidRequest, match="a resource of this service itself"):
        check_target(text, service, settings)
    assert check_target(text.replace(HERE.account, "444455556666"), service, settings)
    assert check_target(text.replace(HERE.region, "us-east-1"), service, settings)


def test_an_alias_of_an_own_function_is_refused_as_a_target() -> None:
    with pytest.raises(InvalidRequest, match="this service itself"):
        check_target(own("ExecutorFunction") + ":live", "lambda", HERE)


def test_the_stacks_own_bus_is_refused_in_favour_of_its_action() -> None:
    bus = arn("events", "event-bus/sweephand", account=HERE.account, region=HERE.region)

    with pytest.raises(InvalidRequest, match="this service itself"):
        check_target(bus, "events", HERE)
    assert check_target(bus + "-2", "events", HERE)


def test_a_users_queue_can_begin_with_the_stacks_name() -> None:
    queue = arn("sqs", "sweephand-orders-1", account=HERE.account, region=HERE.region)

    assert check_target(queue, "sqs", HERE)


def test_the_queues_of_the_stacks_applications_are_refused_as_targets() -> None:
    def queue(name: str) -> str:
        return arn("sqs", name, account=HERE.account, region=HERE.region)

    for own_queue in ("sweephand-1a2b-app-xyz", "sweephand-1a2b-app-"):
        with pytest.raises(InvalidRequest, match="this service itself"):
            check_target(queue(own_queue), "sqs", HERE)
    for other in ("sweephand-9f9f-app-xyz", "sweephand-1a2b-apples", "my-sweephand-1a2b-app-xyz"):
        assert check_target(queue(other), "sqs", HERE)


def test_the_functions_know_how_the_queues_of_their_applications_begin() -> None:
    settings = Settings("sweephand", "table", application_queues="sweephand-1a2b")

    known = guard_settings(settings).aws.application_queues

    assert lane_of("acme", "billing", None).startswith(known.removeprefix("sweephand-1a2b-"))
    assert known == "sweephand-1a2b-app-"


AIMED_AT = ("Queue", "Function", "Topic", "StateMachine", "EventBus", "Stream", "Cluster", "Api", "HttpApi")
"""How the types of resources end that an action can name, or could name one day."""


def test_everything_in_the_template_that_an_action_could_name_is_known_as_own() -> None:
    """An event bus is known by its name; the API and its callers are told apart by their credentials."""
    made = {name: str(each["Type"]) for name, each in raw_template()["Resources"].items()}
    aimed_at = {name for name, kind in made.items() if kind.rpartition("::")[2] in AIMED_AT}

    assert aimed_at - {"EventBus", "Api"} == set(OWN_RESOURCES)
    for name in aimed_at & {"EventBus"}:
        assert raw_template()["Resources"][name]["Properties"]["Name"] == {"Ref": "AWS::StackName"}


def test_a_role_is_one_of_the_parameter_word_for_word() -> None:
    assert check_role(ROLE, HERE) == ROLE
    for other in (ROLE + "2", ROLE[:-1], ROLE.replace("1111", "9999"), ROLE.replace("role", "Role")):
        with pytest.raises(InvalidRequest):
            check_role(other, HERE)


def test_every_role_is_refused_without_the_parameter_and_the_reason_names_it() -> None:
    with pytest.raises(InvalidRequest, match="parameter TargetRoleArns"):
        check_role(ROLE, AwsSettings())


@pytest.mark.parametrize("text", ["", "*", "arn:aws:iam::111122223333:user/u", "arn:aws:iam::111122223333:role/*"])
def test_an_invalid_role_is_reported(text: str) -> None:
    with pytest.raises(InvalidRequest, match="must be the ARN of a role"):
        check_role(text, HERE)


def test_the_parameter_is_separated_by_commas() -> None:
    assert role_arns("") == frozenset()
    assert role_arns(f"{ROLE},{ROLE}2") == {ROLE, f"{ROLE}2"}


PREFIXES = "arn:aws:iam::*:role/sweephand-target-*,arn:aws:iam::111122223333:role/jobs/*"
BY_PREFIX = AwsSettings(roles=role_arns(PREFIXES))


@pytest.mark.parametrize(
    "text",
    [
        "arn:aws:iam::111122223333:role/sweephand-target-a",
        "arn:aws:iam::999988887777:role/sweephand-target-/x",
        "arn:aws:iam::111122223333:role/jobs/a/b",
    ],
)
def test_a_role_whose_name_begins_as_the_parameter_says_may_be_used(text: str) -> None:
    assert check_role(text, BY_PREFIX) == text


@pytest.mark.parametrize(
    "text",
    [
        "arn:aws:iam::111122223333:role/other",
        "arn:aws:iam::111122223333:role/path/sweephand-target-a",
        "arn:aws:iam::999988887777:role/jobs/a",
        "arn:aws:iam::111122223333:role/Sweephand-target-a",
        "arn:aws-cn:iam::111122223333:role/sweephand-target-a",
        "arn:aws:iam::111122223333:role/sweephand-target",
    ],
)
def test_a_role_outside_the_prefix_is_refused_with_the_parameter_that_decides(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is not among the roles that this stack may assume"):
        check_role(text, BY_PREFIX)


@pytest.mark.parametrize("text", [*PREFIXES.split(","), "*"])
def test_a_job_names_one_role_and_no_pattern(text: str) -> None:
    with pytest.raises(InvalidRequest, match="must be the ARN of a role"):
        check_role(text, BY_PREFIX)
