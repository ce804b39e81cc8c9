"""``mlsys.mapper``: the best tiling and loop order of a network's products."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.amounts import parsed_whole
from mlsys.api.arguments import NetworkRequest, device_of
from mlsys.choices import Objective, Phase
from mlsys.deadline import Deadline
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.faults import short
from mlsys.hardware.device import Device
from mlsys.models.record import with_units
from mlsys.planner.mapper import MappedLayer, best_mapping
from mlsys.workloads import gemm
from mlsys.workloads.operator import Network, Operator
from mlsys.workloads.used_sizes import sizes_in_words

_SHOWN = 60  # layers listed in an error


@dataclass(frozen=True)
class MappedLayers:
    """Mappings of some layers to a device.

    Attributes
    ----------
    layers
        The mapping of each layer, in order.
    sizes
        Sizes of their network, in words.
    """

    layers: tuple[MappedLayer, ...]
    sizes: str

    def record(self) -> list[dict[str, Any]]:
        """Return the records printed by ``mlsys mapper --json``: one per layer."""
        return [with_units(layer.record() | {"network": self.sizes}) for layer in self.layers]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row of plain data per layer."""
        return [
            {
                "layer": item.space.name,
                "device": item.chip.name,
                "objective": item.objective,
                "proven": item.proven,
                "gap": item.gap,
                "words": item.words[0],
                "bound": item.bound,
                "ratio": item.ratio,
                "seconds": item.result.time.m_as("s"),
                "joules": item.result.figures["energy"].m_as("J"),
                "bound_by": item.result.bound_by,
                "tiles": "; ".join(f"{v.memory} {'x'.join(map(str, v.tile.values()))}" for v in item.nest.levels),
            }
            for item in self.layers
        ]

    def explain(self) -> str:
        """Return a single mapping in full, or one line for each of several, as text."""
        if len(self.layers) == 1:
            return self.layers[0].explain()
        lines = []
        for item in self.layers:
            energy, time = item.result.figures["energy"].to("mJ"), item.result.time.to("ms")
            state = "" if item.proven else f"  not proven, at most {item.gap:.1%} above the best"
            words = f"{item.words[0]:>12,} words  {item.ratio:6.3f} × bound"
            lines.append(f"{item.space.name:<20} {words}  {energy:>10.4g}  {time:>10.4g}{state}")
        return "\n".join(lines)


def mapper(
    device: Device | str,
    layer: Operator | str,
    network: Network | str | Path | None = None,
    *,
    objective: Objective = "energy",
    batch: int | None = None,
    sequence: int | None = None,
    image: int | None = None,
    phase: Phase | None = None,
    precision: str | None = None,
    sizes: dict[str, int] | None = None,
    shape: tuple[int, ...] | None = None,
    levels: int = 2,
    seconds: float | None = None,
    disk_cache: bool = False,
    progress: Callable[[Any, float], None] | None = None,
    option: str = "`{}`",
) -> MappedLayers:
    """Return the best tiling and loop order of layers on a device, as the command ``mlsys mapper`` does.

    Parameters
    ----------
    device
        A device or its name in the catalogue.
    layer
        A product or convolution, ``"gemm:512x256x32"``, or one layer of a network by name or number, such as
        ``"resnet50:conv3_1b"``; ``"resnet50:all"`` means all its products. With ``network``, the part after the colon.
    network, batch, sequence, image, phase, sizes, shape, option
        As for :func:`mlsys.analyze`.
    precision
        Number format; defaults to that of the network, else the headline format of the device.
    objective, levels, progress, disk_cache
        As for :func:`mlsys.planner.mapper.best_mapping`.
    seconds
        Time limit for all layers together, s; then the best mappings found are returned.

    Returns
    -------
    MappedLayers
        Its ``record()`` is printed by ``mlsys mapper --json``.

    Raises
    ------
    UnknownNameError
        If the device, network, layer or number format is unknown.
    ArgumentError
        If an argument does not apply to the layer.

    Examples
    --------
    >>> [item.proven for item in mapper("GenericTPU", "gemm:64x64x64").layers]
    [True]
    """
    twin = device_of(device)
    request = NetworkRequest(batch, sequence, image, phase, precision, sizes, shape, option)
    operators, words = _operators(twin, layer, network, request)
    deadline = None if seconds is None else Deadline(seconds)
    mapped = []
    for number, operator in enumerate(operators):
        left = None if deadline is None else max(deadline.remaining / (len(operators) - number), 1e-3)
        mapped.append(
            best_mapping(
                twin, operator, objective, levels=levels, progress=progress, seconds=left, disk_cache=disk_cache
            )
        )
    return MappedLayers(tuple(mapped), words)


def _operators(
    device: Device, layer: Operator | str, network: Network | str | Path | None, request: NetworkRequest
) -> tuple[list[Operator], str]:
    """Return the requested products, and the sizes of their network in words."""
    if isinstance(layer, Operator):
        request.unused("a layer given as an operator")
        return [layer], layer.precision
    if not isinstance(layer, str):
        raise ArgumentError(f"mapper(): `layer` must be an operator or its name, got {short(layer)}")
    kind, _, which = layer.rpartition(":") if network is None else ("", "", layer)
    if kind == "gemm":
        request.unused("gemm:MxNxK, which specifies its own sizes", but=("precision",))
        return [_product(layer, which, request.precision or device.headline)], request.precision or device.headline
    if network is None and not kind:
        raise ArgumentError(
            f"{layer!r} is not a layer. Write e.g. gemm:512x256x32, or a network and one of its layers or `all`, "
            f"such as {layer}:all"
        )
    work = request.network(kind if network is None else network, device.headline)
    return _layers(work, which, kind or work.name), sizes_in_words(work)


def _product(layer: str, text: str, precision: str) -> Operator:
    """Return the matrix product described by a text such as ``gemm:512x256x32``."""
    sizes = []
    for size in text.lower().replace("×", "x").split("x"):
        try:
            sizes.append(parsed_whole(size))
        except ValueError:
            raise ArgumentError(f"a size must be a whole number, got {size[:60]!r}") from None
    if len(sizes) != 3:
        raise ArgumentError(f"a matrix product has three sizes, gemm:MxNxK, got {layer!r}. Write e.g. gemm:512x256x32")
    m, n, k = sizes
    return gemm(m, n, k, precision)


def _layers(work: Network, which: str, name: str) -> list[Operator]:
    """Return the products of a network selected by a name, a number or ``all``."""
    layers = [operator for operator in work if operator.products is not None]
    known: dict[str, Operator] = {}
    for names in ((layer.name for layer in layers), map(str, range(1, len(layers) + 1))):
        for label, operator in zip(names, layers, strict=False):
            known.setdefault(label.replace(" ", "_"), operator)
    if which == "all":
        return layers
    if which in known:
        return [known[which]]
    shown = list(known)[: len(layers)]
    more = f", … {len(shown)} in all" if len(shown) > _SHOWN else ""
    raise UnknownNameError(
        f"{name} has no layer {which!r}.{did_you_mean(which, known)} It has: {', '.join(shown[:_SHOWN])}{more}, all; "
        f"or give a number, 1 to {len(layers)}"
    )
