"""Dataflows against the formulas of the chapter, costs that add up, and what is refused."""

import dataclasses
import math

import pytest

from mlsys import Hardware
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.mapping import LoopNest, TileLevel, conv_space, dataflow, gemm_space, iteration_space, row_stationary
from mlsys.models.dataflow import buffer_words, hierarchy, movements, nest_cost
from mlsys.provenance import perturbed
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_
from mlsys.workloads import gemm, relu


def words(m: int, n: int, k: int, name: str, tile: int) -> tuple[int, int, int]:
    a, b, c = movements(gemm_space(m, n, k), dataflow(name, tile))
    return a.words, b.words, c.words


def by_formula(m: int, n: int, k: int, name: str, tile: int) -> tuple[int, int, int]:
    """Return the words of A, B and C by the textbook: what stays moves once, sums go out and come back."""
    again_m, again_n, again_k = (math.ceil(size / tile) for size in (m, n, k))
    sums = 2 * m * n * again_k - m * n
    return {
        "ws": (m * k * again_n, k * n, sums),
        "os": (m * k * again_n, k * n * again_m, m * n),
        "is": (m * k, k * n * again_m, sums),
    }[name]


@pytest.mark.parametrize("name", ["ws", "os", "is"])
@pytest.mark.parametrize(
    "shape", [(32, 512, 256, 32), (2, 4096, 4096, 128), (4096, 4096, 4096, 128), (100, 70, 30, 16)]
)
def test_dataflows_move_what_the_formulas_say(name: str, shape: tuple[int, int, int, int]) -> None:
    assert words(*shape[:3], name, shape[3]) == by_formula(*shape[:3], name, shape[3])


@pytest.mark.parametrize(("name", "total"), [("ws", 507_904), ("os", 278_528), ("is", 385_024)])
def test_the_worked_example(name: str, total: int) -> None:
    assert sum(words(32, 512, 256, name, 32)) == total


def test_at_batch_one_all_dataflows_move_nearly_the_same() -> None:
    totals = [sum(words(1, 4096, 4096, name, 128)) for name in ("ws", "os", "is")]
    assert max(totals) / min(totals) < 1.016
    assert min(totals) > 4096 * 4096  # the weights, which nothing at batch one can spare
    # The formula forgets that a loop of one step is none: with one row, A waits for the next k-tile too.
    assert words(1, 4096, 4096, "ws", 128)[0] == 4096 < by_formula(1, 4096, 4096, "ws", 128)[0]


@pytest.mark.parametrize(
    ("order", "total"),
    [("krspq", 15_120), ("pqkrs", 10_944)],
)
def test_loop_orders_of_a_small_convolution(order: str, total: int) -> None:
    space = conv_space(1, 1, 16, 6, 6, 3, 3)
    moved = movements(space, LoopNest((TileLevel("registers", dict.fromkeys("kpqrs", 1), tuple(order)),)))
    assert sum(item.words for item in moved) == total


def test_nine_weight_registers_or_thirty_six_sums_do_as_well() -> None:
    space = conv_space(1, 1, 16, 6, 6, 3, 3)
    weights = TileLevel("weights", {"k": 1, "r": 3, "s": 3, "p": 1, "q": 1}, ("k", "p", "q"), ("weight",))
    sums = TileLevel("sums", {"k": 1, "r": 1, "s": 1, "p": 6, "q": 6}, ("k", "r", "s"), ("output",))
    ones = dict.fromkeys("kpqrs", 1)
    with_weights = LoopNest((weights, TileLevel("registers", ones, ("r", "s"), ("input", "output"))))
    with_sums = LoopNest((sums, TileLevel("registers", ones, ("p", "q"), ("input", "weight"))))
    for nest in (with_weights, with_sums):
        assert sum(item.words for item in movements(space, nest)) == 5_904


def test_time_is_the_slowest_with_overlap_and_the_sum_without() -> None:
    machine = hierarchy(Hardware.Cloud.A100)
    space = gemm_space(512, 512, 512)
    tiles = [TileLevel(name, dict.fromkeys("mnk", size), ("m", "n", "k")) for name, size in (("L2", 256), ("L1", 64))]
    nest = LoopNest(tuple(tiles))
    together, apart = (nest_cost(machine, space, nest, overlap=overlap) for overlap in (True, False))
    for result in (together, apart):
        assert_quantity_close(result.time, sum(part.m_as("s") for part in result.parts.values()) * Q_(1, "s"))
    taken = [part.m_as("s") for part in apart.parts.values()]
    assert together.time.m_as("s") == pytest.approx(max(taken))
    moved = movements(space, nest)
    out_of_main = sum(item.words for item in moved if item.level == 1) * Q_(2, "byte")
    assert_quantity_close(apart.parts["exposed HBM"], out_of_main / Hardware.Cloud.A100.memory_bw)
    figures = together.figures
    assert_quantity_close(
        figures["energy"], figures["arithmetic energy"] + figures["energy into L2"] + figures["energy into L1"]
    )
    assert together.figures["energy"] == apart.figures["energy"]
    assert buffer_words(space, nest) == (3 * 256**2, 3 * 64**2)


def test_tiles_larger_than_the_memory_are_refused() -> None:
    machine = hierarchy(Hardware.Cloud.A100, levels=1)
    nest = LoopNest((TileLevel("L2", dict.fromkeys("mnk", 4096), ("m", "n", "k")),))
    with pytest.raises(ArgumentError, match="tiles in L2 need 50,331,648 words, but it holds .* Make a tile smaller"):
        nest_cost(machine, gemm_space(4096, 4096, 4096), nest)


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("ENERGY_HBM2_PJ_PER_BIT", "energy into L2"),
        ("ENERGY_SRAM_1MB_7NM_PJ", "energy into L1"),
        ("ENERGY_MUL_FP16_7NM_PJ", "arithmetic energy"),
        ("A100_80GB/memory/HBM/bandwidth", "exposed HBM"),
    ],
)
def test_a_what_if_of_two_acts_once_and_not_as_four(name: str, figure: str) -> None:
    tiles = [TileLevel(each, dict.fromkeys("mnk", size), ("m", "n", "k")) for each, size in (("L2", 64), ("L1", 32))]
    space, nest = gemm_space(512, 512, 512), LoopNest(tuple(tiles))

    def figures() -> dict[str, float]:
        cost = nest_cost(hierarchy(Hardware.Cloud.A100, "fp16"), space, nest, overlap=False)
        return {key: value.magnitude for key, value in {**cost.figures, **cost.parts}.items()}

    with perturbed(name, 2):
        doubled = figures()
    plain = figures()
    ratio = doubled[figure] / plain[figure]
    assert ratio == pytest.approx(0.5) if figure == "exposed HBM" else 1 < ratio <= 2
    assert all(value <= 2 * plain[key] * (1 + 1e-12) for key, value in doubled.items())


def test_a_nest_is_priced_for_a_twin_as_for_its_memories() -> None:
    nest = LoopNest((TileLevel("L2", dict.fromkeys("mnk", 256), ("m", "n", "k")),))
    operator = gemm(512, 512, 512)
    assert nest_cost(Hardware.Cloud.A100, operator, nest) == nest_cost(
        hierarchy(Hardware.Cloud.A100, "fp16", levels=1), iteration_space(operator), nest
    )


def test_levels_that_the_machine_does_not_have_are_refused() -> None:
    nest = LoopNest((TileLevel("L9", {"m": 1}, ("m",)),))
    with pytest.raises(ArgumentError, match="must have the levels .'L2', 'L1'. .* got .'L9'."):
        nest_cost(hierarchy(Hardware.Cloud.A100), gemm_space(4, 4, 4), nest)


@pytest.mark.parametrize("size", [0, -1, 2.5, float("nan"), True, "8", Q_(8, "byte")])
def test_sizes_that_are_no_positive_whole_numbers_are_refused(size: object) -> None:
    with pytest.raises(ArgumentError, match="gemm_space.*`m` must be"):
        gemm_space(size, 4, 4)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="TileLevel.*`tile.m.` must be"):
        TileLevel("L1", {"m": size}, ("m",))  # type: ignore[dict-item]
    with pytest.raises(ArgumentError, match="dataflow.*`tile` must be"):
        dataflow("ws", size)  # type: ignore[arg-type]


def test_unknown_names_are_refused() -> None:
    space = gemm_space(8, 8, 8)
    with pytest.raises(UnknownNameError, match="must be one of ws, os, is, got 'rs'.*row_stationary"):
        dataflow("rs", 8)
    with pytest.raises(UnknownNameError, match="no filter rows"):
        row_stationary(space, 4)
    with pytest.raises(ArgumentError, match="L1 names 'q' in its tile.*It has: m, n, k"):
        movements(space, LoopNest((TileLevel("L1", {"q": 1}, ()),)))
    with pytest.raises(ArgumentError, match="has no operand 'D'. It has: A, B, C"):
        space.operand("D")
    with pytest.raises(ArgumentError, match="loop 'n' takes 8 steps at L1, but is not in its order"):
        movements(space, LoopNest((TileLevel("L1", {"n": 1}, ("m",)),)))
    with pytest.raises(ArgumentError, match="order. must name each loop once"):
        TileLevel("L1", {"n": 1}, ("m", "m"))
    with pytest.raises(ArgumentError, match="must be a matrix product or lower to one"):
        iteration_space(relu(64))
    with pytest.raises(ArgumentError, match="groups. must divide the channels"):
        conv_space(1, 6, 6, 4, 4, 3, 3, groups=4)


def test_inner_tiles_must_divide_outer_ones() -> None:
    levels = (TileLevel("L2", {"m": 4}, ("m",)), TileLevel("L1", {"m": 3}, ("m",)))
    with pytest.raises(
        ArgumentError, match="m-tile of 4 around L1 is not a whole number of its steps of 3.*Write e.g. m=6"
    ):
        movements(gemm_space(8, 1, 1), LoopNest(levels))


def test_a_device_without_memory_on_the_chip_is_one_clear_error() -> None:
    device = Hardware.Cloud.A100
    bare = dataclasses.replace(device, memory=type(device.memory)({"HBM": device.level("HBM")}))
    with pytest.raises(ArgumentError, match="has no on-chip memory with a recorded capacity .it has: HBM."):
        hierarchy(bare)
    with pytest.raises(ArgumentError, match="`precision` must be one that NVIDIA A100.* has a rate for"):
        hierarchy(device, "fp8")


def test_every_device_of_the_catalogue_is_a_machine_or_says_why_not() -> None:
    for device in Hardware:
        try:
            machine = hierarchy(device)
        except ArgumentError as error:
            wanted = "Write e.g. precision='fp16'" if "`precision`" in str(error) else "to the device's YAML file"
            assert wanted in str(error)
        else:
            rooms = machine.rooms
            assert list(rooms) == sorted(rooms, reverse=True)
