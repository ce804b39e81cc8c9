"""Tiling by kind of machine: tiles against brute force, bytes against an executor, cycles against a simulator."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.errors import ArgumentError, ArgumentUnitError, UnknownNameError
from mlsys.hardware import Device
from mlsys.mapping import Mapping
from mlsys.models import roofline
from mlsys.models.architecture import (
    ENERGY_PARTS,
    PARTS,
    CpuTiling,
    GpuTiling,
    KpuTiling,
    TilingStrategy,
    TpuTiling,
    architecture,
    strategy_for,
)
from mlsys.models.architecture.blocks import cube_edge, cubes, fewest_words, footprint, words_reread
from mlsys.models.architecture.demand import Product, demand_of
from mlsys.models.energy import Energies
from mlsys.models.systolic import simulate_fast
from mlsys.models.tiling import gemm_traffic
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_
from mlsys.workloads import (
    Network,
    Operator,
    Workload,
    attention,
    conv2d,
    dense,
    depthwise_conv2d,
    gemm,
    relu,
    zoo,
)

GENERIC = Hardware.Generic


def product_of(m: int, n: int, k: int) -> Product:
    return Product(m, n, k, 1, m * k, 0)


def executed_words(m: int, n: int, k: int, bm: int, bn: int, bk: int, order: str) -> int:
    """Count words by walking over the blocks: one is fetched whenever it is another than the one before."""
    trips = {"m": range(0, m, bm), "n": range(0, n, bn), "k": range(0, k, bk)}
    left = right = sums = None
    moved = 0
    for step in itertools.product(*(trips[letter] for letter in order)):
        at = dict(zip(order, step, strict=True))
        rows, columns, depth = min(bm, m - at["m"]), min(bn, n - at["n"]), min(bk, k - at["k"])
        if left != (at["m"], at["k"]):
            left, moved = (at["m"], at["k"]), moved + rows * depth
        if right != (at["k"], at["n"]):
            right, moved = (at["k"], at["n"]), moved + depth * columns
        if sums != (at["m"], at["n"]):
            sums, moved = (at["m"], at["n"]), moved + rows * columns
    return moved


class TestTilesOfTheLiterature:
    @pytest.mark.parametrize(("size", "edge"), [("256 KiB", 104), ("512 KiB", 147)])
    def test_three_double_buffered_cubes_in_the_l2_of_a_core(self, size: str, edge: int) -> None:
        cpu = GENERIC.CPU.with_onchip(Q_(size))
        plan = strategy_for(cpu).plan(gemm(2048, 2048, 2048, "fp32"))
        assert plan.tile == (edge, edge, edge)
        assert plan.tiles == (-(-2048 // edge),) * 3
        assert 3 * 2 * edge**2 * 4 == plan.buffer.m_as("byte") <= plan.capacity.m_as("byte")
        assert 3 * 2 * (edge + 1) ** 2 * 4 > plan.capacity.m_as("byte")

    def test_two_layers_of_a_perceptron_are_tiled_by_their_own_shapes(self) -> None:
        batch = 32
        layers = dense(batch, 128, 256, "fp32"), relu(batch * 256, "fp32"), dense(batch, 256, 64, "fp32")
        mlp = Network("MLP", layers)
        assert mlp.flops.m_as("FLOP") == 2 * batch * (128 * 256 + 256 * 64) + batch * 256 == 3_153_920
        result = architecture(GENERIC.CPU, mlp)
        first, _, second = (child.plan for child in result.children)  # type: ignore[attr-defined]
        # Double-buffered, all of either product fits the 512 KiB of a core: one tile, of the layer's own shape.
        assert (first.tile, second.tile) == ((32, 256, 128), (32, 64, 256))
        assert first.buffer.m_as("byte") == 2 * 4 * (32 * 128 + 128 * 256 + 32 * 256) < 512 * 1024
        assert second.buffer.m_as("byte") == 2 * 4 * (32 * 256 + 256 * 64 + 32 * 64) < 512 * 1024
        # With the first layer's input for all layers the source of this example counts fewer.
        reused = dense(batch, 128, 256, "fp32"), relu(batch * 128, "fp32"), dense(batch, 128, 64, "fp32")
        assert Network("wrong", reused).flops.m_as("FLOP") == 2_625_536 < mlp.flops.m_as("FLOP")

    def test_weights_larger_than_the_memory_on_the_chip_are_tiled_too(self) -> None:
        layer = dense(1, 1024, 2048, "fp32")  # 8.4 MB of weights, whatever the batch
        assert layer.weights.m_as("byte") == 8_388_608 > 512 * 1024
        plan = strategy_for(GENERIC.CPU).plan(layer)
        assert plan.count > 1
        assert plan.buffer <= plan.capacity
        # One row: the weights pass once; the row is read again for each block of columns.
        assert plan.read + plan.written < 1.01 * layer.data

    def test_a_residual_block_of_published_size(self) -> None:
        convs = conv2d(32, 64, 128, 56, 3), conv2d(32, 128, 128, 56, 3), conv2d(32, 64, 128, 56, 1)
        block = Network("block", tuple(convs))
        assert block.flops.m_as("GFLOP") == pytest.approx(14.80 + 29.60 + 1.64, abs=0.01)
        result = architecture(Hardware.Cloud.V100, block)
        assert sum(child.figures["attained"] * child.time for child in result.children).m_as("GFLOP") == pytest.approx(
            block.flops.m_as("GFLOP")
        )

    def test_the_customary_profile_of_a_gpu_would_draw_kilowatts(self) -> None:
        customary = Q_(5e-10, "J/FLOP") * GENERIC.GPU.peak("fp32")
        assert_quantity_close(customary.to("W"), Q_(5000, "W"))
        result = architecture(GENERIC.GPU, gemm(4096, 4096, 4096, "fp32"))
        assert result.power < GENERIC.GPU.tdp < customary / 10


class TestBlocks:
    def shapes(self) -> Iterator[tuple[int, int, int, int]]:
        rng = np.random.default_rng(1)
        for m, n, k in rng.integers(1, 15, (50, 3)).tolist():
            yield m, n, k, int(rng.integers(6, 400))

    def test_words_are_those_of_a_walk_over_the_blocks(self) -> None:
        rng = np.random.default_rng(0)
        for m, n, k, bm, bn, bk in rng.integers(1, 14, (300, 6)).tolist():
            bm, bn, bk = min(bm, m), min(bn, n), min(bk, k)
            for order in ("mnk", "nmk"):
                again = words_reread(product_of(m, n, k), bm, bn, bk, order)
                words = m * k + k * n + m * n + again
                assert words == executed_words(m, n, k, bm, bn, bk, order)
                assert words == gemm_traffic(m, n, k, (bm, bn, bk), order).words

    def test_the_chosen_block_is_the_best_of_all(self) -> None:
        for m, n, k, words in self.shapes():
            steps = (4,)
            fitting = [
                executed_words(m, n, k, bm, bn, bk, order)
                for bm, bn in itertools.product(range(1, m + 1), range(1, n + 1))
                for bk in {min(4, k), k}
                for order in ("mnk", "nmk")
                if 2 * (bm * bk + bk * bn + bm * bn) <= words
            ]
            block = fewest_words(product_of(m, n, k), words, steps)
            if not fitting:
                assert block is None
                continue
            assert block is not None
            assert footprint(block.m, block.n, block.k) <= words
            assert m * k + k * n + m * n + block.words == min(fitting)

    def test_the_chosen_block_is_the_best_of_those_that_are_large_enough(self) -> None:
        for m, n, k, words in self.shapes():
            fitting = [
                executed_words(m, n, k, bm, bn, bk, order)
                for bm, bn in itertools.product(range(min(5, m), m + 1), range(min(3, n), n + 1))
                for bk in {min(4, k), k}
                for order in ("mnk", "nmk")
                if 2 * (bm * bk + bk * bn + bm * bn) <= words
            ]
            block = fewest_words(product_of(m, n, k), words, (4,), at_least=(5, 3))
            assert (block is None) == (not fitting)
            if block is not None:
                assert block.m >= min(5, m) and block.n >= min(3, n)
                assert m * k + k * n + m * n + block.words == min(fitting)

    def test_the_chosen_cube_is_the_best_of_all(self) -> None:
        for m, n, k, words in self.shapes():
            fitting = [
                executed_words(m, n, k, min(edge, m), min(edge, n), min(edge, k), order)
                for edge in range(1, max(m, n, k) + 1)
                for order in ("mnk", "nmk")
                if footprint(min(edge, m), min(edge, n), min(edge, k)) <= words
            ]
            block = cubes(product_of(m, n, k), words)
            assert (block is None) == (not fitting) == (cube_edge(m, n, k, words) == 0)
            if block is not None:
                assert m * k + k * n + m * n + block.words == min(fitting)

    def test_a_pass_over_a_picture_reads_pixels_not_the_matrix_made_of_them(self) -> None:
        conv = conv2d(1, 64, 64, size=56, kernel=3, precision="fp32")
        product = demand_of(conv).product
        assert product is not None
        assert product.left == 64 * 56 * 56 < product.m * product.k
        assert product.halo == 2 * 56 * 64  # two rows of all channels
        one_row_each = words_reread(product, 56, 64, product.k, "mnk")
        assert one_row_each == 55 * product.halo
        # No pass reads more than the matrix.
        assert words_reread(product, 1, 64, product.k, "mnk") == product.m * product.k - product.left


def gpu_seconds(strategy: GpuTiling, operator: Operator, tm: int, tn: int, split: int) -> float:
    """Time of a product without the main memory, said again in words of its own."""
    work, units = demand_of(operator), 80
    assert work.product is not None
    m, n, k, copies = work.product[:4]
    blocks = -(-m // tm) * -(-n // tn) * copies
    if split > 1 and blocks >= units:
        return float("inf")
    rounds = -(-blocks * split // units)
    peak = strategy.device.peak("fp32").m_as("FLOP/s")
    computing = rounds * (2 * tm * tn * -(-k // split)) / (peak / units)
    traffic = copies * (m * k * -(-n // tn) + k * n * -(-m // tm) + m * n) * 4
    traffic += copies * 8 * m * n * split if split > 1 else 0
    inside = m * n * k * copies * (1 / min(64, tm) + 1 / min(32, tn)) * 4
    bandwidths = strategy.device.level("L2").bandwidth, strategy.device.level("L1").bandwidth_total
    fetch, feed = (float(bandwidth.m_as("byte/s")) for bandwidth in bandwidths)
    return float(max(computing, traffic / fetch, inside / feed))


class TestGpu:
    @pytest.mark.parametrize(
        "shape", [(4096, 4096, 4096), (100, 200, 3000), (1, 1000, 2048), (12544, 64, 147), (49, 512, 4608)]
    )
    def test_the_tile_takes_the_least_time_of_all(self, shape: tuple[int, int, int]) -> None:
        strategy, operator = GpuTiling(GENERIC.GPU), gemm(*shape, "fp32")
        least = min(
            gpu_seconds(strategy, operator, tm, tn, split)
            for tm, tn in itertools.product((8, 16, 32, 64, 128, 256), repeat=2)
            for split in (1, 2, 4, 8, 16, 32)
            if (tm >= 32 or shape[0] <= tm) and (tn >= 32 or shape[1] <= tn)
            if tm * tn <= 128 * 128 and 2 * (tm + tn) * 16 * 4 <= 96 * 1024
        )
        main = strategy.plan(operator).moved["HBM"] / GENERIC.GPU.memory_bw
        assert architecture(GENERIC.GPU, operator).time.m_as("s") == pytest.approx(
            max(least, main.m_as("s")), rel=1e-12
        )

    def test_one_tile_more_than_a_wave_takes_two(self) -> None:
        strategy = GpuTiling(GENERIC.GPU)
        full, more = (strategy.plan(gemm(256 * tiles, 256, 64, "fp32")) for tiles in (1, 2))
        assert more.waves >= full.waves
        assert full.utilisation <= 1

    def test_operands_fit_twice_in_shared_memory(self) -> None:
        for device in (GENERIC.GPU, Hardware.Cloud.A100, Hardware.Cloud.MI300X, Hardware.Edge.JetsonNano):
            plan = strategy_for(device).plan(gemm(999, 777, 555, "fp32"))
            assert plan.buffer <= plan.capacity

    def test_the_energy_that_weighs_tiles_is_the_one_that_is_reported(self) -> None:
        for device, operator in (
            (GENERIC.GPU, gemm(700, 300, 200, "fp32")),
            (Hardware.Cloud.MI300X, conv2d(4, 64, 64, 28, 3)),
            (Hardware.Edge.JetsonOrinNano, gemm(700, 300, 200)),
        ):
            strategy = GpuTiling(device)
            work = demand_of(operator)
            counted = strategy.counted(work)
            *outer, feeding, drawn = counted.moved
            weighed = strategy._joules(work, feeding, drawn, outer)
            reported = architecture(device, operator).energy
            spent = sum(reported[part].m_as("J") for part in ("compute", "on-chip", "off-chip"))
            assert weighed == pytest.approx(spent, rel=1e-12), device.id

    def test_a_small_kernel_leaves_most_units_idle(self) -> None:
        plan = GpuTiling(GENERIC.GPU).plan(gemm(8, 8, 16, "fp32"))
        assert plan.waves == 1
        assert plan.utilisation <= 0.1


class TestArrays:
    @pytest.mark.parametrize(("strategy", "dataflow"), [(TpuTiling, "ws"), (KpuTiling, "os")])
    @pytest.mark.parametrize("overlap", [True, False])
    def test_cycles_are_those_of_the_machine_that_moves_the_values(
        self, strategy: type[TilingStrategy], dataflow: str, overlap: bool
    ) -> None:
        rng = np.random.default_rng(3)
        device = replace(GENERIC.KPU, systolic_array=(8, 4, 1))
        clock = device.peak("fp32").m_as("FLOP/s") / (2 * 8 * 4)
        for m, n, k in [(5, 4, 7), (40, 9, 17), (16, 16, 16), (1, 30, 9)]:
            machine = simulate_fast(
                rng.random((m, k)), rng.random((k, n)), 8, 4, dataflow, "full" if overlap else "none"
            )
            plan = strategy(device, Mapping(overlap=overlap)).plan(gemm(m, n, k, "fp32"))
            assert plan.computing.m_as("s") * clock == pytest.approx(machine.cycles, rel=1e-12)

    def test_weights_are_loaded_once_for_each_fold_and_block_of_rows(self) -> None:
        plan = TpuTiling(GENERIC.TPU).plan(gemm(200, 300, 500, "bf16"))
        assert plan.loads == 3 * 4  # ⌈300/128⌉ · ⌈500/128⌉: all rows fit at once
        assert plan.tile == (200, 128, 128)

    def test_a_filter_for_each_channel_does_not_suit_an_array(self) -> None:
        light, full = depthwise_conv2d(1, 128, 56, precision="bf16"), conv2d(1, 128, 128, 56, 3, precision="bf16")
        utilisation = [TpuTiling(GENERIC.TPU).plan(operator).utilisation for operator in (light, full)]
        assert utilisation[0] < 0.02 < 0.5 < utilisation[1]

    def test_state_grows_with_the_area_and_work_with_the_volume(self) -> None:
        small, large = (KpuTiling(GENERIC.KPU).plan(gemm(edge, edge, edge, "fp32")) for edge in (128, 256))
        assert large.buffer / small.buffer < 4.01
        assert large.computing / small.computing > 7.8

    def test_a_larger_scratchpad_moves_fewer_bytes(self) -> None:
        sizes = [Q_(2.0**power, "KiB") for power in range(9, 17)]
        work = gemm(2048, 2048, 2048, "fp32")
        moved = [KpuTiling(GENERIC.KPU.with_onchip(size)).plan(work).moved["DRAM"].m_as("byte") for size in sizes]
        assert moved == sorted(moved, reverse=True)
        assert moved[0] > 5 * moved[-1]


class TestAttention:
    def test_keys_and_values_pass_once_for_each_block_of_queries(self) -> None:
        operator = attention(2, 8, 1024, 1024, 64, precision="fp32")
        cpu = GENERIC.CPU.with_onchip(Q_(256, "KiB"))
        plan = CpuTiling(cpu).plan(operator)
        blocks = plan.tiles[0]
        assert plan.tiles[2] == 1
        again = (blocks - 1) * 2 * 1024 * 64 * 4 * 16
        assert plan.read + plan.written == operator.data + Q_(again, "byte")


class TestEnergy:
    def test_parts_of_a_product_that_stays_on_the_chip(self) -> None:
        operator = gemm(64, 64, 64, "fp32")
        result = architecture(GENERIC.KPU, operator)
        assert result.energy["compute"].m_as("pJ") == pytest.approx(64**3 * 1.69)  # 7 nm assumed
        assert result.energy["off-chip"].m_as("pJ") == pytest.approx(3 * 64 * 64 * 640)
        assert tuple(result.energy) == ENERGY_PARTS
        assert sum(result.energy.values()).m_as("J") == pytest.approx(result.spent.m_as("J"))

    def test_memory_in_stacks_costs_what_hbm_costs(self) -> None:
        result = architecture(GENERIC.TPU, relu(10**6, "bf16"))
        assert result.energy["off-chip"].m_as("pJ") == pytest.approx(4e6 * 8 * 3.92)

    def test_the_range_of_the_prices_is_the_range_of_the_energy(self) -> None:
        operator = gemm(512, 512, 512, "fp32")
        low, central, high = (
            architecture(GENERIC.KPU, operator, energies=Energies.of(GENERIC.KPU, bound=bound)).spent
            for bound in ("low", "central", "high")
        )
        assert 0.2 * central < low < central < high < 5 * central

    def test_idle_power_is_spent_for_the_whole_time(self) -> None:
        tpu = Hardware.Cloud.TPUv4
        result = architecture(tpu, gemm(4096, 4096, 4096, "bf16"))
        assert result.energy["static"].m_as("J") == pytest.approx((tpu.idle_power * result.time).m_as("J"))
        assert architecture(GENERIC.TPU, gemm(64, 64, 64, "bf16")).energy["static"].magnitude == 0

    def test_time_is_stretched_to_the_design_power(self) -> None:
        result = architecture(GENERIC.KPU, relu(10**7, "fp32"))
        assert result.bound_by == "power"
        assert result.power.m_as("W") == pytest.approx(GENERIC.KPU.tdp.m_as("W"))
        assert result.parts["power limit"].magnitude > 0

    def test_formats_without_a_published_energy_lie_between_their_neighbours(self) -> None:
        eight, wide, half = (
            architecture(Hardware.Cloud.H100, gemm(64, 64, 64, name)).energy["compute"]
            for name in ("int8", "fp8", "fp16")
        )
        assert eight < wide < half
        assert architecture(Hardware.Cloud.A100, gemm(64, 64, 64, "fp64")).energy["compute"].magnitude > 0
        own = Energies.at(45, mac={"fp64": Q_(20, "pJ")})
        result = architecture(Hardware.Cloud.A100, gemm(64, 64, 64, "fp64"), energies=own)
        assert result.energy["compute"].m_as("pJ") == pytest.approx(64**3 * 20)

    def test_a_chip_of_a_finer_process_spends_less_on_arithmetic(self) -> None:
        a100, h100 = (
            architecture(device, gemm(64, 64, 64, "fp16")).energy["compute"]
            for device in (Hardware.Cloud.A100, Hardware.Cloud.H100)
        )
        # Jouppi et al., ISCA 2021, Table 2: 0.34 + 0.16 pJ at 7 nm.
        assert a100.m_as("pJ") == pytest.approx(64**3 * 0.5)
        assert h100 < a100


class TestRun:
    def test_parts_and_children_sum_to_the_whole(self) -> None:
        network = zoo.network("mobilenet_v2", precision="fp32", fused=False)
        for device in GENERIC:
            network = zoo.network("mobilenet_v2", precision=device.headline, fused=False)
            result = architecture(device, network)
            assert tuple(result.parts) == PARTS
            assert len(result.children) == len(network)
            assert [child.workload for child in result.children] == [operator.name for operator in network]
            assert sum(result.parts.values()).m_as("s") == pytest.approx(result.time.m_as("s"), rel=1e-12)
            for figure in ("energy", "moved"):
                whole = sum(child.figures[figure].magnitude for child in result.children)
                assert whole == pytest.approx(result.figures[figure].magnitude, rel=1e-12)
            for name, moved in result.moved.items():
                whole = sum(child.moved[name].magnitude for child in result.children)  # type: ignore[attr-defined]
                assert whole == pytest.approx(moved.magnitude, rel=1e-12)
            shares = [result.figures[name].magnitude for name in result.figures if name.startswith("bound by")]
            assert sum(shares) == pytest.approx(1)

    def test_a_launch_is_added_for_each_kernel_and_no_share_of_anything(self) -> None:
        network = zoo.network("resnet50", precision="fp32")
        free = architecture(GENERIC.GPU, network)
        paid = architecture(GENERIC.GPU, network, launch_overhead=Q_(5, "us"))
        assert (paid.time - free.time).m_as("us") == pytest.approx(5 * len(network))
        assert paid.spent == free.spent
        tiny = architecture(GENERIC.GPU, relu(10, "fp32"), launch_overhead=Q_(5, "us"))
        assert tiny.bound_by == "launch"

    def test_without_overlap_blocks_are_moved_first(self) -> None:
        operator = gemm(512, 512, 512, "fp32")
        result = architecture(GENERIC.CPU, operator, Mapping(overlap=False))
        moving = result.moved["DRAM"] / GENERIC.CPU.memory_bw
        assert result.parts["exposed memory"].m_as("s") == pytest.approx(moving.m_as("s"))
        assert result.time > architecture(GENERIC.CPU, operator).time

    def test_fewer_bytes_and_kernels_of_a_fused_network(self) -> None:
        for device in GENERIC:
            parts, whole = (zoo.network("resnet50", precision=device.headline, fused=fused) for fused in (False, True))
            launch = Q_(2, "us")
            slow, fast = (architecture(device, network, launch_overhead=launch) for network in (parts, whole))
            assert fast.time < slow.time
            assert fast.spent < slow.spent
            assert fast.figures["moved"] < slow.figures["moved"]

    def test_a_captured_network_is_planned_like_one_by_hand(self) -> None:
        by_hand = zoo.network("resnet50", precision="fp32")
        captured = Workload.from_network(by_hand)
        assert architecture(GENERIC.CPU, captured).time == architecture(GENERIC.CPU, by_hand).time

    def test_a_kernel_of_several_operators_is_tiled_by_its_product(self) -> None:
        torch = pytest.importorskip("torch")
        from mlsys.mapping.fusion import fuse

        module = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU()
        ).eval()
        captured = Workload.from_torch(module, torch.zeros(1, 3, 32, 32))
        fused = fuse(captured)
        apart, together = architecture(GENERIC.CPU, captured), architecture(GENERIC.CPU, fused)
        assert len(together.children) == 1
        assert together.children[0].plan.tile == apart.children[0].plan.tile  # type: ignore[attr-defined]
        assert together.figures["moved"] < apart.figures["moved"]
        assert together.energy["compute"].m_as("J") == pytest.approx(apart.energy["compute"].m_as("J"))

    def test_explains_itself(self) -> None:
        text = architecture(GENERIC.TPU, gemm(256, 256, 256, "bf16")).explain()
        for part in ("Energy:", "off-chip", "Bytes from each level:", "UnifiedBuffer", "Plan: <plan", "weights stay"):
            assert part in text

    def test_equal_operators_share_their_plan(self) -> None:
        operators = tuple(gemm(64, 64, 64, "fp32", name=f"layer {index}") for index in range(3))
        result = architecture(GENERIC.CPU, Network("three", operators))
        assert len({id(child.plan) for child in result.children}) == 1  # type: ignore[attr-defined]
        assert [child.workload for child in result.children] == ["layer 0", "layer 1", "layer 2"]


class TestCatalogue:
    def devices(self) -> Iterator[tuple[Device, str]]:
        for device in [*Hardware, *GENERIC]:
            yield device, device.headline

    def test_each_device_is_tiled_or_says_what_it_lacks(self) -> None:
        tiled, refused = [], []
        for device, precision in self.devices():
            network = Network(
                "mixed",
                (
                    gemm(128, 96, 160, precision),
                    conv2d(1, 16, 32, 14, 3, precision=precision),
                    depthwise_conv2d(1, 32, 14, precision=precision),
                    relu(9999, precision),
                ),
            )
            try:
                result = architecture(device, network)
            except ArgumentError as error:
                output = {"CpuTiling": "with a capacity inside its", "GpuTiling": "shared memory of one multiprocessor"}
                wanted = output.get(str(error).partition("(")[0], "array")
                assert f"`device` {device.name}" in str(error) and wanted in str(error)
                assert re.search(r" Add .* to (its|the device's) YAML file", str(error))
                refused.append(device.id)
                continue
            tiled.append(device.id)
            for operator, child in zip(network, result.children, strict=True):
                plan = child.plan  # type: ignore[attr-defined]
                assert plan.buffer <= plan.capacity * (1 + 1e-12), device.id
                assert child.time >= roofline(device, operator).time * (1 - 1e-12), device.id
                if device._tdp is not None:
                    assert child.spent <= device.tdp * child.time * (1 + 1e-9), device.id  # type: ignore[attr-defined]
        assert len(tiled) > 100
        assert {"A100_80GB", "TPUv4", "Xeon_8380", "RaspberryPi4", "STM32F746", "GenericKPU"} <= set(tiled)
        assert {"GroqChip1", "Hailo8", "Apple_M4"} <= set(refused)

    def test_big_networks_stay_within_the_design_power(self) -> None:
        for device in [*Hardware.Cloud, *Hardware.CPU]:
            if device._tdp is None:
                continue
            try:
                result = architecture(device, zoo.network("resnet50", batch=8, precision=device.headline))
            except ArgumentError:
                continue
            assert result.power <= device.tdp * (1 + 1e-9), device.id


MICROCONTROLLERS = [device for device in Hardware.Tiny if device.kind == "MCU"]


class TestMicrocontrollers:
    """Machines whose main memory is on the chip, most of them with nothing between it and the registers."""

    @pytest.mark.parametrize("device", MICROCONTROLLERS, ids=lambda device: device.id)
    def test_each_runs_a_small_network(self, device: Device) -> None:
        precision = device.headline
        network = Network(
            "small",
            (
                conv2d(1, 3, 8, 24, 3, precision=precision),
                depthwise_conv2d(1, 8, 24, precision=precision),
                relu(8 * 24 * 24, precision),
                dense(1, 64, 10, precision),
            ),
        )
        result = architecture(device, network)
        assert result.energy["off-chip"].magnitude == 0
        assert result.energy["on-chip"].magnitude > 0
        for operator, child in zip(network, result.children, strict=True):
            assert child.time >= roofline(device, operator).time * (1 - 1e-12)
            assert child.plan.buffer <= child.plan.capacity  # type: ignore[attr-defined]

    def test_words_are_fetched_for_each_block_of_results_in_registers(self) -> None:
        device, (m, n, k) = Hardware.Tiny.nRF52840, (8, 12, 5)
        plan = CpuTiling(device).plan(gemm(m, n, k, "fp32"))
        # 4 × 4 results at a time: each takes a strip of 4 rows and one of 4 columns; stored once.
        fetched = (m // 4) * (n // 4) * (4 * k + 4 * k) * 4
        assert plan.moved["SRAM"].m_as("byte") == max(fetched, (m * k + k * n + m * n) * 4)
        assert plan.tile[:2] == (4, 4)
        wider = CpuTiling(device, registers=(8, 12)).plan(gemm(m, n, k, "fp32"))
        assert wider.moved["SRAM"] < plan.moved["SRAM"]

    def test_a_processor_whose_caches_are_unknown_is_still_refused(self) -> None:
        with pytest.raises(ArgumentError, match="has no recorded memory level with a capacity inside"):
            architecture(Hardware.Mobile.Apple_M4, gemm(8, 8, 8))


class TestErrors:
    def test_an_empty_network(self) -> None:
        with pytest.raises(ArgumentError, match=r"architecture\(\): `workload` must have at least one oper"):
            architecture(GENERIC.CPU, Network("nothing", ()))

    def test_a_device_without_an_array(self) -> None:
        with pytest.raises(ArgumentError, match=r"TpuTiling\(\): `device` NVIDIA V100.* has no recorded array of mul"):
            architecture(Hardware.Cloud.V100, gemm(8, 8, 8), strategy="tpu")

    def test_a_device_without_memory_on_the_chip(self) -> None:
        with pytest.raises(ArgumentError, match=r"CpuTiling\(\): `device` Apple M4.*has no recorded memory level"):
            architecture(Hardware.Mobile.Apple_M4, gemm(8, 8, 8))

    def test_a_machine_of_no_known_kind(self) -> None:
        with pytest.raises(
            ArgumentError, match=r"no tiling strategy suits `device` .*Groq.*, of kind NPU without a recorded systolic"
        ):
            strategy_for(Hardware.Cloud.GroqChip1)

    def test_an_unknown_strategy(self) -> None:
        with pytest.raises(
            UnknownNameError, match=r"`strategy` must be one of cpu, gpu, tpu, kpu, got 'gpv'\. Did you mean"
        ):
            architecture(GENERIC.GPU, gemm(8, 8, 8, "fp32"), strategy="gpv")

    def test_a_strategy_of_another_device(self) -> None:
        with pytest.raises(ArgumentError, match=r"architecture\(\): `strategy` was made for Generic GPU, but the"):
            architecture(GENERIC.CPU, gemm(8, 8, 8, "fp32"), strategy=GpuTiling(GENERIC.GPU))

    def test_a_level_is_for_the_strategy_to_choose(self) -> None:
        with pytest.raises(ArgumentError, match=r"CpuTiling\(\): `mapping.level` must be None, got 'L2'"):
            architecture(GENERIC.CPU, gemm(8, 8, 8, "fp32"), Mapping(level="L2"))

    def test_bytes_counted_in_another_size(self) -> None:
        with pytest.raises(ArgumentError, match=r"plan\(\): `mapping.compute_precision` is fp16, but the bytes"):
            architecture(Hardware.Cloud.A100, gemm(8, 8, 8, "fp32"), Mapping(compute_precision="fp16"))

    def test_a_buffer_too_small_for_one_block(self) -> None:
        tiny = GENERIC.TPU.with_onchip(Q_(4, "MiB") + Q_(1, "byte"))
        assert strategy_for(tiny).plan(gemm(512, 512, 512, "bf16")).buffer <= Q_(4.01, "MiB")
        small = replace(
            GENERIC.KPU,
            systolic_array=(512, 512, 1),
        )
        with pytest.raises(ArgumentError, match=r"plan\(\): Scratchpad of Generic KPU holds 2,097,152 byte, too litt"):
            TpuTiling(small).plan(gemm(4096, 4096, 4096, "fp32"))

    @pytest.mark.parametrize("launch", [5, Q_(5, "byte")])
    def test_a_launch_needs_its_unit(self, launch: object) -> None:
        with pytest.raises(ArgumentUnitError, match=r"architecture\(\): `launch_overhead` must be a quantity in s"):
            architecture(GENERIC.CPU, gemm(8, 8, 8, "fp32"), launch_overhead=launch)  # type: ignore[arg-type]

    def test_a_precision_that_the_device_lacks(self) -> None:
        with pytest.raises(UnknownNameError, match=r"Generic CPU has no fp16 peak. It has: fp32"):
            architecture(GENERIC.CPU, gemm(8, 8, 8, "fp16"))
