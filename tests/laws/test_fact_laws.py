"""What a fact does to a result: as its elasticity says, or nothing; and never past a bound.

Drawn over devices, workloads and facts, with the seed that the run prints.
"""

import functools
import math
import os
import random
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import pytest

from mlsys import Hardware
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.hardware import Device
from mlsys.hardware.view import view
from mlsys.models import roofline
from mlsys.models.analysis import analyze
from mlsys.models.architecture import architecture
from mlsys.models.dataflow import nest_cost
from mlsys.models.systolic import systolic
from mlsys.models.tiling import Tiling, tile_sizes, tiled_gemm
from mlsys.planner.mapper import best_mapping
from mlsys.provenance import perturbed, recording, unrecorded
from mlsys.units import Quantity
from mlsys.workloads import gemm, zoo
from sampled import everything

# A rate, a room, a count: none makes a time longer than in proportion, nor shorter than that.
NETWORKS = ("resnet50", "mobilenet-v2", "bert-base", "gpt2")
FACTORS = (0.25, 0.5, 2.0, 4.0)
ROOM = 1 + 1e-9


@functools.cache
def network(name: str, batch: int, precision: str):
    return zoo.network(name, batch=batch, precision=precision)


def tiling(device, batch: int, name: str):
    edges = tile_sizes(device, device.headline, 2)
    level = next(iter(edges))
    return tiled_gemm(device, gemm(64 * batch, 512, 512, device.headline), Tiling(min(edges[level], 64), level, 2))


def on_an_array(device, batch: int, name: str):
    return systolic(device, gemm(64 * batch, 768, 512, device.headline))


@functools.cache
def mapped(device_id: str, batch: int):
    """The best mapping without any what-if: what is changed afterwards is the machine, not the mapping."""
    device = Hardware[device_id]
    with unrecorded():
        return best_mapping(device, gemm(64 * batch, 768, 512, device.headline)).nest


def with_a_mapping(device, batch: int, name: str):
    return nest_cost(device, gemm(64 * batch, 768, 512, device.headline), mapped(device.id, batch))


MODELS = {
    "roofline": lambda device, batch, name: roofline(device, network(name, batch, device.headline)),
    "tiling": tiling,
    "architecture": lambda device, batch, name: architecture(device, network(name, batch, device.headline)),
    "systolic": on_an_array,
    "mapping": with_a_mapping,
}
ARRAYS = (
    "Gaudi2",
    "Gaudi3",
    "Inferentia2",
    "TPUv1",
    "TPUv2",
    "TPUv3",
    "TPUv4",
    "TPUv4i",
    "TPUv5e",
    "TPUv5p",
    "Trainium1",
)


def drawn(seed: int, count: int, model: str = ""):
    """Return devices and networks, drawn at random."""
    draw = random.Random(seed)
    devices = [device for device in Hardware if device.kind != "MCU"]
    if model == "systolic":
        devices = [Hardware[name] for name in ARRAYS]
    return [(draw.choice(devices), draw.choice(NETWORKS), draw.choice((1, 32))) for _ in range(count)]


SEED = int(os.environ["MLSYS_SEED"])


def spare_power(device: Device) -> float:
    """Return what the design power leaves above what is drawn at rest, in W: a difference, in proportion to neither."""
    machine = view(device)
    limit, idle = (machine.quantity(name).m_as("W") if machine.has(name) else 0.0 for name in ("tdp", "idle_power"))
    return limit - idle if limit else 1.0


@pytest.mark.parametrize("model", MODELS)
def test_a_fact_moves_a_time_by_no_more_than_in_proportion(model: str) -> None:
    """Twice a rate halves a time at most, and never lengthens it; so for every fact that the model names."""
    tried = 0
    for device, name, batch in drawn(SEED, 40, model):
        if tried >= 6:
            break
        try:
            with recording() as read:
                result = MODELS[model](device, batch, name)
        except (ArgumentError, UnknownNameError):
            continue
        tried += 1
        base, spent = result.time.m_as("s"), result.figures.get("energy")
        before = spare_power(device)
        for fact in sorted({fact.name for fact in result.facts} | set(read)):
            for factor in (0.5, 2.0):
                with perturbed(fact, factor):
                    try:
                        again = MODELS[model](device, batch, name)
                    except (ArgumentError, UnknownNameError):
                        continue  # a room too small for the requested tile
                    spare = spare_power(device)
                changed = again.time.m_as("s")
                most = 2.0 * ROOM
                if fact.startswith(f"{device.id}/power/") and model == "architecture":  # slowed by it
                    most *= max(spare / before, before / spare, 1.0)
                assert 1 / most <= changed / base <= most, (f"seed {SEED}", device.id, name, batch, fact, factor)
                if spent is not None:
                    energy = (again.figures["energy"] / spent).m_as("")
                    assert 1 / most <= energy <= most, (f"seed {SEED}", device.id, name, batch, fact, factor)
                if fact.startswith("ENERGY_") and model != "architecture":  # which slows what draws too much power
                    assert changed == base, "what an access costs takes no time"
                if "/peaks/" in fact or "/bandwidth" in fact:
                    slower = changed / base if factor < 1 else base / changed
                    assert slower >= 1 / ROOM, (f"seed {SEED}: a faster part", device.id, name, batch, fact, factor)
    assert tried == 6


@pytest.mark.parametrize("model", MODELS)
def test_a_result_names_every_fact_that_moves_it(model: str) -> None:
    """Of all that a device has on record, what the result does not name does not move it."""
    draw, tried = random.Random(SEED + 1), 0
    for device, name, batch in drawn(SEED + 1, 40, model):
        if tried >= 3:
            break
        try:
            result = MODELS[model](device, batch, name)
        except (ArgumentError, UnknownNameError):
            continue
        tried += 1
        named = {fact.name for fact in result.facts}
        others = [quantity.origin.name for quantity in device.recorded() if quantity.origin.name not in named]
        for fact in draw.sample(others, min(8, len(others))):
            with perturbed(fact, 1.7):
                again = MODELS[model](device, batch, name)
            assert again.time.magnitude == result.time.magnitude, (f"seed {SEED}", device.id, name, fact)
    assert tried == 3


def quantities(value: object, path: str = "", depth: int = 3) -> dict[str, Quantity]:
    """Return the quantities within a result, by the way to them; of long lists the first few."""
    if isinstance(value, Quantity):
        return {path: value}
    parts: list[tuple[str, object]] = []
    if isinstance(value, Mapping):
        parts = [(f"{path}[{name}]", part) for name, part in value.items()]
    elif isinstance(value, tuple) and depth:
        parts = [(f"{path}[{index}]", part) for index, part in enumerate(value[:3])]
    elif is_dataclass(value) and depth:
        parts = [(f"{path}.{entry.name}", getattr(value, entry.name)) for entry in fields(value)]
    return {way: quantity for name, part in parts for way, quantity in quantities(part, name, depth - 1).items()}


def analysed(device, batch: int, name: str):
    return analyze(device, network(name, batch, device.headline))


READERS = {**MODELS, "analysis": analysed}


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", READERS)
def test_no_read_is_hidden(model: str) -> None:
    """A number that moves with a fact names it, each number of a result by itself; those it is made of move at once."""
    tried = 0
    for device, name, batch in drawn(SEED + 3, 200 if everything() else 40, model):
        if tried >= (60 if everything() else 2):
            break
        try:
            with recording() as read:
                before = quantities(READERS[model](device, batch, name))
        except (ArgumentError, UnknownNameError):
            continue
        tried += 1
        every = sorted({*read, *(quantity.origin.name for quantity in device.recorded())})
        for fact in every if everything() else random.Random(f"{SEED}{device.id}").sample(every, min(10, len(every))):
            where = (f"seed {SEED}", device.id, name, batch, fact)
            for factor in (1 + 1e-4, 1 - 1e-4, 0.01, 100):
                with perturbed(fact, factor):
                    try:
                        after = quantities(READERS[model](device, batch, name))
                    except (ArgumentError, UnknownNameError):
                        continue  # too small a room, or no power left
                # the last bits depend on how many terms are summed beside it
                moved = {
                    way
                    for way, old in before.items()
                    if way in after and not math.isclose(after[way].magnitude, old.magnitude, rel_tol=1e-14)
                }
                hidden = [way for way in moved if fact not in {fact.name for fact in before[way].facts}]
                assert not hidden, (*where, factor, hidden)
    assert tried


def test_a_product_on_an_array_of_cores_names_their_number() -> None:
    """The case that escaped: cores that share the work stood in no pedigree of a time."""
    device = Hardware.Generic.CPU
    before = architecture(device, gemm(65, 65, 65, "fp32"))
    with perturbed("GenericCPU/chip/units", 0.5):
        after = architecture(device, gemm(65, 65, 65, "fp32"))
    assert after.time != before.time
    assert "GenericCPU/chip/units" in {fact.name for fact in before.time.facts}
    assert "GenericCPU/chip/units" in {fact.name for fact in (before.time / after.time).facts}


def test_a_limit_that_does_not_hold_is_compared_and_sets_nothing() -> None:
    """A power limit far above what is drawn; at a hundredth of it, it holds, and sets the time."""

    def reported():
        time = architecture(Hardware.Generic.TPU, gemm(1024, 1024, 1024, "bf16")).time
        return {fact.name for fact in time.origin.sets()}, {fact.name for fact in time.origin.compared()}

    limit = "GenericTPU/power/tdp"
    sets, compared = reported()
    assert limit in compared and limit not in sets and sets
    with perturbed(limit, 0.01):
        sets, compared = reported()
    assert limit in sets and "ENERGY_REG_PJ" in sets


def test_no_estimate_is_below_its_bound_under_any_what_if() -> None:
    """For any device, network and fact: bound and estimate move together, and stay in order."""
    tried = moved = 0
    for device, name, batch in drawn(SEED + 2, 60):
        if tried >= 10:
            break
        net = network(name, batch, device.headline)
        try:
            analysis = analyze(device, net)
        except (ArgumentError, UnknownNameError):
            continue
        tried += 1
        draw = random.Random(f"{SEED}{device.id}{name}{batch}")
        facts = [fact.name for fact in analysis.facts]
        for fact in draw.sample(facts, min(4, len(facts))):
            factor = draw.choice(FACTORS)
            with perturbed(fact, factor):
                again = analyze(device, net)
            where = (f"seed {SEED}", device.id, name, batch, fact, factor)
            assert again.estimate.magnitude * ROOM >= again.bound.magnitude, where
            assert all(
                operator.estimate.magnitude * ROOM >= operator.bound.magnitude
                and math.isfinite(operator.estimate.magnitude)
                for operator in again.operators
            ), where
            ratio = again.estimate.magnitude / analysis.estimate.magnitude
            least, most = min(factor, 1 / factor), max(factor, 1 / factor)
            assert least / ROOM <= ratio <= most * ROOM, where
            moved += ratio != 1
    assert tried == 10 and moved > 3


def test_a_faster_clock_makes_no_other_kind_of_machine() -> None:
    """The case that escaped: a slow array of multipliers passed for a core that widens bytes, until its clock rose."""
    before = analyze(Hardware.Tiny.EthosU55_128, network("resnet50", 32, "int8"))
    with perturbed("EthosU55_128/chip/clock", 4):
        after = analyze(Hardware.Tiny.EthosU55_128, network("resnet50", 32, "int8"))
    assert 1 / 4 <= after.estimate / before.estimate <= 1
    assert before.estimate < 10 * before.bound


def test_the_case_that_failed_a_quarter_of_the_bandwidth_moves_the_estimate_too() -> None:
    net = network("resnet50", 32, "fp16")
    before = analyze(Hardware.Cloud.A100, net)
    with perturbed("A100_80GB/memory/HBM/bandwidth", 0.25):
        after = analyze(Hardware.Cloud.A100, net)
    assert after.bound > 2 * before.bound
    assert after.estimate > 1.3 * before.estimate
    assert after.estimate >= after.bound
