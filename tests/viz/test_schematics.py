"""Schematics show what the models count: sectors, opened rows, idle time, shared rows, words moved."""

import itertools

import numpy as np
import pytest

from mlsys import Q_, viz
from mlsys.errors import ArgumentError
from mlsys.mapping import conv_space, gemm_space, row_stationary
from mlsys.models.access import row_buffer
from mlsys.models.dataflow import movements
from mlsys.models.dataflow.orders import walked_words
from mlsys.models.launches import launch_timeline


def roles(ax, role):
    return [patch for patch in ax.patches if patch.get_gid() == role]


def words(ax):
    return " | ".join(text.get_text() for text in ax.texts)


# --- warp to sector ---------------------------------------------------------------------


@pytest.mark.parametrize("width", [2, 4, 8])
@pytest.mark.parametrize("stride", [1, 2, 3, 5, 8, 16])
def test_the_sectors_that_move_are_those_that_hold_a_requested_byte(ax, stride, width):
    viz.warp_sectors(ax, (stride,), Q_(width, "byte"))
    requested = {(lane * stride * width + byte) // 32 for lane in range(32) for byte in range(width)}
    drawn = roles(ax, "moved")
    assert len(drawn) == len(requested) and len(roles(ax, "lane")) == 32
    assert f"{len(requested)} sectors move" in words(ax)
    assert len(roles(ax, "requested")) == 32
    for piece in roles(ax, "requested"):  # lies inside a sector that moves
        inside = [s for s in drawn if s.get_x() - 1e-9 <= piece.get_x() and
                  piece.get_x() + piece.get_width() <= s.get_x() + s.get_width() + 1e-9]  # fmt: skip
        assert len(inside) == 1


def test_memory_is_drawn_as_far_as_the_longest_stride_reaches(ax):
    viz.warp_sectors(ax, (1, 8))
    every = len(roles(ax, "moved")) + len(roles(ax, "left"))
    assert every == 2 * 8 * 32 * 4 // 32


# --- a DRAM row -------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 5), (2, 2)])
def test_along_the_rows_each_is_opened_once_and_down_the_columns_every_time(ax, rows, columns):
    viz.dram_rows(ax, rows, columns)
    assert len(roles(ax, "opened")) == rows + rows * columns
    assert len(roles(ax, "hit")) == rows * (columns - 1)
    assert f"{rows} rows opened" in words(ax) and f"{rows * columns} rows opened" in words(ax)


def test_a_read_hits_exactly_where_it_follows_a_read_of_its_row():
    walk = [0, 8, 4, 20, 16, 12, 12, 0]
    hits = row_buffer(walk, Q_(8, "byte"))
    pairs = [at > 0 and walk[at] // 8 == walk[at - 1] // 8 for at in range(len(walk))]
    assert list(hits.hits) == pairs
    assert hits.opened == 1 + sum(1 for a, b in itertools.pairwise(hits.rows) if a != b)


@pytest.mark.parametrize("walk", [[], [-4], [0.5], [[0]]])
def test_row_buffer_refuses_what_is_no_address(walk):
    with pytest.raises(ArgumentError, match="addresses"):
        row_buffer(walk, Q_(8, "byte"))


# --- host and device --------------------------------------------------------------------


@pytest.mark.parametrize("kernels", [[2, 2, 2, 2], [20, 20], [1, 30, 1, 1], [7], [5, 5, 5]])
def test_the_last_kernel_ends_after_the_longest_path(kernels):
    line = launch_timeline(Q_(5, "us"), [Q_(seconds, "us") for seconds in kernels])
    # a path goes along the host to one launch, and from there along the device
    longest = max(5 * (at + 1) + sum(kernels[at:]) for at in range(len(kernels)))
    assert line.time.m_as("us") == pytest.approx(longest)
    assert line.busy.m_as("us") == pytest.approx(sum(kernels))
    for launched, started in zip(line.launched, line.started, strict=True):
        assert started >= launched
    for ended, started in zip(line.ended, line.started[1:], strict=False):
        assert started >= ended


def test_launches_are_drawn_when_they_happen(ax):
    viz.launches(ax, Q_(5, "us"), {"short": Q_(2, "us"), "long": Q_(12, "us")}, count=3)
    host, device = roles(ax, "launch"), roles(ax, "kernel")
    assert len(host) == len(device) == 6
    for launched, kernel in zip(host, device, strict=True):
        assert kernel.get_x() >= launched.get_x() + launched.get_width() - 1e-9, (
            "no kernel runs before it is launched for"
        )
    short, long = device[:3], device[3:]
    assert all(b.get_x() > a.get_x() + a.get_width() + 1 for a, b in itertools.pairwise(short)), "gaps"
    assert all(b.get_x() == pytest.approx(a.get_x() + a.get_width()) for a, b in itertools.pairwise(long)), "none"
    assert f"works {6 / 17:.0%}" in words(ax) and f"works {36 / 41:.0%}" in words(ax)


def test_a_timeline_needs_kernels():
    with pytest.raises(ArgumentError, match="kernels"):
        launch_timeline(Q_(5, "us"), [])


# --- row stationary ---------------------------------------------------------------------


@pytest.mark.parametrize(("filter_rows", "output_rows"), [(3, 4), (5, 3), (1, 2)])
def test_each_element_holds_the_input_row_that_its_output_needs(ax, filter_rows, output_rows):
    viz.row_stationary_grid(ax, filter_rows, output_rows)
    held = {}
    labels = [text.get_text() for text in ax.texts if text.get_text().startswith("filter ")]
    elements = [patch for patch in ax.patches if (patch.get_gid() or "").startswith("pe ")]
    for patch, text in zip(elements, labels, strict=True):
        row, column = map(int, patch.get_gid().split()[1:])
        filter_row, input_row = (int(line.split()[1]) for line in text.split("\n"))
        held[row, column] = input_row
        assert filter_row == row + 1 and input_row - 1 == column + row, "output q takes input q + r"
    space = conv_space(1, 1, 1, output_rows, output_rows, filter_rows, filter_rows)
    image, *_ = movements(space, row_stationary(space, columns=output_rows))
    assert len(held) / len(set(held.values())) == pytest.approx(image.multicast), "shared as the model counts"
    shades = {held[at]: set() for at in held}
    for patch in elements:
        shades[held[tuple(map(int, patch.get_gid().split()[1:]))]].add(patch.get_facecolor())
    assert all(len(colors) == 1 for colors in shades.values()), "one diagonal, one shade"


# --- a loop nest ------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "stays"), [("mnk", "C"), ("nmk", "C"), ("mkn", "A"), ("knm", "B")])
def test_the_matrix_without_the_innermost_loop_stays(ax, order, stays):
    viz.loop_nest(ax, 64, 16, order)
    assert len(roles(ax, "stays")) == 1
    assert f"{stays} stays" in words(ax)
    streaming = [len(roles(ax, f"streams {name}")) for name in "ABC"]
    assert sorted(streaming) == [0, 4, 4] and streaming["ABC".index(stays)] == 0


@pytest.mark.parametrize("tile", [8, 16, 64])
def test_the_stationary_matrix_moves_once_and_the_others_once_a_tile(ax, tile):
    viz.loop_nest(ax, 64, tile)
    texts = [text.get_text() for text in ax.texts if "moves" in text.get_text()]
    assert sorted(texts) == sorted(["each word moves 1×", *[f"each word moves {64 // tile}×"] * 2])


def test_a_chain_of_quantities_has_a_box_for_each_amount_and_a_word_for_each_factor(ax) -> None:
    amounts = {"CPU": ["1 kWh", "1.2 kWh", "480 g"], "NPU": ["1 Wh", "1.2 Wh", "480 mg"]}
    viz.quantity_chain(ax, amounts, ["× PUE", "× carbon intensity"])
    boxes = [patch for patch in ax.patches if patch.get_gid() == "amount"]
    assert len(boxes) == 6 and len({(box.get_x(), box.get_y()) for box in boxes}) == 6
    texts = [text.get_text() for text in ax.texts]
    assert {"CPU", "NPU", "480 mg", "× PUE", "× carbon intensity"} <= set(texts)
    with pytest.raises(ArgumentError, match="one more than the 2 factors"):
        viz.quantity_chain(ax, {"CPU": ["1 kWh"]}, ["× PUE", "× carbon intensity"])


def test_stages_of_fusion_have_a_frame_for_each_kernel_and_a_box_for_each_operator(ax) -> None:
    stages = {"as written": [["conv"], ["norm"], ["ReLU"]], "folded and fused": [["conv", "ReLU"]]}
    viz.fusion_stages(ax, stages)

    def role(name):
        return [patch for patch in ax.patches if patch.get_gid() == name]

    assert (len(role("kernel")), len(role("operator")), len(role("tensor"))) == (4, 5, 2)
    rows = {patch.get_y() for patch in role("operator")}
    assert len(rows) == 3  # an operator keeps its row
    assert {"as written", "3 kernels", "1 kernel", "norm"} <= {text.get_text() for text in ax.texts}
    for frame in role("kernel"):
        inside = [box for box in role("operator") if frame.get_bbox().containsx(box.get_x())
                  and frame.get_bbox().containsy(box.get_y())]  # fmt: skip
        assert inside


def test_stages_of_fusion_refuse_an_operator_that_the_first_stage_has_not(ax) -> None:
    with pytest.raises(ArgumentError, match=r"'fused' of `stages` has \['GELU'\].*It has: conv, ReLU"):
        viz.fusion_stages(ax, {"as written": [["conv"], ["ReLU"]], "fused": [["conv", "GELU"]]})
    with pytest.raises(ArgumentError, match="each operator once"):
        viz.fusion_stages(ax, {"as written": [["conv"], ["conv"]]})
    with pytest.raises(ArgumentError, match="is empty"):
        viz.fusion_stages(ax, {})


# --- loop orders and dataflows ----------------------------------------------------------


@pytest.mark.parametrize("order", ["krspq", "pqkrs", "srqkp", "pkrqs"])
def test_counted_cells_multiply_to_the_fetches_of_running_the_loops(ax, order):
    space = conv_space(1, 1, 16, 6, 6, 3, 3)
    (panel,) = viz.loop_reuse(ax, space, (order,))
    walked = walked_words(space, order)
    for operand in space.operands:
        fetches = 1
        for loop in order:
            (kind,) = [k for k in ("index", "refetch", "stays") if roles(panel, f"{k} {operand.name} {loop}")]
            fetches *= 1 if kind == "stays" else space.sizes[loop]
            assert (kind == "index") == (loop in operand.dims)
        writes = 2 * fetches - operand.words(space.sizes) if operand is space.output else fetches
        assert writes == walked[operand.name] and f"{writes:,}" in words(panel)
    assert f"{sum(walked.values()):,} words" in panel.get_title() + panel.get_title("left")


def test_a_panel_for_each_dataflow_shows_what_stays_and_how_often_the_others_move(ax):
    panels = viz.stationary_tiles(ax, 64, 256, 512, 32)
    for panel, stays, times in zip(panels, "BCA", (("16", "1", "15"), ("16", "2", "1"), ("1", "2", "15")), strict=True):
        for name in "ABC":
            assert len(roles(panel, f"stays {name}")) == (name == stays)
            assert len(roles(panel, f"streams {name}")) == (0 if name == stays else 3)
        for name, count in zip(("inputs", "weights", "sums"), times, strict=True):
            assert f"{name} × {count}" in [text.get_text() for text in panel.texts]


def test_strips_meet_the_stationary_tile(ax):
    space = gemm_space(96, 96, 96)
    for panel, stays in zip(viz.stationary_tiles(ax, 96, 96, 96, 32), "BCA", strict=True):
        (held,) = roles(panel, f"stays {stays}")
        for name, letters in (("A", "mk"), ("B", "kn"), ("C", "mn")):
            shared = set(letters) & set(space.operand(stays).dims)
            for patch in roles(panel, f"streams {name}"):
                if name != stays and shared & {"m"} and letters[0] == "m" and stays in "AC":
                    assert patch.get_y() == held.get_y(), "the same rows"
                if name != stays and shared & {"n"} and letters[1] == "n" and stays in "BC":
                    assert patch.get_x() == held.get_x(), "the same columns"


@pytest.mark.parametrize("seed", range(5))
def test_shadows_are_the_elements_that_the_points_use_and_bound_their_number(ax, seed):
    rng = np.random.default_rng(seed)
    points = [tuple(int(index) for index in rng.integers(0, 4, 3)) for _ in range(int(rng.integers(1, 30)))]
    viz.product_shadows(ax, points, size=4)
    used = {
        "A": len({(m, k) for m, k, n in points}),
        "B": len({(k, n) for m, k, n in points}),
        "C": len({(m, n) for m, k, n in points}),
    }
    for name, count in used.items():
        assert len(roles(ax, f"used {name}")) == count and f"{count} of {name}" in words(ax)
    drawn = sum(line.get_gid() == "point" for line in ax.lines)
    assert drawn == len(set(points)) <= (used["A"] * used["B"] * used["C"]) ** 0.5


def test_a_point_outside_the_matrices_is_refused(ax):
    with pytest.raises(ArgumentError, match=r"from 0 to 2, got \(0, 3, 0\)"):
        viz.product_shadows(ax, [(0, 0, 0), (0, 3, 0)], size=3)


# --- reuse of B, and requests in flight ---------------------------------------------------


@pytest.mark.parametrize("tile", [3, 4, 6, 9])
def test_between_two_uses_of_b_lie_a_tile_two_rows_of_a_and_one_of_c(ax, tile):
    viz.reuse_window(ax, tile)
    counts = {name: len(roles(ax, f"used {name}")) for name in "ABC"}
    assert counts == {"A": 2 * tile, "B": tile**2 - 1, "C": tile + 1}
    assert f"{tile**2 + 3 * tile} other words" in words(ax) and len(roles(ax, "element")) == 1


def test_a_tile_without_an_inner_column_is_refused(ax):
    with pytest.raises(ArgumentError, match="`tile`"):
        viz.reuse_window(ax, 2)


@pytest.mark.parametrize("count", [1, 3, 4])
def test_requests_in_flight_are_constant_and_each_brings_its_bytes_once(ax, count):
    viz.requests_in_flight(ax, Q_(128, "byte"), Q_(400, "ns"), (count,))
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in roles(ax, "request")]
    for moment in np.arange(0.05, 3, 0.1) + 1e-3:
        assert sum(left < moment < right for left, right in bars) == count
    responses = len(roles(ax, "response"))  # arrive in three latencies
    assert responses == 3 * count
    assert f"{responses * 128 / 1200:.3g} GB/s" in words(ax), "bytes over time"
