"""Recurrent layers in stacks do the arithmetic of their equations, one step after the other."""

import re
from dataclasses import replace

import pytest

from mlsys.models.estimate import MATMUL
from mlsys_evidence.ingest.reading import number_format
from mlsys_evidence.questions import interpret
from mlsys_evidence.questions.recurrences import recurrent_kernels
from mlsys_evidence.rows import shipped_rows

GATES = {"LSTM": 4, "GRU": 3}
STACKS = [row for row in shipped_rows() if " forward (" in row.workload and row.workload[:3] in ("LST", "GRU")]


def multiplications(cell: str, layers: int, ways: int, batch: int, steps: int, inputs: int, hidden: int) -> int:
    """Return the multiplications of the equations: each gate has a matrix for the input and one for the state."""
    count = 0
    for index in range(layers):
        wide = inputs if index == 0 else ways * hidden
        count += ways * steps * batch * GATES[cell] * hidden * (wide + hidden)
    return count


def test_all_stacks_of_the_measurements_are_read() -> None:
    assert len(STACKS) == 40
    assert {interpret(row).kind for row in STACKS} == {"recurrent layer"}


@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
@pytest.mark.parametrize("ways", [1, 2])
def test_a_stack_multiplies_what_its_equations_do(cell: str, ways: int) -> None:
    words = "(bidirectional, 6 stacked layers)" if ways == 2 else "(6 stacked layers)"
    row = next(row for row in STACKS if row.workload == f"{cell} forward {words}")
    work = interpret(row).work
    products = (work["flops"] * work["count"])[work["kind"] == MATMUL].sum()
    assert products == 2 * multiplications(cell, 6, ways, batch=10, steps=512, inputs=128, hidden=256)


def test_each_step_waits_for_the_one_before() -> None:
    """A product of each step's state, and the gates after it; the inputs of all steps are one product."""
    sizes = {"hidden": 8, "batch": 3, "timesteps": 5}
    known, step, gates = recurrent_kernels("LSTM", 7, sizes, 1, number_format("fp32"))
    assert (known.m, known.n, known.k, known.count) == (15, 32, 7, 1)
    assert (step.m, step.n, step.k, step.count) == (32, 3, 8, 5)
    assert gates.count == 5


def test_two_directions_take_twice_as_long_as_one() -> None:
    """As twelve pairs of measurements of cuDNN do, within a third; the second layer's input is twice as wide, too."""
    times: dict[tuple[str, str], dict[bool, float]] = {}
    for row in STACKS:
        if "stacked" in row.workload and "80GB" not in row.device:
            key = (row.device, row.workload[:4])
            times.setdefault(key, {})["bidirectional" in row.workload] = row.value
    pairs = [pair[True] / pair[False] for pair in times.values() if len(pair) == 2]
    assert len(pairs) >= 12
    assert sorted(pairs)[len(pairs) // 2] == pytest.approx(2.0, rel=0.1)
    one = next(row for row in STACKS if row.workload == "GRU forward (6 stacked layers)")
    both = replace(one, workload="GRU forward (bidirectional, 6 stacked layers)")
    starts = [interpret(row).work["count"].sum() for row in (one, both)]
    assert starts[1] == 2 * starts[0]


def test_a_row_without_its_shape_says_so() -> None:
    row = replace(STACKS[0], seq_or_shape="hidden=256,batch=10")
    with pytest.raises(Exception, match="shape of the recurrent layers not stated"):
        interpret(row)


def test_rows_name_the_card_that_the_driver_named() -> None:
    """KernelBench's file of one kind of machine holds times of two cards: each row's note has the driver's name."""
    named = {
        (match.group(1), row.device)
        for row in shipped_rows()
        if (match := re.search(r"named NVIDIA (A10G?)\b(?!0)", row.note)) and "KernelBench" in row.source
    }
    assert named == {("A10", "NVIDIA A10"), ("A10G", "NVIDIA A10G")}
