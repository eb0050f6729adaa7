"""Frozen values like those of `dataclass(frozen=True, slots=True)`, for modules that every cold start loads.

Such a class costs a twenty-fifth of a dataclass when its module is loaded, and an object costs half. Importing
`dataclasses`, which imports `inspect`, takes longer than the mathematics of schedules. Rarely loaded classes stay
dataclasses.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(cls: type[T]) -> type[T]:
    """Returns a frozen class whose annotations are its fields: it is compared, hashed and shown by them, in order.

    Defaults and __post_init__ work as in a dataclass. A field whose name begins with `_` is neither compared nor shown.
    All bases must have `__slots__` and no fields.
    """
    names = tuple(cls.__annotations__)
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    own = {name: each for name, each in cls.__dict__.items() if name not in {*names, "__dict__", "__weakref__"}}
    made: Any = type(cls.__name__, cls.__bases__, own | {"__slots__": names, "__match_args__": names})
    shown = tuple(name for name in names if name[0] != "_")
    key = attrgetter(*shown) if shown else _nothing

    def same(self: object, other: object) -> bool:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def number(self: object) -> int:
        return hash((made, key(self)))

    def text(self: object) -> str:
        return f"{made.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def parts(self: object) -> tuple[Any, tuple[Any, ...]]:
        return made, tuple(getattr(self, name) for name in names)

    def first(self: object, *given: Any, **named: Any) -> None:
        """Builds __init__ at the first object, because most processes never use most of the classes that they load."""
        made.__init__ = _init(made, names, defaults)
        made.__init__(self, *given, **named)

    made.__init__ = first
    made.__eq__, made.__hash__, made.__repr__, made.__reduce__ = same, number, text, parts
    made.__setattr__ = made.__delattr__ = _refuse
    return made  # type: ignore[no-any-return]


def _init(made: Any, names: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    """Returns an __init__ compiled from source. Looping over the fields takes four times as long."""
    parameters = "".join(f", {name}=_default_{name}" if name in defaults else f", {name}" for name in names)
    lines = [f" _set_{name}(self, {name})" for name in names] or [" pass"]
    if hasattr(made, "__post_init__"):
        lines.append(" self.__post_init__()")
    scope: dict[str, Any] = {f"_set_{name}": made.__dict__[name].__set__ for name in names}
    scope |= {f"_default_{name}": default for name, default in defaults.items()}
    exec(f"def __init__(self{parameters}):\n" + "\n".join(lines), scope)  # noqa: S102 - of the names of fields only
    return scope["__init__"]


def _nothing(_: object) -> tuple[()]:
    return ()


def _refuse(self: object, name: str, *_: object) -> NoReturn:
    raise AttributeError(f"{type(self).__name__}.{name} cannot be changed")
