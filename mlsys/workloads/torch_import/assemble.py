"""Construction of a workload from calls: count each distinct call once, name every operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.frozen import FrozenDict
from mlsys.precision import PRECISIONS as FORMATS
from mlsys.precision import element_size
from mlsys.unit_checks import checked_count
from mlsys.units import Quantity, ureg
from mlsys.workloads.counted_operator import CountedOperator
from mlsys.workloads.graph import OperatorGraph
from mlsys.workloads.operator import Operator
from mlsys.workloads.torch_import.calls import Call, Filling, Tensor
from mlsys.workloads.torch_import.rules import Counts
from mlsys.workloads.torch_import.rules import counts_of as counted
from mlsys.workloads.torch_import.symbolic import Expressions
from mlsys.workloads.torch_import.wiring import Ends, Wire, operator_graph
from mlsys.workloads.totals import AttentionCount, Held
from mlsys.workloads.workload import Workload

PRECISIONS = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "float8_e4m3fnuz": "fp8",
    "float8_e5m2fnuz": "fp8",
    "int16": "int16",
    "int8": "int8",
    "uint8": "int8",
    "qint8": "int8",
    "quint8": "int8",
}
PRECISIONS |= {name: name for name in FORMATS if name not in PRECISIONS}  # formats that torch has no name for
TORCH_DTYPES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_NO_TENSORS = frozenset({"sym_size"})  # a node for a size that is free, and none where it is a number
_SHRINKING = frozenset({"conv2d", "max_pool2d", "avg_pool2d"})
_FLOP, _BYTE = ureg.Unit("FLOP"), ureg.Unit("byte")


class Place(NamedTuple):
    """Location of a call: its name, the framework's operator, the module, the index of the call, its tensors."""

    name: str
    target: str
    path: str
    call: int
    ends: Ends


class Template:
    """A captured network whose sizes may still be free.

    Equal calls, of which a deep network has many, are kept and counted once.
    """

    def __init__(
        self,
        name: str,
        source: str,
        held: Held,
        expressions: Expressions,
        free: Mapping[str, tuple[str, ...]],
        fixed: Mapping[str, int],
    ) -> None:
        self.name, self.source, self.held, self.expressions = name, source, held, expressions
        self.free, self.fixed = dict(free), dict(fixed)
        self.calls: list[Call] = []
        self.places: list[Place] = []
        self.inputs: list[Tensor] = []
        self.wires: list[Wire] = []
        self.returned: tuple[int, ...] = ()
        self.sizes: dict[str, int] = {}  # as captured
        self.notes: tuple[str, ...] = ()
        self.masked_attention: AttentionCount | None = None
        self.values: dict[str, int] = {}  # of every symbol, as captured
        self._numbers: dict[Call, int] = {}

    def add(self, name: str, target: str, path: str, call: Call, ends: Ends) -> None:
        """Append one call; ``ends`` names its tensors among the wires."""
        number = self._numbers.setdefault(call, len(self.calls))
        if number == len(self.calls):
            self.calls.append(call)
        self.places.append(Place(name, target, path, number, ends))

    def at(self, sizes: Mapping[str, int]) -> Workload:
        """Return the workload at ``sizes``, which names every free size.

        Raises
        ------
        ArgumentError
            If nothing is left of a tensor at those sizes.
        """
        symbols = {symbol: size for name, size in sizes.items() for symbol in self.free.get(name, ())}
        numbers = self.expressions.at({**self.values, **symbols})
        filling = Filling(numbers)
        calls = [call.bound(filling) for call in self.calls] if numbers else self.calls
        if numbers and any(size < 1 for call in calls if call.op in _SHRINKING for size in call.out.shape):
            given = ", ".join(f"{name} {size}" for name, size in sizes.items())
            raise ArgumentError(f"{self.name!r}: nothing is left of the picture at {given}. Give a larger size")
        counts = [counted(call) for call in calls]
        shared = [_quantities(counted) for counted in counts]
        own = [_precision(call) for call in calls]
        usual = _usual_precision(own[index.call] for index in self.places)
        precisions = [precision or usual for precision in own]
        operators = []
        for name, target, path, number, _ in self.places:
            count = counts[number]
            operations, data, weights, shape = shared[number]
            if count.read or count.written:
                operators.append(
                    CountedOperator(
                        name,
                        count.kind,
                        precisions[number],
                        operations,
                        data,
                        shape,
                        weights,
                        count.parameters,
                        counts=count,
                        target=target,
                        path=path,
                    )
                )
        inputs = [filling.filled(tensor) for tensor in self.inputs]
        return Workload(
            self.name,
            tuple(operators),
            held=self.held._replace(inputs=sum(tensor.bytes for tensor in inputs)),
            views=sum(calls[index.call].op not in _NO_TENSORS for index in self.places) - len(operators),
            source=self.source,
            sizes=FrozenDict(dict(sizes)),
            notes=self.notes,
            _masked=self.masked_attention,
            _again=partial(self._changed, dict(sizes)) if self.free else None,
            _wired=partial(self._graph, filling, calls, counts),
            _stored=partial(self._in_format, dict(sizes)),
        )

    def _in_format(self, sizes: Mapping[str, int], precision: str) -> Workload:
        return self.in_format(precision).at(sizes)

    def in_format(self, precision: str) -> Template:
        """Return the same network with every value that is stored in its usual format stored in ``precision``."""
        old = _usual_dtype(self.calls, [index.call for index in self.places])
        new, itemsize = TORCH_DTYPES.get(precision, precision), element_size(precision).m_as("byte")
        itemsize = int(itemsize) if itemsize == int(itemsize) else itemsize
        if old in ("", new):
            return self
        first = next(tensor for call in self.calls for tensor in (*call.outputs, *call.inputs) if tensor.dtype == old)

        known: dict[int, Tensor] = {}  # a tensor that stands in many places is stored once

        def stored(value: Any) -> Any:
            if type(value) is Tensor:
                if value.dtype != old:
                    return value
                if id(value) not in known:
                    known[id(value)] = value._replace(dtype=new, itemsize=itemsize)
                return known[id(value)]
            return tuple([stored(item) for item in value]) if type(value) is tuple else value

        held = self.held.scaled(itemsize / first.itemsize)
        other = Template(self.name, self.source, held, self.expressions, self.free, self.fixed)
        other.calls = [
            call._replace(arguments=stored(call.arguments), outputs=stored(call.outputs)) for call in self.calls
        ]
        other.wires = [Wire(name, stored(tensor), overwrites) for name, tensor, overwrites in self.wires]
        other.inputs = [stored(tensor) for tensor in self.inputs]
        other.places, other.returned, other.sizes, other.values = self.places, self.returned, self.sizes, self.values
        other.notes, other.masked_attention = self.notes, self.masked_attention
        return other

    def _graph(
        self,
        filling: Filling,
        calls: Sequence[Call],
        counts: Sequence[Counts],
        operators: tuple[Operator, ...],
    ) -> OperatorGraph:
        """Return the graph of operators and the values that they exchange; ``filling`` is that of the calls."""
        nodes = [(index.ends, calls[index.call], counts[index.call]) for index in self.places]
        wires = [Wire(name, filling.filled(tensor), overwrites) for name, tensor, overwrites in self.wires]
        return operator_graph(self.name, operators, nodes, wires, self.returned)

    def _changed(self, sizes: Mapping[str, int], changes: Mapping[str, int]) -> Workload:
        new_sizes = dict(sizes)
        for name, size in changes.items():
            if name not in self.free:
                known = ", ".join(self.free)
                raise UnknownNameError(
                    f"at(): {self.name!r} has no free size {name!r}. Free: {known}.{did_you_mean(name, self.free)}"
                )
            size = checked_count("at", name, size)
            if name in self.fixed and size != self.fixed[name]:
                why = "its code asks for that very size" if self.source == "torch.export" else "torch.fx frees no size"
                raise ArgumentError(
                    f"at(): {self.name!r} holds `{name}` at {self.fixed[name]}: {why}. "
                    f"Capture it again with example inputs of {name} {size}"
                )
            new_sizes[name] = size
        return self.at(new_sizes)


def _quantities(counts: Counts) -> tuple[Quantity, Quantity, Quantity, FrozenDict[str, int]]:
    return (
        ureg.Quantity(2 * counts.macs + counts.elementwise, _FLOP),
        ureg.Quantity(counts.read + counts.written, _BYTE),
        ureg.Quantity(counts.weights, _BYTE),
        FrozenDict(dict(counts.shape)),
    )


def _precision(call: Call) -> str | None:
    """Return the number format of the weights or data of a call; None where it handles only indices and masks."""
    for tensor in (*call.outputs, *call.inputs):
        if tensor.dtype in PRECISIONS and not tensor.dtype.startswith(("int", "uint")):
            return PRECISIONS[tensor.dtype]
    return next((PRECISIONS[tensor.dtype] for tensor in call.outputs if tensor.dtype in PRECISIONS), None)


def _usual_precision(precisions: Iterable[str | None]) -> str:
    """Return the format that most operators work in: what arithmetic on indices is timed at."""
    counted = Counter(precision for precision in precisions if precision is not None)
    return max(counted, key=lambda name: counted[name], default="fp32")


def _usual_dtype(calls: Sequence[Call], numbers: Iterable[int]) -> str:
    """Return the floating format of most tensors, in the framework's spelling; "" where there is none."""
    counted: Counter[str] = Counter()
    for number, times in Counter(numbers).items():
        for tensor in (*calls[number].outputs, *calls[number].inputs):
            if PRECISIONS.get(tensor.dtype, "").startswith(("fp", "bf", "tf")):
                counted[tensor.dtype] += times
    return max(counted, key=lambda name: counted[name]) if counted else ""
