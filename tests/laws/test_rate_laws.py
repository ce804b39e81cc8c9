"""A slower rate never shortens the estimate of a measured case: over drawn machines, rates and factors."""

import os
import random
import re
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from mlsys import Hardware
from mlsys.calibration.case import Inexpressible
from mlsys.calibration.estimates import estimated
from mlsys.calibration.rows import Row
from mlsys.models.estimate import CaseBatch
from mlsys.provenance import perturbed
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows
from sampled import everything

SEED = int(os.environ["MLSYS_SEED"])
SLOWER = (0.9, 0.5, 0.1, 0.01)
ROOM = 1 - 1e-9


@pytest.fixture(scope="module")
def rows() -> dict[str, list[Row]]:
    """Return the shipped rows, by the name of the machine that was measured."""
    by_device: dict[str, list[Row]] = {}
    for row in shipped_rows():
        by_device.setdefault(row.device, []).append(row)
    return by_device


def _twin(row: Row) -> str:
    try:
        return interpret(row).twin
    except Inexpressible:
        return ""


def _rates(twin: str) -> list[str]:
    """Return the facts of a machine of which less is slower."""
    names = [quantity.origin.name for quantity in Hardware[twin].recorded()]
    return [name for name in names if "/peaks/" in name or name.endswith(("/bandwidth", "/clock", "/boost"))]


def _seconds(rows: Sequence[Row]) -> NDArray[np.float64]:
    cases = [interpret(row) for row in rows]
    return estimated(cases, CaseBatch.of([(case.engine, case.work, case.cached) for case in cases]))


def _hold(drawn: Sequence[Row], most: int, draw: random.Random) -> int:
    """Check the law on some rows of one machine and on ``most`` of its facts; return how many estimates moved."""
    twins = [_twin(row) for row in drawn]
    moved = 0
    for twin in dict.fromkeys(filter(None, twins)):
        own = [row for row, of in zip(drawn, twins, strict=True) if of == twin]
        before, facts = _seconds(own), _rates(twin)
        for fact in draw.sample(facts, min(most, len(facts))):
            for factor in SLOWER:
                with perturbed(fact, factor):
                    after = _seconds(own)
                faster = [row.id for row, was, now in zip(own, before, after, strict=True) if now < was * ROOM]
                assert not faster, (f"seed {SEED}: faster at {factor} of {fact}", twin, faster)
                moved += int((after > before).sum())
    return moved


def test_a_slower_rate_never_shortens_an_estimate(rows: dict[str, list[Row]]) -> None:
    draw = random.Random(SEED)
    machines = sorted(rows) if everything() else draw.sample(sorted(rows), 12)
    assert sum(_hold(draw.sample(rows[name], min(8, len(rows[name]))), 6, draw) for name in machines) > 10


@pytest.mark.parametrize("words", ["M1 Ultra", "PSoC 62|PSoC62|CY8C62", "Threadripper 3970X"])
def test_the_machines_that_failed(rows: dict[str, list[Row]], words: str) -> None:
    """An M1 Ultra whose vector rate fell had "matrix units"; a row's own clock, and that of few threads, are ratios."""
    drawn = [row for name, own in rows.items() if re.search(words, name) for row in own[:12]]
    assert _hold(drawn, 99, random.Random(SEED)) > 0
