"""Epilogue fusion: a captured network as the kernels whose time is estimated, products with what follows them.

The parameters of the calibrated model are fitted to networks of this form. A product, a convolution, an attention or an
embedding reads its input and its weights and writes its result. Activations, additions, normalisations, pooling and
copies between two of them become part of the first kernel, and the parameters include their costs beyond arithmetic.
Catalogue networks defined layer by layer have this form from the start (:mod:`mlsys.workloads.zoo.layer_builder`);
captured ones are converted here, along their edges, so that both are timed by the same rules.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mlsys.frozen import FrozenDict
from mlsys.units import ureg
from mlsys.workloads.counted_operator import CountedOperator
from mlsys.workloads.graph import OperatorGraph
from mlsys.workloads.operator import Operator
from mlsys.workloads.operators import SOFTMAX_OPERATIONS
from mlsys.workloads.torch_import.rules.counts import Counts
from mlsys.workloads.workload import Workload

_BYTE, _FLOP = ureg.Unit("byte"), ureg.Unit("FLOP")
# Kinds that can be fused; every other kind is a separate kernel.
_RIDERS = frozenset(
    {"elementwise", "activation", "normalisation", "softmax", "pooling", "reduction", "copy", "fill", "resize"}
)


def fuse_epilogues(network: Workload, *, whole: bool = True) -> Workload:
    """Return a network with a graph after epilogue fusion.

    Work and parameters are unchanged. A kernel moves its inputs, its weights and its result, or those of its product if
    it has one, and the learned tensors of fused operators that are larger than a vector per channel. An operator whose
    output is larger than its input and than the input of the next product is a separate kernel; look-ups that are
    summed are one kernel, and so are dense layers that read the same tensor.

    Parameters
    ----------
    network
        A captured network, with its graph.
    whole
        Whether to include the work of fused operators.

    Returns
    -------
    Workload
        One operator per kernel.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> network = load("resnet50", precision="fp16")
    >>> kernels = fuse_epilogues(network)
    >>> len(network), len(kernels), kernels.flops == network.flops
    (174, 54, True)
    """
    graph = network.graph
    home = _homes(graph)
    joined = _joined(graph, home)
    carriers: dict[int, list[int]] = {}
    for index, carrier in enumerate(home):
        carriers.setdefault(joined.get(carrier, carrier), []).append(index)
    operators = []
    for carrier, places in sorted(carriers.items()):
        kernels = [_traced(graph.operators[index]) for index in places]
        main = [_traced(graph.operators[index]) for index in places if home[index] == index]
        kernel = _kernel(_traced(graph.operators[carrier]), main, kernels)
        operators.append(kernel if whole else _alone(kernel))
    return Workload(
        network.name,
        tuple(operators),
        network.kind,
        held=network.held,
        views=network.views,
        source=network.source,
        recipe=network.recipe,
        sizes=network.sizes,
        notes=network.notes,
        _masked=network._masked,
        left_out=network.left_out,
    )


def _alone(kernel: CountedOperator) -> CountedOperator:
    """Return a kernel without the work of the operators fused into its product or look-up."""
    shape = kernel.shape
    scores = shape["batch"] * shape["heads"] * shape["queries"] * shape["keys"] if kernel.kind == "attention" else 0
    beside = 0 if kernel.kind not in _RIDERS else kernel.counts.elementwise
    counts = kernel.counts._replace(elementwise=beside + sum(SOFTMAX_OPERATIONS.values()) * scores)
    return replace(kernel, operations=ureg.Quantity(2 * counts.macs + counts.elementwise, _FLOP), counts=counts)


def _traced(operator: Operator) -> CountedOperator:
    assert isinstance(operator, CountedOperator)
    return operator


def _size(graph: OperatorGraph, value: int) -> int:
    return math.prod(graph.values[value].shape)


def _homes(graph: OperatorGraph) -> list[int]:
    """Return, for each operator, the kernel it is fused into: itself, the one before, or the one after it."""
    places = range(len(graph))
    own = {index for index in places if graph.operators[index].kind not in _RIDERS}
    for index in places:
        if index not in own and _spreads(graph, index, _next_sizes(graph, index, own)):
            own.add(index)
    before: list[int | None] = []
    for index in places:
        kernels = [before[maker] for maker in graph.producers(index)]
        known = [carrier for carrier in kernels if carrier is not None]
        before.append(index if index in own else max(known, default=None))
    after: dict[int, int | None] = {}
    for index in reversed(places):
        known = [carrier for user in graph.consumers(index) if (carrier := after[user]) is not None]
        after[index] = index if index in own else min(known, default=None)
    homes = []
    for index in places:
        carrier = before[index]
        carrier = after[index] if carrier is None else carrier
        homes.append(index if carrier is None else carrier)
    return homes


def _next_sizes(graph: OperatorGraph, index: int, own: set[int]) -> int:
    """Return the elements of the largest tensor that the next kernels read from an operator's output."""
    largest, seen, waiting = 0, {index}, [index]
    while waiting:
        for value in graph.outputs_of[waiting.pop()]:
            for user in graph.values[value].consumers:
                if user in own:
                    largest = max(largest, _size(graph, value))
                elif user not in seen:
                    seen.add(user)
                    waiting.append(user)
    return largest


def _spreads(graph: OperatorGraph, index: int, read_later: int) -> bool:
    made = max((_size(graph, value) for value in graph.outputs_of[index]), default=0)
    return made > max(read_later, sum(_size(graph, value) for value in graph.inputs_of[index]))


def _joined(graph: OperatorGraph, home: Sequence[int]) -> dict[int, int]:
    """Return the operators merged with an earlier one: summed look-ups, dense layers of one tensor."""
    joined: dict[int, int] = {}
    heads: dict[tuple[object, ...], int] = {}
    for index, operator in enumerate(graph.operators):
        key: tuple[object, ...] | None = None
        if operator.kind == "gemm" and operator.weights.magnitude and operator.products is not None:
            given = [access for access in graph.reads[index] if graph.values[access.value].role in ("made", "input")]
            key = ("gemm", *((access.value, access.view) for access in given[:1]), operator.products[::2])
        elif operator.kind == "embedding":
            key = ("embedding", _last_carried(graph, index, home))
        if key is not None:
            first = heads.setdefault(key, index)
            if first != index:
                joined[index] = first
    return joined


def _last_carried(graph: OperatorGraph, index: int, home: Sequence[int]) -> int:
    """Return the last of the consecutive operators fused behind a given one."""
    while len(users := graph.consumers(index)) == 1 and home[users[0]] != users[0]:
        index = users[0]
    return index


def _kernel(
    carrier: CountedOperator, main: Sequence[CountedOperator], all_: Iterable[CountedOperator]
) -> CountedOperator:
    """Return the kernel of an operator, of those merged with it, and of all operators fused into it."""
    everything = tuple(all_)
    works = [_product_of(operator) for operator in main]
    traffic = [work.counts.read + work.counts.written - _bias(work) for work in works]
    weights = [work.counts.weights - _bias(work) for work in works]
    shape, moved = works[0].shape, sum(traffic)
    if len(works) > 1 and carrier.kind == "gemm":
        shape = FrozenDict({**shape, "n": sum(work.shape["n"] for work in works)})
        moved -= sum(work.counts.read - work.counts.weights for work in works[1:])
    elif len(works) > 1:  # sums of rows stay in registers
        moved -= sum(work.counts.written for work in works[1:])
    beside = _learned_beside(everything, works)
    moved += beside
    written = sum(work.counts.written for work in works[: None if carrier.kind == "gemm" else 1])
    counts = Counts(
        carrier.kind,
        sum(operator.counts.macs for operator in everything),
        sum(operator.counts.elementwise for operator in everything),
        moved - written,
        written,
        sum(weights) + beside,
        written,
        sum(operator.counts.parameters for operator in everything),
        all(operator.counts.known for operator in everything),
        tuple(shape.items()),
    )
    return CountedOperator(
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


def _learned_beside(operators: Sequence[CountedOperator], works: Sequence[CountedOperator]) -> int:
    """Return the bytes of learned tensors of fused operators, e.g. an embedding of positions that is added.

    Vectors per channel (biases, gains, normalisations) are folded into the product, as a compiler folds them.
    """
    channels = max((work.products.n * work.products.copies for work in works if work.products is not None), default=0)
    added = [member for operator in operators for member in operator.members if member.kind == "elementwise"]
    return sum(member.counts.weights for member in added if member.counts.parameters > channels > 0)


def _product_of(kernel: CountedOperator) -> CountedOperator:
    """Return the product of a fused kernel alone; attention assembled from its parts is one kernel."""
    if kernel.kind == "attention" or not kernel.counts.macs:
        return kernel
    return max(kernel.members, key=lambda member: member.counts.macs)


def _bias(counted_operator: CountedOperator) -> int:
    """Return the bytes that a product with a weight reads in addition to its matrix."""
    products = counted_operator.products
    if (
        products is None
        or not counted_operator.counts.weights
        or not counted_operator.kind.startswith(("gemm", "conv"))
    ):
        return 0
    matrix = products.k * products.n * products.copies
    held = max(counted_operator.counts.parameters, matrix)
    return round(counted_operator.counts.weights * (1 - matrix / held))
