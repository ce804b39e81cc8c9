"""``mlsys.memory``: one memory block for all activations of a network, and whether it fits a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.api.arguments import NetworkRequest, device_of
from mlsys.choices import PackingStrategy, Phase
from mlsys.errors import ArgumentError
from mlsys.hardware.device import Device
from mlsys.mapping.fusion import FusedWorkload, fuse
from mlsys.models.record import with_units
from mlsys.planner.memory import MemoryFit, MemoryPlan, OperatorOrder, fits_on, plan_memory
from mlsys.planner.memory import lean_order as find_lean_order
from mlsys.units import Quantity
from mlsys.workloads.used_sizes import sizes_in_words, sizes_used
from mlsys.workloads.workload import Workload


@dataclass(frozen=True)
class MemoryUse:
    """Placement of every activation of a network, and whether it fits a device.

    Attributes
    ----------
    network
        The network as loaded, before fusion.
    plan
        The placement of each buffer.
    order
        An operator order that needs less memory; None if not requested.
    device, fit
        The device to check, and the result; None if no device is named.
    """

    network: Workload
    plan: MemoryPlan
    order: OperatorOrder | None = None
    device: Device | None = None
    fit: MemoryFit | None = None

    def rows(self) -> list[dict[str, Any]]:
        """Return one row of plain data per buffer."""
        steps = self.plan.liveness.steps
        return [
            {
                "values": " ".join(placement.values),
                "offset": placement.offset,
                "bytes": placement.bytes,
                "first_step": placement.first,
                "last_step": placement.last,
                "first": steps[placement.first],
                "last": steps[placement.last],
            }
            for placement in self.plan.placements
        ]

    def record(self) -> dict[str, Any]:
        """Return the record printed by ``mlsys memory --json``."""
        plan, order, fit = self.plan, self.order, self.fit
        record: dict[str, Any] = {
            "model": plan.network,
            **sizes_used(self.network),
            "strategy": plan.strategy,
            "alignment": plan.alignment,
            "in_place": plan.liveness.in_place,
            "inputs_planned": plan.liveness.inputs,
            "peak_bytes": int(plan.peak.m_as("byte")),
            "lower_bound_bytes": int(plan.lower_bound.m_as("byte")),
            "sum_bytes": int(plan.sum.m_as("byte")),
            "gap": plan.gap,
            "proved": plan.proved,
            "weight_bytes": int(plan.weights.m_as("byte")),
            "input_bytes": int(plan.inputs.m_as("byte")),
            "live_bytes": list(plan.live),
            "buffers": self.rows(),
        }
        if order is not None:
            record["order"] = {
                "operators": list(order.order),
                "largest_live_bytes": int(order.largest_live.m_as("byte")),
                "before_bytes": int(order.before.m_as("byte")),
                "proved": order.proved,
            }
        if fit is not None:
            record["fit"] = {
                "device": fit.device,
                "fits": fit.fits,
                "working_memory": fit.working_level,
                "needed_bytes": int(fit.needed.m_as("byte")),
                "room_bytes": int(fit.working_room.m_as("byte")),
                "weight_memory": fit.weight_level,
                "weight_room_bytes": int(fit.weight_room.m_as("byte")),
            }
        return with_units(record)

    def explain(self, largest: int = 8) -> str:
        """Return the plan, the order, the fit and the sizes, as text.

        Parameters
        ----------
        largest
            Number of buffers listed.
        """
        lines = [self.plan.explain(largest)]
        if self.order is not None:
            lines.append(
                f"\nExecution order: at most {self.order.largest_live.to_compact():.4g~P} live at once, "
                f"{self.order.before.to_compact():.4g~P} in the network's order"
                f"{'; no order needs less' if self.order.proved else ''}."
            )
        if self.fit is not None:
            lines.append("\n" + self.fit.explain())
        return "\n".join([*lines, f"\n{sizes_in_words(self.network)}"])


def memory(
    network: Workload | str | Path,
    *,
    device: Device | str | None = None,
    batch: int | None = None,
    sequence: int | None = None,
    image: int | None = None,
    phase: Phase | None = None,
    precision: str | None = None,
    strategy: PackingStrategy = "best",
    alignment: Quantity | None = None,
    fusion: bool = False,
    in_place: bool = False,
    inputs: bool = False,
    lean_order: bool = False,
    sizes: Mapping[str, int] | None = None,
    shape: tuple[int, ...] | None = None,
    option: str = "`{}`",
) -> MemoryUse:
    """Return a placement of a network's activations in one block, as the command ``mlsys memory`` does.

    Parameters
    ----------
    network
        A captured network, or anything that :func:`mlsys.workloads.load` accepts.
    device
        A device, or its name, to check the capacity of.
    batch, sequence, image, phase, precision, sizes, shape, option
        As for :func:`mlsys.workloads.load`.
    strategy, alignment, in_place, inputs
        As for :func:`mlsys.plan_memory`.
    fusion
        Whether to plan for fused kernels, whose intermediates need no memory.
    lean_order
        Whether to search for an operator order that needs less memory.

    Returns
    -------
    MemoryUse
        Its ``record()`` is printed by ``mlsys memory --json``.

    Raises
    ------
    UnknownNameError
        If the device, network, number format or strategy is unknown.
    ArgumentError
        If the network has no graph, or an argument does not apply to it.

    Examples
    --------
    >>> use = memory("mobilenet-v2", device="nRF52840", fusion=True, precision="int8")
    >>> use.fit.fits, use.plan.proved
    (False, True)
    """
    twin = None if device is None else device_of(device)
    loaded = NetworkRequest(batch, sequence, image, phase, precision, sizes, shape, option).network(network)
    if not isinstance(loaded, Workload):
        raise ArgumentError(
            f"memory(): `network` must be a captured network, got {loaded.name!r}, whose operators were built by hand "
            "without edges. Write e.g. memory('resnet50') or Workload.from_torch(module, inputs)"
        )
    graphed = loaded.captured()
    planned = fuse(graphed) if fusion and not isinstance(graphed, FusedWorkload) else graphed
    order = find_lean_order(planned) if lean_order else None
    plan = plan_memory(
        planned,
        strategy=strategy,
        alignment=alignment,
        order=None if order is None else order.order,
        in_place=in_place,
        inputs=inputs,
    )
    return MemoryUse(graphed, plan, order, twin, None if twin is None else fits_on(plan, twin))
