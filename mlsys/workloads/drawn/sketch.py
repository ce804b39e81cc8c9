"""A graph in the making, call by call, in the words in which torch's graphs are captured; torch is not needed."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from mlsys.precision import element_size, precision_name
from mlsys.units import plain_number
from mlsys.workloads.torch_import.assemble import TORCH_DTYPES, Template
from mlsys.workloads.torch_import.calls import Call, Tensor
from mlsys.workloads.torch_import.symbolic import Expressions
from mlsys.workloads.torch_import.wiring import Ends, Look, Wire
from mlsys.workloads.totals import Held

_COUNTER = 8  # bytes of a whole number: places of words, how many batches a normalisation has seen


View: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int]  # sizes, strides, and where it begins


class Sheet(NamedTuple):
    """A tensor, or a look at one: its sizes, how its elements lie in memory, and the wire that holds them."""

    number: int
    wire: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: str
    itemsize: float
    role: str

    @property
    def layout(self) -> View:
        """What tells two looks at one tensor apart."""
        return self.shape, self.strides, self.offset


class DrawnCall(NamedTuple):
    """One call as it was drawn: where it stands, the operator, its arguments with sheets among them, its results."""

    path: str
    target: str
    arguments: tuple[tuple[str, Any], ...]
    made: tuple[Sheet, ...]


class Sketch:
    """Calls and the tensors between them.

    Parameters
    ----------
    name
        Of the network.
    precision
        Number format of its weights and tensors.
    """

    def __init__(self, name: str, precision: str) -> None:
        form = precision_name(precision)
        self.dtype, size = TORCH_DTYPES.get(form, form), element_size(form).m_as("byte")
        self.itemsize = int(size) if size == int(size) else size
        self.template = Template(name, "hand", Held(), Expressions(), {}, {})
        self.steps: list[DrawnCall] = []
        self.inputs: list[Sheet] = []
        self._sheets = self.parameters = self._statistics = self._counters = 0
        self._looks: list[dict[View, int]] = []

    def _sheet(self, name: str, shape: tuple[int, ...], role: str, dtype: str | None = None) -> Sheet:
        """Return a new tensor, which lies in memory row by row."""
        shape = tuple(map(plain_number, shape))
        itemsize = self.itemsize if dtype is None else _COUNTER if dtype == "int64" else 4
        whole = Tensor(shape, shape, dtype or self.dtype, itemsize, role)
        self.template.wires.append(Wire(name, whole))
        strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        sheet = self._seen(len(self.template.wires) - 1, shape, strides, 0, whole.dtype, itemsize, role)
        self._looks.append({sheet.layout: 0})
        return sheet

    def _seen(self, *rest: Any) -> Sheet:
        self._sheets += 1
        return Sheet(self._sheets, *rest)

    def weight(self, name: str, *shape: int) -> Sheet:
        """Return a learned tensor."""
        self.parameters += math.prod(shape)
        return self._sheet(name, shape, "parameter")

    def statistic(self, name: str, *shape: int) -> Sheet:
        """Return a tensor that is stored and not learned."""
        self._statistics += math.prod(shape)
        return self._sheet(name, shape, "buffer")

    def counts_batches(self) -> None:
        """Hold a whole number that no operator reads, as a normalisation of batches does."""
        self._counters += _COUNTER

    def given(self, name: str, shape: tuple[int, ...], dtype: str | None = None) -> Sheet:
        """Return a tensor that is handed in."""
        sheet = self._sheet(name, shape, "input", dtype)
        self.inputs.append(sheet)
        self.template.inputs.append(self.template.wires[sheet.wire].tensor)
        return sheet

    def call(
        self,
        name: str,
        target: str,
        shape: tuple[int, ...],
        arguments: Mapping[str, Any],
        *,
        pointwise: bool = False,
        dtype: str | None = None,
    ) -> Sheet:
        """Append an operator that makes a new tensor of ``shape``."""
        op, _, overload = target.partition(".")
        takes: dict[int, tuple[int, Look]] = {}
        given = tuple((label, self._taken(value, takes)) for label, value in arguments.items())
        made = self._sheet(name, shape, "activation", dtype)
        call = Call(op, overload, given, (_tensor(made, -1),), pointwise=pointwise)
        ends = Ends(tuple(look for _, look in takes.values()), (made.wire,))
        self.template.add(name, f"aten.{target}", name, call, ends)
        self.steps.append(DrawnCall(name, target, tuple(arguments.items()), (made,)))
        return made

    def look(self, target: str, sheet: Sheet, views: Sequence[View], arguments: Mapping[str, Any]) -> tuple[Sheet, ...]:
        """Append a node that only looks at a tensor in another way; each view is a shape, strides and an offset."""
        op, _, overload = target.partition(".")
        takes: dict[int, tuple[int, Look]] = {}
        given = tuple((label, self._taken(value, takes)) for label, value in {"self": sheet, **arguments}.items())
        made = tuple(self._seen(sheet.wire, *view, *sheet[5:]) for view in views)
        outputs = tuple(_tensor(result, -1 - index) for index, result in enumerate(made))
        call = Call(op, overload, given, outputs, is_view=True)
        self.template.add(op, f"aten.{target}", "", call, Ends(tuple(look for _, look in takes.values())))
        self.steps.append(DrawnCall("", target, (("self", sheet), *arguments.items()), made))
        return made

    def _taken(self, value: Any, takes: dict[int, tuple[int, Look]]) -> Any:
        """Return an argument as a call keeps it, and note the tensors in it."""
        if isinstance(value, Sheet):
            if value.number not in takes:
                takes[value.number] = (len(takes), self._look(value))
            return _tensor(value, takes[value.number][0])
        return tuple(self._taken(item, takes) for item in value) if isinstance(value, tuple) else value

    def _look(self, sheet: Sheet) -> Look:
        looks = self._looks[sheet.wire]
        _, first, _ = next(iter(looks))
        number = looks.setdefault(sheet.layout, len(looks))
        return Look(sheet.wire, number, sheet.strides[-1:] != first[-1:])

    def finished(self, *returned: Sheet) -> Template:
        """Return the whole, which hands back ``returned``."""
        size = self.itemsize
        self.template.held = Held(
            self.parameters,
            round(self.parameters * size),
            round(self._statistics * size) + self._counters,
            counters=self._counters,
        )
        self.template.returned = tuple(dict.fromkeys(sheet.wire for sheet in returned))
        return self.template


def _tensor(sheet: Sheet, identity: int) -> Tensor:
    shape = sheet.shape
    stored = tuple(1 if stride == 0 and size > 1 else size for size, stride in zip(shape, sheet.strides, strict=True))
    return Tensor(shape, stored, sheet.dtype, sheet.itemsize, sheet.role, identity)
