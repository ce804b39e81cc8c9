"""ONNX models as workloads: every node becomes a call and is counted by the rules of torch's operators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlsys.errors import ArgumentError, UnknownNameError, first_line
from mlsys.workloads.onnx_faults import refuse_impossible_sizes, refuse_too_many_nodes, refuse_unsound
from mlsys.workloads.onnx_file import read_model, without_weights
from mlsys.workloads.onnx_shapes import GraphShapes
from mlsys.workloads.onnx_sizes import fix_sizes, sizes_asked, sizes_of_inputs
from mlsys.workloads.onnx_tensors import call_tensor
from mlsys.workloads.onnx_topology import sort_nodes

if TYPE_CHECKING:
    from mlsys.workloads.workload import Workload


def from_onnx(model: object, *, sizes: Mapping[str, int] | None = None, name: str | None = None) -> Workload:
    """Read an ONNX model as a workload.

    The graph is checked before it is counted: the order of its nodes, the shapes and element types of what each
    node takes and makes, and the data of its weights, as far as they lie in the file itself. Weights in other
    files are counted by their shapes and not read.

    Reshaping is a view; transposing, slicing and splitting copy, as ONNX defines them. What follows from
    constants alone is computed once, before the first pass, and costs nothing in it; a weight that is only
    transposed, cast or dequantised there is read in the format in which it is stored. Of an ``If`` the branch
    with more work is counted; the body of a ``Loop`` or ``Scan`` as often as it runs, where the graph says so.
    Nodes that no output needs are counted, as ONNX Runtime 1.31 runs them at every level of optimisation; a note
    says how much they come to.

    Parameters
    ----------
    model
        The path of a ``.onnx`` file, or an ``onnx.ModelProto``.
    sizes
        Numbers for the sizes that the model leaves open, by the model's names for them; one without a name is
        called by its input and axis, such as ``"x[0]"``.
    name
        What to call it; by default the name of the graph.

    Returns
    -------
    Workload
        Its ``sizes`` hold the batch, where the inputs agree on one, the sequence, and each size that was open.

    Raises
    ------
    ArgumentError
        If the file is missing or no ONNX model, onnx is not installed, a size is open, or the graph is none that
        can run: a cycle, a name that nothing makes, inputs of a node that do not fit, a declared output that is
        not the computed one.
    UnknownNameError
        If ``sizes`` names a size that the model does not have.

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
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # parts that no writer makes
        raise ArgumentError(
            f"from_onnx(): the model is not sound ({type(error).__name__}: {first_line(error)})"
        ) from error


def wanted_sizes(model: object, given: Mapping[str, int], sizes: Mapping[str, int], option: str) -> dict[str, int]:
    """Return numbers for the sizes that a model leaves open, from a batch and a sequence where they are given.

    Parameters
    ----------
    model
        As :func:`from_onnx` takes it.
    given
        The batch and the sequence, if any; by default a batch of 1 and a sequence of 128.
    sizes
        Numbers by the model's names for them.
    option
        How an error writes the name of what was given.

    Raises
    ------
    ArgumentError
        If the model has no such size, or fixes it at another number.
    """
    return sizes_asked(_loaded(_onnx(), model).graph, given, sizes, option)


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
        raise ArgumentError(
            "from_onnx(): no node depends on an input of the model: all of it is constant, and nothing is left to run"
        )
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
