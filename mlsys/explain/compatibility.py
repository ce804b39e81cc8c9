"""How well a network and a device go together: gates that nothing makes up for, then deductions that are listed."""

from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.hardware.device import Device

WEIGHTS = {"nearly full": 20, "unsupported operator": 10, "below the ridge": 15, "batch on a microcontroller": 10}
"""Points that each finding takes off a hundred; a choice, not a measurement."""
_NEARLY, _FAR = 0.9, 0.5


@dataclass(frozen=True)
class Compatibility:
    """Points from 0 to 100, and every reason for a deduction; 0 where a gate is shut."""

    points: int
    reasons: tuple[str, ...]


def compatibility(
    device: Device, precision: str, *, memory_kb: float, available_kb: float, intensity: float,
    unsupported: int = 0, batch: int = 1, weights: dict[str, int] | None = None,
) -> Compatibility:  # fmt: skip
    """Return how well a network goes with a device.

    Parameters
    ----------
    device, precision
        A twin, and the number format of the network: one that the device has no arithmetic for shuts the gate.
    memory_kb, available_kb
        What the network needs and what there is; more shuts the gate.
    intensity
        Operations for each byte. Below half of the ridge the arithmetic waits for memory; above it nothing is lost.
    unsupported
        Operators that must run elsewhere.
    batch
        Inputs at once.
    weights
        In place of :data:`WEIGHTS`.

    Raises
    ------
    ArgumentError
        If an amount is out of its range.

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
            f"compatibility(): `unsupported` must be from 0 and `batch` from 1, got {unsupported}, {batch}"
        )
    gates = []
    if precision not in device.precisions:
        gates.append(f"{device.name} has no {precision} arithmetic: it has {', '.join(device.precisions)}")
    if memory_kb > available_kb:
        gates.append(f"it needs {memory_kb:g} kB and there are {available_kb:g}")
    if gates:
        return Compatibility(0, tuple(gates))
    points, reasons, costs = 100, [], weights or WEIGHTS
    ridge = float(device.ridge_point(precision).m_as("FLOP/byte"))
    findings = (
        ("nearly full", int(memory_kb > _NEARLY * available_kb), f"{memory_kb / available_kb:.0%} of the memory"),
        ("unsupported operator", unsupported, f"{unsupported} operators run elsewhere"),
        (
            "below the ridge",
            int(intensity < _FAR * ridge),
            f"{intensity:.3g} operations for each byte, ridge {ridge:.3g}",
        ),
        ("batch on a microcontroller", int(device.kind == "MCU" and batch > 1), f"a batch of {batch}"),
    )
    for name, times, words in findings:
        if times:
            points -= costs[name] * times
            reasons.append(f"−{costs[name] * times}, {name}: {words}")
    return Compatibility(max(points, 0), tuple(reasons))
