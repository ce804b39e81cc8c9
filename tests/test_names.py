"""A public name means one thing in the whole package."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import mlsys

_ROOT = Path(mlsys.__file__).parent
_EMPTY = {"found", "one", "place"}  # names that say nothing of what they hold


def _is_command(statement: ast.stmt) -> bool:
    """Whether a function is a command of the shell, which bears the name of what it calls."""
    return any(
        isinstance(mark, ast.Call) and isinstance(mark.func, ast.Attribute) and mark.func.attr in ("command", "group")
        for mark in getattr(statement, "decorator_list", ())
    )


def _homes(*kinds: type[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]) -> dict[str, list[str]]:
    """The modules that define each public top-level name of the kinds, by name."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(_ROOT.rglob("*.py")):
        named = {
            statement.name
            for statement in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(statement, kinds) and not statement.name.startswith("_") and not _is_command(statement)
        }
        for name in named:
            homes[name].append(str(path.relative_to(_ROOT)))
    return homes


def test_a_public_class_has_one_home() -> None:
    homes = _homes(ast.ClassDef)
    assert {"Device", "Result", "Operator"} <= homes.keys(), "the classes were found"
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert not twice, f"one name, one meaning; rename one of: {twice}"


def test_a_public_function_has_one_home() -> None:
    """Commands aside."""
    homes = _homes(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    assert {"load", "sweep", "roofline", "Device"} <= homes.keys(), "the functions were found"
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert not twice, f"one name, one meaning; rename one of: {twice}"


def _bound(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every name that a file binds, with its line: variables, arguments, attributes, functions and what is caught."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, line
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, line
        elif isinstance(node, ast.arg):
            yield node.arg, line
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or (
            isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name
        ):
            yield node.name, line
        elif isinstance(node, ast.alias):
            yield node.asname or node.name, line


def test_a_name_says_what_it_holds() -> None:
    """``found``, ``one`` and ``place`` say nothing of what they hold."""
    bound = [
        (name, f"{path.relative_to(_ROOT)}:{line}")
        for path in sorted(_ROOT.rglob("*.py"))
        for name, line in _bound(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert {"device", "index", "Device", "load"} <= {name for name, _ in bound}, "the names were read"
    empty = [f"{name} in {where}" for name, where in bound if name.strip("_") in _EMPTY]
    assert not empty, f"name what it holds: {empty}"
