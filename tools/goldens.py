"""Write, or compare, the lock of every number that the package holds: tests/goldens/*.txt, one value a line.

    python tools/goldens.py             write what changed (`make goldens`)
    python tools/goldens.py --check     compare, write nothing

devices       every recorded value of every twin, as the loader gives it
constants     facts with a pedigree, published and derived; widths; plain multipliers
networks      totals of every network of the catalogue, one sample, in half precision
parameters    every number of every other YAML file: fitted parameters, machines of the mapper
literals      numbers that a module or a class of the package names, as its source writes them
measurements  rows and digest of each file of measurements
predictions   what is said of all rows of each machine, examinations included: sums of logarithms, which feel each row

A value that moves is one line of the review; `mlsys claims diff` says by how much.
"""

import argparse
import ast
import difflib
import hashlib
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from mlsys.files import write_text

ROOT = Path(__file__).resolve().parents[1]
GOLDENS = ROOT / "tests" / "goldens"
PACKAGE = ROOT / "mlsys"
PACKAGES = (PACKAGE, ROOT / "evidence" / "mlsys_evidence")
DIGITS = 12


def number(value: float) -> str:
    """Return a number as a lock prints it: whole numbers in full, others with twelve digits."""
    return f"{value:d}" if isinstance(value, int) else f"{value:.{DIGITS}g}"


def quantity(value: Any) -> str:
    """Return a quantity with its unit."""
    return f"{number(value.magnitude)} {value.units:~P}".strip()


def device_lines(device: Any) -> Iterator[str]:
    """Lock one twin: what is recorded with a source, and the numbers that describe it."""
    for value in device.recorded():
        yield f"{value.origin.name} = {quantity(value)}"
    yield f"{device.id}/release_year = {device.release_year}"
    yield f"{device.id}/headline = {device.headline}"
    if device.product:
        yield f"{device.id}/product = {device.product}"
    if device.process_node:
        yield f"{device.id}/chip/node = {device.process_node}"
    if device.operands:
        for what in ("bits", "array"):
            for name, number in getattr(device.operands, what).items():
                yield f"{device.id}/operands/{what}/{name} = {number}"
        for name, path in device.operands.paths.items():
            yield f"{device.id}/operands/paths/{name} = {' > '.join(path)}"
    if device.systolic_array:
        yield f"{device.id}/chip/systolic_array = {' x '.join(map(str, device.systolic_array))}"
    for level in device.memory.values():
        yield f"{device.id}/memory/{level.name}/scope = {level.scope}"
        if level.instances is not None:
            yield f"{device.id}/memory/{level.name}/instances = {level.instances}"


def devices() -> Iterator[str]:
    """Lock every twin, teaching profiles included."""
    from mlsys.hardware import Hardware

    for device in (*Hardware, *Hardware.Generic, *Hardware.Arrays):
        yield from device_lines(device)


def constants() -> Iterator[str]:
    """Lock every constant that can be imported and is no view of a twin."""
    from mlsys import constants as module
    from mlsys.precision import element_size

    for name, fact in module.facts().items():
        yield f"{name} = {quantity(fact)}"
    for name in dir(module):
        value: Any = vars(module).get(name)
        if isinstance(value, int):
            yield f"{name} = {value}"
        elif name.startswith("BYTES_"):
            yield f"{name} = {quantity(element_size(name.removeprefix('BYTES_').lower()))}"


def network_lines(name: str) -> Iterator[str]:
    """Lock the totals of one network at its usual size."""
    from mlsys.workloads import load

    built = load(name, precision="fp16")
    for figure in ("parameters", "macs", "flops", "product_flops", "data", "weights"):
        yield f"{name}/{figure} = {quantity(getattr(built, figure))}"
    yield f"{name}/operators = {len(built.operators)}"


def networks() -> Iterator[str]:
    """Lock the totals of every network of the catalogue."""
    from mlsys.workloads import zoo

    for name in zoo.networks():
        yield from network_lines(name)


def _leaves(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("source", "sources", "note", "title", "description"):
                yield from _leaves(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}/{index}")
    elif isinstance(value, (int, float)):
        yield f"{path} = {value!r}"
    elif isinstance(value, str) and any(character.isdigit() for character in value):
        yield f"{path} = {' '.join(value.split())}"


def shipped(pattern: str) -> Iterator[Path]:
    """Return the files of both distributions."""
    for package in PACKAGES:
        yield from sorted(package.rglob(pattern))


def named(path: Path) -> str:
    """Return a file as a lock names it: without the library's name, and with that of the evidence."""
    package = next(package for package in PACKAGES if package in path.parents)
    name = path.relative_to(package).as_posix()
    return name if package == PACKAGE else f"{package.name}/{name}"


def parameters() -> Iterator[str]:
    """Lock every number of the YAML files; twins and constants have locks of their own, schemas hold none."""
    elsewhere = {PACKAGE / "hardware" / "data", PACKAGE / "_facts"}
    for path in shipped("*.yaml"):
        if not elsewhere & set(path.parents) and path.name not in ("schema.yaml", "sources.yaml"):
            name = named(path.with_suffix(""))
            yield from _leaves(yaml.safe_load(path.read_text("utf-8")), name)


def _named_numbers(body: Sequence[ast.stmt], prefix: str, in_class: bool) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from _named_numbers(statement.body, f"{prefix}{statement.name}.", True)
            continue
        if isinstance(statement, ast.Assign):
            targets = [target for target in statement.targets if isinstance(target, ast.Name)]
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            targets = [statement.target]
        else:
            continue
        value = statement.value
        if value is None or not targets or not (in_class or targets[0].id.isupper()):
            continue
        if any(
            isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value not in (0, 1)
            for node in ast.walk(value)
        ):
            text = ast.unparse(value)
            if len(text) > 200:
                text = f"{text[:150]}… {hashlib.sha256(text.encode()).hexdigest()[:12]}"
            yield f"{prefix}{targets[0].id} = {text}"


def literals() -> Iterator[str]:
    """Lock the numbers that modules and classes of the package name in their source."""
    for path in shipped("*.py"):
        name = named(path.with_suffix("")).replace("/", ".")
        if not name.startswith(("viz.", "widgets.", "cli.", "_facts.", "constants")):  # drawn, or locked elsewhere
            yield from _named_numbers(ast.parse(path.read_text("utf-8")).body, f"{name}.", False)


def measurements() -> Iterator[str]:
    """Lock each file of measurements by the number of its lines and a digest."""
    for path in (path for path in shipped("*") if path.suffix in (".csv", ".json")):
        data = path.read_bytes()
        name = named(path)
        yield f"{name}/lines = {data.count(bytes([10]))}"
        yield f"{name}/digest = {hashlib.sha256(data).hexdigest()[:16]}"


def machines() -> dict[str, tuple[Any, ...]]:
    """Return all rows of each machine, those of the examinations included, by what their sources call it."""
    from mlsys_evidence import examination_rows
    from mlsys_evidence.evaluate.examination import held_examinations
    from mlsys_evidence.evaluate.report import by_machine
    from mlsys_evidence.rows import shipped_rows

    strange = [row for number in held_examinations() for row in examination_rows(number)]
    rows = (*shipped_rows(), *strange)
    return {machine: tuple(rows[index] for index in places) for machine, places in by_machine(rows).items()}


def prediction_line(machine: str, rows: tuple[Any, ...]) -> str:
    """Lock what is said of the rows of one machine: of each number the sum of its logarithm, and bounds beaten."""
    from mlsys_evidence.evaluate.report import predictions_on

    done = [each for each in predictions_on(machine, rows) if each.answered]
    numbers = {
        "value": [each.value for each in done],
        "bound": [each.bound for each in done if each.bound > 0],
        "low": [each.low for each in done],
        "high": [each.high for each in done],
    }
    sums = [f"{name} {math.fsum(map(math.log, values)):.7f}" for name, values in numbers.items()]
    excuses = Counter(each.excuse.partition(":")[0] for each in done if each.excuse)
    beaten = [f"{many} beaten by {excuse}" for excuse, many in sorted(excuses.items())]
    return f"{machine} = {', '.join([f'{len(done)} of {len(rows)} rows', *sums, *beaten])}"


def predictions() -> Iterator[str]:
    """Lock what is said of the rows of each machine."""
    for machine, rows in machines().items():
        yield prediction_line(machine, rows)


LOCKS: dict[str, Callable[[], Iterator[str]]] = {
    "devices": devices,
    "constants": constants,
    "networks": networks,
    "parameters": parameters,
    "literals": literals,
    "measurements": measurements,
    "predictions": predictions,
}


def lock(name: str) -> str:
    """Return the text of one lock: sorted lines, each value once."""
    lines = sorted(set(LOCKS[name]()))
    named = [line.partition(" = ")[0] for line in lines]
    twice = sorted({each for each in named if named.count(each) > 1}) if len(set(named)) < len(named) else []
    if twice:
        raise ValueError(f"tests/goldens/{name}.txt would name two values alike: {', '.join(twice[:5])}")
    return "".join(f"{line}\n" for line in lines)


def differences(name: str) -> list[str]:
    """Return the lines that were removed from a lock and added to it, as ``-`` and ``+``."""
    path = GOLDENS / f"{name}.txt"
    before = path.read_text("utf-8").splitlines() if path.exists() else []
    moved = difflib.unified_diff(before, lock(name).splitlines(), lineterm="", n=0)
    return [line for line in moved if line[:1] in "+-" and line[:3] not in ("---", "+++")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare every lock; return 1 if a comparison failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args(arguments)
    start, moved = time.perf_counter(), 0
    GOLDENS.mkdir(exist_ok=True)
    for name in LOCKS:
        changed = differences(name)
        moved += bool(changed)
        print("\n".join([f"tests/goldens/{name}.txt: {len(changed)} lines moved", *changed[:40]]), flush=True)
        if changed and not options.check:
            write_text(GOLDENS / f"{name}.txt", lock(name))
    print(f"{time.perf_counter() - start:.0f} s")
    return 1 if moved and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
