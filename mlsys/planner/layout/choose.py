"""Choice of a layout for each operator, with the cost of transposes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from mlsys.errors import ArgumentError
from mlsys.formatting import compact
from mlsys.frozen import FrozenDict
from mlsys.hardware.device import Device
from mlsys.planner.graphs import graph_of
from mlsys.planner.layout.formats import checked_layout
from mlsys.planner.layout.problem import LayoutProblem, TrafficRule, members, turning_bytes
from mlsys.provenance import traced
from mlsys.unit_checks import checked_choice, checked_number, positive
from mlsys.units import Quantity, ureg

if TYPE_CHECKING:
    from mlsys.workloads.graph import OperatorGraph
    from mlsys.workloads.operator import Operator
    from mlsys.workloads.workload import Workload

Method = Literal["auto", "tree", "solver", "brute force"]
METHODS: tuple[Method, ...] = get_args(Method)
_BYTE = ureg.Unit("byte")


@dataclass(frozen=True)
class Transpose:
    """A tensor that is transposed from one layout to another, once for all its readers.

    Attributes
    ----------
    value
        Name of the tensor.
    before, after
        Layouts.
    moved
        Bytes read and written.
    """

    value: str
    before: str
    after: str
    moved: Quantity


@dataclass(frozen=True)
class LayoutPlan:
    """A layout for each operator on images.

    Attributes
    ----------
    network
        Name of the network.
    layouts
        One per operator of the graph; None for operators without images.
    transposes
        Tensors transposed between operators.
    extra
        Bytes that operators move in addition to their own work because of their layout.
    bandwidth
        Bandwidth at which all of it moves.
    method
        Method that found it: ``"tree"``, ``"solver"`` or ``"brute force"``; each is exact.
    uniform
        Bytes moved if all operators had the same layout, by layout.
    """

    network: str
    layouts: tuple[str | None, ...]
    transposes: tuple[Transpose, ...]
    extra: Quantity
    bandwidth: Quantity
    method: str
    uniform: FrozenDict[str, Quantity]

    @property
    def moved(self) -> Quantity:
        """Bytes moved because of layouts: transposes between operators and inside them."""
        return ureg.Quantity(
            self.extra.m_as("byte") + sum(transpose.moved.m_as("byte") for transpose in self.transposes), _BYTE
        )

    @property
    def time(self) -> Quantity:
        """Time of this traffic at full bandwidth."""
        taken: Quantity = (self.moved / self.bandwidth).to("s")
        return taken

    def record(self) -> dict[str, Any]:
        """Return the choice as plain data, for JSON."""
        return {
            "network": self.network,
            "layouts": list(self.layouts),
            "transposes": [
                {"value": each.value, "before": each.before, "after": each.after, "bytes": each.moved.m_as("byte")}
                for each in self.transposes
            ],
            "moved_bytes": self.moved.m_as("byte"),
            "seconds": self.time.m_as("s"),
            "method": self.method,
            "uniform_bytes": {layout: moved.m_as("byte") for layout, moved in self.uniform.items()},
        }

    def explain(self) -> str:
        """Return the choice, its cost, and the cost of a uniform layout, as text."""
        given = sorted({layout for layout in self.layouts if layout is not None})
        chosen = ", ".join(f"{self.layouts.count(layout)} operators in {layout}" for layout in given)
        lines = [
            f"{self.network}: {chosen}; "
            f"layouts cost {compact(self.moved, 'nothing')}, {compact(self.time, 'nothing')}.",
            *(
                f"  {transpose.value}: {transpose.before} → {transpose.after}, {compact(transpose.moved, 'nothing')}"
                for transpose in self.transposes
            ),
        ]
        for layout, moved in self.uniform.items():
            lines.append(
                f"All in {layout}: {compact(moved, 'nothing')}, {compact((moved / self.bandwidth).to('s'), 'nothing')}."
            )
        return "\n".join(lines)


def tensor_core_traffic(graph: OperatorGraph, operator: int, layout: str) -> float:
    """Return the additional bytes that a convolution on matrix units moves because of its layout.

    Matrix units need the channels of a pixel to be contiguous. Given NCHW, the library transposes the input to NHWC and
    the output back, which NVIDIA's guide to convolutions advises to avoid by keeping tensors in NHWC. Tensors added in
    a fused kernel are not transposed. Other operators work in any layout; a depthwise convolution has no products for a
    matrix unit, and is assumed to do so too.

    Parameters
    ----------
    graph
        The network.
    operator
        Index of the operator.
    layout
        Layout of its images.

    References
    ----------
    NVIDIA, Convolutional Layers User's Guide, "Choose tensor layouts in memory to avoid transposing".

    Examples
    --------
    >>> from mlsys.workloads import conv2d
    >>> from mlsys.workloads.graph import OperatorGraph, Value
    >>> x = Value("x", "input", 200, (1, 4, 5, 5), consumers=(0,))
    >>> y = Value("y", "made", 400, (1, 8, 5, 5), producer=0, output=True)
    >>> graph = OperatorGraph("one convolution", (conv2d(1, 4, 8, 5, 3),), (x, y))
    >>> tensor_core_traffic(graph, 0, "NCHW"), tensor_core_traffic(graph, 0, "NHWC")
    (1200.0, 0.0)
    """
    if layout == "NHWC" or not any(map(_on_matrix_unit, members(graph.operators[operator]))):
        return 0.0
    channels = graph.operators[operator].shape.get("in_channels")
    images = [value for value in graph.read_by(operator) if len(value.shape) == 4 and value.role != "weight"]
    multiplied = [value for value in images if value.shape[1] == channels] or images  # an addition may read others
    made = [value for value in graph.made_by(operator) if len(value.shape) == 4]
    return float(sum(map(turning_bytes, (*multiplied[:1], *made))))


def _on_matrix_unit(work: Operator) -> bool:
    if not work.kind.startswith(("conv2d", "conv_transpose2d")) or work.products is None:
        return False
    return not work.products.copies == work.shape.get("in_channels", 0) > 1


def _in_order(device: Any, workload: Any) -> tuple[Any, Any]:
    """Return device and workload in this order; callers of version 0.1 pass them the other way round."""
    if not isinstance(workload, (Device, Quantity)):
        return device, workload
    warnings.warn(
        "choose_layouts(workload, device) is deprecated and will be removed in the next release: write "
        "choose_layouts(device, workload)",
        DeprecationWarning,
        stacklevel=4,
    )
    return workload, device


@traced
def choose_layouts(
    device: Device | Quantity,
    workload: Workload | OperatorGraph,
    *,
    layouts: Sequence[str] = ("NCHW", "NHWC"),
    traffic: TrafficRule = tensor_core_traffic,
    outside: str = "NCHW",
    method: Method = "auto",
) -> LayoutPlan:
    """Return the layouts of the operators with the least traffic.

    An operator reads and writes all its images in one layout. A tensor made in one and read in another is transposed,
    once per requested layout. The inputs and outputs of the network, and images read by operators without a layout, are
    in ``outside``.

    Parameters
    ----------
    device
        A device, with its main-memory bandwidth, or a bandwidth.
    workload
        A captured network, or its graph.
    layouts
        Layouts to choose from.
    traffic
        Function of graph, operator index and layout: additional bytes of the operator in that layout.
    outside
        Layout of the network's inputs and outputs.
    method
        ``"tree"``, by dynamic programming, where the operators form a tree; ``"solver"``, a mixed-integer
        program; ``"brute force"``; or ``"auto"``: the first where it can, else the second. All are exact.

    Returns
    -------
    LayoutPlan

    Raises
    ------
    UnknownNameError
        If the method is unknown.
    ArgumentError
        If a layout is unknown or duplicated, the network has no images, or the method does not apply.

    References
    ----------
    Y. Liu and others, Optimizing CNN model inference on CPUs (NeoCPU), USENIX ATC 2019, for the problem.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> from mlsys.workloads import conv2d
    >>> from mlsys.workloads.graph import OperatorGraph, Value
    >>> shape = (32, 64, 56, 56)
    >>> values = [Value("x", "input", 12845056, shape, consumers=(0,))]
    >>> for i in range(4):
    ...     users = (i + 1,) if i < 3 else ()
    ...     values.append(Value(f"y{i}", "made", 12845056, shape, producer=i, consumers=users, output=i == 3))
    >>> chain = OperatorGraph("four convolutions", (conv2d(32, 64, 64, 56, 3),) * 4, tuple(values))
    >>> plan = choose_layouts(Hardware.Cloud.A100, chain)
    >>> set(plan.layouts), [(transpose.value, transpose.after) for transpose in plan.transposes]
    ({'NHWC'}, [('x', 'NHWC'), ('y3', 'NCHW')])
    >>> round((plan.uniform["NCHW"] / plan.moved).m_as(""), 6)
    4.0
    """
    where = "choose_layouts"
    device, workload = _in_order(device, workload)
    graph = graph_of(where, workload)
    checked_choice(where, "method", method, METHODS)
    names = tuple(layouts)
    for layout in (*names, outside):
        checked_layout(where, layout)
    if len(set(names)) < len(names) or not names:
        raise ArgumentError(
            f"{where}(): `layouts` must be one or more, each once, got {names}. Write e.g. ('NCHW', 'NHWC')"
        )
    speed = device.memory_bw if isinstance(device, Device) else device
    checked_number(where, "device", speed, positive("byte/s"), {})
    problem = LayoutProblem(graph, names, outside, traffic)
    if not problem.operators:
        raise ArgumentError(f"{where}(): {graph.name!r} has no operator on images, so there is no layout to choose")
    if method == "auto":
        method = "tree" if problem.is_tree else "solver"
    solve: Mapping[str, Callable[[], list[int]]] = {
        "tree": problem.tree,
        "solver": problem.solver,
        "brute force": problem.brute_force,
    }
    choice = solve[method]()
    picked = {operator: names[pick] for operator, pick in zip(problem.operators, choice, strict=True)}
    return LayoutPlan(
        graph.name,
        tuple(picked.get(index) for index in range(len(graph))),
        tuple(
            Transpose(
                hub.value.name, problem.made_in(hub, choice), problem.names[after], ureg.Quantity(hub.cost, _BYTE)
            )
            for hub in problem.hubs
            if hub.cost
            for after in problem.transposed_layouts(hub, choice)
        ),
        ureg.Quantity(float(problem.own[range(len(choice)), choice].sum()), _BYTE),
        speed,
        method,
        FrozenDict({name: ureg.Quantity(problem.cost([k] * len(choice)), _BYTE) for k, name in enumerate(names)}),
    )
