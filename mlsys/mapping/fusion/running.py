"""A network as software starts it: in kernels, in loops between products, or operator by operator."""

from mlsys.mapping.fusion.fused import FusedWorkload, as_kernels, as_loops
from mlsys.units import number_in, total, ureg
from mlsys.workloads import Network, Operator, Workload

_BYTE = ureg.Unit("byte")

# What a compiler writes as one loop over numbers; reductions in between stay in it.
_LOOPED = frozenset({"elementwise", "activation", "normalisation"})


def as_run(workload: Network, way: str) -> Network:
    """Return a network with its operators shared out among kernels as software does.

    Parameters
    ----------
    workload
        As it was loaded or captured; one that is fused already stays as it is. Of a network of the catalogue under
        software without a compiler of its own for products, operators are those that the catalogue lists.
    way
        ``"kernels"``, ``"loops"``, ``"one by one"`` or ``"with convolutions"``, as
        :func:`mlsys.models.estimate.eager.run_as` says of a setting.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> [len(as_run(load("resnet50"), way)) for way in ("kernels", "loops", "one by one")]
    [54, 107, 174]
    """
    if isinstance(workload, FusedWorkload) or not isinstance(workload, Workload):
        return workload
    if way == "kernels" or (way == "with convolutions" and has_convolutions(workload)):
        return as_kernels(workload)
    listed = workload.written_operators()
    if way != "loops":
        return workload.with_layers() if listed is workload else listed
    return as_loops(workload) if listed is workload else in_loops(listed)


def has_convolutions(network: Network) -> bool:
    """Tell whether any operator of a network is a convolution.

    Examples
    --------
    >>> from mlsys.workloads import zoo
    >>> [has_convolutions(zoo.network(name)) for name in ("resnet50", "bert-base")]
    [True, False]
    """
    return any(operator.kind.startswith("conv") for operator in network.operators)


def in_loops(network: Network) -> Network:
    """Return a network with one loop for all operators between two that are none, by their order alone.

    Numbers between two operators stay in registers: a loop moves what the largest of them does.

    Parameters
    ----------
    network
        Nothing fused.

    Examples
    --------
    >>> from mlsys.workloads import zoo
    >>> network = zoo.network("efficientnet_b0", fused=False)
    >>> len(network), len(in_loops(network))
    (238, 180)
    """
    joined: dict[tuple[int, ...], Operator] = {}
    operators: list[Operator] = []
    waiting: list[Operator] = []

    def write_loop() -> None:
        if waiting:
            key = tuple(map(id, waiting))
            if key not in joined:
                joined[key] = _loop(waiting)
            operators.append(joined[key])
            waiting.clear()

    for operator in network.operators:
        if operator.kind in _LOOPED:
            waiting.append(operator)
        else:
            write_loop()
            operators.append(operator)
    write_loop()
    return Network(network.name, tuple(operators), network.kind)


def _loop(parts: list[Operator]) -> Operator:
    """Return some operators as one."""
    if len(parts) == 1:
        return parts[0]
    last = parts[-1]
    return Operator(
        " + ".join(part.name for part in parts),
        "elementwise",
        last.precision,
        total((part.flops for part in parts), "FLOP"),
        max((part.data for part in parts), key=lambda moved: number_in(moved, _BYTE)),
        last.shape,
        total((part.weights for part in parts), "byte"),
        sum(part.parameters for part in parts),
    )
