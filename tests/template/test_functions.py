"""Guards of the functions: environment, concurrency, logs, code."""

from __future__ import annotations

import pytest

from sweephand.server import settings
from tests.template.cloudformation import ROOT, of_type

FILES = {"FILES_BUCKET"}
EVERYWHERE = {"STACK_NAME", "TABLE_NAME", "SHARDS", "POWERTOOLS_SERVICE_NAME", "POWERTOOLS_LOG_LEVEL", "PYTHONTZPATH"}
SENDS = {"FAST_QUEUE_URL", "SLOW_QUEUE_URL", "APPLICATION_QUEUES"}
ASKS = {"OPERATIONS_QUEUE_URL"}
CALLS_HTTP = {"ALLOWED_PRIVATE_TARGETS", "PLAIN_HTTP_TARGETS", "KEY_ID", "IDENTITY_KEY_ID"}
CALLS_OUT = CALLS_HTTP | {"TASK_CLUSTER", "LISTS_PARAMETER", "ACCOUNT", "AZURE_SUFFIXES"}
OIDC = {"FOREIGN_ISSUERS", "LISTS_PARAMETER"}
SETTLES = {
    "CALLBACK_TIMEOUT_S",
    "LANE",
    "CALL_DEADLINE_S",
    "LEASE_S",
    "VISIBILITY_S",
    "RELIEF_S",
    "METRICS_OF",
    "EVENT_BUS_NAME",
    "PUBLIC_BASE_URL",
}
VARIABLES = {
    "ApiFunction": EVERYWHERE
    | SENDS
    | ASKS
    | CALLS_OUT
    | OIDC
    | FILES
    | {"LOOK_AHEAD_S", "FACADE", "EVENT_BUS_NAME", "CALLBACK_TIMEOUT_S", "STACK_SECRET_ID", "TENANT_RATE_MOST"}
    | {"DEAD_LETTER_QUEUE_ARN", "QUEUE_KEY_ID", "METRICS_OF"},
    "SapApiFunction": EVERYWHERE
    | SENDS
    | CALLS_HTTP
    | OIDC
    | {"LOOK_AHEAD_S", "FACADE", "EVENT_BUS_NAME", "CALLBACK_TIMEOUT_S", "STACK_SECRET_ID"}
    | {"API_RATE_LIMIT", "TENANT_RATE_MOST"},
    "AzureApiFunction": EVERYWHERE
    | SENDS
    | ASKS
    | OIDC
    | {"ALLOWED_PRIVATE_TARGETS", "PLAIN_HTTP_TARGETS", "AZURE_SUFFIXES", "KEY_ID"}
    | {"LOOK_AHEAD_S", "FACADE", "EVENT_BUS_NAME", "STACK_SECRET_ID", "TENANT_RATE_MOST"},
    "SweeperFunction": EVERYWHERE | SENDS | ASKS | {"LOOK_AHEAD_S", "VPC_SUBNETS"},
    "ExecutorFunction": EVERYWHERE | SENDS | CALLS_OUT | SETTLES | {"DEAD_LETTER_QUEUE_URL", "ARCHIVE_QUEUE_URL"},
    "ExecutorSlowFunction": EVERYWHERE | SENDS | CALLS_OUT | SETTLES,
    "AuditorFunction": EVERYWHERE | SENDS | {"LOOK_AHEAD_S", "EVENT_BUS_NAME"},
    "OperationsFunction": EVERYWHERE | SENDS | ASKS | FILES | {"EVENT_BUS_NAME"},
}
SUBNETS = "subnet-0a1b2c3d,subnet-0123456789abcdef0"
GROUPS = "sg-0a1b2c3d"
KEY = "1234abcd-12ab-34cd-56ef-1234567890ab"
FOLDERS = {
    "ApiFunction": "functions/api",
    "SapApiFunction": "functions/api",
    "AzureApiFunction": "functions/api",
    "SweeperFunction": "functions/sweeper",
    "ExecutorFunction": "functions/executor",
    "ExecutorSlowFunction": "functions/executor",
    "AuditorFunction": "functions/auditor",
    "OperationsFunction": "functions/operations",
}
RESERVES = {
    **dict.fromkeys(("ApiFunction", "SapApiFunction", "AzureApiFunction"), "20"),
    "SweeperFunction": "5",
    **dict.fromkeys(("ExecutorFunction", "ExecutorSlowFunction"), "60"),
}
LOGS = {
    "ApiFunction": "ApiLogs",
    "SapApiFunction": "SapApiLogs",
    "AzureApiFunction": "AzureApiLogs",
    "SweeperFunction": "SweeperLogs",
    "ExecutorFunction": "ExecutorLogs",
    "ExecutorSlowFunction": "ExecutorSlowLogs",
    "AuditorFunction": "AuditorLogs",
    "OperationsFunction": "OperationsLogs",
    "ConsoleFunction": "ConsoleLogs",
}
LAYERS = {
    "CodeLayer": "layers/sweephand",
    "DependenciesLayer": "layers/dependencies",
    "CryptographyX86Layer": "layers/cryptography",
    "CryptographyArmLayer": "layers/cryptography",
}
OF_PROCESSOR = {"x86_64": "CryptographyX86Layer", "arm64": "CryptographyArmLayer"}


def test_the_functions_are_known_to_these_tests(stack):
    assert sorted(of_type(stack, "AWS::Lambda::Function")) == sorted([*FOLDERS, "ConsoleFunction"])


def test_the_console_has_no_layers_and_only_the_variables_of_its_sign_in(stack):
    properties = stack["Resources"]["ConsoleFunction"]["Properties"]

    assert "Layers" not in properties
    assert properties["Environment"]["Variables"] == {
        "SIGN_IN": "",
    }


@pytest.mark.parametrize("function", FOLDERS)
def test_a_function_gets_only_the_variables_that_it_needs(stack, function):
    assert _environment(stack, function).keys() == VARIABLES[function]


@pytest.mark.parametrize("function", FOLDERS)
def test_every_variable_of_the_template_is_read_by_the_settings(stack, function):
    read_by_others = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_LOG_LEVEL", "PYTHONTZPATH"}

    variables = _Recording({name: _sample(value) for name, value in _environment(stack, function).items()})
    settings.from_environment(variables)

    assert variables.keys() - variables.read == read_by_others


@pytest.mark.parametrize("function", FOLDERS)
def test_time_zone_rules_come_from_the_lock_file_and_not_from_the_host(stack, function):
    assert _environment(stack, function)["PYTHONTZPATH"] == ""


@pytest.mark.parametrize("function", FOLDERS)
def test_an_emulators_address_is_absent_on_aws_and_never_empty(deployed, function):
    on_aws = _environment(deployed(), function)
    on_emulator = _environment(deployed(EndpointUrl="http://127.0.0.1:4566"), function)

    assert "AWS_ENDPOINT_URL" not in on_aws
    assert on_emulator["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4566"


@pytest.mark.parametrize(("function", "lane"), [("ExecutorFunction", "fast"), ("ExecutorSlowFunction", "slow")])
def test_each_executor_knows_its_lane(stack, function, lane):
    assert _environment(stack, function)["LANE"] == lane


@pytest.mark.parametrize(
    ("function", "facade"), [("ApiFunction", "native"), ("SapApiFunction", "sap"), ("AzureApiFunction", "azure")]
)
def test_each_api_function_serves_one_facade(stack, function, facade):
    assert _environment(stack, function)["FACADE"] == facade


@pytest.mark.parametrize(
    "function", ["ApiFunction", "SapApiFunction", "AzureApiFunction", "ExecutorFunction", "ExecutorSlowFunction"]
)
def test_jobs_cannot_call_private_networks_or_plain_http_by_default(stack, function):
    environment = _environment(stack, function)

    assert (environment["ALLOWED_PRIVATE_TARGETS"], environment["PLAIN_HTTP_TARGETS"]) == ("", "refuse")


@pytest.mark.parametrize("function", FOLDERS)
def test_a_new_accounts_ten_executions_are_not_reserved_by_default(stack, function):
    assert "ReservedConcurrentExecutions" not in stack["Resources"][function]["Properties"]


def test_each_number_reserves_executions_only_for_its_own_functions(deployed):
    reserved = {
        name: properties.get("ReservedConcurrentExecutions")
        for name, properties in of_type(deployed(ReservedConcurrency="20,5,60"), "AWS::Lambda::Function").items()
    }

    assert reserved == dict.fromkeys([*FOLDERS, "ConsoleFunction"]) | RESERVES
    functions = of_type(deployed(), "AWS::Lambda::Function").values()
    assert not [each for each in functions if "ReservedConcurrentExecutions" in each]


@pytest.mark.parametrize(
    "function", ["SweeperFunction", "ExecutorFunction", "ExecutorSlowFunction", "OperationsFunction"]
)
def test_retries_through_the_stacks_own_queues_are_not_stopped_as_a_loop(stack, function):
    assert stack["Resources"][function]["Properties"]["RecursiveLoop"] == "Allow"


@pytest.mark.parametrize("function", ["ApiFunction", "SapApiFunction", "AzureApiFunction", "AuditorFunction"])
def test_a_function_not_involved_in_retries_keeps_lambdas_loop_guard(stack, function):
    assert stack["Resources"][function]["Properties"].get("RecursiveLoop", "Terminate") == "Terminate"


@pytest.mark.parametrize("function", LOGS)
def test_logs_are_json_and_go_to_the_functions_own_group(stack, function):
    logging = stack["Resources"][function]["Properties"]["LoggingConfig"]

    assert logging["LogFormat"] == "JSON"
    assert logging["LogGroup"] == {"Ref": LOGS[function]}


@pytest.mark.parametrize(
    ("level", "lambdas"), [("DEBUG", "DEBUG"), ("INFO", "INFO"), ("WARN", "INFO"), ("ERROR", "INFO")]
)
@pytest.mark.parametrize("function", FOLDERS)
def test_a_high_log_level_suppresses_no_metric(deployed, function, level, lambdas):
    """Lambda takes a line without a level for INFO; the embedded metrics have none."""
    properties = deployed(LogLevel=level)["Resources"][function]["Properties"]

    assert properties["LoggingConfig"]["ApplicationLogLevel"] == lambdas
    assert properties["Environment"]["Variables"]["POWERTOOLS_LOG_LEVEL"] == level


def test_every_log_expires(deployed):
    groups = of_type(deployed(LogRetentionDays=7), "AWS::Logs::LogGroup")

    assert {name: group["RetentionInDays"] for name, group in groups.items()} == dict.fromkeys(
        (*LOGS.values(), "AccessLogs"), 7
    )


def test_all_functions_run_in_the_subnets_of_the_organisation_if_it_names_any(stack, deployed):
    inside = of_type(deployed(VpcSubnets=SUBNETS, VpcSecurityGroups=GROUPS), "AWS::Lambda::Function")
    outside = of_type(stack, "AWS::Lambda::Function")

    wanted = {"SubnetIds": {"Fn::Split": [",", SUBNETS]}, "SecurityGroupIds": {"Fn::Split": [",", GROUPS]}}
    assert {name: function["VpcConfig"] for name, function in inside.items()} == dict.fromkeys(outside, wanted)
    assert not [name for name, function in outside.items() if "VpcConfig" in function]


@pytest.mark.parametrize("function", LOGS)
def test_lambdas_own_report_of_each_invocation_is_kept_in_the_log(stack, function):
    """It has the memory, the duration and the time of a cold start."""
    assert stack["Resources"][function]["Properties"]["LoggingConfig"]["SystemLogLevel"] == "INFO"


@pytest.mark.parametrize("function", FOLDERS)
def test_no_function_contains_a_tracing_sdk_or_requests_traces(stack, function):
    assert "TracingConfig" not in stack["Resources"][function]["Properties"]


@pytest.mark.parametrize("architecture", ["x86_64", "arm64"])
def test_all_functions_use_the_same_runtime_and_processor(deployed, architecture):
    functions = of_type(deployed(Architecture=architecture), "AWS::Lambda::Function").values()

    assert {(f["Runtime"], *f["Architectures"], f["Handler"]) for f in functions} == {
        ("python3.13", architecture, "app.handler")
    }


@pytest.mark.parametrize(("function", "folder"), FOLDERS.items())
def test_a_functions_folder_contains_only_its_handler_so_that_any_python_can_build_it(raw, function, folder):
    assert raw["Resources"][function]["Properties"]["CodeUri"] == folder
    assert (ROOT / folder / "app.py").is_file()
    assert not (ROOT / folder / "requirements.txt").exists()


@pytest.mark.parametrize("function", FOLDERS)
def test_every_function_loads_the_dependencies_and_the_code_as_layers(raw, stack, function):
    assert raw["Globals"]["Function"]["Layers"] == [{"Ref": "DependenciesLayer"}, {"Ref": "CodeLayer"}]
    assert _layers(stack, function)[:2] == ["DependenciesLayer", "CodeLayer"]


@pytest.mark.parametrize("function", FOLDERS)
def test_cryptography_is_attached_to_functions_that_seal_or_open_secrets(stack, function):
    sealing = {"ApiFunction", "AzureApiFunction", "SapApiFunction"}

    more = ["CryptographyX86Layer"] if function in {*sealing, "ExecutorFunction", "ExecutorSlowFunction"} else []
    assert _layers(stack, function) == ["DependenciesLayer", "CodeLayer", *more]


def test_compiled_code_matches_the_processor_of_the_functions(deployed):
    layers = of_type(deployed(), "AWS::Lambda::LayerVersion")

    for architecture, layer in OF_PROCESSOR.items():
        stack = deployed(Architecture=architecture)
        assert stack["Resources"]["ApiFunction"]["Properties"]["Architectures"] == [architecture]
        assert _layers(stack, "ApiFunction")[-1] == layer
        (made,) = (found for name, found in layers.items() if name.startswith(layer))
        assert made["CompatibleArchitectures"] == [architecture]


def test_a_stack_contains_compiled_code_only_for_its_own_processor(translated):
    conditions = {
        architecture: resource["Condition"]
        for architecture, layer in OF_PROCESSOR.items()
        for name, resource in translated["Resources"].items()
        if name.startswith(layer)
    }

    assert conditions == {"x86_64": "OnX86", "arm64": "OnArm"}


@pytest.mark.parametrize(("layer", "folder"), LAYERS.items())
def test_a_layer_is_built_by_its_makefile_on_any_host(raw, layer, folder):
    resource = raw["Resources"][layer]

    built_for = {name: architecture for architecture, name in OF_PROCESSOR.items()}
    machine = {"BuildArchitecture": built_for[layer]} if layer in built_for else {}
    assert resource["Metadata"] == {"BuildMethod": "makefile", **machine}
    assert resource["Properties"]["ContentUri"] == folder
    assert f"build-{layer}" in (ROOT / folder / "Makefile").read_text()


def test_cloudformation_names_the_functions_so_that_two_stacks_fit_into_one_account(stack):
    functions = of_type(stack, "AWS::Lambda::Function").values()

    assert all("FunctionName" not in function for function in functions)


def _layers(stack, function):
    """Returns their names in the template: SAM adds a hash of what is in them."""
    found = [layer["Ref"] for layer in stack["Resources"][function]["Properties"]["Layers"]]
    assert [stack["Resources"][layer]["Type"] for layer in found] == ["AWS::Lambda::LayerVersion"] * len(found)
    return [next(name for name in LAYERS if layer.startswith(name)) for layer in found]


def _environment(stack, function):
    return stack["Resources"][function]["Properties"]["Environment"]["Variables"]


def _sample(value):
    """Returns what the function sees at run time: text; a reference has become some name."""
    return str(value) if not isinstance(value, dict) else "name"


class _Recording(dict):
    """A mapping that remembers which of its members were asked for."""

    def __init__(self, members):
        super().__init__(members)
        self.read = set()

    def __getitem__(self, name):
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        self.read.add(name)
        return super().get(name, default)


@pytest.mark.parametrize("function", [*FOLDERS, "ConsoleFunction"])
def test_every_function_has_a_sample_event(function):
    """Both executors take the same ones."""
    own = {"SapApiFunction": "sap-api", "AzureApiFunction": "azure-api", "ConsoleFunction": "console"}
    folder = own.get(function) or FOLDERS[function].removeprefix("functions/")

    assert list((ROOT / "events" / folder).glob("*.json"))
