"""Import of ONNX models as workloads: every node becomes a call, counted by the rules of torch's operators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsys.errors import ArgumentError, UnknownNameError, first_line
from mlsys.workloads.onnx_faults import refuse_impossible_sizes, refuse_too_many_nodes, refuse_unsound
from mlsys.workloads.onnx_file import read_model, without_weights
from mlsys.workloads.onnx_shapes import GraphShapes
from mlsys.workloads.onnx_sizes import fix_sizes, requested_sizes, sizes_of_inputs
from mlsys.workloads.onnx_tensors import call_tensor
from mlsys.workloads.onnx_topology import sort_nodes

if TYPE_CHECKING:
    from mlsys.workloads.workload import Workload


def from_onnx(model: object, *, sizes: Mapping[str, int] | None = None, name: str | None = None) -> Workload:
    """Return an ONNX model as a workload.

    The graph is checked before it is counted: the order of its nodes, the shapes and element types of the inputs and
    outputs of each node, and the data of its weights, as far as they are in the file itself. Weights in other files are
    counted by their shapes and not read. Reshaping is a view; transposing, slicing and splitting copy, as ONNX defines
    them. Constant expressions are evaluated once, before the first pass, at no cost; a weight that is only transposed,
    cast or dequantised there is read in its stored format. For an ``If`` the branch with more work is counted; the body
    of a ``Loop`` or ``Scan`` is counted once per iteration, if their number is in the graph. Nodes that no output needs
    are counted, since ONNX Runtime 1.31 runs them at every optimisation level; a note gives their work.

    Parameters
    ----------
    model
        Path of a ``.onnx`` file, or an ``onnx.ModelProto``.
    sizes
        Values of the sizes that the model leaves open, by their names in the model; a size without a name is named by
        its input and axis, such as ``"x[0]"``.
    name
        Name of the network; by default the name of the graph.

    Returns
    -------
    Workload
        The network; its ``sizes`` hold the batch, if the inputs agree on one, the sequence, and each open size.

    Raises
    ------
    ArgumentError
        If the file is missing or not an ONNX model, onnx is not installed, a size is open, or the graph cannot run: a
        cycle, an undefined name, inputs of a node that do not match, a declared output that differs from the computed
        one.
    UnknownNameError
        If ``sizes`` names an unknown size.

    Examples
    --------
    >>> from onnx import TensorProto, helper
    >>> shapes = {"a": ("n", 4), "b": (4, 5)}
    >>> inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    >>> output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    >>> graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["y"])], "product", inputs, [output])
    >>> print(from_onnx(helper.make_model(graph), sizes={"n": 3}).macs)
    60 MAC
    """
    onnx = _onnx()
    proto = _loaded(onnx, model)
    try:
        return _built(onnx, proto, dict(sizes or {}), name)
    except (ArgumentError, UnknownNameError):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # malformed parts
        raise ArgumentError(
            f"from_onnx(): the model is invalid ({type(error).__name__}: {first_line(error)})"
        ) from error


def wanted_sizes(model: object, given: Mapping[str, int], sizes: Mapping[str, int], option: str) -> dict[str, int]:
    """Return values of a model's open sizes, from a batch and a sequence if they are given.

    Parameters
    ----------
    model
        As for :func:`from_onnx`.
    given
        The batch and the sequence, if given; defaults: a batch of 1 and a sequence of 128.
    sizes
        Values by their names in the model.
    option
        Format in which errors write the name of an argument.

    Raises
    ------
    ArgumentError
        If the model has no such size, or fixes it at another value.
    """
    return requested_sizes(_loaded(_onnx(), model).graph, given, sizes, option)


def _built(onnx: Any, proto: Any, sizes: dict[str, int], name: str | None) -> Workload:
    refuse_impossible_sizes(proto)
    refuse_too_many_nodes(proto)
    usual = sizes_of_inputs(proto.graph, sizes)
    fix_sizes(proto.graph, sizes)
    proto = onnx.inliner.inline_local_functions(proto) if proto.functions else proto
    sort_nodes(proto.graph)
    refuse_unsound(onnx, proto)
    shapes = GraphShapes(onnx, proto.graph, proto.opset_import)

    from mlsys.workloads.onnx_nodes import NodeWriter
    from mlsys.workloads.torch_import.assemble import Template
    from mlsys.workloads.torch_import.symbolic import Expressions
    from mlsys.workloads.totals import Held

    held = Held(*(sum(each) for each in zip((0, 0), *shapes.weights(), strict=True)))
    template = Template(name or proto.graph.name or "ONNX model", "ONNX", held, Expressions(), {}, {})
    writer = NodeWriter(onnx, template)
    writer.write(shapes)
    if writer.branches:
        template.source = "ONNX, of each `If` the branch with more work"
    template.notes = writer.notes()
    template.returned = writer.wires_of(item.name for item in proto.graph.output)
    stored = {item.name for item in proto.graph.initializer}
    template.inputs = [
        call_tensor(onnx, shapes.tensors[item.name], shapes.tensors[item.name], "input", 0)
        for item in proto.graph.input
        if item.name not in stored and shapes.tensors[item.name].shape is not None
    ]
    workload = template.at(usual)
    if not template.places:
        raise ArgumentError("from_onnx(): no node depends on an input of the model: all of it is constant")
    return workload


def _onnx() -> Any:
    try:
        import onnx
        import onnx.inliner
        import onnx.reference
        import onnx.shape_inference
    except ImportError as error:
        raise ArgumentError(
            "from_onnx(): the package onnx is not installed. Install it with: pip install 'mlsys[onnx]'"
        ) from error
    return onnx


def _loaded(onnx: Any, model: Any) -> Any:
    if isinstance(model, (str, Path)):
        proto = read_model(onnx, Path(model))
    elif isinstance(model, onnx.ModelProto):
        proto = without_weights(onnx, model)
    else:
        proto = None
    if proto is None or not proto.graph.node:
        raise ArgumentError(
            "from_onnx(): `model` must be an ONNX model with at least one node, or its path, "
            f"got {type(model).__name__}. Write e.g. from_onnx('model.onnx')"
        )
    return proto
