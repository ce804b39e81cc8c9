"""Write or compare the golden files of every number in the package: tests/goldens/*.txt, one value per line.

    python tools/goldens.py             write what changed (`make goldens`)
    python tools/goldens.py --check     compare only

devices       every recorded value of every twin, as loaded
constants     published and derived facts with provenance; widths; plain multipliers
networks      totals of every network of the catalogue, batch 1, in half precision
parameters    every number of every other YAML file: fitted parameters, machines of the mapper
literals      named numeric constants of modules and classes, as written in the source
measurements  line count and digest of each file of measurements
predictions   predictions for all rows of each machine, held-out ones included, as sums of logarithms

A value that changes is one line to review; `mlsys claims diff` shows by how much.
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
DIGITS = 12


def number(value: float) -> str:
    """Return a number as golden files print it: integers in full, others with twelve digits."""
    return f"{value:d}" if isinstance(value, int) else f"{value:.{DIGITS}g}"


def quantity(value: Any) -> str:
    """Return a quantity with its unit."""
    return f"{number(value.magnitude)} {value.units:~P}".strip()


def device_lines(device: Any) -> Iterator[str]:
    """Yield the lines of one twin: recorded values with a source, and descriptive numbers."""
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
    """Yield the lines of every twin, including teaching profiles."""
    from mlsys.hardware import Hardware

    for device in (*Hardware, *Hardware.Generic, *Hardware.Arrays):
        yield from device_lines(device)


def constants() -> Iterator[str]:
    """Yield the lines of every importable constant that is not a view of a twin."""
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
    """Yield the totals of one network at its default size."""
    from mlsys.workloads import load

    built = load(name, precision="fp16")
    for figure in ("parameters", "macs", "flops", "product_flops", "data", "weights"):
        yield f"{name}/{figure} = {quantity(getattr(built, figure))}"
    yield f"{name}/operators = {len(built.operators)}"


def networks() -> Iterator[str]:
    """Yield the totals of every network of the catalogue."""
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


def parameters() -> Iterator[str]:
    """Yield every number of the YAML files, except twins, constants (which have files of their own) and schemas."""
    elsewhere = {PACKAGE / "hardware" / "data", PACKAGE / "_facts"}
    for path in sorted(PACKAGE.rglob("*.yaml")):
        if not elsewhere & set(path.parents) and path.name not in ("schema.yaml", "sources.yaml"):
            name = path.relative_to(PACKAGE).with_suffix("").as_posix()
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
    """Yield the named numeric constants of modules and classes of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
        if not name.startswith(
            ("viz.", "widgets.", "cli.", "_facts.", "constants")
        ):  # presentation, or covered elsewhere
            yield from _named_numbers(ast.parse(path.read_text("utf-8")).body, f"{name}.", False)


def measurements() -> Iterator[str]:
    """Yield the number of lines and a digest of each file of measurements."""
    for path in sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".csv", ".json")):
        data = path.read_bytes()
        name = path.relative_to(PACKAGE).as_posix()
        yield f"{name}/lines = {data.count(bytes([10]))}"
        yield f"{name}/digest = {hashlib.sha256(data).hexdigest()[:16]}"


def machines() -> dict[str, tuple[Any, ...]]:
    """Return all rows of each machine, held-out ones included, by the name that their sources give it."""
    from mlsys.validation import examination_rows, shipped_rows
    from mlsys.validation.examination import held_examinations
    from mlsys.validation.report import by_machine

    held_out = [row for number in held_examinations() for row in examination_rows(number)]
    rows = (*shipped_rows(), *held_out)
    return {machine: tuple(rows[index] for index in places) for machine, places in by_machine(rows).items()}


def prediction_line(machine: str, rows: tuple[Any, ...]) -> str:
    """Return the line of one machine: sums of the logarithms of its predictions, and excuses for beaten bounds."""
    from mlsys.validation.report import predictions_on

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
    """Yield the line of predictions of each machine."""
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
    """Return the text of one golden file: sorted lines without duplicates."""
    lines = sorted(set(LOCKS[name]()))
    named = [line.partition(" = ")[0] for line in lines]
    twice = sorted({each for each in named if named.count(each) > 1}) if len(set(named)) < len(named) else []
    if twice:
        raise ValueError(f"tests/goldens/{name}.txt would have two values of one name: {', '.join(twice[:5])}")
    return "".join(f"{line}\n" for line in lines)


def differences(name: str) -> list[str]:
    """Return the lines removed from a golden file and added to it, prefixed with ``-`` and ``+``."""
    path = GOLDENS / f"{name}.txt"
    before = path.read_text("utf-8").splitlines() if path.exists() else []
    moved = difflib.unified_diff(before, lock(name).splitlines(), lineterm="", n=0)
    return [line for line in moved if line[:1] in "+-" and line[:3] not in ("---", "+++")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare every golden file; return 1 if a comparison failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args(arguments)
    start, moved = time.perf_counter(), 0
    GOLDENS.mkdir(exist_ok=True)
    for name in LOCKS:
        changed = differences(name)
        moved += bool(changed)
        print("\n".join([f"tests/goldens/{name}.txt: {len(changed)} lines changed", *changed[:40]]), flush=True)
        if changed and not options.check:
            write_text(GOLDENS / f"{name}.txt", lock(name))
    print(f"{time.perf_counter() - start:.0f} s")
    return 1 if moved and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
