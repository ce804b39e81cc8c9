"""A public name means one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import mlsys

_ROOT = Path(mlsys.__file__).parent


def _homes(*kinds: type[ast.stmt]) -> dict[str, list[str]]:
    """The modules that define each public top-level name of the kinds, by name."""
    homes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(_ROOT.rglob("*.py")):
        named = {
            statement.name
            for statement in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(statement, kinds) and not statement.name.startswith("_")  # type: ignore[attr-defined]
        }
        for name in named:
            homes[name].append(str(path.relative_to(_ROOT)))
    return homes


def test_a_public_class_has_one_home() -> None:
    homes = _homes(ast.ClassDef)
    assert {"Device", "Result", "Operator"} <= homes.keys(), "the classes were found"
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert not twice, f"one name, one meaning; rename one of: {twice}"
