"""Every number of a device file reaches its twin, so that none of them is decoration."""

import copy
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import mlsys.hardware
from mlsys.errors import DeviceFileError
from mlsys.hardware import load_device
from mlsys.hardware.device import Device
from sampled import drawn

FILES = {path.stem: path for path in sorted((Path(mlsys.hardware.__file__).parent / "data").glob("[!s]*/*.yaml"))}
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


def loaded(document: dict, folder: Path) -> Device | None:
    """Return the twin of a device file, or None where the loader refuses it."""
    path = folder / f"{document['id']}.yaml"
    path.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False), "utf-8")
    try:
        return load_device(path)
    except DeviceFileError:
        return None


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", drawn(list(FILES), 8, "mutants of devices"))
def test_a_change_of_any_number_of_a_device_file_changes_the_twin_or_is_refused(name: str, tmp_path: Path) -> None:
    document = yaml.safe_load(FILES[name].read_text("utf-8"))
    twin = loaded(document, tmp_path)
    assert twin is not None and twin == loaded(copy.deepcopy(document), tmp_path), "unchanged, it is the same twin"
    paths = list(numbers(document))
    assert len(paths) >= 5
    assert ["/".join(map(str, path)) for path in paths if loaded(mutant(document, path), tmp_path) == twin] == []
