"""What a sweep's own scale explains, and what the shapes of its rows leave."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.calibration.rows import Row
from mlsys.hardware import view
from mlsys.models.estimate import MATMUL, VECTOR, CaseBatch, Kernel, Parameters, Work, kernel_times
from mlsys.models.estimate.library import parameters_of
from mlsys_evidence.evaluate.error_decomposition import FEWEST_IN_CLASS, _decomposition, without_scale
from mlsys_evidence.evaluate.report import Prediction
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows


def test_a_scale_that_a_sweep_shares_is_taken_away_and_nothing_else(rows_of_products: list[Row]) -> None:
    predictions = []
    for row, scale in zip(rows_of_products, np.random.default_rng(3).uniform(0.5, 2, 200), strict=False):
        case = interpret(row)
        own = 0.5 + len(row.group + row.device) % 7  # one scale a sweep
        for part in (own, own * scale):
            predictions.append(Prediction(row, case.kind, case=case, seconds=case.seconds * part))
    shared, ragged = (_decomposition("any", predictions[first::2]) for first in (0, 1))
    assert shared is not None and ragged is not None
    assert shared.known == pytest.approx(0, abs=1e-12) and shared.error > 0.2
    assert ragged.known > 0.1


def test_each_row_is_judged_by_the_others_of_its_sweep() -> None:
    apart = np.random.default_rng(1).normal(size=9)
    brute = [
        value - np.median([other for at, other in enumerate(apart) if at != row]) for row, value in enumerate(apart)
    ]
    assert without_scale(apart) == pytest.approx(brute)


def test_few_rows_part_nothing(rows_of_products: list[Row]) -> None:
    case = interpret(rows_of_products[0])
    prediction = Prediction(rows_of_products[0], case.kind, case=case, seconds=case.seconds)
    assert _decomposition("any", [prediction] * (FEWEST_IN_CLASS - 1)) is None


@pytest.fixture(scope="module")
def rows_of_products() -> list[Row]:
    graphs = [row for row in shipped_rows() if row.workload == "GEMM" and "CUDA graph" in row.software]
    sweeps = sorted({row.group for row in graphs})[:8]
    return [row for row in graphs if row.group in sweeps]


@pytest.mark.parametrize(
    ("device", "length", "reads"),
    [
        # PyTorch 2.1 on an A100 reaches 1.5 TB/s up to 8,192 values a row and 0.85 at 16,384; a T4 falls from
        # 8,192 on, to a quarter of its rate at 12,288, as if it read them three times: rows of NeuSight's repository.
        ("A100_80GB_PCIe", 2048, 1), ("A100_80GB_PCIe", 8192, 1), ("A100_80GB_PCIe", 16384, 2),
        ("T4", 3784, 1), ("T4", 8192, 2), ("T4", 12288, 3), ("V100_PCIe_32GB", 4096, 1), ("V100_PCIe_32GB", 10240, 2),
    ],
)  # fmt: skip
def test_a_row_that_a_unit_cannot_hold_is_read_again(device: str, length: int, reads: int) -> None:
    row = next(row for row in shipped_rows() if row.workload == "softmax" and "2.1.0" in row.software)
    changed = replace(row, device=Hardware[device].name, seq_or_shape=f"M=4096,N={length} (reduce over N)")
    case = interpret(changed)
    assert case.work["moved"][0] == pytest.approx(4096 * length * 4 * (reads + 1))


def test_a_card_of_70_watts_cannot_pay_for_its_peak_in_single_precision() -> None:
    size = 8192
    engine = interpret(_row_on("T4", "fp32")).engine
    product = Work.of([_product(size, size, size, 4.0)])
    parameters, _ = parameters_of("eager gemm on GPU", "T4")
    times = kernel_times(CaseBatch.of([(engine, product, True)]), parameters.vectorised())
    # Long products of a T4 run at 3.3 to 4.5 TFLOP/s in NeuSight's rows; its peak is 8.1.
    assert 2.5e12 < product.flops / float(times.seconds.sum()) < 5.5e12


def _product(m: int, n: int, k: int, value: float = 2.0) -> Kernel:
    return Kernel(MATMUL, 2.0 * m * n * k, value * (m * k + k * n + m * n), m=m, n=n, k=k)


def _row_on(device: str, precision: str) -> Row:
    rows = (row for row in shipped_rows() if row.workload == "GEMM" and device in row.device)
    return next(row for row in rows if row.precision == precision and "PyTorch" in row.software)


def test_units_that_share_operands_end_no_wave_half_empty() -> None:
    steps = {}
    quiet = replace(Parameters(), launch=1e-9, ramp=1e-9, energy=1e-30).vectorised()
    for name in ("A100", "H100"):
        machine = view(Hardware[name], "bf16")
        columns = np.arange(40, 120)
        works = [Work.of([_product(256, 256 * n, 4096)]) for n in columns.tolist()]
        each = kernel_times(CaseBatch.of([(machine, work, True) for work in works]), quiet).seconds / columns
        steps[name] = float((each[1:] / each[:-1]).max())
    assert steps["A100"] > 1.02
    assert steps["H100"] < 1.005


def test_an_empty_kernel_costs_a_launch() -> None:
    machine = view(Hardware["A100"], "fp16")
    times = kernel_times(
        CaseBatch.of([(machine, Work.of([Kernel(VECTOR, 0.0, 0.0)]), True)]), Parameters().vectorised()
    )
    assert float(times.seconds[0]) == Parameters().launch
