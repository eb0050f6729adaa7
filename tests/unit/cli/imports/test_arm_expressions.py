"""Expressions of ARM templates."""

from __future__ import annotations

import pytest

from sweephand.cli.imports.arm_expressions import Scope, Unresolved, resolve

SCOPE = Scope(
    definitions={
        "name": {"type": "string", "defaultValue": "Shop"},
        "long": {"type": "string", "defaultValue": "[concat(parameters('name'), '-', variables('end'))]"},
        "empty": {"type": "securestring"},
        "circle": {"defaultValue": "[parameters('circle')]"},
        "moment": {"defaultValue": "[utcNow()]"},
    },
    variables={"end": "jobs", "deep": {"List": ["a", {"b": 7}]}, "list": ["x", "y"]},
    parameters={"given": "mine"},
    index={"": 2, "loop": 2},
    subscription="sub",
    group="group",
)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("plain", "plain"),
        ("[[1, 2]", "[1, 2]"),
        ("[parameters('name')]", "Shop"),
        ("[PARAMETERS('NAME')]", "Shop"),
        ("[parameters('given')]", "mine"),
        ("[parameters('long')]", "Shop-jobs"),
        ("[variables('deep').list[1].b]", 7),
        ("[variables('deep')['List'][0]]", "a"),
        ("[concat('it''s ', 7, ' (', 'so)')]", "it's 7 (so)"),
        ("[concat(variables('list'), createArray('z'))]", ["x", "y", "z"]),
        ("[format('{0}/{1} {{0}}', parameters('name'), 3)]", "Shop/3 {0}"),
        ("[copyIndex()]", 2),
        ("[copyIndex(1)]", 3),
        ("[copyIndex('loop', 5)]", 7),
        ("[if(equals(variables('end'), 'JOBS'), 'yes', utcNow())]", "yes"),
        ("[if(not(true()), 'yes', 'no')]", "no"),
        ("[coalesce(null(), 'x')]", "x"),
        ("[toUpper(substring('abcdef', 1, 3))]", "BCD"),
        ("[add(mul(2, 3), div(7, 2))]", 9),
        ("[base64('hello')]", "aGVsbG8="),
        ("[string(json('[1, true]'))]", "[1,true]"),
        ("[length(split('a,b,c', ','))]", 3),
        ("[resourceGroup().name]", "group"),
        ("[subscription().subscriptionId]", "sub"),
        (
            "[resourceId('Microsoft.Scheduler/jobCollections/jobs', 'c', 'j')]",
            "/subscriptions/sub/resourceGroups/group/providers/Microsoft.Scheduler/jobCollections/c/jobs/j",
        ),
        (
            "[resourceId('other', 'g', 'Microsoft.Scheduler/jobCollections', 'c')]",
            "/subscriptions/other/resourceGroups/g/providers/Microsoft.Scheduler/jobCollections/c",
        ),
    ],
)
def test_an_expression_has_the_value_that_azure_gives_it(expression, value):
    assert resolve({"here": [expression]}, SCOPE) == {"here": [value]}


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("[parameters('empty')]", "the parameter empty has no value: give it in the file of --parameters"),
        ("[parameters('none')]", "the template has no parameter none"),
        ("[variables('none')]", "the template has no variable none"),
        ("[parameters('circle')]", "the parameter circle refers to itself"),
        ("[parameters('moment')]", "utcNow() is not supported: write its value into the file"),
        ("[reference('x').y]", "reference() is not supported: write its value into the file"),
        (
            "[resourceGroup().location]",
            "the location of the deployment is not in the file: give it with --location",
        ),
        ("[copyIndex('other')]", "copyIndex() is used outside its loop"),
        ("[variables('list')[2]]", "has no member 2"),
        ("[variables('deep').none]", "has no member none"),
        ("[int('x')]", "int() does not take these arguments"),
        ("[resourceId('jobs', 'x')]", "resourceId() does not take these arguments"),
    ],
)
def test_a_value_that_the_file_does_not_have_is_reported(expression, reason):
    with pytest.raises(Unresolved) as wrong:
        resolve(expression, SCOPE)

    assert str(wrong.value) == reason


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("[concat('a', ]", "ends too early"),
        ("[concat('a') 7]", "has a syntax error at character 13"),
        ("[concat('canary]", "has a syntax error at character 9"),
        ("[parameters('canary'", "is not an expression"),
        ("[canary", "is not an expression"),
        ("[canary]", "ends too early"),
        ("[]", "ends too early"),
    ],
)
def test_an_invalid_expression_is_not_repeated(expression, reason):
    with pytest.raises(Unresolved) as wrong:
        resolve({"password": [expression]}, SCOPE, "action")

    assert str(wrong.value) == f"action.password[0] {reason}: write [[ for a string that begins with ["


def test_all_reasons_are_reported_together_and_each_only_once():
    with pytest.raises(Unresolved) as wrong:
        resolve({"a": "[parameters('empty')]", "b": ["[utcNow()]", "[parameters('empty')]"], "copy": []}, SCOPE)

    assert str(wrong.value) == (
        "copy is not supported: write out its elements; "
        "the parameter empty has no value: give it in the file of --parameters; "
        "utcNow() is not supported: write its value into the file"
    )


def test_an_expression_that_is_nested_too_deeply_is_refused():
    with pytest.raises(Unresolved, match="nested too deeply"):
        resolve(f"[{'string(' * 3_000}1{')' * 3_000}]", SCOPE)
