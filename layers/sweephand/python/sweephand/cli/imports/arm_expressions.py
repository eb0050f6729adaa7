"""Expressions of ARM templates: `[concat(parameters('name'), '-job')]`. Pure.

Source: the template functions of Azure Resource Manager. Functions whose value only Azure knows are reported by name.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sweephand.base.members.fields import below

LONGEST = 24_576
MOST_COPIES = 800
_TOKEN = re.compile(r"\s*(?:'((?:[^']|'')*)'|(-?[0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|([()\[\].,]))")
_HOLE = re.compile(r"\{\{|\}\}|\{([0-9]+)\}")


class Unresolved(Exception):
    """A value that cannot be computed from the file. reasons: one for each place."""

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(dict.fromkeys(reasons)))
        self.reasons = reasons


@dataclass(frozen=True)
class Scope:
    """The names that expressions may use.

    definitions: the template's. parameters: their values, by name in lower case. index: of a copy, by the name of
    its loop; the innermost is also under the empty name. subscription, group, location: where the template is deployed.
    """

    definitions: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    index: Mapping[str, int] = field(default_factory=dict)
    subscription: str | None = None
    group: str | None = None
    location: str | None = None
    within: tuple[str, ...] = ()

    def entered(self, name: str) -> Scope:
        """Returns the scope for a parameter's or variable's value. Raises Unresolved if it refers to itself."""
        if name in self.within:
            raise Unresolved(f"{name} refers to itself")
        return replace(self, within=(*self.within, name))


class _Unreadable(Exception):
    """A string that is not an expression. Messages do not repeat the string, because it may be a password."""


def resolve(value: Any, scope: Scope, path: str = "") -> Any:
    """Returns a value of a template with all its expressions replaced. Raises Unresolved with all reasons."""
    reasons: list[str] = []
    resolved = _resolved(value, scope, path, reasons)
    if reasons:
        raise Unresolved(*reasons)
    return resolved


def _resolved(value: Any, scope: Scope, path: str, reasons: list[str]) -> Any:
    if isinstance(value, Mapping):
        if isinstance(value.get("copy"), list):
            reasons.append(f"{below(path, 'copy')} is not supported: write out its elements")
        return {name: _resolved(each, scope, below(path, name), reasons) for name, each in value.items()}
    if isinstance(value, list):
        return [_resolved(each, scope, f"{path}[{n}]", reasons) for n, each in enumerate(value)]
    if not isinstance(value, str) or not value.startswith("["):
        return value
    if value.startswith("[["):
        return value[1:]
    try:
        return _evaluated(value, scope)
    except Unresolved as wrong:
        reasons.extend(wrong.reasons)
    except _Unreadable as wrong:
        reasons.append(f"{path or 'an expression'} {wrong}: write [[ for a string that begins with [")
    except RecursionError:
        reasons.append(f"{path or 'an expression'} is nested too deeply")
    return None


def _evaluated(expression: str, scope: Scope) -> Any:
    if not expression.endswith("]") or len(expression) > LONGEST:
        raise _Unreadable("is not an expression")
    reader = _Reader(_tokens(expression[1:-1]))
    evaluate = reader.value()
    if reader.at < len(reader.tokens):
        raise reader.wrong()
    return evaluate(scope)


class Token(NamedTuple):
    """A part of an expression. kind: value, name, or the mark itself. at: its position in the string."""

    kind: str
    value: Any
    at: int


Lazy = Callable[[Scope], Any]
"""Returns the value of a part of an expression. Raises Unresolved."""


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while text[at:].strip():
        token = _TOKEN.match(text, at)
        if token is None:
            raise _unreadable(at)
        string, number, name, mark = token.groups()
        if string is not None:
            tokens.append(Token("value", string.replace("''", "'"), at))
        elif number is not None:
            tokens.append(Token("value", int(number), at))
        else:
            tokens.append(Token("name", name, at) if name is not None else Token(mark, mark, at))
        at = token.end()
    return tokens


def _unreadable(at: int) -> _Unreadable:
    return _Unreadable(f"has a syntax error at character {at + 2}")


@dataclass
class _Reader:
    """A parser that turns tokens into a function of the scope."""

    tokens: Sequence[Token]
    at: int = 0

    def wrong(self) -> _Unreadable:
        if self.at < len(self.tokens):
            return _unreadable(self.tokens[self.at].at)
        return _Unreadable("ends too early")

    def _next(self, kind: str) -> Any:
        if not self._is(kind):
            raise self.wrong()
        self.at += 1
        return self.tokens[self.at - 1].value

    def _is(self, kind: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].kind == kind

    def value(self) -> Lazy:
        if self._is("value"):
            constant = self._next("value")
            operand: Lazy = lambda _: constant  # noqa: E731 - a def would be longer
        else:
            operand = self._call()
        while self._is(".") or self._is("["):
            operand = self._member(operand)
        return operand

    def _member(self, whole: Lazy) -> Lazy:
        if self._is("."):
            self._next(".")
            name = self._next("name")
            return lambda scope: _part(whole(scope), name)
        self._next("[")
        key = self.value()
        self._next("]")
        return lambda scope: _part(whole(scope), key(scope))

    def _call(self) -> Lazy:
        name = self._next("name")
        self._next("(")
        arguments: list[Lazy] = []
        while not self._is(")"):
            if arguments:
                self._next(",")
            arguments.append(self.value())
        self._next(")")
        return lambda scope: _called(name, arguments, scope)


def _part(whole: Any, key: Any) -> Any:
    if isinstance(whole, Mapping) and isinstance(key, str):
        own = next((name for name in whole if name.lower() == key.lower()), None)
        if own is not None:
            return whole[own]
    elif isinstance(whole, list | str) and isinstance(key, int) and 0 <= key < len(whole):
        return whole[key]
    raise Unresolved(f"has no member {key}")


def _called(name: str, arguments: Sequence[Lazy], scope: Scope) -> Any:
    own = name.lower()
    if own == "if" and len(arguments) == 3:
        return arguments[1 if arguments[0](scope) else 2](scope)
    values = [each(scope) for each in arguments]
    try:
        if own in _OF_SCOPE:
            return _OF_SCOPE[own](scope, *values)
        if own in _PLAIN:
            return _PLAIN[own](*values)
    except (TypeError, ValueError, LookupError, AttributeError, ZeroDivisionError):
        raise Unresolved(f"{name}() does not take these arguments") from None
    raise Unresolved(f"{name}() is not supported: write its value into the file")


# Names


def _parameter(scope: Scope, name: str) -> Any:
    """Returns the given value of a parameter, or else its default."""
    own = name.lower()
    if own in scope.parameters:
        return scope.parameters[own]
    definition = next((each for known, each in scope.definitions.items() if known.lower() == own), None)
    if definition is None:
        raise Unresolved(f"the template has no parameter {name}")
    if not isinstance(definition, Mapping) or definition.get("defaultValue") is None:
        raise Unresolved(f"the parameter {name} has no value: give it in the file of --parameters")
    return resolve(definition["defaultValue"], scope.entered(f"the parameter {name}"), f"the parameter {name}")


def _variable(scope: Scope, name: str) -> Any:
    own = next((known for known in scope.variables if known.lower() == name.lower()), None)
    if own is None:
        raise Unresolved(f"the template has no variable {name}")
    return resolve(scope.variables[own], scope.entered(f"the variable {own}"), f"the variable {own}")


def _copy_index(scope: Scope, *arguments: Any) -> int:
    name = arguments[0] if arguments and isinstance(arguments[0], str) else ""
    offset = arguments[-1] if arguments and isinstance(arguments[-1], int) else 0
    if name.lower() not in scope.index:
        raise Unresolved("copyIndex() is used outside its loop")
    return scope.index[name.lower()] + offset


def _resource_id(scope: Scope, *arguments: str) -> str:
    """Returns the id. The type is the first argument with a slash; a subscription and a group may precede it."""
    kind = [("/" in each) for each in arguments].index(True)
    before, (namespace, *types), names = arguments[:kind], arguments[kind].split("/"), arguments[kind + 1 :]
    if len(types) != len(names) or kind > 2:
        raise ValueError
    group = before[-1] if before else _known(scope.group, "name", "--group")
    subscription = before[0] if kind == 2 else _known(scope.subscription, "subscriptionId", "--subscription")
    parts = "/".join(f"{each}/{name}" for each, name in zip(types, names, strict=True))
    return f"/subscriptions/{subscription}/resourceGroups/{group}/providers/{namespace}/{parts}"


def _known(value: str | None, member: str, option: str) -> str:
    if value is None:
        raise Unresolved(f"the {member} of the deployment is not in the file: give it with {option}")
    return value


class _Given(dict[str, Any]):
    """The members of resourceGroup() or subscription(), each with the option that sets it."""

    def __getitem__(self, member: str) -> Any:
        option, value = super().__getitem__(member)
        return _known(value, member, option)


def _group(scope: Scope) -> Any:
    return _Given(name=("--group", scope.group), location=("--location", scope.location))


def _subscription(scope: Scope) -> Any:
    return _Given(subscriptionId=("--subscription", scope.subscription))


_OF_SCOPE: Mapping[str, Callable[..., Any]] = {
    "parameters": _parameter,
    "variables": _variable,
    "copyindex": _copy_index,
    "resourceid": _resource_id,
    "resourcegroup": _group,
    "subscription": _subscription,
}


# Values


def _concat(*arguments: Any) -> Any:
    if arguments and isinstance(arguments[0], list):
        return [each for part in arguments for each in part]
    return "".join(_string(each) for each in arguments)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _format(pattern: str, *arguments: Any) -> str:
    return _HOLE.sub(lambda hole: _string(arguments[int(hole[1])]) if hole[1] else hole[0][0], pattern)


def _equals(one: Any, other: Any) -> bool:
    return str(one).lower() == str(other).lower() if isinstance(one, str) else bool(one == other)


def _bool(value: Any) -> bool:
    return value.lower() in {"true", "1"} if isinstance(value, str) else bool(value)


def _first_known(*arguments: Any) -> Any:
    return next((each for each in arguments if each is not None), None)


_PLAIN: Mapping[str, Callable[..., Any]] = {
    "concat": _concat,
    "format": _format,
    "string": _string,
    "int": int,
    "bool": _bool,
    "tolower": str.lower,
    "toupper": str.upper,
    "trim": str.strip,
    "replace": str.replace,
    "substring": lambda text, start, length: text[start : start + length],
    "split": lambda text, mark: text.split(mark),
    "join": lambda parts, mark: mark.join(parts),
    "length": len,
    "first": lambda parts: parts[0],
    "last": lambda parts: parts[-1],
    "empty": lambda value: not value,
    "coalesce": _first_known,
    "equals": _equals,
    "not": lambda value: not _bool(value),
    "and": lambda *arguments: all(_bool(each) for each in arguments),
    "or": lambda *arguments: any(_bool(each) for each in arguments),
    "add": lambda one, other: int(one) + int(other),
    "sub": lambda one, other: int(one) - int(other),
    "mul": lambda one, other: int(one) * int(other),
    "div": lambda one, other: int(one) // int(other),
    "mod": lambda one, other: int(one) % int(other),
    "createarray": lambda *arguments: list(arguments),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64tostring": lambda text: base64.b64decode(text, validate=True).decode(),
    "json": json.loads,
    "true": lambda: True,
    "false": lambda: False,
    "null": lambda: None,
}
