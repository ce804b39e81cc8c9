"""Graph builder for sequence layers: dense layers, normalisations, activations and additions."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mlsys.workloads.graph_builder.builder import GraphBuilder, TensorRef
from mlsys.workloads.torch_import.assemble import Template
from mlsys.workloads.zoo.cnn_builder import CnnBuilder, Shape

# The operator of each activation, and its arguments besides the tensor.
_ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "relu": ("relu.default", {}),
    "relu6": ("hardtanh.default", {"min_val": 0.0, "max_val": 6.0}),
    "silu": ("silu.default", {}),
    "tanh": ("tanh.default", {}),
    "exact gelu": ("gelu.default", {"approximate": "none"}),
    "gelu": ("gelu.default", {"approximate": "tanh"}),
}


class _Parts(NamedTuple):
    """Dense layers that share one input tensor; each is appended where its output is needed."""

    source: TensorRef
    widths: dict[str, int]
    bias: bool


class SequenceLayers(CnnBuilder):
    """Builder that appends calls and edges where :class:`CnnBuilder` appends counts.

    Parameters
    ----------
    name
        Name of the network.
    shape
        Channels, height and width of its images, or the tokens of a sequence.
    abridged
        Whether to append only the first, second and last of repeated layers.
    """

    draws = True

    def __init__(
        self, name: str, batch: int, shape: Shape | int, precision: str, norm: bool = True, abridged: bool = False
    ) -> None:
        pixels = shape if isinstance(shape, tuple) else (1, 1, 1)
        super().__init__(batch, pixels, precision, fused=False, norm=norm)
        self.graph, self._prefix = GraphBuilder(name, precision), ""
        self.abridged = abridged
        self.omitted_layers = 0  # between the second and the last
        self.views_per_layer = 0  # view nodes in each of them
        self._returned: list[TensorRef] = []
        self._tables: list[TensorRef] = []
        self._rotations: tuple[TensorRef, TensorRef] | None = None  # cosine and sine of the rotary positions
        self._parts: _Parts | None = None
        self.at = (
            self.graph.given("input", (batch, *shape))
            if isinstance(shape, tuple)
            else self.graph.given("tokens", (batch, shape), "int64")
        )

    @property
    def returned(self) -> tuple[TensorRef, ...]:
        """The outputs of the network: the tensors of :meth:`hand_back`, then the current one."""
        return (*self._returned, self.at)

    def finished(self) -> Template:
        """Return the finished graph."""
        return self.graph.finished(*self.returned)

    def hand_back(self) -> None:
        """Add the current tensor to the outputs of the network."""
        self._returned.append(self.at)

    @property
    def here(self) -> TensorRef:
        """The current tensor, which the next layer reads."""
        return self.at

    def go_to(self, here: TensorRef) -> None:
        """Continue from an earlier tensor of :attr:`here`."""
        _, *shape = here.shape
        self.at, self.shape = here, (shape[0], shape[1], shape[2])

    def repeated(self, times: int) -> Iterator[int]:
        """Yield once per repetition of the layers appended in the loop, each with weights of its own."""
        self.omitted_layers = max(0, times - 3)
        for index in (0, 1, times - 1) if self.abridged and self.omitted_layers else range(times):
            self._prefix, before, first = f"layer {index + 1} ", self.graph.parameters, len(self.graph.steps)
            yield index
            if self.abridged and index == 1:
                self.graph.parameters += self.omitted_layers * (self.graph.parameters - before)
                self.views_per_layer = sum(not step.path for step in self.graph.steps[first:])
        self._prefix = ""

    def _call(
        self, name: str, target: str, shape: tuple[int, ...], arguments: Mapping[str, Any], **more: Any
    ) -> TensorRef:
        return self.graph.call(f"{self._prefix}{name}", target, shape, arguments, **more)

    def _weight(self, layer: str, name: str, *shape: int) -> TensorRef:
        return self.graph.weight(f"{self._prefix}{layer}.{name}", *shape)

    def _pointwise(self, name: str, target: str, *tensors: TensorRef, **options: Any) -> TensorRef:
        """Append an element-wise operator on one or two tensors; the second is broadcast to the first."""
        arguments = dict(zip(("self", "other"), tensors, strict=False)) | options
        return self._call(name, target, tensors[0].shape, arguments, pointwise=True)

    def dense(
        self,
        name: str,
        rows: int,
        inputs: int,
        outputs: int,
        bias: bool = True,
        extra: int = 0,
        *,
        parts: Mapping[str, int] | None = None,
        tied: bool = False,
    ) -> None:
        """Append a dense layer over the last axis, or over the channels of a pooled image."""
        if len(self.at.shape) == 4:
            flat = ((self.batch, inputs), (inputs, 1), 0)
            (self.at,) = self.graph.view("flatten.using_ints", self.at, [flat], {"start_dim": 1, "end_dim": -1})
        if parts:
            self._parts = _Parts(self.at, dict(parts), bias)
        else:
            self.at = self._linear(name, self.at, outputs, bias, self._tables[0] if tied else None)

    def _linear(
        self, name: str, source: TensorRef, outputs: int, bias: bool, weight: TensorRef | None = None
    ) -> TensorRef:
        arguments = {
            "input": source,
            "weight": weight or self._weight(name, "weight", outputs, source.shape[-1]),
            "bias": self._weight(name, "bias", outputs) if bias else None,
        }
        return self._call(name, "linear.default", (*source.shape[:-1], outputs), arguments)

    def norm(self, name: str, rows: int, width: int, *, centred: bool = True) -> None:
        """Append LayerNorm over the last axis, or RMSNorm when not ``centred``."""
        arguments: dict[str, Any] = {"input": self.at, "normalized_shape": (width,)}
        arguments["weight"] = self._weight(name, "weight", width)
        if centred:
            arguments |= {"bias": self._weight(name, "bias", width), "eps": 1e-05, "cudnn_enable": False}
        else:
            arguments["eps"] = None
        target = "layer_norm.default" if centred else "rms_norm.default"
        self.at = self._call(name, target, self.at.shape, arguments)

    def norm_after(self, name: str, rows: int, width: int) -> None:
        """Append LayerNorm over the last axis."""
        self.norm(name, rows, width)

    def activation(self, name: str, elements: int, kind: str, inputs: int = 1) -> None:
        """Append an activation; with two inputs, a second dense layer of the same input is gated by it."""
        target, options = _ACTIVATIONS[kind]
        if inputs == 1:
            self.at = self._pointwise(name, target, self.at, **options)
            return
        assert self._parts is not None
        (gate, width), (up, _) = self._parts.widths.items()
        source, bias = self.at, self._parts.bias
        gated = self._pointwise(name, target, self._linear(gate, source, width, bias), **options)
        self.at = self._pointwise(f"{name} gate", "mul.Tensor", gated, self._linear(up, source, width, bias))

    def add(self, name: str, elements: int, start: Any = None, body: Any = None) -> None:
        """Add the tensor ``body`` to ``start``."""
        self.at = self._pointwise(name, "add.Tensor", start, body, alpha=1)

    def _transposed(self, tensor: TensorRef) -> TensorRef:
        """Return a view with the second and third axes swapped."""
        shape, strides = (
            (first, third, second, *rest) for first, second, third, *rest in (tensor.shape, tensor.strides)
        )
        (swapped,) = self.graph.view(
            "transpose.int", tensor, [(tuple(shape), tuple(strides), tensor.offset)], {"dim0": 1, "dim1": 2}
        )
        return swapped
