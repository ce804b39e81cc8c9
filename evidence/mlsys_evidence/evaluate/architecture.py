"""How far the architecture models are from published times: nothing is fitted, so they should lie below."""

from dataclasses import dataclass, replace

import numpy as np

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.rows import Row
from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.hardware import Hardware
from mlsys.models.architecture import ArchitectureResult, architecture
from mlsys.provenance import Step, recording, remembered, unrecorded, used_facts
from mlsys.provenance.trace import TracedFloat
from mlsys.units import Quantity, ureg
from mlsys.workloads import zoo
from mlsys_evidence.questions import interpret, kind_of, typed
from mlsys_evidence.questions.networks import shape_of
from mlsys_evidence.rows import shipped_rows
from mlsys_evidence.typed_rows import TypedRow

_SECOND = ureg.Unit("s")


@dataclass(frozen=True)
class ArchitectureCheck:
    """One published time beside the model's.

    Attributes
    ----------
    row
        As published.
    setting
        Kind of software on the class of machine.
    measured
        Seconds of one pass.
    result
        What the model says of it.
    noted
        Whether a page that uses it lists the facts of the device.
    """

    row: Row
    setting: str
    measured: Quantity
    result: ArchitectureResult
    noted: bool = False

    @property
    def ratio(self) -> float:
        """Modelled over measured time; below one, the machine took longer than the model asks for."""
        return float((self.result.time / self.measured).m_as(""))


def architecture_checks(*settings: str, noted: bool = False) -> tuple[ArchitectureCheck, ...]:
    """Return every shipped time of a whole network that the architecture models can speak about.

    Rows are left out whose network, device or number format the models lack, and those of a part of
    a machine; TF32 is left out because the rows do not say when it was used.

    Parameters
    ----------
    settings
        Kinds of software on a class of machine, such as ``"compiled network on GPU"``; by default all.
    noted
        Whether a page that calls this lists the facts of every device that was measured: where they are few.

    Examples
    --------
    >>> checks = architecture_checks("compiled network on TPU")
    >>> all(check.ratio < 1 for check in checks), len(checks)
    (True, 4)
    """
    with recording() if noted else unrecorded():
        checks = _checks(settings)
    return tuple(replace(check, noted=True) for check in checks) if noted else checks


@remembered
def _checks(settings: tuple[str, ...]) -> tuple[ArchitectureCheck, ...]:
    checks: list[ArchitectureCheck] = []
    for row in shipped_rows():
        known = typed(row)
        if kind_of(row) != "network inference" or "threads" in known.numbers or not _may_be(known, settings):
            continue
        try:
            case = interpret(row)
            if settings and case.setting not in settings:
                continue
            name, fmt, device = zoo.resolve(known.network), known.format, Hardware[case.twin]
            shape = shape_of(known)
            if name is None or fmt.vector_unit or fmt.computes == "tf32" or "width" in shape:
                continue
            modelled = _modelled(device.id, name.name, fmt.computes, known.samples(), tuple(sorted(shape.items())))
        except (ArgumentError, UnknownNameError, Inexpressible):
            continue
        checks.append(ArchitectureCheck(row, case.setting, ureg.Quantity(case.seconds, _SECOND), modelled))
    return tuple(checks)


@remembered
def _modelled(
    device: str, name: str, precision: str, batch: int, shape: tuple[tuple[str, int], ...]
) -> ArchitectureResult:
    """Return a network on a machine: under a what-if only machines that read the changed fact are predicted again."""
    network = zoo.network(name, precision=precision, batch=batch, **dict(shape))  # type: ignore[arg-type]
    return architecture(Hardware[device], network)


def _may_be(row: TypedRow, settings: tuple[str, ...]) -> bool:
    """Return whether a row may be of one of the settings, before its network is built: they begin with its software."""
    software = row.software  # some rows of Vulkan turn out to be of the runtime that calls it
    return not settings or software == "vulkan" or any(setting.startswith(software) for setting in settings)


def median_ratio(checks: tuple[ArchitectureCheck, ...]) -> float:
    """Return the median of modelled over measured time; it knows the facts of checks that are noted.

    Those of the one or two in the middle set it, the others are compared.
    """
    if not checks:
        raise ArgumentError(
            "median_ratio(): `checks` must have at least one entry, got none. "
            'Write e.g. checks=architecture_checks("compiled network on GPU")'
        )
    ordered = sorted(checks, key=lambda check: check.ratio)
    ratio = TracedFloat(np.median([check.ratio for check in ordered]))
    if all(check.noted for check in checks):
        middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
        times, every = [check.result.time for check in middle], [check.result.time for check in ordered]
        sets = [fact for time in times if time.origin is not None for fact in time.origin.sets()]
        ratio._origin = Step.from_facts("median_ratio", {"checks": f"{len(checks)} values"}, sets, used_facts(*every))
    return ratio
