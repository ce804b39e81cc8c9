"""Queueing formulas against published values, and the server simulator in the limits where it is such a queue."""

import math

import numpy as np
import pytest

from mlsys.errors import ArgumentError
from mlsys.formulas import (
    batch_fill_wait,
    erlang_c,
    md1_wait,
    mm1_sojourn_percentile,
    mm1_wait,
    mmc_wait,
    padding_waste,
    requests_in_system,
)
from mlsys.models.serving import (
    OutputLengths,
    ServerSettings,
    TabulatedSteps,
    batch_means,
    poisson_requests,
    simulate,
    static_batching,
)
from mlsys.units import Q_

ONE = Q_(1, "s")


@pytest.mark.parametrize(("load", "wait"), [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19)])
def test_textbook_waits_of_one_server(load: float, wait: float) -> None:
    assert mm1_wait(ONE, load).m_as("s") == pytest.approx(wait)
    assert md1_wait(ONE, load).m_as("s") == pytest.approx(wait / 2)
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


_TOKENS = 2000  # mean length of an output: a service time is a whole number of iterations of 1/2000 s


def _served(load: float, slots: int, seed: int, outputs: OutputLengths) -> tuple[float, float, np.ndarray]:
    requests = poisson_requests(Q_(load * slots, "1/s"), 1, _TOKENS, count=200_000, outputs=outputs, seed=seed)
    steps = TabulatedSteps.constant(ONE / _TOKENS)
    run = simulate(requests, steps, ServerSettings(slots, 64, 10**7, 16, watermark=0.0))
    return *batch_means(run.queue_time), run.latency


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_a_server_of_one_slot_is_md1_for_equal_outputs_and_mm1_for_exponential_ones(load: float) -> None:
    for outputs, formula in (("equal", md1_wait), ("geometric", mm1_wait)):
        mean, error, latency = _served(load, 1, 11, outputs)
        assert mean == pytest.approx(formula(ONE, load).m_as("s"), abs=3 * error + 1e-3)
        assert error < 0.1 * mean
        if outputs == "geometric":
            p99 = mm1_sojourn_percentile(ONE, load, 0.99).m_as("s")
            above, spread = batch_means(latency > p99)
            assert above == pytest.approx(0.01, abs=3 * spread)


@pytest.mark.parametrize(("slots", "load"), [(2, 0.8), (8, 0.9)])
def test_a_server_of_several_slots_is_mmc(slots: int, load: float) -> None:
    mean, error, _ = _served(load, slots, 12, "geometric")
    # A slot that falls free is taken at the next iteration: half an iteration later on average.
    assert mean == pytest.approx(mmc_wait(ONE, load, slots).m_as("s"), abs=3 * error + 1 / _TOKENS)
    assert error < 0.1 * mean


def test_a_batch_fills_as_long_as_the_formula_says() -> None:
    """Static batching that waits for whole batches of 16, on a server that takes no time."""
    requests = poisson_requests(Q_(100, "1/s"), 1, 1, count=64_000, seed=3)
    run = static_batching(requests, TabulatedSteps.constant(Q_(1, "ns")), batch=16, buckets=[1], patience=1e6)
    mean, error = batch_means(run.queue_time)
    assert run.batches == 4000
    assert mean == pytest.approx(batch_fill_wait(16, Q_(100, "1/s")).m_as("s"), abs=3 * error)
    assert error < 0.02 * mean


def test_batch_means_see_a_correlation_that_the_plain_error_does_not() -> None:
    """A series in which each draw stands a hundred times in a row has a hundredth of its length."""
    draws = np.random.default_rng(1).normal(size=5000)
    for series in (draws, np.repeat(draws, 100)):
        assert batch_means(series)[1] == pytest.approx(1 / math.sqrt(5000), rel=0.3)
    with pytest.raises(ArgumentError, match="50 values"):
        batch_means(draws[:49])
