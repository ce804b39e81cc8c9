"""Whoever prints, writes CSV or Markdown, or reads a file of somebody's goes through the doors of the package."""

import ast
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import mlsys
import mlsys_evidence
from mlsys.hardware.device import Device
from mlsys.hardware.parts import Link, MemoryLevel, OperandPaths, OperatingPoint
from mlsys.units import Quantity

PACKAGES = (Path(mlsys.__file__).parent, Path(mlsys_evidence.__file__).parent)
# What stays outside a door, and why nobody's name or file can come that way.
ALLOWED = {
    "print": {
        "claims/render.py": "plain text outside a notebook",
        "formatting.py": "checks that fail in a book with other facts",
    },
    "echo": {"cli/common.py": "say() itself", "cli/mapper.py": "a percentage that is written over"},
    "csv": {"files.py": "csv_text() itself"},
    "table": {"escaping.py": "markdown_table() itself"},
}
# Files of the package and of the system, which nobody hands us; files that were read through the door before; and the
# folder of what students hand in, which has a door of its own: it follows no link.
OWN = {
    "_facts/dated.py",
    "cli/common.py", "edge/arena.py", "edge/stored.py", "files.py", "grading/folder.py", "hardware/catalogue.py",
    "inputs.py", "measure/backends/runtimes.py", "measure/energy/meters.py", "measure/firmware/build.py",
    "measure/machine.py", "measure/stored.py", "models/estimate/effects.py",
    "planner/mapper/cache.py", "sweep/points.py", "sweep/store.py",
    "calibration/rows.py", "fit/refit.py", "widgets/progress.py",
    "widgets/state.py", "workloads/captures/store.py",
}  # fmt: skip
# What the carriers of facts keep to themselves, but for names that amounts have as well, such as `_units`.
KEPT = {
    field.name
    for carrier in (Device, MemoryLevel, Link, OperandPaths, OperatingPoint)
    for field in dataclasses.fields(carrier)
    if field.name.startswith("_") and not hasattr(Quantity(1, "byte"), field.name)
}


def called(node: ast.Call) -> tuple[str, str]:
    """The owner and the name of what is called, as far as they are written there."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return ast.unparse(function.value), function.attr
    return "", getattr(function, "id", "")


def printers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            owner, name = called(node)
            if name in ("echo", "secho", "echo_via_pager"):
                yield "echo", node.lineno
            elif (name == "print" and not owner) or (name in ("write", "writelines") and owner.startswith("sys.std")):
                yield "print", node.lineno
            elif name in ("DictWriter",) or (owner, name) == ("csv", "writer"):
                yield "csv", node.lineno


def rulers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Code that joins cells with bars, or rules the head of a table off."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and re.search(r"^ \|$|^\| $|^ \| $|--- ?\|", str(node.value)):
            yield "table", node.lineno


def readers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            owner, name = called(node)
            if (
                (owner and name in ("read_text", "read_bytes", "DictReader"))
                or (name == "open" and owner != "Image")
                or (owner, name) in (("csv", "reader"), ("json", "load"), ("np", "load"), ("gzip", "decompress"))
            ):
                yield name, node.lineno


def private_reads(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Fields of a twin, read behind its view: by attribute, or by name with ``getattr``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if node.attr in KEPT and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.attr, node.lineno
        elif isinstance(node, ast.Call) and called(node)[1] in ("getattr", "attrgetter"):
            names = {part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)}
            for name in names & KEPT:
                yield name, node.lineno


@functools.cache
def trees() -> dict[str, ast.AST]:
    return {
        path.relative_to(package).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for package in reversed(PACKAGES)
        for path in sorted(package.rglob("*.py"))
    }


def found(look: Callable[[ast.AST], Iterator[tuple[str, int]]]) -> list[tuple[str, str, int]]:
    return [(file, *hit) for file, tree in trees().items() for hit in look(tree)]


@pytest.mark.parametrize("look", [printers, rulers])
def test_nothing_else_prints_or_writes_csv_or_markdown(look: Callable[[ast.AST], Iterator[tuple[str, int]]]) -> None:
    others = [f"mlsys/{file}:{line} {name}" for file, name, line in found(look) if file not in ALLOWED[name]]
    assert not others, f"print with cli.common.say, write CSV with files.csv_text, Markdown with escaping: {others}"


def test_nothing_else_reads_what_somebody_hands_us() -> None:
    others = [f"mlsys/{file}:{line} {name}" for file, name, line in found(readers) if file not in OWN]
    assert not others, f"read through mlsys.inputs: {', '.join(others)}"
    assert {file for file, _, _ in found(readers)} == OWN, "a file is excused that reads nothing any more"


def test_numbers_of_twins_are_read_through_their_view_with_their_facts() -> None:
    others = [f"mlsys/{file}:{line} {name}" for file, name, line in found(private_reads) if "hardware/" not in file]
    assert not others, f"ask `view(device)`: `.has(field)`, `.quantity(field)`, `.require(field)`: {', '.join(others)}"


def test_the_searches_find_what_they_look_for() -> None:
    code = "print(1)\nclick.secho(a)\nsys.stdout.write(a)\ncsv.DictWriter(f)\nx.print()\n' | '.join(a)\n'|---|'\n"
    tree = ast.parse(code + "path.read_text()\nread_text(path)\nopen(a)\ncsv.reader(f)\n'a | b'\n")
    lines = [sorted({line for _, line in look(tree)}) for look in (printers, rulers, readers)]
    assert lines == [[1, 2, 3, 4], [6, 7], [8, 10, 11]]


def test_private_reads_are_found_whatever_the_twin_is_called() -> None:
    code = "twin._tdp\n0 if end._latency is None else 1\ngetattr(device, '_peaks')\n"
    tree = ast.parse(code + "self._latency\nlevel.latency\nvalue._units\nview(twin).has('tdp')\n")
    assert {"_tdp", "_idle_power", "_active_power", "_latency", "_per_direction", "_bandwidth"} <= KEPT
    assert sorted(line for _, line in private_reads(tree)) == [1, 2, 3]
