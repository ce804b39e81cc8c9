"""Memory requirement of a network compared with the capacity of a device."""

from __future__ import annotations

from dataclasses import dataclass

from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.precision import element_size
from mlsys.provenance import unrecorded
from mlsys.units import Q_, Quantity
from mlsys.workloads.arrays import KINDS
from mlsys.workloads.operator import DECODE, Network
from mlsys.workloads.workload import Workload


@dataclass(frozen=True)
class MemoryNeed:
    """Least memory that a network needs, and the capacity of the device.

    Attributes
    ----------
    needed
        All weights as they are stored, the values of the fullest operator, and the keys, values and recurrent states
        that a step of decoding leaves; byte.
    capacity
        Capacity of the main memory, byte; None where none is on record, and for microcontrollers, which keep weights in
        flash: see ``mlsys edge arena``.
    """

    needed: Quantity
    capacity: Quantity | None

    @property
    def fits(self) -> bool | None:
        """Whether the network fits; None where the capacity is unknown."""
        return None if self.capacity is None else bool(self.needed <= self.capacity)

    def __str__(self) -> str:
        needed = f"needs at least {self.needed.to_compact():.4g}"
        if self.capacity is None:
            return needed
        room = f"{needed}, {self.capacity.to_compact():.4g} available"
        return room if self.fits else f"{room}: does not fit; the times assume that it does"


def memory_need(network: Network, device: Device, precision: str, loaded: Network | None = None) -> MemoryNeed:
    """Return what a network needs with its values in one precision, beside what the device has.

    Parameters
    ----------
    network
        The kernels that run.
    device
        The device.
    precision
        Number format of values, and of weights except those of a decoder that are stored otherwise.
    loaded
        The network before fusion, which knows whether it is a decoder; by default ``network``.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import zoo
    >>> print(memory_need(zoo.network("resnet50"), Hardware.Cloud.T4, "fp16"))
    needs at least 53.52 MB, 16 GB available
    """
    size = element_size(precision).m_as("byte")
    arrays = network.arrays
    values = (arrays.data - arrays.weights) * size / element_size(network.precision).m_as("byte")
    kept = (arrays.kind == KINDS.index("attention")) & (network.kind == DECODE)
    most = values[~kept].max(initial=0.0) + (values * arrays.repeats)[kept].sum()
    needed = _weights(network if loaded is None else loaded, size) + float(most)
    with unrecorded():  # printed next to the times, which do not depend on it
        main = view(device).main
        is_known = device.kind != "MCU" and main.has("capacity")
        return MemoryNeed(Q_(needed, "byte"), main.quantity("capacity") if is_known else None)


def _weights(network: Network, size: float) -> float:
    """Return the bytes of all weights, in their own format where a decoder has one, and of recurrent states."""
    decoder = network.decoder if isinstance(network, Workload) else None
    parameters: float = network.parameters.m_as("param") * size
    if decoder is None:
        return parameters
    stored = decoder.quantization
    weights = parameters if stored is None else stored.weight_bytes(decoder, 8 * size)
    states = network.state_bytes if network.kind == DECODE and isinstance(network, Workload) else None
    return weights + (0.0 if states is None else float(states.m_as("byte")))
