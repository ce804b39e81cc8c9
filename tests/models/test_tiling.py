"""Blocked products and convolutions: hand counts, published tile sizes, and what is refused."""

import csv
import itertools
from pathlib import Path

import pytest

from mlsys.errors import ArgumentError, ArgumentUnitError, UnknownNameError
from mlsys.hardware import Device, Hardware, load_device
from mlsys.models import roofline
from mlsys.models.tiling import (
    ConvTile,
    Tiling,
    conv2d_traffic,
    gemm_lower_bound,
    gemm_tile_words,
    gemm_traffic,
    largest_accumulator_tile,
    largest_square_tile,
    tile_sizes,
    tiled_gemm,
)
from mlsys.testing import assert_quantity_close
from mlsys.units import Q_
from mlsys.workloads import gemm, relu

PLAIN = """\
id: Plain
name: Plain machine
kind: GPU
vendor: Nobody
release_year: 2024
sources: {sheet: {title: Plain data sheet, date: "2024", confidence: verified}}
headline: fp16
peaks: {fp16: {matrix: {dense: {value: 100 GFLOP/s, source: sheet}}}}
memory:
  DRAM: {capacity: {value: 1 GB, source: sheet}, bandwidth: {value: 10 GB/s, source: sheet}}
"""
INNER = PLAIN.replace("id: Plain", "id: Inner").replace("Plain machine", "Inner machine")
INNER += "  SRAM: {capacity: {value: 24 KiB, source: sheet}, bandwidth: {value: 100 GB/s, source: sheet}}\n"


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> tuple[Device, Device]:
    folder: Path = tmp_path_factory.mktemp("devices")
    for name, text in (("Plain", PLAIN), ("Inner", INNER)):
        (folder / f"{name}.yaml").write_text(text)
    return load_device(folder / "Plain.yaml"), load_device(folder / "Inner.yaml")


# --- products --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tile", "words"), [(1, 2.149e9), (8, 2.695e8), (32, 6.816e7), (128, 1.783e7), (1024, 3.146e6)]
)
def test_a_cube_of_1024_moves_what_the_familiar_formula_says(tile: int, words: float) -> None:
    moved = gemm_traffic(1024, 1024, 1024, tile).words
    assert moved == pytest.approx(words, rel=5e-4)
    assert moved == 2 * 1024**3 // tile + 1024**2


def test_by_hand_with_ragged_edges() -> None:
    """Five rows in tiles of two make three, so B comes three times; seven columns in threes, too."""
    traffic = gemm_traffic(5, 7, 4, (2, 3, 4))
    assert dict(traffic.reads) == {"A": 5 * 4, "B": 3 * 4 * 7, "C": 0}, "one tile along k: a tile of A stays for all j"
    assert dict(traffic.writes) == {"A": 0, "B": 0, "C": 35}
    assert dict(gemm_traffic(5, 7, 4, (2, 3, 3)).reads) == {"A": 3 * 20, "B": 3 * 28, "C": 0}
    assert dict(gemm_traffic(5, 7, 4, (2, 3, 3), "kmn").by_operand) == {"A": 20, "B": 3 * 28, "C": 2 * 35 + 35}


@pytest.mark.parametrize("order", ["".join(p) for p in itertools.permutations("mnk")])
@pytest.mark.parametrize(
    ("shape", "tile"), [((6, 5, 7), (2, 3, 4)), ((4, 4, 4), (4, 2, 2)), ((3, 9, 2), (1, 4, 2)), ((5, 5, 5), (5, 5, 2))]
)
def test_products_by_walking_the_tiles(order: str, shape: tuple[int, ...], tile: tuple[int, ...]) -> None:
    """Hold one tile of each operand and count the words whenever it is exchanged."""
    size, edge = dict(zip("mnk", shape, strict=True)), dict(zip("mnk", tile, strict=True))
    held: dict[str, tuple[int, ...]] = {}
    seen: set[tuple[int, ...]] = set()
    reads, writes = dict.fromkeys("ABC", 0), dict.fromkeys("ABC", 0)
    index = {"A": "mk", "B": "kn", "C": "mn"}

    def area(name: str, coordinates: tuple[int, ...]) -> int:
        return len(
            list(
                itertools.product(
                    *(range(p, min(p + edge[d], size[d])) for p, d in zip(coordinates, index[name], strict=True))
                )
            )
        )

    for starts in itertools.product(*(range(0, size[d], edge[d]) for d in order)):
        at = dict(zip(order, starts, strict=True))
        for name, dims in index.items():
            coordinates = tuple(at[d] for d in dims)
            if held.get(name) == coordinates:
                continue
            if name == "C":
                if "C" in held:
                    writes["C"] += area("C", held["C"])
                reads["C"] += area("C", coordinates) if coordinates in seen else 0
                seen.add(coordinates)
            else:
                reads[name] += area(name, coordinates)
            held[name] = coordinates
    writes["C"] += area("C", held["C"])
    traffic = gemm_traffic(*shape, tile, order)  # type: ignore[arg-type]
    assert dict(traffic.reads) == reads
    assert dict(traffic.writes) == writes


RECORDED = list(csv.DictReader((Path(__file__).parents[1] / "oracles/data/gemm_two_level.csv").open(newline="")))


@pytest.mark.parametrize(
    "row", RECORDED, ids=lambda row: f"{row['M']}x{row['N']}x{row['K']}-{row['S']}-{row['tile_set']}"
)
def test_the_best_schedules_of_a_recorded_search(row: dict[str, str]) -> None:
    """An exhaustive search written elsewhere counted reads and writes of its best tile; so do we."""
    m, n, k, room = (int(row[name]) for name in ("M", "N", "K", "S"))
    tile = tuple(int(edge) for edge in row["tile"].split(","))
    traffic = gemm_traffic(m, n, k, tile, row["order"])  # type: ignore[arg-type]
    words = traffic.reads["A"], traffic.reads["B"], traffic.reads["C"], traffic.writes["C"]
    assert words == tuple(int(row[name]) for name in ("A", "B", "C_reads", "C_writes"))
    assert traffic.words == int(row["best_words"]) >= gemm_lower_bound(m, n, k, room)


def test_sizes_of_a_million_are_exact() -> None:
    """Python integers: 2·10¹⁸ and one more do not become the same number."""
    million = 10**6
    assert gemm_traffic(million, million, million, 1).words == 2 * 10**18 + 10**12
    assert gemm_traffic(million, million + 1, million, 1).words == 2 * 10**12 * (million + 1) + million * (million + 1)
    assert gemm_lower_bound(million, million, million, 1) == 2 * 10**18 - 2


def test_a_thousand_tiles_have_999_seams() -> None:
    """Each seam of a 3 × 3 kernel is crossed by two rows, which both sides read."""
    million = 10**6
    assert (
        conv2d_traffic(1, 1, 1, million, 3, ConvTile(1000, million, 1, 1)).reads["input"] == (million + 1998) * million
    )


# --- convolutions ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "tile"),
    [
        (7, 3, 1, 1, ConvTile(2, 3, 2, 2)),
        (8, 3, 2, 1, ConvTile(3, 2, 5, 1)),
        (9, 1, 2, 0, ConvTile(2, 2, 1, 3)),
        (9, 2, 3, 0, ConvTile(2, 5, 5, 3)),
        (6, 5, 1, 2, ConvTile(1, 1, 2, 1)),
        (6, 3, 1, 0, ConvTile(4, 4, 5, 3)),
        (5, 3, 4, 2, ConvTile(2, 2, 2, 2)),
        (3, 1, 1, 2, ConvTile(1, 2, 1, 1)),  # some tiles see nothing but padding
        (2, 3, 2, 6, ConvTile(2, 1, 2, 2)),
    ],
)
def test_convolutions_by_sets(size: int, kernel: int, stride: int, padding: int, tile: ConvTile) -> None:
    """Collect in sets what each block needs, and count what was not there a moment before."""
    batch, into, filters = 2, 3, 5
    out = (size + 2 * padding - kernel) // stride + 1
    moved = {"input": 0, "weights": 0}
    before: dict[str, set[tuple[int, ...]]] = {"input": set(), "weights": set()}

    def cut(length: int, edge: int) -> list[range]:
        return [range(start, min(start + edge, length)) for start in range(0, length, edge)]

    for image, ys, xs, fs, cs in itertools.product(
        range(batch),
        cut(out, tile.rows),
        cut(out, tile.columns),
        cut(filters, tile.out_channels),
        cut(into, tile.in_channels),
    ):
        rows = {y * stride + u - padding for y in ys for u in range(kernel)} & set(range(size))
        columns = {x * stride + v - padding for x in xs for v in range(kernel)} & set(range(size))
        now = {
            "input": set(itertools.product([image], cs, rows, columns)),
            "weights": set(itertools.product(fs, cs)),
        }
        block = {"input": (image, ys, xs, cs), "weights": (fs, cs)}
        for name, needed in now.items():
            if before.get(name + " block") != block[name]:
                moved[name] += len(needed)
            before[name + " block"] = block[name]  # type: ignore[assignment]
    traffic = conv2d_traffic(batch, into, filters, size, kernel, tile, stride, padding)
    assert traffic.reads["input"] == moved["input"]
    assert traffic.reads["weights"] == moved["weights"] * kernel**2
    assert traffic.writes["output"] == batch * filters * out**2


def test_one_tile_for_everything_moves_the_compulsory_traffic() -> None:
    from mlsys.workloads import conv2d

    whole = ConvTile(56, 56, 256, 128)
    words = conv2d_traffic(2, 128, 256, 56, 3, whole).data(Q_(2, "byte"))
    assert_quantity_close(words, conv2d(2, 128, 256, 56, 3).data)


def test_a_one_by_one_convolution_is_a_product() -> None:
    conv = conv2d_traffic(1, 48, 64, 20, 1, ConvTile(1, 20, 16, 12))
    product = gemm_traffic(400, 64, 48, (20, 16, 12), "mnk")
    assert conv.by_operand == {"input": product.by_operand["A"], "weights": product.by_operand["B"], "output": 400 * 64}


# --- which tile fits -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kibibytes", "width", "single", "double"),
    [(32, 4, 52, 36), (48, 4, 64, 45), (164, 2, 167, 118), (228, 2, 197, 139), (512, 4, 209, 147)],
)
def test_the_capacity_rule(kibibytes: int, width: int, single: int, double: int) -> None:
    capacity, word = Q_(kibibytes, "KiB"), Q_(width, "byte")
    for buffers, edge in ((1, single), (2, double)):
        assert largest_square_tile(capacity, word, buffers) == edge
        room = kibibytes * 1024 / width
        assert gemm_tile_words(edge, buffers) <= room < gemm_tile_words(edge + 1, buffers)


def test_half_byte_words_and_just_enough_room() -> None:
    assert largest_square_tile(Q_(3, "byte"), Q_(0.5, "byte")) == 1
    assert largest_square_tile(Q_(12, "byte"), Q_(4, "byte")) == 1
    assert largest_square_tile(Q_(3 * 10**12, "byte"), Q_(1, "byte")) == 10**6
    edge = largest_accumulator_tile(Q_(4, "KiB"), Q_(4, "byte"))
    assert edge**2 + 2 * edge <= 1024 < (edge + 1) ** 2 + 2 * (edge + 1)


def test_an_accumulator_tile_moves_less_than_three_equal_ones() -> None:
    """In the same thousand words, by about the square root of three."""
    room, word, size = Q_(4, "KiB"), Q_(4, "byte"), 992
    cube, flat = largest_square_tile(room, word), largest_accumulator_tile(room, word)
    equal, accumulator = gemm_traffic(size, size, size, cube), gemm_traffic(size, size, size, (flat, flat, 1))
    assert 1.6 < equal.words / accumulator.words < 1.75
    assert accumulator.words < 1.07 * gemm_lower_bound(size, size, size, 1024)


def test_tile_sizes_of_a_device(machines: tuple[Device, Device]) -> None:
    plain, inner = machines
    assert dict(tile_sizes(inner)) == {"SRAM": 64}
    assert dict(tile_sizes(inner, buffers=2)) == {"SRAM": 45}
    with pytest.raises(UnknownNameError, match="Plain machine has no memory level with a capacity inside its DRAM"):
        tile_sizes(plain)


def test_every_device_has_tiles_or_says_why_not() -> None:
    for device in Hardware:
        try:
            sizes = tile_sizes(device, "int8")
        except UnknownNameError as error:
            assert device.name in str(error)
        else:
            assert all(edge >= 1 for edge in sizes.values())


# --- the model -------------------------------------------------------------------------


def test_the_model_by_hand(machines: tuple[Device, Device]) -> None:
    """64³ in tiles of 32: 2·64³/32 + 64² words of 2 B over 10 GB/s, 2·64³ FLOP at 100 GFLOP/s."""
    inner, work = machines[1], gemm(64, 64, 64)
    moving, computing = (2 * 64**3 / 32 + 64**2) * 2 / 10e9, 2 * 64**3 / 100e9
    single = tiled_gemm(inner, work, Tiling(32, "SRAM"))
    double = tiled_gemm(inner, work, Tiling(32, "SRAM", buffers=2))
    assert_quantity_close(single.time, Q_(moving + computing, "s"))
    assert_quantity_close(double.time, Q_(max(moving, computing), "s"))
    assert_quantity_close(double.figures["moved"], Q_(40960, "byte"))
    for result in (single, double):
        assert_quantity_close(sum(result.parts.values(), Q_(0.0, "s")), result.time)
    assert double.time == roofline(inner, work).time, "compute-bound either way"
    assert "single buffering" in single.explain() and "double buffering" in double.explain()


def test_tiles_larger_than_the_memory_are_refused(machines: tuple[Device, Device]) -> None:
    inner, work = machines[1], gemm(512, 512, 512)
    assert tiled_gemm(inner, work, Tiling(64, "SRAM")).time > Q_(0, "s")
    with pytest.raises(
        ArgumentError, match=r"`mapping.tile` 65×65×65 needs 24\.76 KiB in fp16, but SRAM of Inner machine"
    ):
        tiled_gemm(inner, work, Tiling(65, "SRAM"))
    with pytest.raises(
        ArgumentError, match=r"64×64×64, double-buffered, needs 48 KiB .* holds 24 KiB of tiles\. Write e\.g\. tile=45"
    ):
        tiled_gemm(inner, work, Tiling(64, "SRAM", buffers=2))
    with pytest.raises(UnknownNameError, match="has no memory level 'L1'"):
        tiled_gemm(inner, work, Tiling(64, "L1"))
    with pytest.raises(ArgumentError, match="must be a matrix product, got 'ReLU' of kind 'elementwise'"):
        tiled_gemm(inner, relu(64), Tiling(64, "SRAM"))


# --- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: gemm_traffic(0, 4, 4, 2), ArgumentError, r"gemm_traffic\(\): `m` must be a whole number >= 1, got 0"),
        (lambda: gemm_traffic(4, 2.5, 4, 2), ArgumentError, r"`n` must be a whole number >= 1, got 2.5"),
        (lambda: gemm_traffic(4, 4, True, 2), ArgumentError, r"`k` must be a whole number >= 1, got True"),
        (lambda: gemm_traffic(4, 4, float("nan"), 2), ArgumentError, r"`k` must be a whole number"),
        (lambda: gemm_traffic(4, 4, 4, 0), ArgumentError, r"`tile` must be a whole number >= 1, got 0"),
        (lambda: gemm_traffic(4, 4, 4, (2, 2)), ArgumentError, r"`tile` must be one number or three"),
        (lambda: gemm_traffic(4, 4, 4, (2, 2, 0)), ArgumentError, r"`tile\[2\]` must be a whole number >= 1"),
        (lambda: gemm_traffic(4, 4, 4, 2, "mnn"), ArgumentError, r"`order` must name each of m, n, k once"),
        (lambda: gemm_tile_words(4, 3), ArgumentError, r"`buffers` must be a whole number >= 1 and <= 2, got 3"),
        (lambda: Tiling(0, "L1"), ArgumentError, r"Tiling\(\): `tile`"),
        (lambda: Tiling(4, "L1", order="abc"), ArgumentError, r"Tiling\(\): `order`"),
        (lambda: ConvTile(1, 2, 0, 4), ArgumentError, r"ConvTile\(\): `out_channels` must be a whole number >= 1"),
        (lambda: conv2d_traffic(1, 1, 1, 4, 3, 8), ArgumentError, r"`tile` must be ConvTile\(8, 8, 64, 64\), got 8"),  # type: ignore[arg-type]
        (
            lambda: conv2d_traffic(1, 1, 1, 4, 9, ConvTile(1, 1, 1, 1), padding=0),
            ArgumentError,
            r"`kernel` of 9 does not fit into 4 with a padding of 0",
        ),
        (
            lambda: conv2d_traffic(1, 1, 1, 4, 3, ConvTile(1, 1, 1, 1), padding=0.5),  # type: ignore[arg-type]
            ArgumentError,
            r"`padding` must be a whole number >= 0, got 0.5",
        ),
        (
            lambda: largest_square_tile(32768, Q_(4, "byte")),
            ArgumentUnitError,
            r"`capacity` must be a quantity in byte",
        ),  # type: ignore[arg-type]
        (
            lambda: largest_square_tile(Q_(900, "GB/s"), Q_(4, "byte")),
            ArgumentUnitError,
            r"`capacity` must be a quantity in byte, got 900 GB/s",
        ),
        (lambda: largest_square_tile(Q_(32, "KiB"), Q_(0, "byte")), ArgumentError, r"`element_size` must be"),
        (
            lambda: largest_square_tile(Q_(20, "byte"), Q_(4, "byte"), 2),
            ArgumentError,
            r"must hold at least 6 words, one of each operand, got room for 5",
        ),
        (lambda: gemm_lower_bound(4, 4, 4, 0), ArgumentError, r"`capacity_words` must be a whole number >= 1"),
        (lambda: gemm_traffic(4, 4, 4, 2).data(Q_(4, "GB/s")), ArgumentUnitError, r"`element_size` must be a quantity"),
    ],
)
def test_one_clear_error(call, error: type[Exception], words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=words):
        call()
