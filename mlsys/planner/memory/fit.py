"""Whether a network fits a device: activations in working memory, weights where the device stores them."""

from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.formatting import compact
from mlsys.hardware.device import Device
from mlsys.hardware.parts import MemoryLevel
from mlsys.planner.memory.plan import MemoryPlan
from mlsys.provenance import traced
from mlsys.unit_checks import check_types, checked_number, nonnegative
from mlsys.units import Quantity, total


@dataclass(frozen=True)
class MemoryFit:
    """Memory requirements of a network, and the memories of a device.

    Attributes
    ----------
    network, device
        Names.
    working_level, working, working_room
        Memory for the block of activations, the bytes needed, and its capacity.
    weight_level, weights, weight_room
        The same for weights; on most devices in the same memory, where both must fit together.
    reserved
        Working memory reserved for other uses.
    """

    network: str
    device: str
    working_level: str
    working: Quantity
    working_room: Quantity
    weight_level: str
    weights: Quantity
    weight_room: Quantity
    reserved: Quantity

    @property
    def shared(self) -> bool:
        """Whether weights and activations share one memory."""
        return self.working_level == self.weight_level

    @property
    def needed(self) -> Quantity:
        """Bytes needed in the working memory."""
        parts = (self.working, self.reserved, *((self.weights,) if self.shared else ()))
        return total(parts, "byte")

    @property
    def fits(self) -> bool:
        """Whether every memory is large enough."""
        return bool(self.needed <= self.working_room and (self.shared or self.weights <= self.weight_room))

    def explain(self) -> str:
        """Return the verdict with its numbers, in one or two sentences."""
        verdict = "fits" if self.fits else "does not fit"
        what = "activations and weights" if self.shared else "activations"
        lines = [
            f"{self.network} {verdict} {self.device}: {what} need {compact(self.needed)} of "
            f"{compact(self.working_room)} {self.working_level}"
        ]
        if not self.shared:
            lines.append(f"weights need {compact(self.weights)} of {compact(self.weight_room)} {self.weight_level}")
        return ", ".join(lines) + "."


@traced
@check_types(
    device=(Device, "a device, such as Hardware.Cloud.A100"),
    plan=(MemoryPlan, "what plan_memory returns"),
)
def fits_on(plan: MemoryPlan, device: Device, *, reserved: Quantity | None = None) -> MemoryFit:
    """Return whether activations, inputs and weights of a plan fit the memories of a device.

    Weights are stored in flash if the device has one on record, as on microcontrollers, which read them from there;
    otherwise they share the main memory with the activations.

    Parameters
    ----------
    plan
        A plan; its inputs need working memory whether it placed them or not.
    device
        A device whose main memory has a recorded capacity.
    reserved
        Working memory that the program itself needs; zero by default.

    Raises
    ------
    ArgumentError, ArgumentUnitError
        If the reserved amount is negative or not an amount of memory.
    UnknownNameError
        If the capacity is not recorded.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.planner.memory import plan_memory
    >>> from mlsys.workloads import relu
    >>> from mlsys.workloads.graph import OperatorGraph, Value
    >>> y = Value("y", "made", 200_000, producer=0, output=True)
    >>> plan = plan_memory(OperatorGraph("one rectifier", (relu(100_000),), (y,)))
    >>> fits_on(plan, Hardware.Tiny.nRF52840).fits, fits_on(plan, Hardware.Tiny.nRF5340).fits
    (True, True)
    """
    if not isinstance(device, Device):
        raise ArgumentError(
            f"fits_on(): `device` must be a Device, got {type(device).__name__}. Write e.g. device=Hardware.Cloud.A100"
        )
    zero = plan.peak * 0
    extra = zero if reserved is None else reserved
    checked_number("fits_on", "reserved", extra, nonnegative("byte"), {})
    main = device.level()
    flash = next((level for level in device.memory.values() if "flash" in level.kind.lower()), None)
    holds_weights: MemoryLevel = main if flash is None else flash
    return MemoryFit(
        plan.network,
        device.name,
        main.name,
        plan.peak + plan.inputs,
        main.capacity_total.to("byte"),
        holds_weights.name,
        plan.weights,
        holds_weights.capacity_total.to("byte"),
        extra.to("byte"),
    )
