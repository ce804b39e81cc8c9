"""Compatibility score of a network and a device: hard requirements, then a list of deductions."""

from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.hardware.device import Device

WEIGHTS = {"nearly full": 20, "unsupported operator": 10, "below the ridge": 15, "batch on a microcontroller": 10}
"""Points that each finding deducts from 100; a choice, not a measurement."""
_NEARLY, _FAR = 0.9, 0.5


@dataclass(frozen=True)
class Compatibility:
    """Points from 0 to 100, and the reason of every deduction; 0 if a hard requirement fails."""

    points: int
    reasons: tuple[str, ...]


def compatibility(
    device: Device, precision: str, *, memory_kb: float, available_kb: float, intensity: float,
    unsupported: int = 0, batch: int = 1, weights: dict[str, int] | None = None,
) -> Compatibility:  # fmt: skip
    """Return the compatibility score of a network and a device.

    Parameters
    ----------
    device, precision
        A device, and the number format of the network: a hard requirement.
    memory_kb, available_kb
        Memory needed and memory available; a hard requirement.
    intensity
        Operations per byte. Below half of the ridge points are deducted, since arithmetic waits for memory.
    unsupported
        Operators that must run on another processor.
    batch
        Inputs per inference.
    weights
        Weights to use instead of :data:`WEIGHTS`.

    Raises
    ------
    ArgumentError
        If a value is out of its range.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> chip = Hardware.Tiny.STM32L4R5
    >>> compatibility(chip, "fp16", memory_kb=10, available_kb=100, intensity=5).reasons
    ('STMicroelectronics STM32L4R5 has no fp16 arithmetic: it has fp32, int8',)
    """
    for name, value in (("memory_kb", memory_kb), ("available_kb", available_kb), ("intensity", intensity)):
        if not 0 < value < float("inf"):
            raise ArgumentError(f"compatibility(): `{name}` must be above 0, got {value!r}. Write e.g. {name}=100")
    if unsupported < 0 or batch < 1:
        raise ArgumentError(
            f"compatibility(): `unsupported` must be at least 0 and `batch` at least 1, got {unsupported}, {batch}"
        )
    gates = []
    if precision not in device.precisions:
        gates.append(f"{device.name} has no {precision} arithmetic: it has {', '.join(device.precisions)}")
    if memory_kb > available_kb:
        gates.append(f"it needs {memory_kb:g} kB, and {available_kb:g} are available")
    if gates:
        return Compatibility(0, tuple(gates))
    points, reasons, costs = 100, [], weights or WEIGHTS
    ridge = float(device.ridge_point(precision).m_as("FLOP/byte"))
    findings = (
        ("nearly full", int(memory_kb > _NEARLY * available_kb), f"{memory_kb / available_kb:.0%} of the memory"),
        ("unsupported operator", unsupported, f"{unsupported} operators run elsewhere"),
        ("below the ridge", int(intensity < _FAR * ridge), f"{intensity:.3g} operations per byte, ridge {ridge:.3g}"),
        ("batch on a microcontroller", int(device.kind == "MCU" and batch > 1), f"a batch of {batch}"),
    )
    for name, times, words in findings:
        if times:
            points -= costs[name] * times
            reasons.append(f"−{costs[name] * times}, {name}: {words}")
    return Compatibility(max(points, 0), tuple(reasons))
