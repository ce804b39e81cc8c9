"""A public name means one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import mlsys

_ROOT = Path(mlsys.__file__).parent


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
