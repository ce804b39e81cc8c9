"""The server simulator against a slow one that writes out every iteration, and against laws that every run obeys."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from serving_reference import slow_simulation

from mlsys.errors import ArgumentError
from mlsys.models.serving import Requests, ServerSettings, TabulatedSteps, offline_requests, simulate

# Spacings of the grid are powers of two, so that every time is exact in binary and can be compared for equality.
_AXES = [np.array([0.0, 4, 8, 72]), np.array([0.0, 1, 2, 10]), np.array([0.0, 32, 64, 576])]


def exact_steps(pair_seconds: float = 0.0) -> TabulatedSteps:
    draws = np.random.default_rng(5)
    table = draws.integers(0, 64, (4, 4, 4)) / 4.0
    table = np.cumsum(np.cumsum(np.cumsum(table, 0), 1), 2)
    return TabulatedSteps(*_AXES, table, pair_seconds)


def random_requests(seed: int, number: int = 40, gap: float = 64.0) -> Requests:
    draws = np.random.default_rng(seed)
    times = np.cumsum(draws.integers(0, int(2 * gap), number)) / 1.0
    return Requests(times, draws.integers(1, 40, number), draws.integers(1, 24, number))


SETTINGS = [
    ServerSettings(
        max_batch=batch, token_budget=budget, blocks=blocks, block_size=size, chunked_prefill=chunked,
        preemption=preemption, swap_seconds=0.5, watermark=watermark, replicas=replicas, routing=routing,
    )
    for (batch, budget), (blocks, size), chunked, preemption, watermark, (replicas, routing) in itertools.product(
        [(4, 8), (6, 16)],
        [(16, 4), (64, 1), (300, 16)],
        [True, False],
        ["recompute", "swap", "reserve"],
        [0.0, 0.125],
        [(1, "round-robin"), (2, "round-robin"), (3, "least-loaded")],
    )
]  # fmt: skip
# Every second one with a prefix of two blocks and a token that all prompts share.
SETTINGS = [
    replace(each, shared_prefix=2 * each.block_size + 1 if number % 2 else 0) for number, each in enumerate(SETTINGS)
]


@pytest.mark.parametrize("part", range(6))
def test_agrees_with_the_slow_simulator_in_every_time_and_count(part: int) -> None:
    seen = 0
    for seed, settings in enumerate(SETTINGS[part::6]):
        steps = exact_steps(pair_seconds=0.25 * (seed % 2))
        requests = random_requests(seed, gap=[8.0, 64.0, 256.0][seed % 3])
        run = simulate(requests, steps, settings)
        sequences, replicas, homes = slow_simulation(requests, steps, settings, steps.pair_seconds)
        assert run.replica.tolist() == homes, settings
        assert run.end.tolist() == [each.end for each in sequences], settings
        assert run.first.tolist() == [each.first for each in sequences], settings
        assert run.begin.tolist() == [each.begin for each in sequences], settings
        assert run.preemptions.tolist() == [each.preemptions for each in sequences], settings
        assert run.iterations == sum(each.iterations for each in replicas), settings
        assert run.prefilled == sum(each.prefilled for each in replicas), settings
        assert run.most_blocks == max(each.most_blocks for each in replicas) + settings.shared_blocks, settings
        assert run.busy == sum(each.busy for each in replicas), settings
        used = sum(each.block_seconds for each in replicas)
        running = float(used / settings.replicas) / run.span
        assert run.block_share == pytest.approx((running + settings.shared_blocks) / settings.blocks)
        assert run.cached.tolist() == [each.found for each in sequences], settings
        seen += int(run.preemptions.sum())
    assert seen > 20, "these settings must make the server preempt"


def test_every_run_obeys_littles_law_and_loses_no_request() -> None:
    for seed, settings in enumerate(SETTINGS[::7]):
        requests = random_requests(seed + 100, number=300, gap=32.0)
        run = simulate(requests, exact_steps(), settings)
        assert (run.end >= run.first).all()
        assert (run.first > run.begin).all()
        assert (run.begin >= requests.arrival).all()
        assert run.most_blocks <= settings.blocks
        assert run.in_system * run.span == pytest.approx(run.latency.sum(), rel=1e-12)
        assert run.prefilled >= (requests.prompt - run.cached).sum()
        if settings.preemption == "reserve":
            assert not run.preemptions.any()
            assert run.prefilled == (requests.prompt - run.cached).sum()
        if settings.preemption == "swap":
            assert (run.swapping > 0) == (run.preemptions.sum() > 0) or not settings.chunked_prefill


def test_a_server_with_work_is_never_idle() -> None:
    """Work conservation: one replica is busy exactly while a request is in the system."""
    for settings in SETTINGS[::11]:
        if settings.replicas > 1:
            continue
        requests = random_requests(3, number=200, gap=200.0)
        run = simulate(requests, exact_steps(), settings)
        order = np.argsort(requests.arrival, kind="stable")
        busy, until = 0.0, -np.inf
        latest = np.maximum.accumulate(run.end)
        for index in order:
            begin = requests.arrival[index]
            if begin >= until:
                until = begin
            # The system is empty only where every earlier request has ended.
            busy += max(latest[index] - until, 0.0)
            until = max(until, latest[index])
        assert run.busy == pytest.approx(busy, rel=1e-12)


def test_the_same_requests_give_the_same_run() -> None:
    first, second = (simulate(random_requests(1), exact_steps(), SETTINGS[0]) for _ in range(2))
    assert first.end.tobytes() == second.end.tobytes()


def test_more_blocks_of_memory_never_preempt_more_in_a_queue_that_begins_full() -> None:
    requests = offline_requests(64, 20, 20)
    counts = [
        int(simulate(requests, exact_steps(), ServerSettings(8, 16, blocks, 4)).preemptions.sum())
        for blocks in (16, 32, 80)
    ]
    assert counts[0] > counts[-1] == 0


def test_iterations_cost_what_the_step_function_says() -> None:
    """A batch of equal requests: its time is the sum over iterations written down by hand."""
    run = simulate(offline_requests(4, 16, 5), lambda p, b, c: 1.0 * p + 10.0 * b + 0.5 * c, ServerSettings(4, 64, 64))
    by_hand = 64.0 + sum(10.0 * 4 + 0.5 * 4 * (16 + i) for i in range(1, 5))
    assert run.end == pytest.approx(np.full(4, by_hand), rel=1e-12)
    assert run.first == pytest.approx(np.full(4, 64.0), rel=1e-12)


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        (([1.0, 0.5], [1, 1], [1, 1]), "must not go back"),
        (([-1.0], [1], [1]), "not negative"),
        (([float("nan")], [1], [1]), "finite"),
        (([0.0], [-3], [1]), "got -3 in row 1"),
        (([0.0], [1], [0]), "got 0 in row 1"),
        (([0.0], [1.5], [1]), "whole numbers"),
        (([], [], []), "there is none"),
        (([0.0], [1, 2], [1]), "as many"),
    ],
)
def test_wrong_requests_are_refused(requests: tuple[list[float], list[float], list[float]], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        Requests(*requests)  # type: ignore[arg-type]


def test_a_request_that_never_fits_is_refused() -> None:
    with pytest.raises(ArgumentError, match="request 2 never fits"):
        simulate(Requests([0, 0], [10, 60], [5, 6]), exact_steps(), ServerSettings(4, 8, 16, 4))
    simulate(Requests([0, 0], [10, 60], [5, 5]), exact_steps(), ServerSettings(4, 8, 16, 4))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"max_batch": 0}, "max_batch"),
        ({"max_batch": 64, "token_budget": 32}, "at least `max_batch`"),
        ({"preemption": "evict"}, "recompute"),
        ({"watermark": 1.0}, "watermark"),
        ({"swap_seconds": -1}, "swap_seconds"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ServerSettings(**settings)  # type: ignore[arg-type]


def test_a_shared_prefix_is_computed_by_nobody_and_stored_once() -> None:
    """By arithmetic: 3 of 4 prompt tokens are found; 50 requests at once need 64 + 50 × 17 blocks, not 50 × 81."""
    requests = offline_requests(50, 1024 + 256, 17)
    steps = TabulatedSteps.of(lambda prefill, batch, context: 1e-6 * prefill + 1e-3, 8192, 64, 1 << 20)
    plain = ServerSettings(max_batch=64, token_budget=8192, blocks=50 * 81, watermark=0.0)
    run = simulate(requests, steps, replace(plain, shared_prefix=1024 + 7))
    assert run.prefix_hit_share == 1024 / 1280
    assert run.prefilled == 50 * 256
    assert run.most_blocks == 64 + 50 * 17
    assert simulate(requests, steps, plain).most_blocks == 50 * 81
    assert run.ttft.max() < simulate(requests, steps, plain).ttft.max()
    whole = simulate(offline_requests(3, 32, 2), steps, replace(plain, shared_prefix=32))
    assert whole.cached.tolist() == [16, 16, 16]  # the last token of a prompt is computed, and with it its block
    with pytest.raises(ArgumentError, match="a shared prefix of 1,031 tokens takes all of the 64 blocks"):
        simulate(requests, steps, replace(plain, blocks=64, shared_prefix=1031))
