"""DynamoDB's expressions: conditions, keys, filters and updates, read once a text and carried out on plain items.

Items and values are in DynamoDB's JSON ({"S": "a"}, {"N": "1"}). Attributes are whole: there is no path into maps or
lists, because the service stores none. Unknown expressions are refused, so that no test passes by a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Any

Value = Mapping[str, Any]
Item = dict[str, Any]
Names = Mapping[str, str]
Values = Mapping[str, Value]
Operand = Callable[[Item, Names, Values], Value | None]
Test = Callable[[Item, Names, Values], bool]

_TOKEN = re.compile(r"\s*(<=|>=|<>|[=<>(),+-]|[#:]?\w+)")
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def plain(value: Value) -> Any:
    """Returns the value that comparisons use: numbers by their size, texts by their bytes, sets without order."""
    ((kind, raw),) = value.items()
    match kind:
        case "N":
            return Decimal(raw)
        case "S":
            return raw.encode()
        case "SS" | "NS":
            return frozenset(raw)
    return raw


def same(left: Value | None, right: Value | None) -> bool:
    if left is None or right is None:
        return False
    return left.keys() == right.keys() and plain(left) == plain(right)


class _Reader:
    """The tokens of one text, read from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        if "".join(self._tokens) != re.sub(r"\s", "", text):
            raise NotImplementedError(text)
        self._at = 0

    @property
    def ahead(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        token = self.ahead
        if not token or (wanted is not None and token != wanted):
            raise NotImplementedError(f"{token!r} in {self._text!r}")
        self._at += 1
        return token

    def takes(self, token: str) -> bool:
        if self.ahead != token:
            return False
        self._at += 1
        return True

    def listed(self, read: Callable[[], Any]) -> list[Any]:
        operands = [read()]
        while self.takes(","):
            operands.append(read())
        return operands

    def ended(self) -> None:
        if self.ahead:
            raise NotImplementedError(f"{self.ahead!r} in {self._text!r}")

    # Operands

    def name(self) -> Callable[[Names], str]:
        token = self.take()
        if token.startswith(":"):
            raise NotImplementedError(self._text)
        return lambda names: names[token] if token.startswith("#") else token

    def operand(self) -> Operand:
        if self.ahead == "size":
            self.take()
            self.take("(")
            of = self.name()
            self.take(")")
            return lambda item, names, _: _size(item.get(of(names)))
        if self.ahead.startswith(":"):
            token = self.take()
            return lambda _item, _names, values: values[token]
        name = self.name()
        return lambda item, names, _: item.get(name(names))

    # Conditions

    def condition(self) -> Test:
        tests = [self._conjunction()]
        while self.takes("OR"):
            tests.append(self._conjunction())
        return tests[0] if len(tests) == 1 else lambda *context: any(test(*context) for test in tests)

    def _conjunction(self) -> Test:
        tests = [self._negation()]
        while self.takes("AND"):
            tests.append(self._negation())
        return tests[0] if len(tests) == 1 else lambda *context: all(test(*context) for test in tests)

    def _negation(self) -> Test:
        if self.takes("NOT"):
            test = self._negation()
            return lambda *context: not test(*context)
        if self.takes("("):
            inner = self.condition()
            self.take(")")
            return inner
        if self.ahead in _FUNCTIONS:
            return self._function()
        return self._comparison()

    def _function(self) -> Test:
        function = _FUNCTIONS[self.take()]
        self.take("(")
        operands = self.listed(self.operand)
        self.take(")")
        return lambda item, names, values: function(*(operand(item, names, values) for operand in operands))

    def _comparison(self) -> Test:
        left = self.operand()
        sign = self.take()
        if sign == "BETWEEN":
            low = self.operand()
            self.take("AND")
            high = self.operand()
            return lambda *context: (
                _ordered(">=", left(*context), low(*context)) and _ordered("<=", left(*context), high(*context))
            )
        if sign == "IN":
            self.take("(")
            members = self.listed(self.operand)
            self.take(")")
            return lambda *context: any(same(left(*context), member(*context)) for member in members)
        right = self.operand()
        match sign:
            case "=":
                return lambda *context: same(left(*context), right(*context))
            case "<>":
                return lambda *context: not same(left(*context), right(*context))
        if sign not in COMPARE:
            raise NotImplementedError(self._text)
        return lambda *context: _ordered(sign, left(*context), right(*context))


def _ordered(sign: str, left: Value | None, right: Value | None) -> bool:
    if left is None or right is None or left.keys() != right.keys():
        return False
    return COMPARE[sign](plain(left), plain(right))


def _size(value: Value | None) -> Value | None:
    if value is None:
        return None
    ((kind, raw),) = value.items()
    return {"N": str(len(raw.encode()) if kind == "S" else len(raw))}


def _begins_with(value: Value | None, prefix: Value | None) -> bool:
    return value is not None and prefix is not None and "S" in value and value["S"].startswith(prefix["S"])


def _contains(value: Value | None, member: Value | None) -> bool:
    if value is None or member is None:
        return False
    ((kind, raw),) = value.items()
    ((_, wanted),) = member.items()
    return kind in {"S", "SS"} and wanted in raw


_FUNCTIONS: dict[str, Callable[..., bool]] = {
    "attribute_exists": lambda value: value is not None,
    "attribute_not_exists": lambda value: value is None,
    "begins_with": _begins_with,
    "contains": _contains,
}


@cache
def condition(text: str) -> Test:
    """Raises NotImplementedError for what this module does not know."""
    reader = _Reader(text)
    test = reader.condition()
    reader.ended()
    return test


# Updates


@dataclass(frozen=True)
class Step:
    """One attribute of an update. value: of the item as it was; None takes the attribute away."""

    name: Callable[[Names], str]
    value: Operand


@cache
def update(text: str) -> tuple[Step, ...]:
    """Raises NotImplementedError for what this module does not know."""
    reader = _Reader(text)
    steps: list[Step] = []
    while reader.ahead:
        verb = reader.take()
        if verb not in _VERBS:
            raise NotImplementedError(text)
        steps += reader.listed(partial(_VERBS[verb], reader))
    return tuple(steps)


def apply(steps: tuple[Step, ...], item: Item, names: Names, values: Values) -> Item:
    """Returns a new item: every value is computed from the old one."""
    changed = dict(item)
    for step in steps:
        name, value = step.name(names), step.value(item, names, values)
        if value is None or value.get("SS") == []:
            changed.pop(name, None)
        else:
            changed[name] = value
    return changed


def _set(reader: _Reader) -> Step:
    name = reader.name()
    reader.take("=")
    first = _term(reader)
    if reader.ahead not in {"+", "-"}:
        return Step(name, first)
    sign = 1 if reader.take() == "+" else -1
    second = _term(reader)
    return Step(name, lambda *context: _sum(first(*context), second(*context), sign))


def _term(reader: _Reader) -> Operand:
    if not reader.takes("if_not_exists"):
        return reader.operand()
    reader.take("(")
    operand = reader.operand()
    reader.take(",")
    otherwise = reader.operand()
    reader.take(")")

    def chosen(item: Item, names: Names, values: Values) -> Value | None:
        value = operand(item, names, values)
        return otherwise(item, names, values) if value is None else value

    return chosen


def _remove(reader: _Reader) -> Step:
    return Step(reader.name(), lambda *_: None)


def _add(reader: _Reader) -> Step:
    name, more = reader.name(), reader.operand()

    def value(item: Item, names: Names, values: Values) -> Value:
        current, added = item.get(name(names)), more(item, names, values)
        assert added is not None
        if "SS" in added:
            return {"SS": sorted({*(current or {"SS": []})["SS"], *added["SS"]})}
        return _sum(current or {"N": "0"}, added, 1)

    return Step(name, value)


def _delete(reader: _Reader) -> Step:
    name, less = reader.name(), reader.operand()

    def value(item: Item, names: Names, values: Values) -> Value | None:
        current, taken = item.get(name(names)), less(item, names, values)
        assert taken is not None
        return None if current is None else {"SS": sorted(set(current["SS"]) - set(taken["SS"]))}

    return Step(name, value)


_VERBS: dict[str, Callable[[_Reader], Step]] = {"SET": _set, "REMOVE": _remove, "ADD": _add, "DELETE": _delete}


def _sum(left: Value | None, right: Value | None, sign: int) -> Value:
    assert left is not None
    assert right is not None
    return {"N": str(Decimal(left["N"]) + sign * Decimal(right["N"]))}
