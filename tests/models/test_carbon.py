"""Emissions against ACT's own tests, published footprints and model cards, with their contradictions named."""

import random

import pytest

from mlsys import Hardware
from mlsys.errors import ArgumentError, UnknownNameError, UnrecordedError
from mlsys.formulas import embodied_share, facility_energy, operational_carbon
from mlsys.hardware import systems
from mlsys.models.carbon import (
    embodied,
    energy_use,
    fab_carbon_per_area,
    footprint,
    gco2e_per_million_tokens,
    kwh_per_million_tokens,
    operational,
    storage_carbon,
)
from mlsys.models.embodied import NODES
from mlsys.models.grid import grid_intensity
from mlsys.provenance import perturbed
from mlsys.units import Q_, Quantity, total

COAL = Q_(820, "gCO2e/kWh")
PERCENT = 0.01


def kilograms(quantity: Quantity) -> float:
    return float(quantity.m_as("kgCO2e"))


# facebookresearch/ACT@398de073, act/tests and act/boms; the last three by the same rule, from its tables.
PER_AREA = [
    (14, {}, 1556.686),
    (10, {"fab": COAL, "abatement": "95 %"}, 2228.0),
    (28, {"fab": COAL, "abatement": "95 %"}, 1614.857),
    (7, {}, 2318.2),
    (5, {}, 2778.0),
    (3, {}, 3162.6),
]


@pytest.mark.parametrize(("node", "options", "expected"), PER_AREA)
def test_emissions_per_area_are_those_of_act(node: int, options: dict[str, object], expected: float) -> None:
    got = fab_carbon_per_area(Q_(node, "nm"), **options)  # type: ignore[arg-type]
    assert got.m_as("gCO2e/cm**2") == pytest.approx(expected, rel=PERCENT / 10)


def test_a_logic_chip_is_that_of_the_unit_test_of_act() -> None:
    """10 nm, 145 mm², 95 % abated, yield 0.943543, one package."""
    per_area = fab_carbon_per_area(Q_(10, "nm"), abatement="95 %", fab_yield=0.943543)
    by_hand = (1.475 * 1.45 * 583 + 240 * 1.45 + 500 * 1.45) / 0.943543
    assert (per_area * Q_(145, "mm**2")).m_as("gCO2e") == pytest.approx(by_hand)


def test_the_server_of_act_is_reproduced() -> None:
    """Dell R740: eight SSDs, twelve DRAM modules, two CPUs of two dies at 28 nm."""
    disk = storage_carbon("SSD_NAND_30NM", Q_(3840, "GB"), packages=13)
    assert kilograms(disk * 8) == pytest.approx(8 * (136.0457 + 1.95), rel=PERCENT)
    memory = storage_carbon("DRAM_DDR3_50NM", Q_(36, "GB"), packages=19)
    assert kilograms(memory * 12) == pytest.approx(330.4286, rel=PERCENT)
    cpu = fab_carbon_per_area(Q_(28, "nm"), fab=COAL, abatement="95 %") * Q_(698, "mm**2") + Q_(300, "gCO2e")
    assert kilograms(cpu * 2) == pytest.approx(23.1434, rel=PERCENT)


def test_the_phone_of_act_is_reproduced() -> None:
    """Fairphone 3: a CPU of 46.4 mm², twenty other chips of 166.68 mm², 4 GB of DRAM, 64 GB of flash."""
    per_area = fab_carbon_per_area(Q_(28, "nm"), fab=COAL, abatement="95 %")
    package = Q_(150, "gCO2e")
    assert kilograms(per_area * Q_(46.4, "mm**2") + package) == pytest.approx(0.8993, rel=PERCENT)
    assert kilograms(per_area * Q_(166.68, "mm**2") + package * 20) == pytest.approx(5.6916, rel=PERCENT)
    stored = storage_carbon("DRAM_DDR3_50NM", Q_(4, "GB"), packages=1)
    flash = storage_carbon("SSD_NAND_30NM", Q_(64, "GB"), packages=1)
    assert kilograms(stored + flash) == pytest.approx(5.3103, rel=PERCENT)
    assert storage_carbon("DRAM_DDR4_10NM", Q_(3, "GB")).m_as("gCO2e") == pytest.approx(222.857, rel=1e-5)


def test_newer_nodes_and_dirtier_fabs_emit_more_per_area() -> None:
    by_node = [fab_carbon_per_area(Q_(node, "nm")).m for node in NODES]
    assert by_node == sorted(by_node)
    shares = [fab_carbon_per_area(Q_(7, "nm"), abatement=share).m for share in ("99 %", "97 %", "95 %")]
    assert shares == sorted(shares) and shares[1] == pytest.approx((shares[0] + shares[2]) / 2)
    assert fab_carbon_per_area(Q_(7, "nm"), fab="France").m < fab_carbon_per_area(Q_(7, "nm"), fab="Taiwan").m
    assert fab_carbon_per_area(Q_(7, "nm"), fab_yield=0.5).m == pytest.approx(
        2 * fab_carbon_per_area(Q_(7, "nm"), fab_yield=1).m
    )


@pytest.mark.parametrize("name", ["A100_80GB", "H100_SXM", "B200", "MI300X", "T4", "TPUv4", "RTX_4090", "Apple_M1"])
def test_parts_of_a_chip_sum_to_its_making_and_the_range_holds_it(name: str) -> None:
    made = embodied(Hardware[name])
    assert total(made.parts.values(), "gCO2e").m_as("gCO2e") == pytest.approx(made.total.m_as("gCO2e"))
    assert made.low <= made.total <= made.high
    assert 0.05 < kilograms(made.total) < 200


def test_the_chip_alone_is_less_than_the_product_that_its_maker_accounts_for() -> None:
    """ACT counts silicon, memory and package; NVIDIA's 164 kg and 284 kg hold board and heat sink too."""
    for name in ("H100_SXM", "B200", "A100_80GB"):
        assert embodied(Hardware[name]).high < embodied(Hardware[name], method="published").total
    eight = embodied(systems["DGX_H100"], method="published")
    assert kilograms(eight.total) == pytest.approx(1312)


# D. Patterson et al., arXiv:2104.10350, Table 4: chips, days, W, PUE, and MWh as printed.
PATTERSON = {
    "T5": (512, 20, 310, 1.12, 85.7),
    "Meena": (1024, 30, 289, 1.09, 232),
    "GShard": (1024, 3.1, 288, 1.09, 24.1),
    "Switch": (1024, 27, 245, 1.10, 179),
    "GPT-3": (10_000, 14.8, 330, 1.10, 1287),
}


@pytest.mark.parametrize("run", PATTERSON)
def test_energy_of_training_is_that_of_the_table(run: str) -> None:
    chips, days, watts, pue, printed = PATTERSON[run]
    energy = facility_energy(chips * Q_(watts, "W"), Q_(days, "day"), pue=pue)
    assert energy.m_as("MWh") == pytest.approx(printed, rel=PERCENT)


def test_gpt3_emitted_what_the_table_prints() -> None:
    """552.1 t for 1,287 MWh: 429 g/kWh, within a tenth of the average of the United States in 2019 and 2020."""
    implied = Q_(552.1, "tCO2e") / Q_(1287, "MWh")
    for year in (2019, 2020):
        assert operational(Q_(1287, "MWh"), "United States", year=year).m_as("tCO2e") == pytest.approx(552.1, rel=0.1)
    assert implied.m_as("gCO2e/kWh") == pytest.approx(429, rel=PERCENT)


def test_bloom_emitted_what_its_paper_prints() -> None:
    """1,082,990 A100-hours at 400 W; 24.7 t of the dynamic power at 57 g/kWh of the French grid."""
    energy = energy_use(Hardware.Cloud.A100, Q_(1_082_990, "hour"), pue=1.0)
    assert energy.m_as("kWh") == pytest.approx(433_196, rel=1e-5)
    assert operational(energy, Q_(57, "gCO2e/kWh")).m_as("tCO2e") == pytest.approx(24.7, rel=PERCENT)
    assert operational(energy, "France", year=2022).m_as("tCO2e") == pytest.approx(24.7, rel=0.4), "78.5 g/kWh in 2022"


def test_palm_drew_what_its_appendix_gives() -> None:
    energy = facility_energy(Q_(378.5, "W"), Q_(8_404_992, "hour"), pue=1.08)
    assert energy.m_as("MWh") == pytest.approx(3436, rel=PERCENT)


# meta-llama/llama-models@a9c89c4, MODEL_CARD.md: GPU-hours, W of TDP, t CO2e, and kg/kWh that the two imply.
LLAMA = {
    "Llama 2 7B": (184_320, 400, 31.22, 0.4234),
    "Llama 3 8B": (1.3e6, 700, 390, 0.4286),
    "Llama 3 70B": (6.4e6, 700, 1900, 0.4241),
    "Llama 3.1 8B": (1.46e6, 700, 420, 0.4110),
    "Llama 3.1 70B": (7.0e6, 700, 2040, 0.4163),
    "Llama 3.1 405B": (30.84e6, 700, 8930, 0.4137),
}


@pytest.mark.parametrize("model", LLAMA)
def test_llama_cards_count_tdp_hours_at_one_grid(model: str) -> None:
    hours, watts, tonnes, implied = LLAMA[model]
    energy = facility_energy(Q_(watts, "W"), Q_(hours, "hour"))
    assert operational_carbon(energy, Q_(implied * 1000, "gCO2e/kWh")).m_as("tCO2e") == pytest.approx(
        tonnes, rel=PERCENT
    )
    assert grid_intensity("United States", 2022).m_as("gCO2e/kWh") == pytest.approx(implied * 1000, rel=0.06)


def test_contradictions_of_the_llama_cards_are_still_there() -> None:
    """The card of 3.3 prints 12.9 t for the 7.0 million hours of 2,040 t in that of 3.1; Llama 2 lacks its 34B row."""
    energy = facility_energy(Q_(700, "W"), Q_(7.0e6, "hour"))
    assert 12.9 / operational_carbon(energy, Q_(416.3, "gCO2e/kWh")).m_as("tCO2e") < 0.01
    assert 3_311_616 - (184_320 + 368_640 + 1_720_320) == 1_038_336


def test_a_footprint_is_its_energy_and_its_share_of_the_making() -> None:
    rng = random.Random(19)
    for _ in range(20):
        used, pue, hours, years = rng.uniform(0.05, 1), rng.uniform(1, 2), rng.uniform(1, 5000), rng.uniform(1, 8)
        got = footprint(
            Hardware.Cloud.A100, Q_(hours, "hour"), grid="Poland", year=2023, utilisation=used, pue=pue,
            lifetime=Q_(years, "year"),
        )  # fmt: skip
        energy = 0.4 * hours * used * pue  # kWh, by hand
        made = embodied(Hardware.Cloud.A100).total.m_as("gCO2e")
        by_hand = energy * grid_intensity("Poland", 2023).m + made * hours / (years * 8766)
        assert got.total.m_as("gCO2e") == pytest.approx(by_hand)
        assert total(got.parts.values(), "gCO2e").m == pytest.approx(got.total.m)


def test_an_idle_machine_passes_its_making_on_to_fewer_tokens() -> None:
    rate = Q_(680, "token/s")
    full = gco2e_per_million_tokens(Hardware.Cloud.A100, rate, grid="France", year=2024)
    idle = gco2e_per_million_tokens(Hardware.Cloud.A100, rate, grid="France", year=2024, busy=0.25)
    assert idle.parts["operational"].m == pytest.approx(full.parts["operational"].m)
    assert idle.parts["embodied"].m == pytest.approx(4 * full.parts["embodied"].m)
    assert {"under load 25% of the time, and off for the rest", "in service for 4 years"} <= set(idle.assumptions)
    energy = kwh_per_million_tokens(Hardware.Cloud.A100, rate)
    assert full.parts["operational"].m == pytest.approx(energy.m * grid_intensity("France", 2024).m)


def test_over_a_whole_life_all_of_the_making_is_borne() -> None:
    life = Q_(4, "year")
    made = embodied(Hardware.Cloud.H100).total
    assert footprint(Hardware.Cloud.H100, life, lifetime=life).parts["embodied"].m_as("gCO2e") == pytest.approx(made.m)
    assert embodied_share(made, Q_(0, "hour"), life).m == 0


def test_answers_move_with_the_facts_that_they_name() -> None:
    made = embodied(Hardware.Cloud.H100)
    for name in ("ACT_EPA_5NM", "ACT_YIELD", "ACT_MPA", "ACT_DRAM_DDR4_10NM", "H100_SXM/chip/die_area"):
        assert name in {known.name for known in made.facts}, name
        with perturbed(name, 1.1):
            assert embodied(Hardware.Cloud.H100).total != made.total
    used = operational(Q_(1, "kWh"), "France", year=2024)
    assert [known.name for known in used.facts] == ["grid/France/2024"]


def test_bad_carbon_is_refused_in_one_line() -> None:
    with pytest.raises(ArgumentError, match="`pue` must be a finite number >= 1"):
        operational(Q_(1, "kWh"), "France", pue=0.9)
    with pytest.raises(ArgumentError, match="`node` must be one of 28, 20"):
        fab_carbon_per_area(Q_(6, "nm"))
    with pytest.raises(UnknownNameError, match="`abatement` must be one of"):
        fab_carbon_per_area(Q_(7, "nm"), abatement="90 %")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match=r"`technology` must be one of .*Did you mean 'DRAM_LPDDR4'"):
        storage_carbon("DRAM_LPDDR5", Q_(1, "GB"))
    with pytest.raises(UnrecordedError, match="no footprint of NVIDIA T4 is published; those of H100_SXM"):
        embodied(Hardware.Cloud.T4, method="published")
    with pytest.raises(ArgumentError, match="`utilisation` must be"):
        energy_use(Hardware.Cloud.T4, Q_(1, "hour"), utilisation=1.5)
    with pytest.raises(ArgumentError, match="`busy` must be"):
        gco2e_per_million_tokens(Hardware.Cloud.T4, Q_(1, "token/s"), busy=0)
