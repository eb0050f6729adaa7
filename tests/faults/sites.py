"""Where the code calls out: every call of the table, the queues, the keys and the targets, as the source has them.

A worker of the SDK calls the API and its queue.

A site is named by its function and its place in it: the second `update` of `settle` in server/flow/runs/settle.py is
`server/flow/runs/settle.settle update 2`. The stack of a running call tells its site, so that a call which no scenario
meets is known by name.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

PACKAGE = Path(__file__).resolve().parents[2] / "layers/sweephand/python/sweephand"
EDGES = {
    "server/store/dynamo/conditional.py",
    "server/messaging/run_queue.py",
    "server/messaging/event_bus.py",
    "server/security/key_service.py",
    "server/store/operations/files.py",
    "sdk/receiving/queues.py",
    "sdk/sync/caller.py",
    *(f"sdk/sync/resources/{name}.py" for name in ("applications", "job_sets", "runs")),
}
"""Modules that call out on behalf of others: a site is the line that calls one of these."""
RECEIVERS = {
    "table": {
        "get",
        "batch_get",
        "query",
        "query_all",
        "listed",
        "put",
        "update",
        "increase",
        "delete",
        "carry_out",
        "transact",
        "statements",
    },
    "queue": {
        *("send", "send_one", "postpone", "archive", "postpone_dead", "receive_dead", "delete_dead"),
        *("provide", "remove", "send_event", "can_be_reached", "backlog_of"),
        *("receive", "hide", "delete"),
    },
    "key_service": {"encrypt", "decrypt"},
    "files": {"put", "get", "join", "clear"},
    "bus": {"put", "send", "publish"},
    "world": {"perform"},
    "ecs": {"stop"},
    "applications": {"register"},
    "job_sets": {"put"},
    "runs": {"claim", "heartbeat", "settle"},
    "task": {"carry_out"},
}
OUTWARD = frozenset({"perform", "stop", "carry_out"})
"""Methods by which a target is called: no edge stands between."""


@dataclass(frozen=True, order=True)
class Site:
    """function: module and qualified name. number: of the calls of this method in the function, from 1."""

    function: str
    method: str
    number: int = 1

    def __str__(self) -> str:
        return f"{self.function} {self.method}" + (f" {self.number}" if self.number > 1 else "")


@dataclass(frozen=True)
class _Function:
    """sites: with the lines from and to. uses: functions that it may call, as `module.name` or, of methods, `.name`."""

    sites: tuple[tuple[Site, int, int], ...]
    uses: frozenset[str]


@cache
def _module(path: str) -> dict[str, _Function]:
    """Returns functions by qualified name."""
    tree = ast.parse((PACKAGE / path).read_text())
    module = path.removesuffix(".py")
    imported = _imported(tree)
    return {name: _function(module, name, node, imported) for name, node in _functions(tree)}


def _imported(tree: ast.Module) -> dict[str, str]:
    """Returns the imports from our own package: the name here -> where it comes from."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sweephand"):
            source = (node.module or "").replace("sweephand", "", 1).lstrip(".").replace(".", "/")
            for alias in node.names:
                is_module = (PACKAGE / source / f"{alias.name}.py").exists() or (PACKAGE / source / alias.name).is_dir()
                found[alias.asname or alias.name] = f"{source}/{alias.name}" if is_module else f"{source}.{alias.name}"
    return found


def _functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{child.name}.")


def _function(module: str, name: str, node: ast.FunctionDef, imported: dict[str, str]) -> _Function:
    sites: list[tuple[Site, int, int]] = []
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call) and _calls_out(each)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        assert isinstance(call.func, ast.Attribute)
        before = sum(site.method == call.func.attr for site, *_ in sites)
        sites.append(
            (Site(f"{module}.{name}", call.func.attr, before + 1), call.lineno, call.end_lineno or call.lineno)
        )
    uses = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            uses.add(imported.get(each.id, f"{module}.{each.id}"))
        elif isinstance(each, ast.Attribute):
            of_module = isinstance(each.value, ast.Name) and each.value.id in imported
            uses.add(f"{imported[each.value.id]}.{each.attr}" if of_module else f".{each.attr}")  # type: ignore[attr-defined]
    return _Function(tuple(sites), frozenset(uses))


def _calls_out(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    receiver = ast.unparse(call.func.value).rpartition(".")[2].lstrip("_")
    return call.func.attr in RECEIVERS.get(receiver, ())


def _paths(folder: str) -> list[str]:
    return sorted(str(path.relative_to(PACKAGE)) for path in (PACKAGE / folder).rglob("*.py"))


def of_the_code(*facades: str) -> frozenset[Site]:
    """Returns every site within reach of a verb: all of flow/, and of store/ what flow/ calls. Lists for the API stay
    out.

    facades: folders whose reads count as well.
    """
    store: dict[str, list[_Function]] = {}
    for path in _paths("server/store"):
        for name, function in _module(path).items() if path not in EDGES else ():
            module = path.removesuffix(".py")
            store.setdefault(f".{name.rpartition('.')[2]}" if "." in name else f"{module}.{name}", []).append(function)
    paths = [path for folder in ("server/flow", *facades) for path in _paths(folder)]
    reached = [function for path in paths for function in _module(path).values()]
    found = set()
    while reached:
        function = reached.pop()
        found |= {site for site, *_ in function.sites}
        reached += [each for name in function.uses & store.keys() for each in store.pop(name)]
    return frozenset(found)


@dataclass(frozen=True)
class Origin:
    """verb: the module of flow/ that is at work. site: None for a call that comes from elsewhere."""

    verb: str
    site: Site | None


def of_this_call() -> Origin:
    """Returns the caller of this call, by the stack."""
    frame: FrameType | None = sys._getframe(1)
    method, verb, site = "", "", None
    while frame is not None:
        path = _path(frame)
        if path in EDGES:
            method = frame.f_code.co_name
        elif path is not None:
            if site is None:
                site = _site(path, frame, method)
            if path.startswith("server/flow/"):
                verb = path.rpartition("/")[2].removesuffix(".py")
        frame = frame.f_back
    return Origin(verb, site)


@cache
def _relative(filename: str) -> str | None:
    path = Path(filename)
    return str(path.relative_to(PACKAGE)) if path.is_relative_to(PACKAGE) else None


def _path(frame: FrameType) -> str | None:
    return _relative(frame.f_code.co_filename)


def _site(path: str, frame: FrameType, method: str) -> Site | None:
    """Returns the site. A generator's call is made where it is consumed: then the function's only call of this method
    is the site.
    """
    function = _module(path).get(frame.f_code.co_qualname.split(".<locals>")[0])
    if function is None:
        return None
    candidates = [each for each in function.sites if each[0].method in ({method} if method else OUTWARD)]
    for site, first, last in candidates:
        if first <= frame.f_lineno <= last:
            return site
    return candidates[0][0] if len(candidates) == 1 else None
