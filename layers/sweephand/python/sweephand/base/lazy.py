"""Imports that take place on first use, so that a cold start loads no module that it does not need."""

from __future__ import annotations

import builtins
import sys
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any

_one_at_a_time = RLock()


class lazy:  # noqa: N801 - reads as the statement that it stands for
    """A block at the top of a module that defers imports: `with lazy(): from sweephand.server.flow import events`.

    Each name is a proxy for a module, which is imported when one of its members is used. Only whole modules can be
    deferred, and their members are used through them. Type checkers and import-linter see normal imports.
    """

    def __enter__(self) -> None:
        _one_at_a_time.acquire()
        self._real = real = builtins.__import__
        here = sys._getframe(1).f_globals  # noqa: SLF001 - the module whose block this is

        def put_off(name: str, its: Any = None, local: Any = None, members: Any = (), level: int = 0) -> Any:
            if its is not here:
                return real(name, its, local, members, level)
            return _Package(name) if members else Later(name)

        builtins.__import__ = put_off  # type: ignore[assignment]  # its answers stand for modules

    def __exit__(self, *_: object) -> None:
        builtins.__import__ = self._real
        _one_at_a_time.release()


class _Package:
    """The package in a deferred `from package import module`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, module: str) -> Later:
        return Later(f"{self._name}.{module}")


class Later:
    """A module that is imported when one of its members is used."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, member: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, member)

    def __repr__(self) -> str:
        return f"<{self._name}, imported with its first use>"
