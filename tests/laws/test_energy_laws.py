"""One price list over all models: what an operation or a word costs on a device does not depend on who asks."""

import dataclasses

import pytest

from mlsys import Hardware
from mlsys.frozen import FrozenDict
from mlsys.hardware import Device, Technology, view
from mlsys.mapping import LoopNest, TileLevel
from mlsys.models.architecture import architecture
from mlsys.models.dataflow import hierarchy, nest_cost
from mlsys.models.energy import Energies
from mlsys.models.systolic import count_systolic, energy_systolic, systolic
from mlsys.provenance import perturbed
from mlsys.units import Q_
from mlsys.workloads import gemm

CASES = [
    (Hardware.Cloud.H100, "fp8"),
    (Hardware.Cloud.H100, "int8"),
    (Hardware.Cloud.A100, "fp16"),
    (Hardware.Cloud.TPUv4, "bf16"),
    (Hardware.Cloud.TPUv1, "int8"),
    (Hardware.Cloud.B200, "fp8"),
    (Hardware.CPU.Xeon_8380, "fp32"),
    (Hardware.Generic.KPU, "fp32"),
]
each_case = pytest.mark.parametrize(("device", "precision"), CASES, ids=lambda case: getattr(case, "id", case))
M, N, K = 64, 48, 80


def nest_of(device: Device) -> LoopNest:
    outermost = hierarchy(device, levels=1).inner[0]
    return LoopNest((TileLevel(outermost, {"m": M, "n": N, "k": K}, ("m", "n", "k")),))


def arithmetic(device: Device, precision: str) -> dict[str, float]:
    """Return pJ of one multiply-accumulate by every model that can price the device."""
    product = gemm(M, N, K, precision)
    energies = {
        "architecture": architecture(device, product).energy["compute"].m_as("pJ"),
        "dataflow": nest_cost(device, product, nest_of(device)).figures["arithmetic energy"].m_as("pJ"),
        "systolic": energy_systolic(
            count_systolic(M, N, K, 8, 8), precision, energies=Energies.of(device)
        )["arithmetic"].m_as("pJ"),
    }  # fmt: skip
    return {model: energy / (M * N * K) for model, energy in energies.items()}


@each_case
def test_a_multiply_accumulate_costs_the_same_in_every_model(device: Device, precision: str) -> None:
    expected = Energies.of(device).mac(precision).value.m_as("pJ")
    for model, energy in arithmetic(device, precision).items():
        assert energy == pytest.approx(expected, rel=1e-9), model


@each_case
def test_a_byte_of_main_memory_costs_the_same_in_every_model(device: Device, precision: str) -> None:
    product, machine = gemm(M, N, K, precision), view(device)
    price = Energies.of(device).byte(machine.main).value.m_as("pJ/byte")
    result = architecture(device, product)
    main = result.moved[machine.main.name].m_as("byte")
    assert result.energy["off-chip"].m_as("pJ") == pytest.approx(price * main, rel=1e-9)
    nest = nest_cost(device, product, nest_of(device))
    name = hierarchy(device, levels=1).inner[0]
    inside = Energies.of(device).byte(machine.level(name)).value.m_as("pJ/byte")
    crossed = nest.figures[f"traffic into {name}"].m_as("byte")
    assert nest.figures[f"energy into {name}"].m_as("pJ") == pytest.approx((price + inside) * crossed, rel=1e-9)


@pytest.mark.parametrize("device", [Hardware.Cloud.TPUv4, Hardware.Generic.TPU], ids=lambda device: device.id)
def test_the_systolic_model_pays_what_the_price_list_says(device: Device) -> None:
    product = gemm(256, 256, 256, "bf16")
    energies, machine = Energies.of(device), view(device)
    result = systolic(device, product)
    shape = machine.systolic_array
    assert shape is not None
    counts = count_systolic(256, 256, 256, shape.rows, shape.columns)
    off_chip = result.figures["DRAM bytes"].m_as("byte") * energies.byte(machine.main).value.m_as("pJ/byte")
    least = off_chip + counts.macs * energies.mac("bf16").value.m_as("pJ")
    assert least < result.figures["energy"].m_as("pJ") < 3 * least
    with perturbed("ENERGY_MUL_BF16_7NM_PJ", 2):
        dearer = systolic(device, product).figures["energy"].m_as("pJ")
    assert dearer - result.figures["energy"].m_as("pJ") == pytest.approx(0.21 * counts.macs, rel=1e-6)


def test_a_word_of_256_kib_costs_the_same_wherever_it_stands() -> None:
    size = Q_(256, "KiB")
    energies = Energies.of(Hardware.Generic.KPU)
    word = energies.sram(size).value.m_as("pJ")
    chip = Hardware.Generic.KPU.with_onchip(size)
    assert 4 * Energies.of(chip).byte(view(chip).level("Scratchpad")).value.m_as("pJ/byte") == pytest.approx(word)
    counts = count_systolic(64, 64, 64, 8, 8)
    assert energy_systolic(counts, energies=energies, buffer=size)["SRAM"].m_as("pJ") == pytest.approx(
        word * counts.sram.total
    )
    nest = hierarchy(chip, levels=1)
    beside = energies.dram(Technology.DRAM).value.m_as("pJ/byte")
    assert nest.prices[0] * 1e12 == pytest.approx(4 * beside + word)


@each_case
def test_no_model_reads_a_fact_twice(device: Device, precision: str) -> None:
    """Doubling a price doubles what it prices at most, and no energy more than doubles."""
    product = gemm(M, N, K, precision)

    def spent() -> list[float]:
        return [
            architecture(device, product).spent.m_as("J"),
            nest_cost(device, product, nest_of(device)).figures["energy"].m_as("J"),
        ]

    plain = spent()
    energies = Energies.of(device)
    facts = {
        fact.name
        for quantity in (
            energies.mac(precision).value,
            energies.register().value,
            *(energies.byte(level).value for level in view(device).levels if level.has("capacity")),
        )
        for fact in quantity.facts
        if fact.name.startswith("ENERGY_")
    }
    assert facts
    for name in facts:
        with perturbed(name, 2):
            for before, after in zip(plain, spent(), strict=True):
                assert after <= 2 * before * (1 + 1e-9), name


def test_a_device_without_a_node_is_priced_by_a_stated_one() -> None:
    device = Hardware.Generic.TPU
    stated = "none on record for Generic TPU: assumed"
    product = gemm(M, N, K, "bf16")
    for result in (
        architecture(device, product),
        nest_cost(device, product, nest_of(device)),
        systolic(device, product),
    ):
        assert any(stated in assumption for assumption in result.assumptions), result.model
    aged = dataclasses.replace(device, memory=FrozenDict(device.memory), _node=Hardware.Cloud.TPUv1._node)
    assert architecture(aged, product).energy["compute"] > architecture(device, product).energy["compute"]
