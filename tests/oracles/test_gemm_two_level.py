"""The mapper against recorded exhaustive searches (tests/oracles/data/gemm_two_level.csv)."""

import csv
from pathlib import Path

import pytest

from mlsys.mapping import gemm_space
from mlsys.planner.mapper import best_two_level
from mlsys.planner.mapper.hierarchy import search
from mlsys.planner.mapper.two_level import two_level_words

ROWS = list(csv.DictReader((Path(__file__).parent / "data" / "gemm_two_level.csv").open()))


def sizes(row: dict[str, str]) -> tuple[int, int, int, int]:
    m, n, k, capacity = (int(row[column]) for column in "MNKS")
    return m, n, k, capacity


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "{M}x{N}x{K} in {S} {tile_set}".format(**row))
def test_best_words_equal_the_exhaustive_search(row: dict[str, str]) -> None:
    best = best_two_level(*sizes(row), row["tile_set"])
    assert best.words == int(row["best_words"])
    assert best.words == best.a + best.b + best.c_reads + best.c_writes
    assert best.compulsory == int(row["compulsory"])
    assert best.smith_bound == pytest.approx(float(row["lb_smith"]), abs=1)
    assert best.bound <= best.words
    m, n, k = best.tile
    assert m * k + k * n + m * n <= best.capacity


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "{M}x{N}x{K} in {S} {tile_set}".format(**row))
def test_the_recorded_tile_and_order_move_the_recorded_words(row: dict[str, str]) -> None:
    m, n, k, _ = sizes(row)
    tile = tuple(int(size) for size in row["tile"].split(","))
    parts = two_level_words(m, n, k, tile, row["order"])  # type: ignore[arg-type]
    assert parts == tuple(int(row[name]) for name in ("A", "B", "C_reads", "C_writes"))


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["tile_set"] == "all"], ids=lambda row: "{M}x{N}x{K}".format(**row)
)
def test_the_search_over_any_number_of_levels_agrees_at_one(row: dict[str, str]) -> None:
    m, n, k, capacity = sizes(row)
    best = search(gemm_space(m, n, k), (capacity,), ("fast",), lambda words: words[0])
    assert best.proven and best.words == (int(row["best_words"]),)


def test_the_often_quoted_bound_is_none() -> None:
    m, n, k, capacity = 512, 256, 32, 1024
    best = best_two_level(m, n, k, capacity)
    quoted = 2 * m * n * k / capacity**0.5 + m * n
    assert best.words == 286_720 < quoted == 393_216
    assert best.words >= best.bound == 260_096
