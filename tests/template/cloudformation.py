"""The template as CloudFormation would resolve it: SAM's transform, then parameters, conditions and intrinsics."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).resolve().parents[2]
PSEUDO = {
    "AWS::StackName": "sweephand",
    "AWS::StackId": "arn:aws:cloudformation:eu-central-1:123456789012:stack/sweephand/51af3dc0-da77-11e4-872e-1234567d",
    "AWS::Region": "eu-central-1",
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::URLSuffix": "amazonaws.com",
}
NO_VALUE = object()


def raw_template() -> dict[str, Any]:
    """Returns the template as it is written, short forms such as !Ref as {"Ref": ...}."""
    return yaml_parse((ROOT / "template.yaml").read_text())


def translated(template: dict[str, Any]) -> dict[str, Any]:
    """Returns the template after SAM's transform, which needs no AWS."""
    source = copy.deepcopy(template)
    for resource in source["Resources"].values():
        for member in ("CodeUri", "ContentUri"):
            if member in resource.get("Properties", {}):
                resource["Properties"][member] = "s3://bucket/key"
    return Translator({}, Parser()).translate(source, {})


def resolved(template: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    """Returns the translated template under these parameters, the others at their defaults.

    References to resources stay: {"Ref": "Table"}, {"Fn::GetAtt": [...]}, and ${Table} within a Fn::Sub.
    """
    resolver = _resolver(template, parameters)
    return {section: resolver.value(template[section]) for section in ("Resources", "Outputs")}


def present(template: dict[str, Any], **parameters: Any) -> set[str]:
    """Returns the names of the resources that a stack with these parameters has."""
    resolver = _resolver(template, parameters)
    return {
        name
        for name, resource in template["Resources"].items()
        if "Condition" not in resource or resolver.holds({"Condition": resource["Condition"]})
    }


def _resolver(template: dict[str, Any], parameters: dict[str, Any]) -> _Resolver:
    unknown = parameters.keys() - template["Parameters"].keys()
    if unknown:
        raise KeyError(unknown)
    values = PSEUDO | {name: spec.get("Default") for name, spec in template["Parameters"].items()} | parameters
    return _Resolver(values, template.get("Conditions", {}))


class _Resolver:
    def __init__(self, values: dict[str, Any], conditions: dict[str, Any]) -> None:
        self.values = values
        self.conditions = conditions

    def value(self, node: Any) -> Any:
        if isinstance(node, list):
            return [value for item in node if (value := self.value(item)) is not NO_VALUE]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            (name, argument), *_ = node.items()
            if name == "Ref":
                return self.reference(argument)
            if name == "Fn::If":
                condition, yes, no = argument
                return self.value(yes if self.holds({"Condition": condition}) else no)
            if name == "Fn::Select" and "Fn::Split" in argument[1]:
                return self.part(node)
            if name == "Fn::Sub" and isinstance(argument, str):
                return _filled(argument, self.values)
            if name == "Fn::Sub" and all("Fn::Select" in value for value in argument[1].values()):
                text, given = argument
                return _filled(text, {**self.values, **{name: self.part(value) for name, value in given.items()}})
        resolved_members = {key: self.value(item) for key, item in node.items()}
        return {key: item for key, item in resolved_members.items() if item is not NO_VALUE}

    def part(self, node: dict[str, Any]) -> str:
        """Returns a part of a split string, as the variables of a Fn::Sub choose it."""
        place, split = node["Fn::Select"]
        mark, text = split["Fn::Split"]
        return str(self.value(text)).split(mark)[place]

    def reference(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        return self.values.get(name, {"Ref": name})

    def holds(self, node: dict[str, Any]) -> bool:
        ((name, argument),) = node.items()
        if name == "Condition":
            return self.holds(self.conditions[argument])
        if name == "Fn::Not":
            return not self.holds(argument[0])
        if name == "Fn::And":
            return all(map(self.holds, argument))
        if name == "Fn::Or":
            return any(map(self.holds, argument))
        if name == "Fn::Equals":
            left, right = map(self.value, argument)
            return str(left) == str(right)
        raise NotImplementedError(name)


def _filled(text: str, values: dict[str, Any]) -> str:
    return re.sub(r"\$\{([A-Za-z:]+)\}", lambda m: str(values.get(m[1], m[0])), text)


def of_type(stack: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Returns logical id -> properties of all resources of that type."""
    return {
        name: resource.get("Properties", {})
        for name, resource in stack["Resources"].items()
        if resource["Type"] == kind
    }
