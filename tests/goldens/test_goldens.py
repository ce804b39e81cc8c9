"""No number of the package moves unseen: each is locked in a line of text here, and a change shows in review.

A lock has no opinion; what a number should be is asked by the tests of laws, published values and oracles.
"""

import copy
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from goldens import GOLDENS, LOCKS, PACKAGE, device_lines, differences, network_lines
from mlsys.errors import DeviceFileError
from mlsys.hardware import Hardware, load_device
from mlsys.hardware.device import Device
from mlsys.workloads import zoo
from sampled import drawn

FILES = {path.stem: path for path in sorted((PACKAGE / "hardware" / "data").rglob("*.yaml"))}
LOCKED = {name: (GOLDENS / f"{name}.txt").read_text("utf-8").splitlines() for name in LOCKS}


# Predictions are asked by machine, see test_predictions.py, and networks one by one, below.
@pytest.mark.parametrize("name", [name for name in LOCKS if name not in ("predictions", "networks")])
def test_no_value_moved_unseen(name: str) -> None:
    moved = differences(name)
    advice = "If they should move: `make goldens`, and say in the changelog, under Numbers, why"
    assert moved == [], "\n".join([f"tests/goldens/{name}.txt: values moved. {advice}", *moved[:30]])


def test_every_network_is_locked() -> None:
    assert set(zoo.networks()) == {line.partition("/")[0] for line in LOCKED["networks"]}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", drawn(zoo.networks(), 40, "totals of networks"))
def test_totals_of_a_network_are_locked(name: str) -> None:
    assert set(network_lines(name)) == {line for line in LOCKED["networks"] if line.startswith(f"{name}/")}


def test_each_value_stands_once_and_in_order() -> None:
    for lines in LOCKED.values():
        names = [line.partition(" = ")[0] for line in lines]
        assert len(set(names)) == len(names) > 0
        assert lines == sorted(lines)


def test_the_locks_hold_values_that_nothing_else_pins() -> None:
    """The two that a review once found free to move, and one of each other kind."""
    devices = set(LOCKED["devices"])
    assert "MI250X/links/InfinityFabric/per_direction = 400 GB/s" in devices
    assert "A30/chip/die_area = 826 mm²" in devices
    assert "ENERGY_DRAM_ACCESS_PJ = 640 pJ" in LOCKED["constants"]
    assert "resnet50/parameters = 25557032 param" in LOCKED["networks"]
    assert any(line.startswith("models/calibrated/parameters/") for line in LOCKED["parameters"])


# --- every number of every device file is locked ------------------------------------------------

_PROSE = ("sources", "note", "meaning", "source", "confidence", "id", "name", "aliases", "architecture", "kind")
_NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")


def numbers(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Yield the paths of all values of a device file that hold a number."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _PROSE:
                yield from numbers(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from numbers(inner, (*path, index))
    elif _NUMBER.search(str(value)) and path[-1] != "uncertainty":
        yield path


def mutant(document: dict, path: tuple[object, ...]) -> dict:
    """Return the document with the first number at ``path`` raised by 9 %, or by one if it is whole and small."""
    changed = copy.deepcopy(document)
    *way, last = path
    inner = changed
    for key in way:
        inner = inner[key]
    before = inner[last]

    def raised(match: re.Match[str]) -> str:
        value = float(match.group())
        return str(int(value) + 1) if value == int(value) and value < 1000 else f"{1.09 * value:.9g}"

    text = _NUMBER.sub(raised, str(before), count=1)
    inner[last] = text if isinstance(before, str) else type(before)(float(text))
    return changed


def lines_of(document: dict, folder: Path) -> set[str] | None:
    """Return what would be locked of a device file, or None where the loader refuses it."""
    path = folder / f"{document['id']}.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False), "utf-8")
    try:
        return set(device_lines(load_device(path)))
    except DeviceFileError:
        return None


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", drawn(list(FILES), 8, "mutants of devices"))
def test_a_change_of_any_number_of_a_device_file_moves_its_lock(name: str, tmp_path: Path) -> None:
    document = yaml.safe_load(FILES[name].read_text("utf-8"))
    locked = {line for line in LOCKED["devices"] if line.startswith(f"{name}/")}
    assert lines_of(document, tmp_path) == locked, "unchanged, it is as locked"
    paths = list(numbers(document))
    assert len(paths) >= 5
    unseen = ["/".join(map(str, path)) for path in paths if lines_of(mutant(document, path), tmp_path) == locked]
    assert unseen == []


def test_every_twin_is_locked() -> None:
    twins: list[Device] = [*Hardware, *Hardware.Generic, *Hardware.Arrays]
    assert {twin.id for twin in twins} == {line.partition("/")[0] for line in LOCKED["devices"]}
