"""Traces of requests, objectives, static batching and the table of iteration times."""

import json
from pathlib import Path

import numpy as np
import pytest

from mlsys.errors import ArgumentError
from mlsys.models.serving import (
    Objectives,
    Prefixes,
    Requests,
    ServerSettings,
    TabulatedSteps,
    offline_requests,
    poisson_requests,
    read_trace,
    simulate,
    static_batching,
)
from mlsys.units import Q_

TRACES = {
    "azure.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
    "2023-11-16 18:15:50.9951690,396,109\n2023-11-16 18:15:51.2224670,879,55\n",
    "vidur.csv": "arrived_at,num_prefill_tokens,num_decode_tokens\n0,374,44\n4.314579,396,109\n4.541877,879,55\n",
    "burst.csv": "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,374,44,418,API\n"
    "9.314579,GPT-4,396,109,505,API\n9.4,GPT-4,20,0,20,API\n9.541877,GPT-4,879,55,934,API\n",
    "mooncake.jsonl": "\n".join(
        json.dumps({"timestamp": time, "input_length": a, "output_length": b, "hash_ids": [0]})
        for time, a, b in ((0, 374, 44), (4314.579, 396, 109), (4541.877, 879, 55))
    ),
}


@pytest.mark.parametrize("name", TRACES)
def test_the_columns_of_published_traces_are_known(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(TRACES[name], "utf-8")
    trace = read_trace(file)
    assert trace.arrival == pytest.approx([0, 4.314579, 4.541877], abs=2e-6)
    assert trace.prompt.tolist() == [374, 396, 879]
    assert trace.output.tolist() == [44, 109, 55]
    assert trace.left_out == (name == "burst.csv")


def mooncake(folder: Path, rows: list[tuple[int, int, int, object]]) -> Path:
    file = folder / "mooncake.jsonl"
    names = "timestamp", "input_length", "output_length", "hash_ids"
    file.write_text("\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows))
    return file


def drawn_blocks(seed: int, number: int = 300) -> list[tuple[int, ...]]:
    """Conversations: each prompt goes on where an earlier one of its own stopped."""
    draws, last, fresh = np.random.default_rng(seed), [(0,)] * 12, 1
    prompts = []
    for _ in range(number):
        who, more = int(draws.integers(12)), int(draws.integers(1, 4))
        last[who] = (*last[who], *range(fresh, fresh + more))
        fresh += more
        prompts.append(last[who])
        if draws.random() < 0.2:
            last[who] = (0,)
    return prompts


def test_prefixes_are_found_that_earlier_prompts_left(tmp_path: Path) -> None:
    """Without a limit, by sets: the leading blocks of a prompt that any earlier prompt had."""
    prompts = drawn_blocks(1)
    rows: list[tuple[int, int, int, object]] = [
        (i, 512 * len(own) - 100, 5, list(own)) for i, own in enumerate(prompts)
    ]
    trace = read_trace(mooncake(tmp_path, rows))
    seen: set[int] = set()
    expected = []
    for own, length in zip(prompts, trace.prompt, strict=True):
        leading = next((i for i, block in enumerate(own) if block not in seen), len(own))
        expected.append(min(512 * leading, length))
        seen |= set(own)
    whole = trace.with_store()
    assert whole.found is not None and whole.found.tolist() == expected
    shares = [np.sum(trace.with_store(512 * blocks).found) for blocks in (0, 20, 200, 10_000)]
    assert shares[0] == 0 and shares == sorted(shares) and shares[-1] == sum(expected)


def test_prefixes_that_are_found_are_not_computed_and_take_their_blocks() -> None:
    prompts = drawn_blocks(2)
    lengths = np.array([512 * len(own) for own in prompts])
    arrivals = np.arange(len(prompts)) * 0.5
    known = Prefixes(tuple(prompts), 512)
    plain = Requests(arrivals, lengths, np.full(len(prompts), 8), prefixes=known)
    steps = TabulatedSteps.of(lambda prefill, batch, context: 1e-3 + 1e-5 * prefill, 2048, 64, 10**6)
    settings = ServerSettings(max_batch=64, token_budget=2048, blocks=8192)
    cold, warm = simulate(plain, steps, settings), simulate(plain.with_store(), steps, settings)
    assert cold.prefilled == lengths.sum() and cold.prefix_hit_share == 0
    assert warm.prefilled == lengths.sum() - warm.cached.sum()
    assert (warm.cached < lengths).all() and warm.prefix_hit_share > 0.5
    assert (warm.ttft <= cold.ttft + 1e-9).all() and warm.ttft.mean() < 0.7 * cold.ttft.mean()
    # One request alone holds the blocks of its whole prompt, found or not.
    last = Requests(arrivals[-1:], lengths[-1:], [8], found=lengths[-1:])
    assert simulate(last, steps, settings).most_blocks == -(-(int(lengths[-1]) + 7) // 16)


@pytest.mark.parametrize(
    ("blocks", "says"),
    [("7", "must be a list of whole numbers"), ([1.5], "must be a list"), ([1, 2], "has room for 1")],
)
def test_wrong_blocks_of_a_prompt_are_refused(tmp_path: Path, blocks: object, says: str) -> None:
    with pytest.raises(ArgumentError, match=f"line 1: hash_ids .*{says}"):
        read_trace(mooncake(tmp_path, [(0, 400, 5, blocks)]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\n", "no requests"),
        ("a,b,c\n1,2,3\n", "no known trace"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\n2,3,4\n1,3,4\n", "line 3: time goes back"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\n2,-3,4\n", "line 2: num_prefill_tokens"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\n2,3,x\n", "line 2: num_decode_tokens"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\nnan,3,4\n", "finite"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\n-1,3,4\n", "not negative"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\nnoon,3,4\n", "date and time"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\n1,3\n", "wanted 3 cells"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\n1,0,4\n", "at least 1"),
        ("arrived_at,num_prefill_tokens,num_decode_tokens\n1,3,0\n", "generates a token"),
    ],
)
def test_a_wrong_trace_is_refused_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(text, "utf-8")
    with pytest.raises(ArgumentError, match=says):
        read_trace(file)


def test_columns_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("when,in,out\n3,10,2\n4,11,3\n", "utf-8")
    trace = read_trace(file, {"arrival": "when", "prompt": "in", "output": "out"})
    assert trace.prompt.tolist() == [10, 11]
    with pytest.raises(ArgumentError, match="no column 'then'"):
        read_trace(file, {"arrival": "then", "prompt": "in", "output": "out"})


def test_objectives_are_read_or_refused() -> None:
    assert Objectives.parse("TTFT < 450 ms,tpot<=40 ms, E2E<1 min") == Objectives(0.45, 0.04, 60.0)
    for text in ("", "TTFT", "TTFT>1 s", "TTFT<0 s", "TTFT<1 GB", "TTFT<1 s, TTFT<2 s", "TBT<1 s"):
        with pytest.raises(ArgumentError):
            Objectives.parse(text)


def test_poisson_arrivals_have_the_rate_and_variance_of_their_process() -> None:
    by_time = poisson_requests(Q_(20, "1/s"), 10, 10, seconds=Q_(2000, "s"), seed=4)
    by_count = poisson_requests(Q_(20, "1/s"), 10, 10, count=40_000, seed=4)
    for requests in (by_time, by_count):
        gaps = np.diff(requests.arrival)
        assert gaps.mean() == pytest.approx(1 / 20, rel=4 / np.sqrt(len(gaps)))
        assert gaps.std() == pytest.approx(1 / 20, rel=4 / np.sqrt(len(gaps) / 2))
    assert by_time.at_rate(5.0).rate == pytest.approx(5.0)


def test_a_table_interpolates_as_scipy_does() -> None:
    from scipy.interpolate import RegularGridInterpolator

    draws = np.random.default_rng(2)
    axes = [np.cumsum(draws.uniform(0.5, 9, size)) - 0.5 for size in (4, 3, 5)]
    table = draws.uniform(1, 2, (4, 3, 5))
    steps = TabulatedSteps(*axes, table)
    known = RegularGridInterpolator(axes, table)
    for _ in range(200):
        at = [draws.uniform(axis[0], axis[-1]) for axis in axes]
        assert steps(*at) == pytest.approx(float(known(at)[0]), rel=1e-12)


def test_static_batching_pads_to_its_bucket_and_waits_for_its_longest_output() -> None:
    def step(prefill: int, batch: int, context: int) -> float:
        return 1e-3 * prefill + (1.0 + 1e-3 * context if batch else 0.0)

    run = static_batching(Requests([0, 0, 0], [300, 500, 40], [3, 5, 2]), step, batch=2, buckets=[64, 512])
    # First the bucket of 512 with two requests, padded to 2 x 512 tokens; then the one of 64.
    first = 1.024
    second = first + sum(1.0 + 1e-3 * 2 * (512 + j) for j in range(1, 5))
    assert run.first.tolist() == pytest.approx([first, first, second + 0.064])
    assert run.end.tolist() == pytest.approx([second, second, second + 0.064 + 1.0 + 1e-3 * 65])
    assert run.prompt_waste == pytest.approx(1 - 840 / (2 * 512 + 64))
    assert run.output_waste == pytest.approx(1 - 10 / (2 * 5 + 2))
    assert run.batches == 2


def test_continuous_batching_beats_static_batching_where_outputs_differ() -> None:
    draws = np.random.default_rng(3)
    requests = Requests(np.zeros(200), np.full(200, 64), draws.integers(1, 200, 200))

    def step(prefill: int, batch: int, context: int) -> float:
        return 1e-5 * prefill + 0.01

    continuous = simulate(requests, step, ServerSettings(16, 2048, 4096))
    static = static_batching(requests, step, batch=16, buckets=[64])
    assert continuous.span < 0.75 * static.end.max()
    assert static.prompt_waste == 0
    assert static.output_waste > 0.3


def test_a_patient_batcher_waits_until_its_batch_is_full_or_its_patience_ends() -> None:
    requests = Requests([0.0, 1.0, 10.0], [8, 8, 8], [1, 1, 1])
    run = static_batching(requests, lambda p, b, c: 0.5, batch=2, buckets=[8], patience=4.0)
    assert run.begin.tolist() == [1.0, 1.0, 14.0]


def test_swapping_costs_what_blocks_and_link_say() -> None:
    requests = offline_requests(8, 30, 30)
    settings = ServerSettings(8, 64, 24, 4, preemption="swap", swap_seconds=0.25, watermark=0.0)
    run = simulate(requests, lambda p, b, c: 0.01, settings)
    assert run.preemptions.sum() > 0
    assert run.prefilled == requests.prompt.sum(), "nothing is computed twice"
    assert run.swapping % 0.5 == 0, "every block that goes out comes back"
