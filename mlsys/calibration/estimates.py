"""The estimate of a case: its setting's parameters, and effects of similar measurements."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.bucketed_gemm import is_one_product, least_when_filled_up
from mlsys.calibration.case import Case
from mlsys.calibration.times import case_times, stack_of
from mlsys.models.estimate import CaseBatch, kernel_times
from mlsys.models.estimate.effects import curves_of
from mlsys.models.estimate.features import curve_factors
from mlsys.models.estimate.library import parameters_of, plain_of, scaled
from mlsys.models.estimate.likeness import Shape
from mlsys.models.estimate.user_calibration import shape_if_calibrated
from mlsys.provenance import active_whatifs, as_recorded

Array = NDArray[np.float64]


def shape_factors(cases: Sequence[Case], stack: CaseBatch) -> Array:
    """Return the shape factor of each case's time; 1 where its setting has no curves.

    A product with more rows is never faster: where a curve says so, the smaller one is padded
    (:mod:`mlsys.calibration.bucketed_gemm`).

    Evaluated at the recorded facts: a curve over shapes describes the measured machine, and a what-if must not move
    along it, or reducing a rate could shorten a time.

    Parameters
    ----------
    cases
        As returned by :func:`~mlsys.calibration.questions.interpret`.
    stack
        Batch of the same cases; without a what-if it holds the recorded facts.
    """
    factors = np.ones(len(cases))
    here = [index for index, case in enumerate(cases) if curves_of(case.setting)]
    if here:
        own, changed = [cases[index] for index in here], bool(active_whatifs())
        with as_recorded():
            recorded = stack_of(own) if changed else stack.of_cases(here)
        settings = np.array([case.setting for case in own], dtype=object)
        plain = np.array([plain_of(case.setting, case.twin)[0].vectorised() for case in own])
        factors[here], seconds = _on_curves(recorded, settings, plain)
        products = np.array([index for index, case in enumerate(own) if is_one_product(case)], dtype=np.intp)

        def time(filled: CaseBatch, which: NDArray[np.intp]) -> Array:
            return _on_curves(filled, settings[products[which]], plain[products[which]])[1]

        least = least_when_filled_up(recorded.of_cases(products), seconds[products], time)
        factors[np.array(here)[products]] *= least / seconds[products]
    return factors


def _on_curves(stack: CaseBatch, settings: NDArray[np.object_], plain: Array) -> tuple[Array, Array]:
    """Return the shape factor of each case by its setting's curves, and the resulting time, seconds."""
    times = kernel_times(stack, plain)
    factors = curve_factors(stack, times, settings.tolist())
    return factors, factors * stack.total(times.seconds)


def estimated(cases: Sequence[Case], stack: CaseBatch, parameters: Array | None = None) -> Array:
    """Return the estimate of each case, seconds.

    Parameters
    ----------
    cases
        As returned by :func:`~mlsys.calibration.questions.interpret`.
    stack
        Batch of the same cases.
    parameters
        Parameters of the same cases, if already known.
    """
    if not cases:
        return np.zeros(0)
    rows = case_parameters(cases, stack) if parameters is None else parameters
    return case_times(cases, rows, stack)


def case_parameters(cases: Sequence[Case], stack: CaseBatch) -> Array:
    """Return the parameters of each case, one row each: its setting's, with the effects of similar measurements."""
    questions = [_question(case) for case in cases]
    known = {question: parameters_of(*question)[0] for question in dict.fromkeys(questions)}
    factors = shape_factors(cases, stack).tolist()
    pairs = zip(questions, factors, strict=True)
    return np.array([scaled(known[question], factor).vectorised() for question, factor in pairs])


def _question(case: Case) -> tuple[str, str, str, str, str, Shape | None]:
    """Return the key of a case's parameters."""
    shape = shape_if_calibrated(case.twin, case.work)
    return case.setting, case.twin, case.network, case.version, case.engine.computes_in, shape
