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
    """Count the pairs of a value and its sweeps, and the bare values of curves, below any key; no bare sweeps."""
    if isinstance(value, dict):
        return sum(_levels(inner) for name, inner in value.items() if name not in ("rest", "variance"))
    if isinstance(value, int):
        return 0
    assert isinstance(value, list)
    return 1 if len(value) == 2 and isinstance(value[1], int) else len(value)


def test_as_many_as_the_files_hold() -> None:
    count = count_fitted()
    lines = (FOLDER / "parameters.yaml").read_text("utf-8").splitlines()
    distinct = {line.partition(": ")[2] for line in lines if line[:1] != "#"}
    assert count.parameters == sum(len(NUMBER.findall(line)) for line in distinct)
    ones = re.findall(r": 1[,}]", (FOLDER / "machines.yaml").read_text("utf-8"))
    assert count.machines == _numbers("machines.yaml") - len(ones)
    assert count.effects + count.curves == _levels(json.loads((FOLDER / "effects.json").read_text("utf-8")))
    assert count.total < 2200, "a fifth of the measurements"


def test_parameters_under_two_names_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = next(iter(fitted().values()))
    monkeypatch.setattr(
        counts, "fitted", lambda: {"a": alone, "same": replace(alone), "other": replace(alone, ramp=3.0)}
    )
    assert count_fitted().software == 2
