"""Conversion of ONNX nodes to calls of a template, with the tensors that they read and make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mlsys.workloads.einsum_order import order_in_words
from mlsys.workloads.onnx_needed import needed_nodes
from mlsys.workloads.onnx_operators import call_of
from mlsys.workloads.onnx_subgraphs import bodies_that_may_run, runs_to_the_end, scanned_inputs, trips
from mlsys.workloads.onnx_tensors import TensorInfo, call_tensor
from mlsys.workloads.onnx_topology import is_standard
from mlsys.workloads.torch_import.calls import Call, Tensor
from mlsys.workloads.torch_import.rules import counts_of
from mlsys.workloads.torch_import.wiring import Ends, View, Wire

if TYPE_CHECKING:
    from mlsys.workloads.onnx_shapes import GraphShapes
    from mlsys.workloads.torch_import.assemble import Template

_NOT_DATA = frozenset({"Shape", "Size", "Constant", "ConstantOfShape", "Range"})
_MOST_REPEATED = 20_000  # limit of the nodes of unrolled loop bodies
_NOTHING = Tensor((0,), (0,), "", 0, "activation")


class NodeWriter:
    """Converter that adds the nodes of a graph to a template.

    Parameters
    ----------
    onnx
        The onnx package.
    template
        The template that nodes are added to.

    Attributes
    ----------
    branches
        Number of ``If`` nodes whose branch was chosen by its work.
    """

    def __init__(self, onnx: Any, template: Template) -> None:
        self._onnx, self._template = onnx, template
        self._looks: dict[str, View] = {}
        self._inputs: frozenset[str] = frozenset()
        self.branches = 0
        self._unneeded: set[int] = set()  # among the calls of the template
        self._orders: list[str] = []

    def notes(self) -> tuple[str, ...]:
        """Return notes on the counts where several conventions are in use."""
        calls = [self._template.calls[self._template.places[index].call] for index in self._unneeded]
        counts = [counts_of(call) for call in calls if not call.is_view]
        orders = tuple(dict.fromkeys(self._orders))
        if not counts:
            return orders
        flops = sum(2 * count.macs + count.elementwise for count in counts)
        nodes = "1 node makes" if len(counts) == 1 else f"{len(counts):,} nodes make"
        unneeded = f"{nodes} unused tensors: counted, as ONNX Runtime runs unused nodes, with {flops:,} FLOP"
        return (*orders, unneeded)

    def wires_of(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the wires of tensors that nodes read or make."""
        return tuple(self._looks[name].wire for name in names if name in self._looks)

    def write(self, scope: GraphShapes, path: str = "", trip: str = "") -> None:
        """Add the nodes of a graph, and those of its subgraphs that run.

        Parameters
        ----------
        scope
            The graph.
        path
            Names of the enclosing nodes.
        trip
            Suffix that distinguishes the iterations of a loop body.
        """
        if not path:
            self._inputs = frozenset(item.name for item in scope.graph.input)
        needed = needed_nodes(scope)
        for index, node in enumerate(scope.graph.node):
            outputs = [name for name in node.output if name]
            if is_standard(node) and node.op_type in _NOT_DATA:
                continue
            if outputs and all(scope.tensors[name].constant for name in outputs):
                continue
            name = f"{path}{node.name or f'{node.op_type.lower()}_{index}'}"
            first = len(self._template.places)
            if not self._within(node, scope, f"{name}{trip}/"):
                self._add(node, scope, f"{name}{trip}", index)
            if index not in needed:
                self._unneeded.update(range(first, len(self._template.places)))

    def _add(self, node: Any, scope: GraphShapes, name: str, index: int) -> None:
        call, known = self._call(node, scope)
        if node.op_type == "Einsum" and len(node.input) > 2 and known:
            equation = next(item.s.decode() for item in node.attribute if item.name == "equation")
            shapes = [scope.tensors[each].shape or () for each in node.input]
            self._orders.append(
                order_in_words(equation, shapes, "left to right, as ONNX Runtime runs it", None, outer=2)
            )
        names = [each for each in dict.fromkeys(node.input) if each and scope.tensors[each].shape is not None]
        taken = tuple(self._look(names[tensor.identity], scope) for tensor in call.inputs)
        if call.is_view:
            self._looks[node.output[0]] = self._look(node.input[0], scope)._replace(view=index + 1)
        for each in node.output:
            if each and not call.is_view:
                self._looks.pop(each, None)  # from an earlier iteration of the body
        made = () if call.is_view else tuple(self._look(each, scope).wire for each in node.output if each)
        target = f"{node.domain or 'ai.onnx'}.{node.op_type}"
        self._template.add(name, target if known else f"{target}, of unknown shape", "", call, Ends(taken, made))

    def _look(self, name: str, scope: GraphShapes) -> View:
        """Return the view of a tensor; a weight in another shape or format is a view of the stored one."""
        if name not in self._looks:
            source = scope.tensors[name].source
            if source:
                self._looks[name] = self._look(source, scope)._replace(view=-1)
            else:
                self._looks[name] = View(len(self._template.wires))
                self._template.wires.append(Wire(name, self._tensor(name, scope, 0) or _NOTHING))
        return self._looks[name]

    def _tensor(self, name: str, scope: GraphShapes, identity: int) -> Tensor | None:
        """Return a tensor for the counting rules; None if its shape is unknown."""
        info = scope.tensors[name]
        if info.shape is None:
            return None
        stored = scope.tensors[info.source] if info.source else info
        return call_tensor(self._onnx, info, stored, self._role(name, info), identity)

    def _call(self, node: Any, scope: GraphShapes) -> tuple[Call, bool]:
        """Return a node as a call, and whether the shapes of all of its inputs and outputs are known."""
        identities: dict[str, int] = {}
        given = []
        for name in node.input:
            tensor = self._tensor(name, scope, 0) if name else None
            if tensor is not None:
                tensor = tensor._replace(identity=identities.setdefault(name, len(identities)))
            given.append(tensor)
        named = [name for name in node.output if name]
        made_here = [self._tensor(name, scope, -1 - index) for index, name in enumerate(node.output) if name]
        outputs = tuple(tensor for tensor in made_here if tensor is not None)
        inputs_known = all(tensor is not None or not name for name, tensor in zip(node.input, given, strict=True))
        # Outputs beyond the first may be of unknown shape, such as the statistics of a normalisation.
        if not inputs_known or not named or not made_here or made_here[0] is None:
            numbered = tuple((str(slot), tensor) for slot, tensor in enumerate(given))
            return Call(f"{node.op_type} (of unknown shape)", "", numbered, outputs), not is_standard(node)
        attributes = {item.name: self._onnx.helper.get_attribute_value(item) for item in node.attribute}
        return call_of(node.op_type, node.domain, given, outputs, attributes), True

    def _within(self, node: Any, scope: GraphShapes, path: str) -> bool:
        """Add the subgraphs of a node; return False if it has none or their number of runs depends on data."""
        bodies = bodies_that_may_run(node, scope)
        if not bodies or not is_standard(node):
            return False
        if node.op_type == "If":
            self._branch(node, scope, bodies, path)
            return True
        count = trips(node, scope.tensors)
        body = bodies["body"]
        if count is None or not runs_to_the_end(node, scope) or count * len(body.graph.node) > _MOST_REPEATED:
            return False
        self._repeated(node, scope, body, count, path)
        return True

    def _branch(self, node: Any, scope: GraphShapes, bodies: dict[str, GraphShapes], path: str) -> None:
        chosen = max(bodies.values(), key=self._work)
        self.branches += len(bodies) > 1
        self.write(chosen, path)
        for outer, inner in zip(node.output, chosen.graph.output, strict=False):
            if outer:
                self._looks[outer] = self._look(inner.name, chosen)

    def _work(self, scope: GraphShapes) -> tuple[int, int]:
        """Return the product work and other work of a graph, without its subgraphs."""
        macs = other = 0
        for node in scope.graph.node:
            if node.op_type not in _NOT_DATA and not all(scope.tensors[name].constant for name in node.output if name):
                counts = counts_of(self._call(node, scope)[0])
                macs, other = macs + counts.macs, other + counts.elementwise
        return macs, other

    def _repeated(self, node: Any, scope: GraphShapes, body: GraphShapes, count: int, path: str) -> None:
        """Add a body once per iteration; each iteration starts with the states of the previous one."""
        loop = node.op_type == "Loop"
        names = [item.name for item in body.graph.input]
        inputs = ["", "", *node.input[2:]] if loop else list(node.input)
        for name, outer in zip(names, inputs, strict=False):
            if outer:
                self._looks[name] = self._look(outer, scope)
        results = [item.name for item in body.graph.output][1 if loop else 0 :]
        carried = names[2:] if loop else names[: len(names) - scanned_inputs(node)]
        for trip in range(count):
            self.write(body, path, f" #{trip + 1}")
            looks = [self._look(result, body) for result in results[: len(carried)]]
            self._looks.update(zip(carried, looks, strict=False))
        for outer, name in zip(node.output, [*carried, *[""] * len(results)], strict=False):
            if outer and name:
                self._looks[outer] = self._look(name, body)
            elif outer:
                self._look(outer, scope)

    def _role(self, name: str, info: TensorInfo) -> str:
        if info.constant:
            return "parameter" if info.learned else "constant"
        return "input" if name in self._inputs else "activation"
