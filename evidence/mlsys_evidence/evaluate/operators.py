"""The time of a network by kind of operator, as those publish it who predict operators one by one.

NeuSight's tracer (neusight/Tracing/parse.py) names each operator of a network by its kind and sums the times of each.
Our networks are kernels; these are told apart by their shape, arithmetic and bytes.
"""

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.case import Case
from mlsys.calibration.times import stack_of
from mlsys.files import Drafts
from mlsys.inputs import csv_records
from mlsys.models.estimate import MATMUL, kernel_times
from mlsys.models.estimate.eager import one_by_one, score_kernels
from mlsys.workloads import LAYER_NORM_OPERATIONS
from mlsys_evidence.evaluate.published import with_operators
from mlsys_evidence.fit.fitting import Fit
from mlsys_evidence.rows import typed

Array = NDArray[np.float64]
OPERATORS = ("batched product", "product of a layer", "softmax", "layer normalisation", "element-wise")
_PLACE = Path(__file__).parents[1] / "data" / "held_out_operators.csv.gz"


def operators_apart(case: Case) -> bool:
    """Return whether others publish the times of a case's operators, and its kernels are those operators.

    Of training steps the kernels of gradients do not say which operator they belong to.
    """
    return case.kind != "training" and case.row.id in with_operators() and one_by_one(case.setting)


def operator_parts(case: Case) -> Array:
    """Return which part of each kernel's time is each of ``OPERATORS``; 0 of what is none of them.

    Parameters
    ----------
    case
        A forward pass whose operators run one by one, with the scores of attention written out.

    Returns
    -------
    array
        (operators, kernels).

    Notes
    -----
    Beside the softmax, code of BERT divides the scores and adds a row to each. OPT's adds a mask and takes a maximum,
    GPT's divides and selects, T5's adds a bias; NeuSight counts neither the maximum nor the selection as element-wise.
    """
    work = case.work
    product = work["kind"] == MATMUL
    batched = product & (work["batch"] > 1) & (work["weights"] == 0)
    elements = work["moved"] / (2 * typed(case.row).value_bytes)
    moving = ~product & (work["moved"] > 0)  # others are calls that move nothing
    scores = moving & (work["flops"] == 0) & (work["weights"] == 0)
    # Rows that are read once, or twice: elements count what is read and written.
    normalised = work["flops"] / np.maximum(sum(LAYER_NORM_OPERATIONS.values()) * elements, 1.0)
    norm = moving & ~scores & (normalised > 2 / 3 - 0.01) & (normalised < 1.01)
    elementwise = moving & ~scores & ~norm & (work["weights"] == 0)  # with weights: tables of embeddings
    plainly, adds = score_kernels(case.network)
    beside = 0.0 if adds else 2.0 if case.network.startswith("BERT") else 1.0
    return np.array([
        batched, product & ~batched, scores / plainly, norm, elementwise + scores * beside / plainly,
    ], dtype=np.float64)  # fmt: skip


def operator_seconds(cases: Sequence[Case], fitted: Fit) -> Array:
    """Return how long the operators of each kind take in each case, seconds.

    Parameters
    ----------
    cases
        As :func:`operator_parts` takes them.
    fitted
        The parameters, and the factors of machines.

    Returns
    -------
    array
        (cases, operators).
    """
    if not cases:
        return np.zeros((0, len(OPERATORS)))
    stack = stack_of(cases)
    times = kernel_times(stack, np.array([fitted.of(case.twin).vectorised() for case in cases])).seconds
    times = times * stack.kernels["count"]
    return np.array([operator_parts(case) @ times[stack.case == index] for index, case in enumerate(cases)])


def save_operators(seconds: Mapping[str, Sequence[float]], files: Drafts) -> None:
    """Draft the file of seconds by kind of operator, without the machine, by id of a row."""
    lines = [",".join(("id", *OPERATORS))]
    lines += [",".join((name, *(f"{value:.5g}" for value in values))) for name, values in sorted(seconds.items())]
    files.bytes(_PLACE, gzip.compress("\n".join((*lines, "")).encode(), 9, mtime=0))


def operators_left_out() -> dict[str, tuple[float, ...]]:
    """Return, by id of a row, seconds of ``OPERATORS`` by the parameters of fits that never saw its machine."""
    rows = csv_records(_PLACE)[1:]
    return {name: tuple(float(value) for value in values) for _, (name, *values) in rows}
