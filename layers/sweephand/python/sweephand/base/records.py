"""The decorator `dataclass` of the standard library, without the source code that it compiles for a frozen class.

Compiling that code takes four fifths of the decorator's time, and a cold start of the API loads over a hundred such
classes.
Fields, `replace` and `fields` are the standard library's own. Source: decision 0123.
"""

from __future__ import annotations

import dataclasses
from dataclasses import MISSING, FrozenInstanceError
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]
OFTEN = 50
"""After so many objects, the class gets a compiled __init__. A cold start creates fewer of almost every class."""

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, kw_only: bool = False
    ) -> Any:
        """Returns a dataclass, or a decorator. A class that is not frozen, or has slots, is the standard library's."""
        if cls is None:
            return partial(dataclass, frozen=frozen, slots=slots, kw_only=kw_only)
        if slots or not frozen:
            return dataclasses.dataclass(frozen=frozen, slots=slots, kw_only=kw_only)(cls)
        return _frozen(dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls))


def _frozen(cls: Any) -> Any:
    """Adds the methods that follow from the fields of a class, except those that it defines itself."""
    fields = dataclasses.fields(cls)
    own = vars(cls)
    methods = {"__init__": _init(cls, fields), "__setattr__": _refuse, "__delattr__": _refuse}
    if "__repr__" not in own:
        methods["__repr__"] = _repr([each.name for each in fields if each.repr])
    if "__eq__" not in own:
        methods["__eq__"], methods["__hash__"] = _comparison([each.name for each in fields if each.compare])
    for name, method in methods.items():
        setattr(cls, name, method)
    return cls


def _init(cls: type[Any], fields: tuple[dataclasses.Field[Any], ...]) -> Any:
    taken = frozenset(each.name for each in fields if each.init)
    complete = taken if len(taken) == len(fields) else None
    positional = tuple(each.name for each in fields if each.init and not each.kw_only)
    defaults = {each.name: each.default for each in fields if each.default is not MISSING}
    made = {each.name: each.default_factory for each in fields if each.default_factory is not MISSING}
    needed = taken - defaults.keys() - made.keys()
    finish = getattr(cls, "__post_init__", None)
    calls = 0

    def init(self: Any, /, *values: Any, **named: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == OFTEN:
            cls.__init__ = _compiled(fields, finish)
        if values:
            placed = dict(zip(positional, values, strict=False))
            if len(placed) < len(values) or (named and placed.keys() & named.keys()):
                raise TypeError(f"{cls.__name__}: a value too many, or given twice")
            named |= placed
        if named.keys() != complete:
            if wrong := named.keys() - taken:
                raise TypeError(f"{cls.__name__} has no {', '.join(sorted(wrong))}")
            if missing := needed - named.keys():
                raise TypeError(f"{cls.__name__} needs {', '.join(sorted(missing))}")
            unset = {name: make() for name, make in made.items() if name not in named}
            named = defaults | unset | named
        self.__dict__.update(named)
        if finish is not None:
            finish(self)

    return init


def _compiled(fields: tuple[dataclasses.Field[Any], ...], finish: Any) -> Any:
    """Returns an __init__ made from source, as the standard library's: slow to compile, twice as fast to call."""
    scope: dict[str, Any] = {"_finish": finish, "_missing": MISSING}
    places: dict[bool, list[str]] = {False: [], True: []}
    lines = ["_of_self = self.__dict__"]  # like the other names here, none that a field has
    for each in fields:
        name = each.name
        scope |= {f"_make_{name}": each.default_factory, f"_default_{name}": each.default}
        made = each.default_factory is not MISSING
        default = "_missing" if made else f"_default_{name}"
        if each.init:
            required = not made and each.default is MISSING
            places[bool(each.kw_only)].append(name if required else f"{name}={default}")
            lines.append(
                f"_of_self['{name}'] = _make_{name}() if {name} is _missing else {name}"
                if made
                else f"_of_self['{name}'] = {name}"
            )
        elif made or each.default is not MISSING:
            lines.append(f"_of_self['{name}'] = {f'_make_{name}()' if made else default}")
    lines += ["_finish(self)"] if finish is not None else []
    parameters = ["self", *places[False], *(["*", *places[True]] if places[True] else [])]
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), scope)  # noqa: S102 - of the names of fields only
    return scope["__init__"]


def _repr(names: list[str]) -> Any:
    def text(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return text


def _comparison(names: list[str]) -> tuple[Any, Any]:
    """Returns __eq__ and __hash__."""
    key = attrgetter(*names) if names else _nothing

    def same(self: Any, other: Any) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def number(self: Any) -> int:
        return hash((key(self),))

    return same, number


def _nothing(_: object) -> tuple[()]:
    return ()


def _refuse(self: object, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"{type(self).__name__}.{name} cannot be changed")
