"""From calls to a workload: count each distinct call once, name every operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from mlsys.door import checked_number, count
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.frozen import FrozenDict
from mlsys.units import Quantity, ureg
from mlsys.workloads.graph import OperatorGraph
from mlsys.workloads.operator import Operator
from mlsys.workloads.torch_import.calls import Call, Tensor
from mlsys.workloads.torch_import.rules import Counts
from mlsys.workloads.torch_import.rules import count as counted
from mlsys.workloads.torch_import.symbolic import Expressions
from mlsys.workloads.torch_import.wiring import Ends, Wire, operator_graph
from mlsys.workloads.traced import TracedOperator
from mlsys.workloads.workload import Held, Workload

__all__ = ["Place", "Template"]

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
_FLOP, _BYTE = ureg.Unit("FLOP"), ureg.Unit("byte")


class Place(NamedTuple):
    """Where a call stands: its name, the framework's operator, the module, the number of its call, its tensors."""

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
        self._numbers: dict[Call, int] = {}

    def add(self, name: str, target: str, path: str, call: Call, ends: Ends) -> None:
        """Append one call; ``ends`` names its tensors among the wires."""
        number = self._numbers.setdefault(call, len(self.calls))
        if number == len(self.calls):
            self.calls.append(call)
        self.places.append(Place(name, target, path, number, ends))

    def at(self, sizes: Mapping[str, int], values: Mapping[str, int]) -> Workload:
        """Return the workload at ``sizes``; ``values`` gives every symbol its number."""
        numbers = self.expressions.at(values)
        calls = [call.bound(numbers) for call in self.calls] if numbers else self.calls
        usual = _usual_precision(calls, [place.call for place in self.places])
        counts = [counted(call) for call in calls]
        shared = [_quantities(one) for one in counts]
        precisions = [_precision(call) or usual for call in calls]
        operators = []
        for name, target, path, number, _ in self.places:
            one = counts[number]
            operations, data, weights, shape = shared[number]
            if one.read or one.written:
                operators.append(
                    TracedOperator(
                        name,
                        one.kind,
                        precisions[number],
                        operations,
                        data,
                        shape,
                        weights,
                        one.parameters,
                        counts=one,
                        target=target,
                        path=path,
                    )
                )
        inputs = [tensor.bound(numbers) for tensor in self.inputs]
        return Workload(
            self.name,
            tuple(operators),
            held=self.held._replace(inputs=sum(tensor.bytes for tensor in inputs)),
            views=len(self.places) - len(operators),
            source=self.source,
            sizes=FrozenDict(dict(sizes)),
            _again=partial(self._changed, dict(sizes), dict(values)) if self.free else None,
            _wired=partial(self._graph, numbers),
        )

    def _graph(self, numbers: Sequence[int], operators: tuple[Operator, ...]) -> OperatorGraph:
        """Return which operator reads what which one makes; ``numbers`` are the sizes."""
        calls = [call.bound(numbers) for call in self.calls]
        counts = [counted(call) for call in calls]
        nodes = [(place.ends, calls[place.call], counts[place.call]) for place in self.places]
        wires = [wire._replace(tensor=wire.tensor.bound(numbers)) for wire in self.wires]
        return operator_graph(self.name, operators, nodes, wires, self.returned)

    def _changed(self, sizes: Mapping[str, int], values: Mapping[str, int], changes: Mapping[str, int]) -> Workload:
        new_sizes, new_values = dict(sizes), dict(values)
        for name, size in changes.items():
            if name not in self.free:
                known = ", ".join(self.free)
                raise UnknownNameError(
                    f"at(): {self.name!r} has no free size {name!r}. Free: {known}.{did_you_mean(name, self.free)}"
                )
            size = int(checked_number("at", name, size, count(), {}))
            if name in self.fixed and size != self.fixed[name]:
                why = "its code asks for that very size" if self.source == "torch.export" else "torch.fx frees no size"
                raise ArgumentError(
                    f"at(): {self.name!r} holds `{name}` at {self.fixed[name]}: {why}. "
                    f"Capture it again with example inputs of {name} {size}"
                )
            new_sizes[name] = size
            new_values.update(dict.fromkeys(self.free[name], size))
        return self.at(new_sizes, new_values)


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


def _usual_precision(calls: Sequence[Call], numbers: Iterable[int]) -> str:
    """Return the format that most operators work in: what arithmetic on indices is timed at."""
    found = Counter(_precision(calls[number]) for number in numbers)
    found.pop(None, None)
    return max(found, key=lambda name: found[name] or 0) or "fp32" if found else "fp32"
