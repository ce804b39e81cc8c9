"""The graph builder: appends calls in the vocabulary of graphs captured by torch, without needing torch."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from mlsys.precision import element_size, precision_name
from mlsys.units import plain_number
from mlsys.workloads.torch_import.assemble import TORCH_DTYPES, Template
from mlsys.workloads.torch_import.calls import Call, Tensor
from mlsys.workloads.torch_import.symbolic import Expressions
from mlsys.workloads.torch_import.wiring import Ends, View, Wire
from mlsys.workloads.totals import Held

_COUNTER = 8  # bytes of an int64: token positions, and the count of batches that a batch normalisation keeps

Layout: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int]  # shape, strides, offset


class TensorRef(NamedTuple):
    """Reference to a tensor or to a view of one: shape, strides, offset, and the wire that stores its elements."""

    number: int
    wire: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: str
    itemsize: float
    role: str

    @property
    def layout(self) -> Layout:
        """Shape, strides and offset: the key that distinguishes views of the same tensor."""
        return self.shape, self.strides, self.offset


class GraphCall(NamedTuple):
    """One call of the graph: its path, its operator, its arguments (tensor references among them) and its outputs."""

    path: str
    target: str
    arguments: tuple[tuple[str, Any], ...]
    made: tuple[TensorRef, ...]


class GraphBuilder:
    """Builder of a graph: calls, and the tensors that connect them.

    Parameters
    ----------
    name
        Name of the network.
    precision
        Number format of its weights and activations.
    """

    def __init__(self, name: str, precision: str) -> None:
        canonical = precision_name(precision)
        self.dtype, size = TORCH_DTYPES.get(canonical, canonical), element_size(canonical).m_as("byte")
        self.itemsize = int(size) if size == int(size) else size
        self.template = Template(name, "hand", Held(), Expressions(), {}, {})
        self.steps: list[GraphCall] = []
        self.inputs: list[TensorRef] = []
        self._references = self.parameters = self._statistics = self._counters = 0
        self._layouts: list[dict[Layout, int]] = []  # by wire: the number of each view

    def _new_tensor(self, name: str, shape: tuple[int, ...], role: str, dtype: str | None = None) -> TensorRef:
        """Return a new contiguous (row-major) tensor."""
        shape = tuple(map(plain_number, shape))
        itemsize = self.itemsize if dtype is None else _COUNTER if dtype == "int64" else 4
        whole = Tensor(shape, shape, dtype or self.dtype, itemsize, role)
        self.template.wires.append(Wire(name, whole))
        strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        tensor = self._reference(len(self.template.wires) - 1, shape, strides, 0, whole.dtype, itemsize, role)
        self._layouts.append({tensor.layout: 0})
        return tensor

    def _reference(self, *rest: Any) -> TensorRef:
        self._references += 1
        return TensorRef(self._references, *rest)

    def weight(self, name: str, *shape: int) -> TensorRef:
        """Return a new weight tensor."""
        self.parameters += math.prod(shape)
        return self._new_tensor(name, shape, "parameter")

    def statistic(self, name: str, *shape: int) -> TensorRef:
        """Return a new buffer: a stored tensor that is not trained."""
        self._statistics += math.prod(shape)
        return self._new_tensor(name, shape, "buffer")

    def counts_batches(self) -> None:
        """Add the ``num_batches_tracked`` counter of a batch normalisation, which no operator reads."""
        self._counters += _COUNTER

    def given(self, name: str, shape: tuple[int, ...], dtype: str | None = None) -> TensorRef:
        """Return a new input tensor of the network."""
        tensor = self._new_tensor(name, shape, "input", dtype)
        self.inputs.append(tensor)
        self.template.inputs.append(self.template.wires[tensor.wire].tensor)
        return tensor

    def call(
        self,
        name: str,
        target: str,
        shape: tuple[int, ...],
        arguments: Mapping[str, Any],
        *,
        pointwise: bool = False,
        dtype: str | None = None,
    ) -> TensorRef:
        """Append an operator and return its output, a new tensor of ``shape``."""
        op, _, overload = target.partition(".")
        operands: dict[int, tuple[int, View]] = {}
        given = tuple((label, self._stored_argument(value, operands)) for label, value in arguments.items())
        made = self._new_tensor(name, shape, "activation", dtype)
        call = Call(op, overload, given, (_tensor(made, -1),), pointwise=pointwise)
        ends = Ends(tuple(look for _, look in operands.values()), (made.wire,))
        self.template.add(name, f"aten.{target}", name, call, ends)
        self.steps.append(GraphCall(name, target, tuple(arguments.items()), (made,)))
        return made

    def view(
        self, target: str, tensor: TensorRef, views: Sequence[Layout], arguments: Mapping[str, Any]
    ) -> tuple[TensorRef, ...]:
        """Append a view operator, which copies nothing, and return its outputs, one per layout in ``views``."""
        op, _, overload = target.partition(".")
        operands: dict[int, tuple[int, View]] = {}
        given = tuple(
            (label, self._stored_argument(value, operands)) for label, value in {"self": tensor, **arguments}.items()
        )
        made = tuple(self._reference(tensor.wire, *view, *tensor[5:]) for view in views)
        outputs = tuple(_tensor(result, -1 - index) for index, result in enumerate(made))
        call = Call(op, overload, given, outputs, is_view=True)
        self.template.add(op, f"aten.{target}", "", call, Ends(tuple(look for _, look in operands.values())))
        self.steps.append(GraphCall("", target, (("self", tensor), *arguments.items()), made))
        return made

    def _stored_argument(self, value: Any, operands: dict[int, tuple[int, View]]) -> Any:
        """Return an argument as a call stores it; add the tensors in it to ``operands``."""
        if isinstance(value, TensorRef):
            if value.number not in operands:
                operands[value.number] = (len(operands), self._view_of(value))
            return _tensor(value, operands[value.number][0])
        return tuple(self._stored_argument(item, operands) for item in value) if isinstance(value, tuple) else value

    def _view_of(self, tensor: TensorRef) -> View:
        layouts = self._layouts[tensor.wire]
        _, first, _ = next(iter(layouts))
        number = layouts.setdefault(tensor.layout, len(layouts))
        return View(tensor.wire, number, tensor.strides[-1:] != first[-1:])

    def finished(self, *returned: TensorRef) -> Template:
        """Return the finished graph with the outputs ``returned``."""
        size = self.itemsize
        self.template.held = Held(
            self.parameters,
            round(self.parameters * size),
            round(self._statistics * size) + self._counters,
            counters=self._counters,
        )
        self.template.returned = tuple(dict.fromkeys(tensor.wire for tensor in returned))
        return self.template


def _tensor(tensor: TensorRef, identity: int) -> Tensor:
    shape = tensor.shape
    stored = tuple(1 if stride == 0 and size > 1 else size for size, stride in zip(shape, tensor.strides, strict=True))
    return Tensor(shape, stored, tensor.dtype, tensor.itemsize, tensor.role, identity)
