"""Lowering of networks to kernels, in the number formats in which they are stored."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mlsys.hardware.device import Device
from mlsys.hardware.view import view
from mlsys.models.estimate.machine import Snapshot, snapshot
from mlsys.models.estimate.work import ALL_REDUCE, COLLECTIVE, MATMUL, NO_WORK, VECTOR, Kernel, Work
from mlsys.workloads import Network, NetworkArrays, Operator

# Grouped convolutions with fewer filters per group run on the vector units, as depthwise ones do.
NARROWEST_PRODUCT = 4


# F(2 × 2, 3 × 3), the smallest of Winograd's algorithms, leaves one multiplication of 2.25; F(4 × 4, 3 × 3) one of 4.
# Outputs are computed in whole tiles, also at image borders, and programs store the weights transformed, 36 values for
# each 9: at 7 × 7 pixels, a quarter of the tile slots are idle (Lavin & Gray 2016, CVPR, section 4).
WINOGRAD_SAVING, LARGER_WINOGRAD = 2.25, 4.0
_TILE, _LARGER_TILE = 2, 4


@dataclass(frozen=True)
class Format:
    """Number formats of a case: compute format, and bytes of a weight and of any other value.

    Convolutions may run in a narrower, faster format than other products, such as FP32 convolutions in TF32.
    """

    computes: str
    weight: float
    value: float
    vector_unit: bool = False
    convolutions: float = 1.0

    def on(self, device: Device) -> Snapshot:
        """Return a snapshot of a device that computes in this format."""
        return snapshot(view(device, self.computes, unit="vector" if self.vector_unit else None))


def kernels_of(network: Network, fmt: Format | None, runs: float = 1.0, winograd: float = 1.0) -> Work:
    """Return a network's kernels, one for each distinct operator, in the order of ``network.arrays``.

    Parameters
    ----------
    network
        With activations fused into the products before them.
    fmt
        Bytes of a weight and of another value, for a network that was built in FP16, two bytes
        a value; None leaves every byte as the network counted it.
    runs
        Number of runs of the whole network.
    winograd
        Factor by which Winograd's algorithms reduce the multiplications of 3 × 3 convolutions of stride 1; 1 for none.
    """
    a = network.arrays
    depth, stored = a.k, np.ones(len(a))
    if fmt and fmt.convolutions > 1:  # on matrix units, which leave Winograd's transforms nothing to save
        depth = a.k / np.where(_of_convolutions(network), fmt.convolutions, 1.0)
    elif winograd > 1:
        large = winograd >= LARGER_WINOGRAD
        tile = _LARGER_TILE if large else _TILE
        places = _places_of_tiles(network, tile)
        depth = a.k * np.where(places > 0, places / winograd, 1.0)
        stored = np.where((places > 0) & large, ((tile + 2) / 3) ** 2, 1.0)
    product, steps = _products(a), _steps(network)
    weights = stored * a.weights * (fmt.weight / 2 if fmt else 1.0)
    other = (a.data - a.weights) * (fmt.value / 2 if fmt else 1.0)
    return Work(
        np.array(
            [
                np.where(product, MATMUL, VECTOR),
                a.flops,
                other + weights,
                weights,
                np.where(product, a.m, 1),
                np.where(product, a.n, 1),
                np.where(product, depth, 1),
                np.where(product, a.copies / steps, 1),
                a.repeats * runs,
                np.ones(len(a)),
                np.zeros(len(a)),
                np.zeros(len(a)),
                np.where(product, steps - 1, 0),
            ],
            dtype=float,
        )
    )


def _products(arrays: NetworkArrays) -> NDArray[np.bool_]:
    """Return which rows are matrix products: all except narrow grouped convolutions.

    A single product, however narrow, takes no longer than a wider one with padded columns.
    """
    products: NDArray[np.bool_] = (arrays.m > 0) & ((arrays.n >= NARROWEST_PRODUCT) | (arrays.copies == 1))
    return products


def _steps(network: Network) -> NDArray[np.float64]:
    """Return the sequential products of each row of a network's arrays: steps of a recurrence, or 1."""
    return np.array([operator.shape.get("steps", 1) for operator in network.distinct], dtype=float)


def _of_convolutions(network: Network) -> NDArray[np.bool_]:
    """Return which rows of the network's arrays are convolutions."""
    return np.array([operator.kind.startswith("conv") for operator in network.distinct], dtype=bool)


def part_in_convolutions(network: Network) -> float:
    """Return the fraction of a network's product FLOP that convolutions account for.

    Examples
    --------
    >>> from mlsys.workloads import zoo
    >>> [f"{part_in_convolutions(zoo.network(name)):.2f}" for name in ("resnet50", "vit_base_patch16_224")]
    ['1.00', '0.01']
    """
    a = network.arrays
    products = a.flops * a.repeats * _products(a)
    return float((products * _of_convolutions(network)).sum() / max(products.sum(), 1.0))


def fewer_multiplications(network: Network, winograd: float) -> Network:
    """Return a network with the operations that remain with Winograd's algorithms; see ``kernels_of``.

    Examples
    --------
    >>> from mlsys.workloads import zoo
    >>> vgg = zoo.network("vgg16")
    >>> f"{vgg.flops / fewer_multiplications(vgg, 4.0).flops:.1f}"
    '3.8'
    """
    if winograd <= 1:
        return network
    places = _places_of_tiles(network, _LARGER_TILE if winograd >= LARGER_WINOGRAD else _TILE)
    if not places.any():
        return network
    changed: list[Operator] = []
    for in_tiles, operator in zip(places.tolist(), network.distinct, strict=True):
        saved = (1.0 - in_tiles / winograd) if in_tiles else 0.0
        left = operator.flops - saved * operator.product_flops
        changed.append(replace(operator, operations=left) if saved else operator)
    operators = tuple(changed[row] for row in network.arrays.order.tolist())
    return Network(network.name, operators, network.kind)


def _places_of_tiles(network: Network, tile: int) -> NDArray[np.float64]:
    """Return the tile slots per output of dense 3 × 3 convolutions of stride 1; 0 for other operators.

    One value per row of the network's arrays.
    """
    places = np.zeros(len(network.arrays))
    for row, operator in enumerate(network.distinct):
        shape = operator.shape
        square = shape.get("kernel", 0) == 3 or shape.get("kernel_height") == shape.get("kernel_width") == 3
        if operator.kind == "conv2d" and square and shape.get("stride") == 1 and shape.get("groups") == 1:
            height, width = (shape[f"out_{side}"] if f"out_{side}" in shape else shape["out_size"]
                             for side in ("height", "width"))  # fmt: skip
            places[row] = -(-height // tile) * -(-width // tile) * tile**2 / (height * width)
    return places


# Ratio of weight bytes to those of one product above which the weights belong to several experts; a fused bias adds far
# less.
_SEVERAL = 1.5


def expert_by_expert(work: Work, width: float) -> Work:
    """Return a network's kernels with mixture-of-experts products split into one product per expert visited.

    Parameters
    ----------
    work
        Kernels; a product over all tokens has the weights of all experts that are visited.
    width
        Bytes of a weight.

    Examples
    --------
    >>> visits = Kernel(MATMUL, 2.0 * 64 * 8 * 4, 0.0, weights=16 * 8 * 4 * 2.0, m=64, n=8, k=4)
    >>> each = expert_by_expert(Work.of([visits]), width=2.0)
    >>> float(each["m"][0]), float(each["batch"][0])
    (4.0, 16.0)
    """
    each = np.maximum(work["k"] * work["n"] * work["batch"], 1.0) * width
    several = (work["kind"] == MATMUL) & (work["weights"] > _SEVERAL * each)
    if not several.any():
        return work
    visited = np.where(several, work["weights"] / each, 1.0)
    return work.changed(batch=visited * work["batch"], m=np.maximum(work["m"] / visited, 1.0))


def concatenated(*works: Work) -> Work:
    """Return the concatenation of several works; a single one is returned unchanged."""
    some = [work for work in works if work.columns.shape[1]]
    if len(some) < 2:
        return some[0] if some else NO_WORK
    return Work(np.concatenate([work.columns for work in some], axis=1))


def messages(size: float, ranks: int, count: float, pattern: int = ALL_REDUCE) -> Work:
    """Return ``count`` collectives of ``size`` bytes among ``ranks``; no kernels for a single engine."""
    if ranks < 2:
        return NO_WORK
    return Work.of([Kernel(COLLECTIVE, flops=0.0, moved=size, k=pattern, count=count, ranks=ranks)])


def side_by_side(engine: Snapshot, ranks: float) -> Snapshot:
    """Return ``ranks`` engines with tensor parallelism as one engine.

    A pipeline counts as the engines that it keeps busy on average.
    """
    shared = ("matmul", "vector", "bandwidth", "cache", "cache_bandwidth", "units", "power")
    return engine.changed(**{name: partial(_times, engine, name, ranks) for name in shared})


def _times(engine: Snapshot, name: str, ranks: float) -> float:
    return float(getattr(engine, name)) * ranks
