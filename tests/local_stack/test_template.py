"""The template as the local deploy reads and packs it."""

from __future__ import annotations

import io
import os
import zipfile

import pytest

from sweephand.local.aws import template as templates
from sweephand.local.settings import CHECKOUT
from tests.local_stack.conftest import SAMPLE


def loaded(tmp_path, text):
    path = tmp_path / "template.yaml"
    path.write_text(text)
    return templates.load(path)


def test_short_forms_are_expanded(tmp_path):
    text = """
AWSTemplateFormatVersion: 2010-09-09
Resources:
  A:
    Type: T
    Condition: C
    Properties:
      ref: !Ref B
      att: !GetAtt B.Outputs.Arn
      sub: !Sub "${B}-x"
      if: !If [C, !Ref B, !Ref AWS::NoValue]
      both: !And [!Condition C, !Not [!Equals [a, b]]]
"""
    template = loaded(tmp_path, text)

    assert template["AWSTemplateFormatVersion"] == "2010-09-09"
    assert template["Resources"]["A"]["Properties"] == {
        "ref": {"Ref": "B"},
        "att": {"Fn::GetAtt": ["B", "Outputs.Arn"]},
        "sub": {"Fn::Sub": "${B}-x"},
        "if": {"Fn::If": ["C", {"Ref": "B"}, {"Ref": "AWS::NoValue"}]},
        "both": {"Fn::And": [{"Condition": "C"}, {"Fn::Not": [{"Fn::Equals": ["a", "b"]}]}]},
    }


def test_an_invalid_template_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not a CloudFormation template"):
        loaded(tmp_path, "a: b")


def test_the_same_files_make_the_same_zip_whatever_their_dates(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "a.py").write_text("1")
        (tmp_path / name / "sub" / "b.py").write_text("2")
        (tmp_path / name / "__pycache__").mkdir()
        (tmp_path / name / "__pycache__" / "a.pyc").write_text(name)
    os.utime(tmp_path / "two" / "a.py", (1, 1))

    one, two = (templates.zip_folder(tmp_path / name, "python/") for name in ("one", "two"))

    assert one == two
    assert zipfile.ZipFile(io.BytesIO(one)).namelist() == ["python/a.py", "python/sub/b.py"]


def test_the_layer_contains_our_package_without_the_parts_for_the_users_machine():
    packed, objects = templates.pack(templates.load(CHECKOUT / "template.yaml"), CHECKOUT, "bucket")

    key = packed["Resources"]["CodeLayer"]["Properties"]["ContentUri"].removeprefix("s3://bucket/")
    names = zipfile.ZipFile(io.BytesIO(objects[key])).namelist()
    assert "python/sweephand/server/flow/sweep/sweep.py" in names
    assert not [name for name in names if name.startswith(("python/sweephand/local/", "python/sweephand/cli/"))]


def test_packing_leaves_the_template_unchanged_and_names_objects_by_their_content(tmp_path):
    template = templates.load(SAMPLE / "template.yaml")

    packed, objects = templates.pack(template, SAMPLE, "bucket")

    assert template == templates.load(SAMPLE / "template.yaml")
    functions = [properties["CodeUri"] for _, properties in templates.resources(packed, "AWS::Serverless::Function")]
    assert set(functions) == {functions[0]}
    assert functions[0].removeprefix("s3://bucket/") in objects
    assert packed == templates.pack(template, SAMPLE, "bucket")[0]


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("AttributeName: pk, KeyType: HASH", "AttributeName: key, KeyType: HASH", False),
        ("AttributeName: expires_at", "AttributeName: ends_at", True),
        ("Handler: app.handler", "Handler: app.other", True),
    ],
)
def test_only_changed_keys_make_a_state_unusable(tmp_path, old, new, same):
    text = (SAMPLE / "template.yaml").read_text()
    assert old in text

    before, after = loaded(tmp_path, text), loaded(tmp_path, text.replace(old, new))

    assert (templates.data_shape(before) == templates.data_shape(after)) is same


def uri(function):
    prefix = "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/"
    return {"Fn::Sub": f"{prefix}${{{function}.Arn}}/invocations"}


def operation(function, **more):
    return {"x-amazon-apigateway-integration": {"uri": uri(function)}, **more}


@pytest.mark.parametrize("spelled", ["$default", "/$default"])
def test_the_routes_of_a_body_lead_to_their_functions(spelled):
    body = {
        "paths": {
            "/v1/{proxy+}": {"x-amazon-apigateway-any-method": operation("A")},
            "/oauth/token": {"post": operation("B", security=[{"NONE": []}])},
            spelled: {"x-amazon-apigateway-any-method": operation("A")},
        }
    }

    assert templates.routes_of(body) == {"ANY /v1/{proxy+}": "A", "POST /oauth/token": "B", "$default": "A"}


def test_a_route_under_a_condition_leads_to_its_function():
    """SAM writes the resources of a function with a condition in this way: path, method and address, each under it."""

    def under(node):
        return {"Fn::If": ["HasIt", node, {"Ref": "AWS::NoValue"}]}

    integration = {"x-amazon-apigateway-integration": {"uri": under(uri("A"))}}
    body = {"paths": {"/v1/{proxy+}": under({"x-amazon-apigateway-any-method": under(integration)})}}

    assert templates.routes_of(body) == {"ANY /v1/{proxy+}": "A"}


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (operation("A", security=[{"Jwt": []}]), "needs an authorizer"),
        ({"x-amazon-apigateway-integration": {"uri": "https://x.org"}}, "does not lead to a function"),
        ({}, "does not lead to a function"),
    ],
)
def test_a_route_that_cannot_be_rebuilt_is_an_error(broken, why):
    with pytest.raises(ValueError, match=why):
        templates.routes_of({"paths": {"/x": {"get": broken}}})
