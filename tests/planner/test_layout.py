"""Layouts: offsets against torch's strides, choices against all choices."""

import functools
from collections.abc import Callable

import numpy as np
import pytest
import torch

from mlsys.errors import ArgumentError, ArgumentUnitError, UnknownNameError
from mlsys.hardware import Hardware
from mlsys.models.access import layout_strides, warp_access
from mlsys.planner.layout import LayoutPlan, choose_layouts, layout_offsets, tensor_core_traffic
from mlsys.units import Q_
from mlsys.workloads import conv2d, depthwise_conv2d, gemm, load, relu
from mlsys.workloads.graph import OperatorGraph, Value

BANDWIDTH = Q_(2039, "GB/s")
workload = functools.cache(load)
SHAPES = [(2, 3, 4, 5), (1, 1, 3, 3), (3, 16, 2, 7), (2, 5, 1, 1)]


# --- where elements lie ------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("layout", "memory_format"), [("NCHW", torch.contiguous_format), ("NHWC", torch.channels_last)]
)
def test_offsets_are_torch_strides(shape: tuple[int, ...], layout: str, memory_format: torch.memory_format) -> None:
    tensor = torch.arange(np.prod(shape)).reshape(shape).contiguous(memory_format=memory_format)
    ours = layout_offsets(*shape, layout)
    flat = tensor.as_strided((tensor.numel(),), (1,))
    assert torch.equal(flat[torch.from_numpy(ours)], tensor), "the element that lies there is the one that was meant"
    assert sorted(ours.ravel()) == list(range(tensor.numel()))
    if 1 not in shape:
        places = np.indices(shape).reshape(4, -1).T @ np.array(tensor.stride())
        assert (ours.ravel() == places).all()
        assert layout_strides(*shape[1:], layout) == tensor.stride()


def test_torch_makes_nchw_by_default() -> None:
    """PyTorch's default is NCHW on every device; channels_last is opt-in, and a convolution passes it on."""
    x, conv = torch.zeros(2, 4, 5, 6), torch.nn.Conv2d(4, 8, 3)
    assert x.stride() == layout_strides(4, 5, 6, "NCHW")
    channels_last = x.to(memory_format=torch.channels_last)
    assert channels_last.stride() == layout_strides(4, 5, 6, "NHWC")
    assert torch.equal(channels_last, x), "the same values"
    last = conv.to(memory_format=torch.channels_last)(channels_last)
    assert last.stride() == layout_strides(8, 3, 4, "NHWC")
    assert x.permute(0, 2, 3, 1).contiguous().shape == (2, 5, 6, 4), "permute changes the shape, not the layout"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("block", [1, 2, 4, 16])
def test_blocked_offsets_are_a_padded_reshape(shape: tuple[int, int, int, int], block: int) -> None:
    n, c, h, w = shape
    blocks = -(-c // block)
    padded = np.zeros((n, blocks * block, h, w), int)
    padded[:, :c] = np.arange(1, n * c * h * w + 1).reshape(shape)
    stored = padded.reshape(n, blocks, block, h, w).transpose(0, 1, 3, 4, 2).ravel()
    assert (stored[layout_offsets(*shape, f"NCHW{block}c")] == padded[:, :c]).all()
    if block == 1:
        assert (layout_offsets(*shape, "NCHW1c") == layout_offsets(*shape, "NCHW")).all()


def test_worked_example_of_three_by_three_by_three() -> None:
    first, last = (layout_offsets(1, 3, 3, 3, layout)[0] for layout in ("NCHW", "NHWC"))
    assert last[:, 0, 0].tolist() == [0, 1, 2] and first[:, 0, 0].tolist() == [0, 9, 18], "a pixel's channels"
    assert (first[0, 0, 1], first[0, 1, 0]) == (1, 3), "w varies fastest in NCHW"
    assert (last[0, 0, 1], last[0, 1, 0]) == (3, 9)


@pytest.mark.parametrize(("layout", "sectors"), [("NCHW", 32), ("NHWC", 2), ("NCHW16c", 2)])
def test_sectors_of_a_warp_that_reads_the_channels_of_a_pixel(layout: str, sectors: int) -> None:
    addresses = 2 * layout_offsets(1, 64, 8, 8, layout)[0, :32, 3, 3]
    load = warp_access(addresses, Q_(2, "byte"))
    assert load.sectors == sectors
    assert load.sectors == len({int(address) // 32 for address in addresses})


# --- which layout ------------------------------------------------------------------


def images(sizes: list[int], edges: list[tuple[int, int]], kinds: list[str], taken: set[int]) -> OperatorGraph:
    """Operators that each make one image; ``taken`` are returned."""
    makers = {
        "conv": conv2d(1, 4, 4, 8, 3),
        "depthwise": depthwise_conv2d(1, 4, 8),
        "relu": relu(8),
        "gemm": gemm(8, 8, 8),
    }
    values = [Value("x", "input", sizes[-1], (1, 4, 8, 8), consumers=(0,))]
    for i, kind in enumerate(kinds):
        shape = (1, 4, 8, 8) if kind != "gemm" else (8, 8)
        users = tuple(sorted({b for a, b in edges if a == i}))
        values.append(Value(f"v{i}", "made", sizes[i], shape, producer=i, consumers=users, output=i in taken))
    return OperatorGraph("images", tuple(makers[kind] for kind in kinds), tuple(values))


def drawn(seed: int, tree: bool) -> OperatorGraph:
    rng = np.random.default_rng(seed)
    number = int(rng.integers(2, 7))
    kinds = ["conv", *rng.choice(["conv", "relu", "depthwise"], number - 1)]
    if tree:
        edges = [(int(rng.integers(0, b)), b) for b in range(1, number)]
    else:
        edges = [(a, b) for a in range(number) for b in range(a + 1, number) if rng.random() < 0.5]
        edges += [(b - 1, b) for b in range(1, number)]
    taken = {number - 1, *(int(i) for i in rng.integers(0, number, 1))}
    return images([int(s) for s in rng.integers(1, 50, number + 1)], edges, list(kinds), taken)


def preference(graph: OperatorGraph, operator: int, layout: str) -> float:
    """Some cost of each operator in each layout, drawn once for all."""
    return float(np.random.default_rng([operator, sum(map(ord, layout)), len(graph)]).integers(0, 90))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("layouts", [("NCHW", "NHWC"), ("NHWC", "NCHW16c"), ("NCHW", "NHWC", "NCHW8c")])
def test_exact_methods_agree_with_all_choices(seed: int, layouts: tuple[str, ...]) -> None:
    tree = bool(seed % 2)
    graph = drawn(seed, tree)
    methods = ("brute force", "solver", "tree") if tree else ("brute force", "solver")
    plans = [choose_layouts(BANDWIDTH, graph, layouts=layouts, traffic=preference, method=m) for m in methods]
    for plan in plans:
        assert plan.moved.m_as("byte") == pytest.approx(plans[0].moved.m_as("byte"), abs=1e-6), plan.method
        assert plan.moved.m_as("byte") == pytest.approx(recounted(plan, graph), abs=1e-6)
        assert all(plan.moved <= moved * (1 + 1e-12) for moved in plan.uniform.values())
    auto = choose_layouts(BANDWIDTH, graph, layouts=layouts, traffic=preference)
    assert auto.moved.m_as("byte") == pytest.approx(plans[0].moved.m_as("byte"), abs=1e-6)


def recounted(plan: LayoutPlan, graph: OperatorGraph) -> float:
    """What a choice costs, reckoned from its layouts alone."""
    chosen = plan.layouts
    moved = sum(preference(graph, i, layout) for i, layout in enumerate(chosen) if layout)
    for value in graph.values:
        made = "NCHW" if value.producer is None else chosen[value.producer]
        wanted = {chosen[user] for user in value.consumers} | ({"NCHW"} if value.output else set())
        moved += 2 * value.bytes * len(wanted - {made})
    return moved


def test_convolutions_on_matrix_units_prefer_nhwc() -> None:
    """NVIDIA, Convolutional Layers User's Guide: tensors in NHWC avoid transposes of input and output."""
    work = workload("resnet50", batch=32, precision="fp16")
    plan = choose_layouts(Hardware.Cloud.A100, work)
    assert plan.method == "solver"
    assert {layout for layout in plan.layouts if layout} == {"NHWC"}
    image = 32 * 3 * 224 * 224 * 2
    assert [(transpose.value, transpose.moved.m_as("byte")) for transpose in plan.transposes] == [("input", 2 * image)]
    assert plan.uniform["NCHW"] > 100 * plan.moved
    assert "resnet50: 173 operators in NHWC" in plan.explain() and "All in NCHW: 2.787 GB" in plan.explain()


def test_one_transpose_of_the_worked_example() -> None:
    """A 32 × 256 × 56 × 56 tensor in half precision: 51.4 MB read and written, 50 µs on an A100."""
    size = 32 * 256 * 56 * 56 * 2
    x = Value("x", "input", size, (32, 256, 56, 56), consumers=(0,))
    y = Value("y", "made", 64, (32, 1, 1, 1), producer=0, output=True)
    graph = OperatorGraph("one", (conv2d(32, 256, 1, 56, 56, padding=0),), (x, y))
    plan = choose_layouts(Hardware.Cloud.A100, graph)
    assert plan.moved.m_as("MB") == pytest.approx(2 * 51.4, abs=0.05)
    assert plan.time.m_as("us") == pytest.approx(50.4, abs=0.05)


def test_a_lone_convolution_may_as_well_stay() -> None:
    chain = images([100, 100], [], ["conv"], {0})
    for method in ("tree", "solver", "brute force"):
        plan = choose_layouts(BANDWIDTH, chain, method=method)
        assert plan.moved == 4 * 100 * Q_(1, "byte"), "in and out, wherever it is done"


def test_images_of_one_pixel_or_one_channel_are_never_turned() -> None:
    x = Value("x", "input", 100, (1, 1, 10, 10), consumers=(0,))
    y = Value("y", "made", 100, (1, 100, 1, 1), producer=0, output=True)
    graph = OperatorGraph("one", (conv2d(1, 1, 100, 10, 10, padding=0),), (x, y))
    assert choose_layouts(BANDWIDTH, graph).moved.magnitude == 0
    assert "cost nothing" in choose_layouts(BANDWIDTH, graph).explain()


def test_a_product_after_an_image_wants_it_as_it_was_trained() -> None:
    graph = images([100, 60, 80], [(0, 1)], ["conv", "gemm"], {1})
    plan = choose_layouts(BANDWIDTH, graph)
    assert plan.layouts[1] is None
    assert plan.moved.magnitude == 2 * 100 + 2 * 80


def test_depthwise_convolutions_have_no_preference() -> None:
    graph = images([9, 9, 9], [(0, 1)], ["conv", "depthwise"], {1})
    assert tensor_core_traffic(graph, 0, "NCHW") > 0 == tensor_core_traffic(graph, 1, "NCHW")


def test_attention_is_no_image() -> None:
    plan = choose_layouts(BANDWIDTH, workload("vit-b16", batch=1))
    assert sum(layout is not None for layout in plan.layouts) == 1, "only the patches are"
    with pytest.raises(ArgumentError, match="has no operator on images"):
        choose_layouts(BANDWIDTH, workload("mlp", batch=1))


GRAPH = images([9, 9, 9, 9], [(0, 1), (0, 2), (1, 2)], ["conv", "relu", "relu"], {2})


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda: layout_offsets(1, 3, 3, 3, "CHWN"), ArgumentError, "NCHW, NHWC or blocked channels such as NCHW16c"),
        (lambda: layout_offsets(1, 3, 3, 3, "NCHW0c"), ArgumentError, "got 'NCHW0c'"),
        (lambda: layout_offsets(1, 0, 3, 3), ArgumentError, "`channels` must be a whole number >= 1"),
        (lambda: layout_offsets(1, 3, 3, 1.5), ArgumentError, "`width` must be a whole number >= 1"),  # type: ignore[arg-type]
        (lambda: choose_layouts(BANDWIDTH, GRAPH, layouts=("NHCW",)), ArgumentError, "got 'NHCW'"),
        (lambda: choose_layouts(BANDWIDTH, GRAPH, layouts=()), ArgumentError, "one or more, each once"),
        (lambda: choose_layouts(BANDWIDTH, GRAPH, layouts=("NHWC", "NHWC")), ArgumentError, "one or more, each once"),
        (lambda: choose_layouts(BANDWIDTH, GRAPH, outside="X"), ArgumentError, "got 'X'"),
        (lambda: choose_layouts(BANDWIDTH, GRAPH, method="tre"), UnknownNameError, "Did you mean 'tree'?"),
        (
            lambda: choose_layouts(BANDWIDTH, GRAPH, method="tree"),
            ArgumentError,
            "applies to operators that form a tree",
        ),
        (lambda: choose_layouts(Q_(1, "byte"), GRAPH), ArgumentUnitError, "`device` must be a quantity in byte/s"),
        (lambda: choose_layouts(2039, GRAPH), ArgumentUnitError, "the bare number 2039"),  # type: ignore[arg-type]
        (
            lambda: choose_layouts(BANDWIDTH, workload("vgg16", batch=1), method="brute force"),
            ArgumentError,
            "more than 200,000. Write e.g. method='auto'",
        ),
    ],
)
def test_bad_input_is_refused(wrong: Callable[[], object], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        wrong()
    assert text in str(caught.value)


def test_a_matrix_unit_turns_what_it_multiplies_and_makes_not_what_is_added() -> None:
    """Both come in once and go out once: 200 B of the input and 400 B of the output, whatever the sum reads."""
    added = Value("r", "input", 400, (1, 8, 5, 5), consumers=(0,))
    multiplied = Value("x", "input", 200, (1, 4, 5, 5), consumers=(0,))
    made = Value("y", "made", 400, (1, 8, 5, 5), producer=0, output=True)
    graph = OperatorGraph("a convolution and a sum", (conv2d(1, 4, 8, 5, 3),), (added, multiplied, made))
    assert tensor_core_traffic(graph, 0, "NCHW") == 2 * (200 + 400)


def test_the_old_order_of_arguments_is_deprecated_and_answers_the_same() -> None:
    with pytest.warns(DeprecationWarning, match=r"choose_layouts\(device, workload\)"):
        old = choose_layouts(GRAPH, BANDWIDTH)  # type: ignore[arg-type]
    assert old == choose_layouts(BANDWIDTH, GRAPH)
    assert old.record()["moved_bytes"] == old.moved.m_as("byte")
