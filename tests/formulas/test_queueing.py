"""Queueing formulas against published values, and the server simulator in the limits where it is such a queue."""

import math

import numpy as np
import pytest

from mlsys.errors import ArgumentError
from mlsys.formulas import (
    erlang_c,
    md1_wait,
    mg1_wait,
    mm1_sojourn_percentile,
    mm1_wait,
    mmc_wait,
    offered_utilisation,
    padding_waste,
    requests_in_system,
)
from mlsys.models.serving import Requests, ServerSettings, TabulatedSteps, simulate
from mlsys.units import Q_

ONE = Q_(1, "s")


@pytest.mark.parametrize(("load", "wait"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19)])
def test_textbook_waits_of_one_server(load: float, wait: float) -> None:
    assert mm1_wait(ONE, load).m_as("s") == pytest.approx(wait)
    assert md1_wait(ONE, load).m_as("s") == pytest.approx(wait / 2)
    for variation, known in ((0.0, md1_wait), (1.0, mm1_wait)):
        assert mg1_wait(ONE, load, variation).m_as("s") == pytest.approx(known(ONE, load).m_as("s"))
    assert mm1_sojourn_percentile(ONE, load, 0.99).m_as("s") == pytest.approx(math.log(100) / (1 - load))


@pytest.mark.parametrize(
    ("servers", "load", "probability", "wait"),
    [
        (2, 0.5, 0.333333, 0.333333),
        (2, 0.8, 0.711111, 1.777778),
        (4, 0.8, 0.596432, 0.745541),
        (8, 0.8, 0.457645, 0.286028),
        (8, 0.9, 0.701533, 0.876916),
        (16, 0.9, 0.591343, 0.369590),
    ],
)
def test_erlang_c_against_its_published_values_and_its_definition(
    servers: int, load: float, probability: float, wait: float
) -> None:
    assert erlang_c(servers, load).magnitude == pytest.approx(probability, abs=6e-7)
    assert mmc_wait(ONE, load, servers).m_as("s") == pytest.approx(wait, abs=6e-7)
    traffic = servers * load
    last = traffic**servers / math.factorial(servers) / (1 - load)
    before = sum(traffic**n / math.factorial(n) for n in range(servers))
    assert erlang_c(servers, load).magnitude == pytest.approx(last / (before + last), rel=1e-12)
    together = erlang_c(np.array([servers, 3 * servers]), load).magnitude  # each stops at its own count
    assert together.tolist() == [erlang_c(each, load).magnitude for each in (servers, 3 * servers)]


def test_one_server_of_mmc_is_mm1_and_a_thousand_do_not_overflow() -> None:
    assert mmc_wait(ONE, 0.7, 1).m_as("s") == pytest.approx(mm1_wait(ONE, 0.7).m_as("s"))
    assert 0 < erlang_c(1000, 0.99).magnitude < 1


def test_littles_law_on_a_published_run() -> None:
    """Llama 3.3 70B on Trillium: 64 and 128 requests were kept in flight."""
    for rate, time, concurrency in ((2.49, 0.251 + 999 * 0.02535, 64), (3.54, 35.6, 128)):
        assert requests_in_system(Q_(rate, "1/s"), Q_(time, "s")).magnitude == pytest.approx(concurrency, rel=0.02)


def test_padding_of_the_course_text_and_of_a_batch() -> None:
    assert f"{padding_waste([300], [512]):.1%}" == "41.4%"
    assert padding_waste([10, 20, 30], [64]) == pytest.approx(1 - 60 / 192)
    assert padding_waste([16, 32], [16, 32]) == 0


def test_queues_without_a_steady_state_are_refused() -> None:
    for call in (lambda: mm1_wait(ONE, 1.0), lambda: mmc_wait(ONE, 1.2, 4), lambda: padding_waste([600], [512])):
        with pytest.raises(ArgumentError):
            call()
    assert offered_utilisation(Q_(6, "1/s"), ONE, 4).magnitude == 1.5


_TOKENS = 2000  # mean length of an output: a service time is a whole number of iterations of 1/2000 s


def _iteration() -> TabulatedSteps:
    """Return a server whose slots are independent: an iteration takes 1/2000 s, and prompts take no time."""
    axis, table = np.array([0.0, 64.0]), np.full((2, 2, 2), 1 / _TOKENS)
    table[:, 0] = 1e-12
    return TabulatedSteps(axis, np.array([0.0, 1.0]), axis, table)


def _served(load: float, slots: int, number: int, seed: int, *, equal: bool) -> tuple[float, float, np.ndarray]:
    draws = np.random.default_rng(seed)
    lengths = np.full(number, _TOKENS) if equal else np.ceil(draws.exponential(_TOKENS, number))
    arrivals = np.cumsum(draws.exponential(1 / (load * slots), number))
    requests = Requests(arrivals, np.ones(number), lengths + 1)
    steps = _iteration()
    if slots > 1:  # the same time for any batch of one or more
        table = np.repeat(steps.seconds[:, 1:], 3, axis=1)
        table[:, 0] = 1e-12
        steps = TabulatedSteps(steps.prefill, np.array([0.0, 1.0, 64.0]), steps.context, table)
    run = simulate(requests, steps, ServerSettings(slots, 64, 10**7, 16, watermark=0.0))
    waits = run.queue_time
    batches = waits[: number // 50 * 50].reshape(50, -1).mean(axis=1)  # batch means: waits are correlated
    return float(waits.mean()), float(batches.std(ddof=1) / math.sqrt(50)), run.latency


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_a_server_of_one_slot_is_md1_for_equal_outputs_and_mm1_for_exponential_ones(load: float) -> None:
    for equal, formula in ((True, md1_wait), (False, mm1_wait)):
        mean, error, latency = _served(load, 1, 200_000, 11, equal=equal)
        assert mean == pytest.approx(formula(ONE, load).m_as("s"), abs=3 * error + 1e-3)
        assert error < 0.1 * mean
        if not equal:
            p99 = mm1_sojourn_percentile(ONE, load, 0.99).m_as("s")
            assert np.percentile(latency, 99) == pytest.approx(p99, rel=0.06)


@pytest.mark.parametrize(("slots", "load"), [(2, 0.8), (8, 0.9)])
def test_a_server_of_several_slots_is_mmc(slots: int, load: float) -> None:
    mean, error, _ = _served(load, slots, 200_000, 12, equal=False)
    # A slot that falls free is taken at the next iteration: half an iteration later on average.
    assert mean == pytest.approx(mmc_wait(ONE, load, slots).m_as("s"), abs=3 * error + 1 / _TOKENS)
    assert error < 0.1 * mean
