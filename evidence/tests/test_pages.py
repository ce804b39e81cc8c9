"""A large result of an operator of PyTorch on a processor is written to pages that the kernel hands out anew."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys.calibration.case import Case
from mlsys.calibration.rows import Row
from mlsys.models.estimate import CaseBatch
from mlsys.models.estimate.limits import bound
from mlsys_evidence import blind_evaluation_rows
from mlsys_evidence.questions import interpret
from mlsys_evidence.questions.page_faults import MAPPED_FROM


@pytest.fixture(scope="module")
def row() -> Row:
    """A ReLU of PyTorch on a Core i9 with fourteen cores."""
    known = (row for row in blind_evaluation_rows(3) if row.workload.startswith("ReLU") and "i9-10940X" in row.device)
    return next(row for row in known if "CPU eager" in row.software)


def _of(row: Row, elements: int, software: str = "PyTorch 2 CPU eager") -> Case:
    return interpret(replace(row, seq_or_shape=f"{elements} elements", software=software))


def _extra(case: Case, elements: int) -> float:
    """Bytes beyond those read and written."""
    return float((case.work["count"] * case.work["moved"]).sum()) - 2 * 4 * elements


def test_small_results_stay_where_the_last_ones_were(row: Row) -> None:
    """Glibc maps blocks one by one from 32 MiB on at most (mallopt(3)): a tenth less is kept."""
    small, large = (round(part * MAPPED_FROM / 4) for part in (0.9, 1.1))
    assert _extra(_of(row, small), small) == 0
    assert _extra(_of(row, large), large) > 0


def test_cores_touch_pages_side_by_side(row: Row) -> None:
    """ResNet-50 of 22,000 pages takes 3 to 4 ms longer on eight and sixteen cores, and 22 ms on one (packrat)."""
    elements = 2**26
    case = _of(row, elements)
    a_page = _extra(case, elements) / case.engine.bandwidth / (4 * elements / 4096)
    assert a_page == pytest.approx(3.5e-3 / 22_000, rel=0.2)


def test_pages_raise_no_bound(row: Row) -> None:
    """A program that keeps its memory meets none of them."""
    elements = 2**26
    case = _of(row, elements)
    least = float(np.sum(bound(CaseBatch.of([(case.engine, case.work, False)]))[1])) * case.compulsory
    assert least <= 2 * 4 * elements / case.engine.bandwidth * (1 + 1e-9)


def test_compilers_and_gpus_are_left_alone(row: Row) -> None:
    elements = 2**26
    assert _extra(_of(row, elements, "PyTorch 2 CPU torch.compile"), elements) == 0
    card = replace(row, device="NVIDIA A100 80GB SXM", device_class="datacenter GPU", software="PyTorch 2.4 eager")
    assert interpret(replace(card, seq_or_shape=f"{elements} elements")).work["moved"].sum() == 2 * 4 * elements
