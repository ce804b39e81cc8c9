"""The number of fitted numbers, counted anew from the text of the shipped files."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import mlsys.models.estimate as calibrated
from mlsys.models.estimate import counts
from mlsys.models.estimate.counts import count_fitted
from mlsys.models.estimate.library import fitted

FOLDER = Path(calibrated.__file__).parent
NUMBER = re.compile(r": (-?[0-9.]+(?:e[-+]?[0-9]+)?)(?=[,}])")


def _numbers(name: str) -> int:
    return sum(len(NUMBER.findall(line)) for line in (FOLDER / name).read_text("utf-8").splitlines() if line[:1] != "#")


def _levels(value: object) -> int:
    """Count the pairs of a value and its sweeps, and the bare values of curves, below any key."""
    if isinstance(value, dict):
        return sum(_levels(inner) for name, inner in value.items() if name not in ("rest", "variance"))
    assert isinstance(value, list)
    return 1 if len(value) == 2 and isinstance(value[1], int) else len(value)


def test_as_many_as_the_files_hold() -> None:
    count = count_fitted()
    assert count.parameters == _numbers("parameters.yaml")
    assert count.machines == _numbers("machines.yaml")
    assert count.effects + count.curves == _levels(json.loads((FOLDER / "effects.json").read_text("utf-8")))
    assert count.total > 5000, "not few"


def test_parameters_under_two_names_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = next(iter(fitted().values()))
    monkeypatch.setattr(counts, "fitted", lambda: {"a": alone, "alias": alone, "equal": replace(alone)})
    assert count_fitted().software == 2
