"""A captured network as the kernels that time is estimated for: products, and what they carry.

The parameters of the calibrated model are fitted to networks of this form. A product, a convolution, an attention or
a look-up reads its input and its weights and writes its result; activations, additions, normalisations, pooling and
copies between two of them ride along, and what they cost beside their arithmetic is in the parameters. The networks of
the catalogue that are written down are of this form from the start (:mod:`mlsys.workloads.zoo.tape`); a captured one is
brought to it here, along its edges, so that both are timed alike.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mlsys.frozen import FrozenDict
from mlsys.units import ureg
from mlsys.workloads.graph import OperatorGraph
from mlsys.workloads.operator import Operator
from mlsys.workloads.operators import SOFTMAX_OPERATIONS
from mlsys.workloads.torch_import.rules.counts import Counts
from mlsys.workloads.traced import TracedOperator
from mlsys.workloads.workload import Workload

_BYTE, _FLOP = ureg.Unit("byte"), ureg.Unit("FLOP")
# What may ride along; every other kind is a kernel of its own.
_RIDERS = frozenset(
    {"elementwise", "activation", "normalisation", "softmax", "pooling", "reduction", "copy", "fill", "resize"}
)


def carried(network: Workload, *, whole: bool = True) -> Workload:
    """Return a network that has a graph with all that rides along counted with the kernel that carries it.

    Work and parameters stay to the last FLOP. A kernel moves its inputs, its weights and its result, those of its
    product alone where it has one. An operator that makes more than it reads, and more than the next product reads, is
    a kernel of its own; look-ups that are summed are one, and so are dense layers that read one tensor.

    Parameters
    ----------
    network
        A captured network: it has a graph.
    whole
        False leaves out the work of what rides along.

    Returns
    -------
    Workload
        One operator for each kernel.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> network = load("resnet50", precision="fp16")
    >>> kernels = carried(network)
    >>> len(network), len(kernels), kernels.flops == network.flops
    (174, 54, True)
    """
    graph = network.graph
    home = _homes(graph)
    joined = _joined(graph, home)
    carriers: dict[int, list[int]] = {}
    for place, carrier in enumerate(home):
        carriers.setdefault(joined.get(carrier, carrier), []).append(place)
    operators = []
    for carrier, places in sorted(carriers.items()):
        kernels = [_traced(graph.operators[place]) for place in places]
        main = [_traced(graph.operators[place]) for place in places if home[place] == place]
        kernel = _kernel(_traced(graph.operators[carrier]), main, kernels)
        operators.append(kernel if whole else _alone(kernel))
    return Workload(
        network.name,
        tuple(operators),
        held=network.held,
        views=network.views,
        source=network.source,
        recipe=network.recipe,
        sizes=network.sizes,
        left_out=network.left_out,
    )


def _alone(kernel: TracedOperator) -> TracedOperator:
    """Return a kernel without the work of what rides along, which products and look-ups leave to others."""
    shape = kernel.shape
    scores = shape["batch"] * shape["heads"] * shape["queries"] * shape["keys"] if kernel.kind == "attention" else 0
    beside = 0 if kernel.kind not in _RIDERS else kernel.counts.elementwise
    counts = kernel.counts._replace(elementwise=beside + sum(SOFTMAX_OPERATIONS.values()) * scores)
    return replace(kernel, operations=ureg.Quantity(2 * counts.macs + counts.elementwise, _FLOP), counts=counts)


def _traced(operator: Operator) -> TracedOperator:
    assert isinstance(operator, TracedOperator)
    return operator


def _size(graph: OperatorGraph, value: int) -> int:
    return math.prod(graph.values[value].shape)


def _homes(graph: OperatorGraph) -> list[int]:
    """Return, for each kernel, the one that carries it: itself, the one before, else the one after it."""
    places = range(len(graph))
    own = {place for place in places if graph.operators[place].kind not in _RIDERS}
    for place in places:
        if place not in own and _spreads(graph, place, _next_sizes(graph, place, own)):
            own.add(place)
    before: list[int | None] = []
    for place in places:
        found = [before[maker] for maker in graph.producers(place)]
        known = [carrier for carrier in found if carrier is not None]
        before.append(place if place in own else max(known, default=None))
    after: dict[int, int | None] = {}
    for place in reversed(places):
        known = [carrier for user in graph.consumers(place) if (carrier := after[user]) is not None]
        after[place] = place if place in own else min(known, default=None)
    homes = []
    for place in places:
        carrier = before[place]
        carrier = after[place] if carrier is None else carrier
        homes.append(place if carrier is None else carrier)
    return homes


def _next_sizes(graph: OperatorGraph, place: int, own: set[int]) -> int:
    """Return the elements of the largest tensor that the next kernels read of what comes from a place."""
    largest, seen, waiting = 0, {place}, [place]
    while waiting:
        for value in graph.outputs_of[waiting.pop()]:
            for user in graph.values[value].consumers:
                if user in own:
                    largest = max(largest, _size(graph, value))
                elif user not in seen:
                    seen.add(user)
                    waiting.append(user)
    return largest


def _spreads(graph: OperatorGraph, place: int, read_later: int) -> bool:
    made = max((_size(graph, value) for value in graph.outputs_of[place]), default=0)
    return made > max(read_later, sum(_size(graph, value) for value in graph.inputs_of[place]))


def _joined(graph: OperatorGraph, home: Sequence[int]) -> dict[int, int]:
    """Return the kernels that are one with an earlier one: summed look-ups, dense layers of one tensor."""
    found: dict[int, int] = {}
    heads: dict[tuple[object, ...], int] = {}
    for place, operator in enumerate(graph.operators):
        key: tuple[object, ...] | None = None
        if operator.kind == "gemm" and operator.weights.magnitude and operator.products is not None:
            given = [access for access in graph.reads[place] if graph.values[access.value].role in ("made", "input")]
            key = ("gemm", *((access.value, access.view) for access in given[:1]), operator.products[::2])
        elif operator.kind == "embedding":
            key = ("embedding", _last_carried(graph, place, home))
        if key is not None:
            first = heads.setdefault(key, place)
            if first != place:
                found[place] = first
    return found


def _last_carried(graph: OperatorGraph, place: int, home: Sequence[int]) -> int:
    """Return the last of the kernels that ride along one after the other behind a place."""
    while len(users := graph.consumers(place)) == 1 and home[users[0]] != users[0]:
        place = users[0]
    return place


def _kernel(carrier: TracedOperator, main: Sequence[TracedOperator], all_: Iterable[TracedOperator]) -> TracedOperator:
    """Return the kernel of a carrier, of those that are one with it, and of all that ride along."""
    everything = tuple(all_)
    works = [_product_of(one) for one in main]
    traffic = [one.counts.read + one.counts.written - _bias(one) for one in works]
    weights = [one.counts.weights - _bias(one) for one in works]
    shape, moved = works[0].shape, sum(traffic)
    if len(works) > 1 and carrier.kind == "gemm":
        shape = FrozenDict({**shape, "n": sum(one.shape["n"] for one in works)})
        moved -= sum(one.counts.read - one.counts.weights for one in works[1:])
    elif len(works) > 1:  # sums of rows stay in registers
        moved -= sum(one.counts.written for one in works[1:])
    written = sum(one.counts.written for one in works[: None if carrier.kind == "gemm" else 1])
    counts = Counts(
        carrier.kind,
        sum(one.counts.macs for one in everything),
        sum(one.counts.elementwise for one in everything),
        moved - written,
        written,
        sum(weights),
        written,
        sum(one.counts.parameters for one in everything),
        all(one.counts.known for one in everything),
        tuple(shape.items()),
    )
    return TracedOperator(
        carrier.name if len(main) == 1 else f"{main[0].name} + … + {main[-1].name} ({len(main)})",
        carrier.kind,
        carrier.precision,
        ureg.Quantity(2 * counts.macs + counts.elementwise, _FLOP),
        ureg.Quantity(moved, _BYTE),
        shape,
        ureg.Quantity(counts.weights, _BYTE),
        counts.parameters,
        counts=counts,
        target=carrier.target,
        path=carrier.path,
    )


def _product_of(kernel: TracedOperator) -> TracedOperator:
    """Return the product of a fused kernel by itself; attention that was found in its parts is one kernel."""
    if kernel.kind == "attention" or not kernel.counts.macs:
        return kernel
    return max(kernel.members, key=lambda one: one.counts.macs)


def _bias(one: TracedOperator) -> int:
    """Return the bytes of what a product with a weight reads beside its matrix."""
    found = one.products
    if found is None or not one.counts.weights or not one.kind.startswith(("gemm", "conv")):
        return 0
    matrix = found.k * found.n * found.copies
    held = max(one.counts.parameters, matrix)
    return round(one.counts.weights * (1 - matrix / held))
