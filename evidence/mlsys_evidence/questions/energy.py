"""Energy of whole networks: what a board draws while it waits, and what launches, FLOP and bytes add.

The energy of a network has the shape of its time: each launch, FLOP and byte costs some, and a board
that draws a constant power spends in proportion to the time. So an energy is predicted as a time, at the
power of the machine, and the same parameters are fitted to it: they are then parts of a nominal
energy instead of parts of a peak.
"""

import math
from dataclasses import replace

from mlsys.calibration.case import Case, Inexpressible
from mlsys_evidence.typed_rows import TypedRow

_JOULES = {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6}
# Nominal power where a twin has none on record, W: of a board with a processor, the middle of four at work on ResNet-50
# (Raspberry Pi 4, Odroid N2+, Khadas VIM4 and RK3588S, 5.1 to 11.8 W at the wall, mlcommons/cm4mlperf-results@84d8b84);
# of a microcontroller, J for each cycle: 99 to 100 uA for each MHz at 3 V, as Zephyr's pages of the boards with an
# RA6M4 and an STM32L4R5 have from their makers (ek_ra6m4@00584ab, nucleo_l4r5zi@06758ff).
BOARD, MICROCONTROLLER = 7.6, 3e-10
# Times as much draws an inference, whose loops multiply and load in every cycle: the middle of five microcontrollers
# whose runs state energy and throughput (MLPerf Tiny; U575 1.15, RA6M4 and H7A3 1.22, L4R5 1.25, RX65N 1.44).
AT_WORK = 1.22
# Less where the core is fed by a switched regulator: 7.15 mA at 3.0 V and 160 MHz (STMicroelectronics DS13737 Rev 8,
# table 39, as a public design study quotes it).
SWITCHED = {"STM32U575": 7.15e-3 * 3.0 / 160e6}


def as_energy(row: TypedRow, timed: Case) -> Case:
    """Return the case of the energy of one inference.

    Parameters
    ----------
    row
        Whose value is an energy.
    timed
        The same inference, by its time.
    """
    if row.row.unit not in _JOULES:
        raise Inexpressible(f"{row.row.metric} in {row.row.unit} is not an energy")
    each_cycle = SWITCHED.get(timed.twin, MICROCONTROLLER)
    nominal = AT_WORK * each_cycle * timed.engine.clock if timed.setting.endswith("MCU") else BOARD
    power = nominal if math.isinf(timed.engine.power) else timed.engine.power
    seconds = row.row.value * _JOULES[row.row.unit] / power
    setting = timed.setting
    if timed.engine.computes_in == "int8":  # bytes draw less beside their time than FP32 does
        setting = setting.replace("mobile runtime network", "mobile runtime int8 network")
    # Arm NN draws a fifth less than TensorFlow Lite on the same boards, and works for a shorter time.
    setting = setting.replace("mobile runtime", "Arm NN") if row.has("Arm NN") else setting
    return replace(
        timed, row=row.row, kind="energy", setting=f"energy of {setting}", seconds=seconds, inverse=False, power=power
    )
