"""Rows of a file that are read as they stand, and cannot be meant so."""

import math
from collections.abc import Sequence

from mlsys.hardware import Hardware
from mlsys.models.calibrated import Stack
from mlsys.validation.bounds import least_times
from mlsys.validation.cases import Case, Inexpressible, interpret
from mlsys.validation.rows import Row

# What published rows call a machine, by the kind of its twin.
_CLASSES = {
    "GPU": ("datacenter GPU", "consumer GPU", "edge SoC"),
    "CPU": ("CPU", "edge SoC"),
    "NPU": ("NPU", "TPU-like", "edge SoC"),
    "TPU": ("TPU-like", "NPU"),
    "SoC": ("edge SoC", "CPU", "NPU"),
    "MCU": ("MCU",),
}
# No clock, cache or fast algorithm makes a kernel so many times faster than its bound, nor software so much slower.
FASTER, SLOWER = 10.0, 1000.0


def check_classes(rows: Sequence[Row], where: str) -> None:
    """Refuse rows whose class of machine is none, or is not that of their device.

    Raises
    ------
    ValueError
        Naming the file, the line, what was given and what the device is.
    """
    for line, row in enumerate(rows, start=2):
        try:
            kind = Hardware[interpret(row).twin].kind
        except Inexpressible:
            continue
        wanted = _CLASSES.get(kind)
        if wanted and row.device_class not in wanted:
            raise ValueError(
                f"{where}: line {line}: `device_class` {row.device_class!r} is not that of {row.device}, "
                f"a {kind}: write {' or '.join(wanted)}"
            )


def check_times(cases: Sequence[Case], expected: Sequence[float], where: str) -> None:
    """Refuse measurements that no machine of that kind can have made: mostly a wrong unit.

    Parameters
    ----------
    cases
        Of the lines from the second on.
    expected
        Estimated, seconds.
    where
        The file.

    Raises
    ------
    ValueError
        If a row has no work, or its time is far below the bound, or a thousand times what is expected.
    """
    arithmetic, traffic = least_times(cases, Stack.of([(case.engine, case.work, case.stays) for case in cases]))
    for line, (case, usual) in enumerate(zip(cases, expected, strict=True), start=2):
        told = f"{where}: line {line}: {case.row.value:g} {case.row.unit}"
        least = 0.0 if case.power else max(float(arithmetic[line - 2]), float(traffic[line - 2]))
        if not (0 < case.seconds < math.inf and 0 < usual < math.inf):
            raise ValueError(f"{told}: there is nothing to do in `seq_or_shape` {case.row.seq_or_shape!r}")
        if case.seconds < least / FASTER:
            raise ValueError(
                f"{told} would take {least / case.seconds:.0f} times less than the least time that "
                f"{case.row.device} needs for it. Is the unit right, and the size?"
            )
        if case.seconds > usual * SLOWER:
            raise ValueError(
                f"{told} is {case.seconds / usual:.0f} times what is expected of it. Is the unit right, and the size?"
            )
