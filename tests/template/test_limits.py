"""Guards of AWS's limits on a template and on what it creates, with every parameter at its longest."""

from __future__ import annotations

import json

import pytest

from tests.template.cloudformation import of_type
from tests.template.test_parameters import PARAMETERS, longest

ARN = "arn:aws-us-gov:dynamodb:us-gov-west-1:123456789012:table/" + "x" * 100
"""An ARN, longer than those of the stack's resources."""
INLINE_POLICIES = 10_240
"""The most characters of all inline policies of a role, without spaces."""


@pytest.fixture(scope="module")
def largest(deployed):
    return deployed(**{name: longest(name) for name in PARAMETERS if PARAMETERS[name]["Type"] == "String"})


def test_the_translated_template_fits_into_cloudformation(translated):
    sections = {name: len(translated[name]) for name in ("Resources", "Parameters", "Outputs", "Conditions")}

    assert len(json.dumps(translated, indent=2)) < 1_000_000
    assert sections["Resources"] <= 500
    assert (sections["Parameters"], sections["Outputs"]) <= (200, 200)
    assert all(len(each["Description"]) <= 4_000 for each in translated["Parameters"].values())
    assert all(len(str(each["Default"])) <= 4_096 for each in translated["Parameters"].values())


def test_the_policies_of_each_role_fit_into_it(largest):
    for name, role in of_type(largest, "AWS::IAM::Role").items():
        text = json.dumps(_with_arns(role["Policies"]), separators=(",", ":"))

        assert len(text) <= INLINE_POLICIES, name


def _with_arns(node):
    """Returns the policies with an ARN for each reference."""
    if isinstance(node, list):
        return [_with_arns(each) for each in node]
    if not isinstance(node, dict):
        return node
    if node.keys() & {"Fn::GetAtt", "Ref", "Fn::Sub"}:
        return ARN
    if "Fn::Split" in node:
        return node["Fn::Split"][1].split(",")
    return {name: _with_arns(value) for name, value in node.items()}
