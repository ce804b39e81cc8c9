"""Instructions per cycle of microcontroller cores, and results requantised at a time."""

import re
from collections.abc import Callable

from mlsys.hardware.view import MachineView
from mlsys.provenance import as_recorded

# Operations per cycle below which a microcontroller's cores do the multiplications: vectors of a Cortex-M85 or an
# ESP32-S3 do 16 to 32 on bytes, the convolution unit next to the cores of a K210 hundreds.
WIDEST_CORE = 64.0
# Instructions that cores of microcontrollers issue each cycle, by a pattern of their architecture; others one. Two:
# llvm/llvm-project, llvm/lib/Target/ARM/ARMScheduleM7.td@6a55533 and ARMScheduleM85.td, IssueWidth = 2. Of the
# Cortex-M0+ a load takes two cycles, and two of three instructions beside a multiplication are loads. A Cortex-M33 runs
# two at once where both have 16 bits, and loads in one cycle: Arm's CoreMark of it and of the Cortex-M4, 4.02 and 3.40
# each MHz (NXP AN12284, introduction).
ISSUED = ((r"Cortex-M(7|85)\b", 2.0), (r"Cortex-M0\b", 3 / 5), (r"Cortex-M33\b", 4.02 / 3.40))
# Bytes that Helium requantises and stores at a time: four in a vector (ARM-software/CMSIS-NN, arm_nnsupportfunctions.h,
# arm_requantize_mve), which takes two beats, a cycle each (Arm, recalled). An ESP32-S3 has no vectors of such products.
REQUANTISED = ((r"Helium", 2.0),)


def instructions(machine: MachineView, matmul: Callable[[], float]) -> float:
    """Return the instructions per cycle of each core, for microcontrollers whose cores do the multiplications.

    Parameters
    ----------
    machine
        The machine; 0 is returned for other machines, and for arrays of multipliers next to the cores.
    matmul
        Function that reads the rate of its products, FLOP/s.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware import view
    >>> rates = {"STM32H7A3": 1.12e9, "K210": 9.2e11}  # of bytes
    >>> [instructions(view(Hardware[name], "int8"), lambda rate=rate: rate) for name, rate in rates.items()]
    [2.0, 0.0]
    """
    if machine.device.kind != "MCU":
        return 0.0
    with as_recorded():
        units = machine.require("units") if machine.has("units") else 1.0
        alone = matmul() < WIDEST_CORE * units * machine.require("clock")
    issued = (rate for core, rate in ISSUED if re.search(core, machine.device.architecture))
    return next(issued, 1.0) if alone else 0.0


def requantised_at_once(machine: MachineView, bits: float) -> float:
    """Return the number of results of the given width that a core requantises at a time.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.hardware import view
    >>> [requantised_at_once(view(Hardware[name], "int8"), 8) for name in ("Apollo510", "STM32H7A3")]
    [2.0, 1.0]
    """
    several = (each for core, each in REQUANTISED if bits <= 8 and re.search(core, machine.device.architecture))
    return next(several, 1.0)
