"""Every clause of every condition that a write of the service has, by its place, and the code without it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "layers/sweephand/python/sweephand"
FOLDERS = ("server/store", "server/flow")
NO_CONDITIONS = {"server/store/dynamo/conditional.py", "server/store/dynamo/table.py"}
"""The machinery, which has none of its own."""
CHECKS = {"exists", "does_not_exist", "is_in"}


def names() -> list[str]:
    """Returns the names of all clauses: `server/store/runs/ledger.claimable: attempt ==`."""
    return [name for path in _paths() for name, _ in _clauses(path, ast.parse((PACKAGE / path).read_text()))]


def module_of(name: str) -> str:
    """`sweephand.server.store.runs.ledger`"""
    return "sweephand." + name.split(".", maxsplit=1)[0].replace("/", ".")


def without(name: str, source: str) -> ast.Module:
    """Returns the module's source with that clause always true. Raises LookupError if it has no such clause."""
    tree = ast.parse(source)
    for found, clause in _clauses(name.split(".", maxsplit=1)[0] + ".py", tree):
        if found == name:
            return ast.fix_missing_locations(_Always(clause).visit(tree))
    raise LookupError(name)


def strange() -> set[str]:
    """Attributes of models in expressions that are neither a clause, nor an assignment, nor the key of a query."""
    found = set()
    for path in _paths():
        tree = ast.parse((PACKAGE / path).read_text())
        known = {id(node) for _, clause in _clauses(path, tree) for node in ast.walk(clause)}
        known |= {id(node) for parent in ast.walk(tree) if _is_no_condition(parent) for node in ast.walk(parent)}
        found |= {
            f"{path}: {ast.unparse(parent)}"
            for parent in ast.walk(tree)
            if isinstance(parent, ast.Compare | ast.Call)
            for node in ast.iter_child_nodes(parent)
            if _is_attribute(_inner(node)) and id(node) not in known
        }
    return found


def _inner(node: ast.AST) -> ast.AST:
    """Returns the object of a method."""
    return node.value if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) else node


def _is_no_condition(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="assign" | "add" | "withdraw")):
            return True
        case ast.Call(func=ast.Attribute(attr="from_raw_data" | "increase" | "add")):
            return True
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr="sk" | "next_run_at"), attr="startswith" | "between")
        ):
            return True
    return False


def _paths() -> list[str]:
    found = [str(path.relative_to(PACKAGE)) for folder in FOLDERS for path in sorted((PACKAGE / folder).rglob("*.py"))]
    return [path for path in found if path not in NO_CONDITIONS and not path.startswith("server/store/views")]


def _clauses(path: str, tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names count what is said twice in one place."""
    seen: dict[str, int] = {}
    for place, node in _places(tree):
        for clause in _within(node):
            name = f"{path.removesuffix('.py')}.{place}: {_text(clause)}"
            seen[name] = seen.get(name, 0) + 1
            yield (name if seen[name] == 1 else f"{name} ({seen[name]})"), clause


def _places(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{each.name}", each) for each in node.body if isinstance(each, ast.FunctionDef))
        elif isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield ast.unparse(target), node


def _within(node: ast.AST) -> Iterator[ast.expr]:
    """Yields the outermost clauses: of an alternative, the whole. Key conditions of queries are none."""
    for child in ast.iter_child_nodes(node):
        if (isinstance(child, ast.expr) and _is_clause(child)) or (
            isinstance(child, ast.Tuple) and _is_part_of_statement(node, child)
        ):
            yield child
        else:
            yield from _within(child)


def _is_clause(node: ast.expr) -> bool:
    match node:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() | ast.NotEq()]):
            return _is_attribute(left)
        case ast.Call(func=ast.Attribute(value=value, attr=attr)):
            return attr in CHECKS and _is_attribute(value)
        case ast.Call(func=ast.Name(id="_same"), args=[attribute, _]):
            return _is_attribute(attribute)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return _is_clause(operand)
        case ast.BinOp(left=left, op=ast.BitOr()):
            return _is_clause(left)
    return False


def _is_attribute(node: ast.AST) -> bool:
    """Tells whether it is an attribute of a model: RunItem.state."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id.endswith("Item")


def _is_part_of_statement(parent: ast.AST, node: ast.Tuple) -> bool:
    """Tells whether it is ("generation", value) among the conditions of a PartiQL statement; the key is no
    condition.
    """
    match node.elts:
        case [ast.Constant(value=str(name)), _]:
            wanted = name in {"next_run_at", "generation"}
            return wanted and _is_of_conditions(parent)
    return False


def _is_of_conditions(parent: ast.AST) -> bool:
    match parent:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="conditions"), attr="append")):
            return True
        case ast.List(elts=[ast.Tuple(elts=[ast.Constant(value="pk"), _]), *_]):
            return True
    return False


def _text(clause: ast.expr) -> str:
    match clause:
        case ast.Compare(left=ast.Attribute(attr=attr), ops=[operation]):
            sign = {ast.Eq: "==", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.NotEq: "!="}
            return f"{attr} {sign[type(operation)]}"
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attr), attr=check)):
            return f"{attr} {check}"
        case ast.Call(func=ast.Name(), args=[ast.Attribute(attr=attr), _]):
            return f"{attr} same"
        case ast.UnaryOp(operand=operand):
            return f"not {_text(operand)}"
        case ast.BinOp(left=left, right=right):
            return f"{_text(left)} or {_text(right)}"
        case ast.Tuple(elts=[ast.Constant(value=name), _]):
            return str(name)
    return ast.unparse(clause)


class _Always(ast.NodeTransformer):
    """Puts in the clause's place what holds of every item; a part of a statement asks for its key once more."""

    def __init__(self, clause: ast.expr) -> None:
        self._clause = clause

    def visit(self, node: ast.AST) -> ast.AST:
        if node is not self._clause:
            return self.generic_visit(node)
        if isinstance(node, ast.Tuple):
            return ast.parse("('pk', {'S': step.row.pk})", mode="eval").body
        model = next(each.id for each in ast.walk(node) if isinstance(each, ast.Name) and each.id.endswith("Item"))
        return ast.parse(f"({model}.pk.exists() | {model}.pk.does_not_exist())", mode="eval").body
