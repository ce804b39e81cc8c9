"""Laws fitted and ratios computed, against numbers that were put in, printed or worked out elsewhere."""

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.measure.counters import counter_ratios
from mlsys.measure.energy.model import EnergySample, fit_energy
from mlsys.measure.networks.chains import Layer
from mlsys.measure.recommend.compatibility import WEIGHTS, compatibility


def test_intensity_counts_both_operations_and_all_bytes() -> None:
    """56×56×64 → 128 by 3×3 in FP32: 231.2 MFLOP over 1.35 MB are 171 FLOP/byte, not 288 and not 210.6."""
    layer = Layer(
        "conv", "conv", (56, 56, 64), (56, 56, 128), (3, 3), weight=np.zeros((128, 3, 3, 64)), bias=np.zeros(128)
    )
    work = layer.work(4)
    assert work.flops == 2 * 56 * 56 * 128 * 64 * 9
    assert work.intensity == pytest.approx(171.0, rel=1e-3)


def test_ratios_of_counters() -> None:
    result = counter_ratios(
        {
            "cycles": 1000, "instructions": 1500, "L1-dcache-loads": 400, "L1-dcache-load-misses": 40, "LLC-loads": 30,
            "LLC-load-misses": 3, "branches": 100, "branch-misses": 5,
        }, 1e-6,
    )  # fmt: skip
    assert result["ipc"] == 1.5
    assert result["l1_miss_rate"] == result["llc_miss_rate"] == pytest.approx(0.1)
    assert result["branch_accuracy"] == pytest.approx(0.95)
    assert result["bytes_per_s"] == pytest.approx(3 * 64 / 1e-6)  # misses, not the 30 loads
    assert set(counter_ratios({}, 1).values()) == {None}
    assert counter_ratios({"L1-dcache-loads": 0, "L1-dcache-load-misses": 0}, 1)["l1_miss_rate"] is None
    with pytest.raises(ValueError, match="more misses than events"):
        counter_ratios({"branches": 1, "branch-misses": 2}, 1)
    with pytest.raises(ValueError, match="`seconds` must be above 0"):
        counter_ratios({}, 0)


def made(static: float, cycle: float, access: float, noise: float = 0.0) -> list[EnergySample]:
    draw = np.random.default_rng(9)
    errors = []
    for _ in range(30):
        time, cycles, accesses = draw.uniform(1, 100), draw.uniform(1e4, 1e7), draw.uniform(1e3, 1e6)
        energy = static * time * 1e-3 + 1e-6 * (cycle * cycles + access * accesses)
        errors.append(EnergySample(time, cycles, accesses, energy * (1 + noise * draw.standard_normal())))
    return errors


def test_the_law_that_was_put_in_comes_out() -> None:
    energies = fit_energy(made(30.0, 2.0, 7.0))
    assert (energies.static_mw, energies.cycle_nj, energies.access_nj) == pytest.approx((30.0, 2.0, 7.0))
    assert energies.held_out < 1e-9
    assert energies.energy(10, 1e6, 1e5) == pytest.approx(0.3 + 2.0 + 0.7)


def test_noise_shows_in_the_error_of_what_was_left_out_and_no_part_is_negative() -> None:
    energies = fit_energy(made(30.0, 2.0, 0.0, noise=0.1))
    assert 0.04 < energies.held_out < 0.15
    assert min(energies.static_mw, energies.cycle_nj, energies.access_nj) >= 0


def test_too_few_or_wrong_samples() -> None:
    with pytest.raises(ValueError, match="at least four"):
        fit_energy(made(1, 1, 1)[:3])
    with pytest.raises(ValueError, match=r"`samples\[1\]`"):
        fit_energy([EnergySample(1, 1, 1, 1), EnergySample(1, 1, 1, 0), *made(1, 1, 1)[:3]])


CHIP = Hardware.Tiny.STM32L4R5


def test_gates_are_hard() -> None:
    """A Cortex-M4 has no FP16 arithmetic, whatever its FPU is set to; and what does not fit does not run."""
    result = compatibility(CHIP, "fp16", memory_kb=200, available_kb=100, intensity=5)
    assert result.points == 0 and len(result.reasons) == 2
    assert (
        compatibility(CHIP, "int8", memory_kb=100, available_kb=100, intensity=5).points == 100 - WEIGHTS["nearly full"]
    )


def test_high_intensity_is_no_fault_and_low_is() -> None:
    ridge = CHIP.ridge_point("int8").m_as("FLOP/byte")
    assert compatibility(CHIP, "int8", memory_kb=1, available_kb=100, intensity=50 * ridge).points == 100
    assert compatibility(CHIP, "int8", memory_kb=1, available_kb=100, intensity=0.4 * ridge).points == 85
    result = compatibility(CHIP, "int8", memory_kb=1, available_kb=100, intensity=9, unsupported=11, batch=4)
    assert result.points == 0 and "−110" in result.reasons[0] and "−10" in result.reasons[1]
    weights = {**WEIGHTS, "batch on a microcontroller": 3}
    mine = compatibility(CHIP, "int8", memory_kb=1, available_kb=9, intensity=9, batch=2, weights=weights)
    assert mine.points == 97
    with pytest.raises(ValueError, match="`memory_kb` must be above 0"):
        compatibility(CHIP, "int8", memory_kb=0, available_kb=1, intensity=1)
