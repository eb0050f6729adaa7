"""Guards of the door: routes, throttling, and who knows its address."""

from __future__ import annotations

import json

import pytest

from tests.template.cloudformation import of_type

CALLBACK = "/v1/runs/{run}/result"
SAP_CALLBACK = "/scheduler/jobs/{job}/schedules/{schedule}/runs/{run}"
DOCUMENT = "/v1/openapi.json"
CONSOLE = ("/", "/console", "/console/{proxy+}")
APART = {CALLBACK: "put", SAP_CALLBACK: "put", DOCUMENT: "get", **dict.fromkeys(CONSOLE, "get")}
"""Routes of one method, because they are throttled apart from all others."""
ROUTES = {
    CALLBACK: "ApiFunction",
    SAP_CALLBACK: "SapApiFunction",
    DOCUMENT: "ApiFunction",
    "/v1/{proxy+}": "ApiFunction",
    "/oauth/token": "ApiFunction",
    "/.well-known/{proxy+}": "ApiFunction",
    "/problems": "ApiFunction",
    "/problems/{proxy+}": "ApiFunction",
    "$default": "ApiFunction",
    **dict.fromkeys(CONSOLE, "ConsoleFunction"),
    "/scheduler/{proxy+}": "SapApiFunction",
    "/subscriptions/{proxy+}": "AzureApiFunction",
    "/providers/{proxy+}": "AzureApiFunction",
}
ANY = "x-amazon-apigateway-any-method"
ADDRESS_OF_THE_GATEWAY = "https://${Api}.execute-api.eu-central-1.amazonaws.com"


def test_the_routes_are_greedy_so_that_the_api_answers_404_and_405(stack):
    paths = stack["Resources"]["Api"]["Properties"]["Body"]["paths"]

    assert paths.keys() == ROUTES.keys()
    assert {name: list(path) for name, path in paths.items()} == {name: [APART.get(name, ANY)] for name in ROUTES}


@pytest.mark.parametrize("route", sorted(ROUTES))
def test_every_route_goes_to_its_function_with_payload_format_2(stack, route):
    integration = stack["Resources"]["Api"]["Properties"]["Body"]["paths"][route][APART.get(route, ANY)][
        "x-amazon-apigateway-integration"
    ]

    assert integration["type"] == "aws_proxy"
    assert f"${{{ROUTES[route]}.Arn}}" in str(integration["uri"])
    assert integration["payloadFormatVersion"] == "2.0"


def test_nothing_of_the_sap_facade_is_deployed_without_it(deployed):
    stack = deployed(SapFacade="off")

    own = {route for route, function in ROUTES.items() if function != "SapApiFunction"}
    assert stack["Resources"]["Api"]["Properties"]["Body"]["paths"].keys() == own
    (stage,) = of_type(stack, "AWS::ApiGatewayV2::Stage").values()
    assert not [route for route in stage["RouteSettings"] if "scheduler" in route]
    of_sap = {name: part.get("Condition") for name, part in stack["Resources"].items() if name.startswith("SapApi")}
    assert set(of_sap.values()) == {"HasSapFacade"}
    assert of_sap.keys() >= {"SapApiFunction", "SapApiRole", "SapApiLogs", "SapApiFunctionSapPermission"}
    assert stack["Outputs"]["SapApiFunctionName"]["Condition"] == "HasSapFacade"


def test_nothing_of_the_azure_facade_is_deployed_without_it(deployed):
    stack = deployed(AzureFacade="off")

    own = {route for route, function in ROUTES.items() if function != "AzureApiFunction"}
    assert stack["Resources"]["Api"]["Properties"]["Body"]["paths"].keys() == own
    conditions = {part.get("Condition") for name, part in stack["Resources"].items() if name.startswith("AzureApi")}
    assert conditions == {"HasAzureFacade"}
    assert stack["Outputs"]["AzureApiFunctionName"]["Condition"] == "HasAzureFacade"


def test_no_route_has_an_authorizer_because_the_function_authenticates_callers(stack):
    body = stack["Resources"]["Api"]["Properties"]["Body"]

    assert "securitySchemes" not in body.get("components", {})
    assert all("security" not in operation for path in body["paths"].values() for operation in path.values())


def test_the_gateway_logs_every_request_with_its_source_even_those_it_refuses(stack):
    (stage,) = of_type(stack, "AWS::ApiGatewayV2::Stage").values()
    logged = json.loads(stage["AccessLogSettings"]["Format"])

    assert logged["functionRequestId"] == "$context.integration.requestId", "as the function's own line names it"
    assert stage["AccessLogSettings"]["DestinationArn"] == {"Fn::GetAtt": ["AccessLogs", "Arn"]}
    assert {logged[name] for name in ("requestId", "source", "agent", "method", "path", "status")} == {
        *("$context.requestId", "$context.identity.sourceIp", "$context.identity.userAgent"),
        *("$context.httpMethod", "$context.path", "$context.status"),
    }


def test_the_access_log_contains_no_query_header_or_body(stack):
    """A SAS token or a secret may stand in each of them."""
    (stage,) = of_type(stack, "AWS::ApiGatewayV2::Stage").values()

    text = stage["AccessLogSettings"]["Format"].lower()
    assert not [word for word in ("authorizer", "query", "header", "body", "$request") if word in text]


def test_no_function_can_be_reached_except_through_the_gateway(stack):
    assert of_type(stack, "AWS::Lambda::Url") == {}
    assert list(of_type(stack, "AWS::ApiGatewayV2::Api")) == ["Api"]


def test_the_gateway_throttles_all_routes_by_parameter(deployed):
    (stage,) = of_type(deployed(ApiRateLimit=11), "AWS::ApiGatewayV2::Stage").values()

    assert stage["DefaultRouteSettings"] == {"ThrottlingRateLimit": 11, "ThrottlingBurstLimit": 11}


def test_results_of_runs_have_a_throttle_bucket_that_no_other_request_empties(deployed):
    (stage,) = of_type(deployed(ApiRateLimit=11), "AWS::ApiGatewayV2::Stage").values()

    for route in (CALLBACK, SAP_CALLBACK):
        assert stage["RouteSettings"][f"PUT {route}"] == {"ThrottlingRateLimit": 11, "ThrottlingBurstLimit": 11}


def test_the_public_document_has_a_low_request_limit(stack):
    (found,) = of_type(stack, "AWS::ApiGatewayV2::Stage").values()

    assert found["RouteSettings"][f"GET {DOCUMENT}"] == {"ThrottlingRateLimit": 2, "ThrottlingBurstLimit": 10}


def test_the_consoles_files_cannot_take_the_requests_of_the_api(stack):
    (found,) = of_type(stack, "AWS::ApiGatewayV2::Stage").values()

    limits = [found["RouteSettings"][f"GET {route}"] for route in CONSOLE]
    assert [(each["ThrottlingRateLimit"], each["ThrottlingBurstLimit"]) for each in limits] == [
        *((5, 10), (10, 20), (50, 100)),
    ]


def test_tokens_have_no_small_throttle_bucket_that_a_stranger_could_empty(stack):
    (found,) = of_type(stack, "AWS::ApiGatewayV2::Stage").values()

    assert not [route for route in found["RouteSettings"] if "token" in route]


def test_every_throttled_route_exists_under_that_name(stack):
    (found,) = of_type(stack, "AWS::ApiGatewayV2::Stage").values()

    named = {f"{method.upper()} {route}" for route, method in APART.items()}
    assert found["RouteSettings"].keys() == {*named, "$default"}


def test_unknown_paths_have_the_lowest_limit(stack):
    (found,) = of_type(stack, "AWS::ApiGatewayV2::Stage").values()
    elsewhere = found["RouteSettings"]["$default"]

    assert elsewhere == {"ThrottlingRateLimit": 5, "ThrottlingBurstLimit": 10}


@pytest.mark.parametrize("function", ["ApiFunction", "SapApiFunction", "AzureApiFunction"])
def test_a_parameter_limits_a_tenants_requests_a_minute_by_every_facade(deployed, function):
    assert _environment(deployed(), function)["TENANT_RATE_MOST"] == 3_000
    assert _environment(deployed(TenantRateMost=77), function)["TENANT_RATE_MOST"] == 77


@pytest.mark.parametrize(
    ("function", "caller_waits_s"), [("ApiFunction", 30), ("SapApiFunction", 15), ("AzureApiFunction", 30)]
)
def test_the_function_answers_before_the_gateway_or_saps_client_times_out(stack, function, caller_waits_s):
    assert stack["Resources"][function]["Properties"]["Timeout"] < caller_waits_s


def test_no_api_function_refers_to_the_api_because_that_would_be_circular(raw):
    assert all("${Api}" not in str(raw["Resources"][function]) for function in set(ROUTES.values()))
    assert "PUBLIC_BASE_URL" not in raw["Globals"]["Function"]["Environment"]["Variables"]


def test_the_api_function_takes_its_address_from_the_request_without_the_parameter(stack):
    assert "PUBLIC_BASE_URL" not in _environment(stack, "ApiFunction")


@pytest.mark.parametrize("function", ["ExecutorFunction", "ExecutorSlowFunction"])
def test_the_executors_use_the_gateways_address_without_the_parameter(stack, function):
    assert _environment(stack, function)["PUBLIC_BASE_URL"] == ADDRESS_OF_THE_GATEWAY


@pytest.mark.parametrize("function", ["ApiFunction", "ExecutorFunction", "ExecutorSlowFunction"])
def test_every_function_uses_the_address_of_the_parameter_if_it_is_set(deployed, function):
    stack = deployed(PublicBaseUrl="https://jobs.example.org")

    assert _environment(stack, function)["PUBLIC_BASE_URL"] == "https://jobs.example.org"
    assert stack["Outputs"]["ApiUrl"]["Value"] == "https://jobs.example.org"


def _environment(stack, function):
    return stack["Resources"][function]["Properties"]["Environment"]["Variables"]
