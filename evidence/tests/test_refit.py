"""What ships is what one refit writes: fits repeat from any stored state, and all else follows from the files."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlsys.calibration.case import Case
from mlsys.files import Drafts
from mlsys.models.estimate.effects import POOLS, fitted_effects, pool_of
from mlsys.models.estimate.library import fitted, machines
from mlsys_evidence.fit.fitted_files import save_parameters
from mlsys_evidence.fit.fitting import fit
from mlsys_evidence.fit.refit import _fitted, fitted_with, jobs_of, parameters_alone, pooled, settings
from mlsys_evidence.fit.substitutes import stand_ins
from sampled import drawn

# A fit repeats to the stored digits on one CPU; on another the last may differ.
LAST_DIGIT = 0.02
# Settings of more kernels take seconds.
FEW_KERNELS = 2000


class Recorded(Drafts):
    """Drafts that are kept, by the name of the file, instead of being written."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, str] = {}

    def text(self, path: str | Path, text: str, *, folders: bool = False) -> None:
        self.kept[Path(path).name] = text

    def bytes(self, path: str | Path, content: bytes, *, folders: bool = False) -> None:
        """Leave out what is compressed."""


def _quick_jobs() -> list[str]:
    return [
        name
        for name, cases in jobs_of(settings()).items()
        if sum(case.work.columns.shape[1] for case in cases) <= FEW_KERNELS
    ]


def test_fits_give_the_committed_parameters_and_factors() -> None:
    jobs = jobs_of(settings())
    for name in drawn(_quick_jobs(), 12, "refit"):
        again = fit(jobs[name])
        sharing = [setting for setting in settings() if fitted_with(setting) == name]
        for setting in sharing:
            assert again.parameters.vectorised() == pytest.approx(fitted()[setting].vectorised(), rel=LAST_DIGIT), name
        if sharing == [name]:
            assert again.machines == pytest.approx(dict(machines()[name]), rel=LAST_DIGIT), name


def test_a_fit_has_the_digits_that_are_stored() -> None:
    """So that effects and ranges follow from what ships."""
    name = "npu runtime llm decode on NPU"
    own = fit(settings()[name])
    files = Recorded()
    save_parameters({name: own.parameters}, {name: own.machines}, files)
    assert f"{name}: " in files.kept["parameters.yaml"]
    for value in own.parameters.vectorised().tolist():
        assert value == float(f"{value:.3g}")
    assert all(factor == float(f"{factor:.3g}") for factor in own.machines.values())


def _machine(case: Case) -> str:
    return case.twin


def _sweep(case: Case) -> str:
    return case.row.group or case.twin


@pytest.mark.parametrize(("column", "part"), [(0, _machine), (1, _sweep)])
def test_the_prediction_of_a_row_left_out_does_not_depend_on_its_measurement(
    column: int, part: Callable[[Case], str]
) -> None:
    """A fit without some rows that starts at the fit to all rows remembers them; one from the priors does not."""
    name = "TensorRT-LLM fp8 attention on GPU"
    cases = jobs_of(settings())[name]
    out = np.array([part(case) for case in cases]) == part(cases[0])
    changed = [replace(case, seconds=3 * case.seconds) if own else case for case, own in zip(cases, out, strict=True)]
    before, after = (_fitted((name, each)).without[:, column] for each in (cases, changed))
    assert after[out].tolist() == before[out].tolist()
    assert (after[~out] != before[~out]).any()


def test_stand_ins_do_not_depend_on_which_setting_is_fitted_first() -> None:
    chosen = {name: cases[:5] for name, cases in settings().items() if " network on " in name}
    parameters = {name: fitted()[name] for name in chosen}
    assert stand_ins(chosen, parameters) == stand_ins(chosen, dict(reversed(parameters.items())))


def _follows_from_the_files(chosen: dict[str, list[Case]]) -> Recorded:
    files = Recorded()
    pooled(chosen, parameters_alone(), dict(fitted()), {name: dict(own) for name, own in machines().items()}, files)
    return files


def test_effects_follow_from_the_committed_parameters() -> None:
    of_pools: dict[str, dict[str, list[Case]]] = {name: {} for name in POOLS}
    for name, cases in settings().items():
        if pool_of(name):
            of_pools[pool_of(name)][name] = cases
    small = [name for name, own in of_pools.items() if sum(map(len, own.values())) < 800]
    for name in drawn(small, 1, "effects"):
        again = json.loads(_follows_from_the_files(of_pools[name]).kept["effects.json"])[name]
        assert _numbers(again) == pytest.approx(_numbers(fitted_effects()[name]), abs=2e-4, rel=2e-3), name


def _numbers(entry: object) -> dict[str, float]:
    """Return the numbers of a nested entry, by their places."""
    if isinstance(entry, dict):
        parts = entry.items()
    elif isinstance(entry, (list, tuple)):
        parts = enumerate(entry)
    else:
        return {"": float(entry)}  # type: ignore[arg-type]
    return {f"{name}/{rest}": value for name, part in parts for rest, value in _numbers(part).items()}
