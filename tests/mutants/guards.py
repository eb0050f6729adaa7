"""Every guard of the template taken away: properties that a deploy would do without, and a user would miss.

A guard is a property by its name, on every resource that has it. Properties that are no guards are listed too, so that
a new property must be called one or the other.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from samtranslator.yaml_helper import yaml_parse

from tests.mutants.conditions import PACKAGE

TEMPLATE = PACKAGE.parents[3] / "template.yaml"

MISSED_BY = {
    "test_storage.py": {
        "DeletionPolicy": "test_kept_resources_survive_the_stack_and_their_own_replacement",
        "UpdateReplacePolicy": "test_kept_resources_survive_the_stack_and_their_own_replacement",
        "DeletionProtectionEnabled": "test_the_table_cannot_be_deleted_by_one_call",
        "PointInTimeRecoverySpecification": "test_the_table_can_be_restored_to_any_second_of_the_last_weeks",
        "TimeToLiveSpecification": "test_the_table_deletes_expired_rows",
        "BillingMode": "test_the_table_is_billed_by_request",
        "EnableKeyRotation": "test_the_key_is_symmetric_and_rotates",
        "PublicAccessBlockConfiguration": "test_no_outsider_can_read_a_file_even_if_a_policy_allowed_it",
        "OwnershipControls": "test_no_outsider_can_read_a_file_even_if_a_policy_allowed_it",
        "BucketEncryption": "test_files_are_encrypted_with_s3s_own_key_so_that_links_give_no_access_to_secrets",
        "LifecycleConfiguration": "test_files_expire_with_their_links_and_interrupted_uploads_after_a_day",
    },
    "test_queues.py": {
        "MessageRetentionPeriod": "test_every_queue_keeps_its_messages_for_14_days",
        "RedrivePolicy": "test_a_message_received_ten_times_without_success_goes_to_the_dead_letters",
        "SqsManagedSseEnabled": "test_every_queue_is_encrypted",
        "VisibilityTimeout": "test_call_lease_function_and_hidden_time_of_a_message_end_in_this_order",
        "FunctionResponseTypes": "test_one_failed_message_does_not_return_the_nine_others",
        "BatchSize": "test_a_batch_has_up_to_ten_messages_and_does_not_wait_to_fill",
        "MaximumBatchingWindowInSeconds": "test_a_batch_has_up_to_ten_messages_and_does_not_wait_to_fill",
        "ScalingConfig": "test_no_queue_uses_more_executions_than_its_parameter_allows",
    },
    "test_functions.py": {
        "IgnoreGlobals": "test_the_console_has_no_layers_and_only_the_variables_of_its_sign_in",
        "RetentionInDays": "test_every_log_expires",
        "RecursiveLoop": "test_retries_through_the_stacks_own_queues_are_not_stopped_as_a_loop",
        "ReservedConcurrentExecutions": "test_each_number_reserves_executions_only_for_its_own_functions",
        "LoggingConfig": "test_logs_are_json_and_go_to_the_functions_own_group",
    },
    "test_encryption.py": {
        "SSESpecification": "test_all_that_is_kept_has_the_key_of_the_organisation_if_it_names_one",
        "KmsMasterKeyId": "test_all_that_is_kept_has_the_key_of_the_organisation_if_it_names_one",
        "KmsKeyIdentifier": "test_all_that_is_kept_has_the_key_of_the_organisation_if_it_names_one",
        "KmsKeyId": "test_all_that_is_kept_has_the_key_of_the_organisation_if_it_names_one",
        "DeadLetterConfig": "test_events_that_the_key_cannot_encrypt_leave_evidence",
    },
    "test_rules.py": {
        "EventInvokeConfig": ("test_a_failed_tick_is_not_repeated_by_lambda_and_leaves_evidence"),
    },
    "test_permissions.py": {
        "Path": "test_every_role_has_the_path_and_the_boundary_of_the_organisation",
        "PermissionsBoundary": "test_every_role_has_the_path_and_the_boundary_of_the_organisation",
        "ManagedPolicyArns": ("test_no_role_includes_rights_defined_elsewhere_except_lambdas_own_to_join_subnets"),
    },
    "test_parameters.py": {
        "Tier": "test_all_lists_at_their_longest_fit_into_one_parameter_of_systems_manager",
    },
    "test_tasks.py": {
        "EventPattern": "test_only_events_of_our_tasks_in_our_cluster_enter_the_run_queue",
    },
    "test_api.py": {
        "DefaultRouteSettings": "test_the_gateway_throttles_all_routes_by_parameter",
        "RouteSettings": "test_results_of_runs_have_a_throttle_bucket_that_no_other_request_empties",
        "AccessLogSettings": "test_the_gateway_logs_every_request_with_its_source_even_those_it_refuses",
    },
}
"""Guards by file of tests/template: the name of a property, and the test that misses it."""

GUARDS = {guard: f"{file}::{test}" for file, tests in MISSED_BY.items() for guard, test in tests.items()}

PARTS_OF_ALARMS = frozenset(
    """
    AlarmActions AlarmDescription ComparisonOperator DashboardBody Dimensions EvaluationPeriods ExtendedStatistic
    FilterPattern MetricName MetricTransformations Namespace OKActions Period Statistic Threshold TreatMissingData
    """.split()  # noqa: SIM905 - as above
)
"""An alarm is held by its own tests, member for member."""

NO_GUARDS = frozenset(
    """
    Action ApiId AssumeRolePolicyDocument AttributeDefinitions Bucket CodeUri CompatibleArchitectures CompatibleRuntimes
    ContentUri Description Environment Events FunctionName GenerateSecretString GlobalSecondaryIndexes
    KeySchema KeySpec KeyUsage Layers LogGroupName MemorySize Method Name Path PayloadFormatVersion Policies
    PolicyDocument Principal Queue Queues RetentionPolicy Role ScheduleExpression SourceArn State Targets Timeout Type
    Value WarmThroughput
    """.split()  # noqa: SIM905 - a text is easier to read and to keep in order
)
"""Without these nothing would work, or nothing would be lost."""

Place = tuple[str | int, ...]


@cache
def places() -> dict[str, Place]:
    """Returns the places of all guards: `RunQueue.RedrivePolicy` -> where it stands in the template."""
    return {_name(place): place for place in _properties() if place[-1] in GUARDS}


def _name(place: Place) -> str:
    return ".".join(str(step) for step in place[1:] if step not in {"Properties", "Events"})


def unknown() -> set[str]:
    """Properties that are neither a guard nor none."""
    return {str(place[-1]) for place in _properties()} - GUARDS.keys() - NO_GUARDS - PARTS_OF_ALARMS


def without(name: str, template: dict[str, Any]) -> dict[str, Any]:
    """Returns the parsed template without that guard."""
    *way, last = places()[name]
    node: Any = template
    for step in way:
        node = node[step]
    del node[last]
    return template


def _properties() -> list[Place]:
    template = yaml_parse(TEMPLATE.read_text())
    found: list[Place] = []
    for name, resource in template["Resources"].items():
        beside = resource.keys() - {"Properties", "Type", "Metadata", "DependsOn", "Condition"}
        found += [("Resources", name, member) for member in sorted(beside)]
        properties = resource.get("Properties", {})
        found += [("Resources", name, "Properties", member) for member in properties]
        for event, spec in properties.get("Events", {}).items():
            found += [
                ("Resources", name, "Properties", "Events", event, "Properties", key) for key in spec["Properties"]
            ]
    return found
