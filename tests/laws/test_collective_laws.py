"""Collectives: the simulator delivers the data, in the bytes and time of the closed forms; models are sane."""

import itertools
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import Q_, formulas
from mlsys.choices import Collective, CollectiveAlgorithm, CollectiveLibrary
from mlsys.errors import ArgumentError
from mlsys.hardware import System, systems
from mlsys.models.collectives import (
    Message,
    Schedule,
    collective_candidates,
    collective_seconds,
    collective_time,
    double_tree,
    hierarchical_all_reduce,
    schedule,
    simulate,
    traffic_factor,
)
from mlsys.models.collectives.closed import closed_forms
from mlsys.models.collectives.group import group_of, torus_slice
from mlsys.provenance import perturbed

ALPHA, RATE, GAMMA = 5e-6, 100e9, 3e-12
CLOSED: dict[tuple[Collective, CollectiveAlgorithm], Any] = {
    ("all-gather", "ring"): formulas.ring_all_gather_time,
    ("all-gather", "recursive doubling"): formulas.recursive_doubling_all_gather_time,
    ("all-gather", "direct"): formulas.direct_exchange_time,
    ("reduce-scatter", "ring"): formulas.ring_reduce_scatter_time,
    ("reduce-scatter", "direct"): formulas.direct_exchange_time,
    ("all-reduce", "ring"): formulas.ring_all_reduce_time,
    ("all-reduce", "recursive doubling"): formulas.recursive_doubling_all_reduce_time,
    ("all-reduce", "rabenseifner"): formulas.rabenseifner_all_reduce_time,
    ("all-reduce", "tree"): formulas.tree_all_reduce_time,
    ("all-to-all", "pairwise"): formulas.pairwise_all_to_all_time,
    ("all-to-all", "direct"): formulas.direct_exchange_time,
    ("all-to-all", "bruck"): formulas.bruck_all_to_all_time,
    ("broadcast", "tree"): formulas.tree_broadcast_time,
    ("broadcast", "ring"): formulas.ring_broadcast_time,
}


@pytest.mark.parametrize("case", CLOSED, ids="-".join)
@pytest.mark.parametrize("size", [0.0, 1e3, 1e6, 1e9])
def test_a_simulated_collective_takes_the_closed_form(
    case: tuple[Collective, CollectiveAlgorithm], size: float
) -> None:
    """Over 1 to 20 ranks; the simulator refuses a schedule that loses or doubles a contribution."""
    formula, served = CLOSED[case], 0
    for ranks in range(1, 21):
        plan = schedule(*case, ranks)
        if plan is None:
            continue
        served += 1
        adds = {"reduction_time_per_byte": GAMMA} if "reduction_time_per_byte" in formula.specs else {}
        run = simulate(plan, size, lambda source, target: (ALPHA, RATE), seconds_per_added_byte=GAMMA if adds else 0.0)
        assert run.seconds == pytest.approx(formula.bare(size, ranks, ALPHA, RATE, **adds), rel=1e-12, abs=1e-15)
        most = max(run.sent)
        assert sum(run.sent) == pytest.approx(sum(run.received)) == pytest.approx(sum(run.by_link.values()))
        if case[1] in ("ring", "direct", "pairwise") and case[0] != "broadcast":
            assert most == pytest.approx(traffic_factor(case[0], ranks) * size), "as nccl-tests counts"
        assert min(run.received) >= 0 and most <= 2 * 5 * size
    assert served >= 5


@pytest.mark.parametrize(("inside", "nodes"), list(itertools.product([1, 2, 3, 8], [1, 2, 3, 5])))
def test_the_hierarchical_all_reduce_is_the_sum_of_its_parts(inside: int, nodes: int) -> None:
    def hop(source: int, target: int) -> tuple[float, float]:
        return (1e-6, 450e9) if source // inside == target // inside else (5e-6, 50e9)

    run = simulate(hierarchical_all_reduce(inside, nodes), 1e8, hop)
    closed = formulas.hierarchical_all_reduce_time.bare(1e8, inside, nodes, 1e-6, 450e9, 5e-6, 50e9)
    assert run.seconds == pytest.approx(closed, rel=1e-12, abs=1e-15)
    out = sum(moved for (a, b), moved in run.by_link.items() if a // inside != b // inside)
    assert out == pytest.approx(2 * (nodes - 1) * 1e8), "over all ranks: 2 (k-1)/k n/g each"


def test_two_flows_on_one_link_share_it() -> None:
    plan = Schedule("all-gather", 2, 2, [[Message(0, 1, (0,)), Message(1, 0, (1,))]])
    alone = simulate(plan, 2e9, lambda source, target: (0.0, 31.5e9))
    crowded = simulate(plan, 2e9, lambda source, target: (0.0, 31.5e9), shared=lambda a, b: ("bridge", 31.5e9))
    assert crowded.seconds == pytest.approx(2 * alone.seconds)


def test_the_simulator_refuses_a_schedule_that_does_not_deliver() -> None:
    lost = Schedule("all-gather", 2, 2, [[Message(0, 1, (0,))]])
    with pytest.raises(ArgumentError, match="rank 0 does not hold what it should"):
        simulate(lost, 1.0, lambda source, target: (0.0, 1.0))
    twice = Schedule("all-reduce", 2, 1, [[Message(0, 1, (0,), True)], [Message(0, 1, (0,), True)]])
    with pytest.raises(ArgumentError, match="added twice"):
        simulate(twice, 1.0, lambda source, target: (0.0, 1.0))


@pytest.mark.parametrize("ranks", range(2, 130))
def test_in_the_double_tree_no_rank_passes_on_in_both_trees(ranks: int) -> None:
    first, second = double_tree(ranks)
    inner = [set(parents) - {-1} for parents in (first, second)]
    for parents in (first, second):
        assert sorted(parents).count(-1) == 1
        depth = 0
        for rank in range(ranks):
            steps, at = 0, rank
            while parents[at] >= 0:
                at, steps = parents[at], steps + 1
                assert steps <= ranks, "a cycle"
            depth = max(depth, steps)
        assert depth <= ranks.bit_length()
        assert max(list(parents).count(rank) for rank in range(ranks)) <= 2
    roots = {first.index(-1), second.index(-1)}
    assert not (inner[0] & inner[1]) - roots


# --- models ---------------------------------------------------------------------------

MANY = [each for each in systems if each.chips > 1]
EACH = [(each, operation) for each in MANY for operation in get_args(Collective)]


def _spread(system: System) -> list[tuple[System, int]]:
    chips = [(system, count) for count in (2, 4, 8, 64) if count <= system.chips_per_node]
    return chips + ([(system.with_nodes(4), 4 * system.chips_per_node)] if system.scale_out else [])


@pytest.mark.parametrize(("system", "operation"), EACH, ids=lambda value: getattr(value, "id", value))
def test_times_grow_with_the_bytes_and_never_beat_the_wire(system: System, operation: Collective) -> None:
    for where, chips in _spread(system):
        times = [collective_seconds(where, operation, size, chips) for size in (1e3, 1e6, 1e8, 1e10)]
        assert 0 < times[0] <= times[1] <= times[2] <= times[3]
        ideal = [collective_seconds(where, operation, size, chips, "ideal") for size in (1e3, 1e6, 1e8, 1e10)]
        assert ideal == sorted(ideal) and ideal[0] > 0
        group = group_of("test", where, chips)
        if operation in ("all-gather", "reduce-scatter", "all-to-all") and group.nodes == 1:
            least = 1e10 * (chips - 1) / chips / group.bandwidth
            assert min(times[3], ideal[3]) >= least * (1 - 1e-12)


@pytest.mark.parametrize(
    "system", [each for each in MANY if each.scale_up.topology == "switch"], ids=lambda system: system.id
)
def test_behind_a_switch_the_model_is_the_formula(system: System) -> None:
    up = system.scale_up
    alpha, rate = up.latency.m_as("s"), up.bandwidth.m_as("byte/s")
    for (operation, algorithm), formula in CLOSED.items():
        found = {each.algorithm: each for each in closed_forms(operation, 1e8, group_of("test", system, 8))}
        assert found[algorithm].seconds == pytest.approx(formula.bare(1e8, 8, alpha, rate), rel=1e-9)


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))
def test_a_slice_of_a_torus_holds_its_chips(a: int, b: int, c: int) -> None:
    chips = 2 ** (a + b + c)
    if chips > 4096:
        return
    sides = torus_slice(chips, (16, 16, 16))
    product = 1
    for side, closed in sides:
        product *= side
        assert side <= 16 and closed == (side % 4 == 0)
    assert product == chips


def test_a_full_torus_attains_all_its_ports() -> None:
    """A 4 x 4 x 4 slice of TPU v5p: an all-reduce approaches 2 n / (6 x 100 GB/s)."""
    best = collective_candidates(systems["TPUv5p_pod"], "all-reduce", 1e11, 64)[0]
    assert best.algorithm == "torus"
    assert best.seconds == pytest.approx(2 * 63 / 64 * 1e11 / 600e9, rel=0.01)


def test_more_chips_of_a_mesh_use_more_of_its_links() -> None:
    """A pair of MI300X has one link of 64 GB/s, eight have seven."""
    mesh = systems["MI300X_platform"]
    pair = collective_candidates(mesh, "all-reduce", 4e9, 2)[0].seconds
    eight = collective_candidates(mesh, "all-reduce", 4e9, 8)[0].seconds
    assert 4e9 / pair == pytest.approx(64e9, rel=0.01)
    assert 4e9 * 1.75 / eight == pytest.approx(448e9, rel=0.01)


def test_one_chip_and_no_bytes_take_no_time() -> None:
    assert collective_seconds(systems["DGX_H100"], "all-reduce", 1e9, 1) == 0
    assert collective_seconds(systems["DGX_H100"], "all-reduce", 0, 8) == 0


@pytest.mark.parametrize("library", ["nccl", "ideal"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_result_names_the_facts_that_move_it_and_none_moves_it_more_than_in_proportion(
    library: CollectiveLibrary, nodes: int
) -> None:
    where = systems["DGX_H100"].with_nodes(nodes)
    every = {value.facts[0].name for value in where.recorded()} | {"H100_SXM/links/NVLink/per_direction"}
    for size in (Q_(1, "kB"), Q_(64, "MB"), Q_(16, "GB")):
        plain = collective_time(where, "all-reduce", size, library=library)
        result = {fact.name for fact in plain.facts}
        assert plain.time.m_as("s") == pytest.approx(sum(part.m_as("s") for part in plain.parts.values()))
        for name in every:
            with perturbed(name, 1.1):
                moved = collective_time(where, "all-reduce", size, library=library).time / plain.time
            assert 1 / 1.1 - 1e-9 <= moved.m_as("") <= 1.1 + 1e-9
            assert name in result or moved.m_as("") == pytest.approx(1), name
            if name.endswith(("bandwidth", "per_direction")):
                assert moved.m_as("") <= 1 + 1e-9, "a faster link never slows"
