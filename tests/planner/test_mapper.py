"""The mapper as it is called: objectives, the cache, interruption, and what it refuses."""

import dataclasses
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.constants import fact
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.frozen import FrozenDict
from mlsys.mapping import gemm_space
from mlsys.models.dataflow import Hierarchy, buffer_words, hierarchy, nest_cost
from mlsys.planner.mapper import best_mapping, best_two_level, cache, chains, map_network
from mlsys.planner.mapper.hierarchy import search
from mlsys.provenance import perturbed
from mlsys.units import Quantity
from mlsys.workloads import conv2d, gemm, relu, zoo

A100 = Hardware.Cloud.A100
PERTURBED = "A100_80GB/memory/HBM/bandwidth"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache.clear()
    return tmp_path / "mlsys" / "mapper"


def small_machine(outer: int = 2000, inner: int = 200) -> Hierarchy:
    """Return the memories of the small array, with other sizes of its two inner ones."""
    device = Hardware.Arrays.small_array
    sizes = {"SRAM": outer, "Scratchpad": inner}
    memory = {
        name: dataclasses.replace(level, _capacity=_assumed(f"small/{name}", sizes[name])) if name in sizes else level
        for name, level in device.memory.items()
    }
    return hierarchy(dataclasses.replace(device, name="small", memory=FrozenDict(memory)))


def _assumed(name: str, size: int) -> Quantity:
    return fact(size, "byte", name=name, meaning="a size for a test", source="made up for this test", date="2026")


def test_each_objective_is_best_at_its_own() -> None:
    machine, space = small_machine(), gemm_space(96, 80, 70)
    best = {name: best_mapping(machine, space, name) for name in ("traffic", "energy", "latency", "edp")}
    assert all(item.proven for item in best.values())
    figures = {
        name: (
            item.words[0],
            item.result.figures["energy"].m_as("J"),
            item.result.time.m_as("s"),
            item.result.figures["energy-delay product"].m_as("J*s"),
        )
        for name, item in best.items()
    }
    for index, name in enumerate(figures):
        assert figures[name][index] == pytest.approx(min(values[index] for values in figures.values()), rel=1e-12)


def test_result_and_words_are_those_of_the_nest() -> None:
    machine, space = small_machine(), gemm_space(33, 47, 65)
    best = best_mapping(machine, space, "energy")
    assert nest_cost(machine, space, best.nest) == best.result
    assert all(used <= room for used, room in zip(buffer_words(space, best.nest), machine.rooms, strict=True))
    assert best.words[0] >= best.bound
    assert best.ratio == best.words[0] / best.bound


def test_traffic_equals_the_two_level_optimum() -> None:
    machine, space = small_machine(), gemm_space(120, 90, 100)
    best = best_mapping(machine, space, "traffic")
    assert best.words[0] == best_two_level(120, 90, 100, machine.rooms[0]).words


def never(*_: object) -> None:
    raise AssertionError("this must come from the cache")


def test_a_proven_result_is_kept_and_names_do_not_matter(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = small_machine()
    first = best_mapping(machine, gemm_space(40, 40, 40, name="one"), disk_cache=True)
    assert len(list(own_cache.glob("*"))) == 1
    cache.clear()
    monkeypatch.setattr("mlsys.planner.mapper.mapper.search", never)
    again = best_mapping(machine, gemm_space(40, 40, 40, name="two"), disk_cache=True)
    assert (again.nest, again.words, again.tried, again.proven) == (first.nest, first.words, first.tried, True)


def test_another_question_or_other_code_has_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    space, other = gemm_space(40, 40, 40), gemm_space(40, 41, 40)
    keys = {
        cache.key_of(space, (64,), ("L1",), "energy"),
        cache.key_of(other, (64,), ("L1",), "energy"),
        cache.key_of(space, (65,), ("L1",), "energy"),
        cache.key_of(space, (64,), ("L2",), "energy"),
        cache.key_of(space, (64,), ("L1",), "edp"),
    }
    monkeypatch.setattr(cache, "_code", lambda: "other code")
    keys.add(cache.key_of(space, (64,), ("L1",), "energy"))
    assert len(keys) == 6


def signed(key: str, data: dict[str, object]) -> str:
    """Return a file with the right checksum, as somebody would write it who knows how."""
    plain = {name: value for name, value in data.items() if name != "checksum"}
    return json.dumps({**plain, "checksum": cache._checksum(key, plain)})


POISONS: dict[str, Callable[[str, dict[str, Any]], str]] = {
    "cut": lambda key, data: "{",
    "no mapping at all": lambda key, data: "[1]",
    "less energy": lambda key, data: json.dumps({**data, "value": data["value"] / 2}),
    "less energy, signed": lambda key, data: signed(key, {**data, "value": data["value"] / 2}),
    "no number, signed": lambda key, data: signed(key, {**data, "value": float("nan")}),
    "fewer words, signed": lambda key, data: signed(key, {**data, "words": [1, 1]}),
    "tiles that do not fit, signed": lambda key, data: signed(
        key, {**data, "levels": [[m, {"m": 40, "n": 40, "k": 40}, o, k] for m, _, o, k in data["levels"]]}
    ),
    "other memories, signed": lambda key, data: signed(
        key, {**data, "levels": [[f"{m}?", t, o, k] for m, t, o, k in data["levels"]]}
    ),
    "the answer to another question": lambda key, data: signed("another", data),
}


@pytest.mark.parametrize("how", POISONS)
def test_a_file_that_is_wrong_counts_as_none(own_cache: Path, how: str) -> None:
    machine, space = small_machine(), gemm_space(40, 40, 40)
    first = best_mapping(machine, space, disk_cache=True)
    (file,) = own_cache.glob("*.json")
    right = file.read_text()
    file.write_text(POISONS[how](file.stem, json.loads(right)))
    cache.clear()
    again = best_mapping(machine, space, disk_cache=True)
    assert (again.nest, again.words, again.value, again.proven) == (first.nest, first.words, first.value, True)
    assert file.read_text() == right


def test_a_folder_that_cannot_be_written_does_not_cost_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="cannot be written.*XDG_CACHE_HOME"):
        assert best_mapping(small_machine(), gemm_space(40, 40, 40), disk_cache=True).proven


def test_a_what_if_has_results_of_its_own() -> None:
    before = best_mapping(A100, gemm(256, 256, 256))
    with perturbed(PERTURBED, 0.5):
        changed = best_mapping(A100, gemm(256, 256, 256))
    assert changed.result.time > before.result.time
    assert changed.nest is not before.nest
    assert best_mapping(A100, gemm(256, 256, 256)).nest is before.nest


def test_an_interrupt_leaves_the_best_found_unproven_and_unkept() -> None:
    calls = []

    def stop(best, share):  # type: ignore[no-untyped-def]
        calls.append((best.value, share))
        raise KeyboardInterrupt

    machine, space = small_machine(), gemm_space(960, 800, 700)
    best = best_mapping(machine, space, "energy", progress=stop)
    assert calls and not best.proven
    assert "proves only that" in best.explain()
    proven = best_mapping(machine, space, "energy")
    assert proven.proven and "proven best" in proven.explain()
    assert proven.result.figures["energy"] <= best.result.figures["energy"]


def test_a_time_limit_ends_a_search() -> None:
    best = best_mapping(small_machine(), gemm_space(960, 800, 700), "energy", seconds=1e-9)
    assert not best.proven


@pytest.mark.parametrize("objective", ["traffic", "energy", "latency", "edp"])
def test_a_search_that_was_stopped_says_how_far_off_it_may_be(objective: str) -> None:
    machine, space = small_machine(), gemm_space(480, 400, 350)
    stopped = best_mapping(machine, space, objective, seconds=1e-9)
    proven = best_mapping(machine, space, objective)
    assert proven.proven and proven.gap == 0 and proven.least == proven.value
    assert 0 < stopped.least <= proven.value * (1 + 1e-12)
    assert proven.value <= stopped.value * (1 + 1e-12)
    assert proven.value >= stopped.value * (1 - stopped.gap) * (1 - 1e-12)


def test_where_tiles_are_too_many_some_stand_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, space = small_machine(), gemm_space(480, 400, 350)
    proven = best_mapping(machine, space)
    cache.clear()
    monkeypatch.setattr(chains, "_MOST", 100)
    some = best_mapping(machine, space)
    assert not some.proven and some.least <= proven.value <= some.value < 1.2 * proven.value
    assert f"{some.gap:.1%} better" in some.explain()


def test_a_loop_of_a_thousand_million_takes_little_memory() -> None:
    tracemalloc.start()
    best = best_mapping(A100, gemm(1_000_000_007, 8, 8))
    assert tracemalloc.get_traced_memory()[1] < 500e6
    tracemalloc.stop()
    # Each input and each output crosses once, which no schedule can avoid: proven, though not all was searched.
    assert best.proven and best.words[0] == 1_000_000_007 * 16 + 64


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "5"])
def test_a_time_limit_must_be_a_time(seconds: object) -> None:
    with pytest.raises(ArgumentError, match="seconds"):
        best_mapping(small_machine(), gemm_space(8, 8, 8), seconds=seconds)  # type: ignore[arg-type]


def test_products_beyond_exact_counts_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"at most 1\.0e\+18"):
        best_mapping(small_machine(), gemm_space(10**9, 10**9, 8))


def test_the_best_so_far_never_gets_worse() -> None:
    seen = []
    search(
        gemm_space(200, 300, 250),
        (2000, 200),
        ("L2", "L1"),
        lambda w: 10.0 * w[0] + w[1],
        lambda b, _: seen.append(b.value),
    )
    assert seen == sorted(seen, reverse=True) and np.isfinite(seen).all()


def test_a_network_is_mapped_layer_by_layer() -> None:
    layers = map_network(A100, zoo.network("resnet50", precision="fp16"))
    assert len(layers) == 54 and all(layer.proven for layer in layers)
    assert all(layer.words[0] >= layer.bound for layer in layers)


def test_convolutions_that_fit_move_what_they_must() -> None:
    best = best_mapping(A100, conv2d(1, 64, 64, size=56, kernel=3))
    assert best.words[0] == best.space.compulsory


def test_bad_input_is_refused_in_words() -> None:
    with pytest.raises(UnknownNameError, match="must be one of traffic, energy, latency, edp, got 'enrgy'.*'energy'"):
        best_mapping(A100, gemm(8, 8, 8), "enrgy")
    with pytest.raises(ArgumentError, match="must be a matrix product or lower to one"):
        best_mapping(A100, relu(64))
    with pytest.raises(ArgumentError, match="Scratchpad of small holds 2 words in int8; it must hold one word"):
        best_mapping(small_machine(inner=2), gemm_space(4, 4, 4))
    with pytest.raises(ArgumentError, match="`capacity` must hold one word of A, of B and of C, got 2"):
        best_two_level(4, 4, 4, 2)
    with pytest.raises(UnknownNameError, match="`tile_set` must be one of all, div, got 'some'"):
        best_two_level(4, 4, 4, 8, "some")
    for bad in (0, -3, 1.5, True, None):
        with pytest.raises(ArgumentError, match="best_two_level.*`n` must be"):
            best_two_level(4, bad, 4, 8)  # type: ignore[arg-type]


def test_the_machine_of_a_device_names_what_it_assumes() -> None:
    machine = hierarchy(A100)
    assert "dense fp16 peak" in machine.assumptions[0]
    assert best_mapping(machine, gemm(64, 64, 64)).result.assumptions[:2] == machine.assumptions[:2]
