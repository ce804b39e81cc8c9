"""A tape that draws: each layer that a recipe appends becomes the calls that torch would make of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mlsys.errors import ArgumentError
from mlsys.workloads.drawn.sketch import Sheet, Sketch
from mlsys.workloads.torch_import.assemble import Template
from mlsys.workloads.zoo.picture import Pair, Picture, Shape

__all__ = ["DrawnTape"]

# The operator of each activation, and what it is told beside its tensor.
_ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "relu": ("relu.default", {}),
    "relu6": ("hardtanh.default", {"min_val": 0.0, "max_val": 6.0}),
    "silu": ("silu.default", {}),
    "tanh": ("tanh.default", {}),
    "exact gelu": ("gelu.default", {"approximate": "none"}),
    "gelu": ("gelu.default", {"approximate": "tanh"}),
}
_ROTATION = 10000.0  # Su et al. 2021, section 3.3


class _Parts(NamedTuple):
    """Dense layers that read one tensor and are drawn where each is needed."""

    sheet: Sheet
    widths: dict[str, int]
    bias: bool


class DrawnTape(Picture):
    """Appends calls and edges where a :class:`Picture` appends counts; arguments as there.

    Parameters
    ----------
    name
        Of the network.
    shape
        Channels, height and width of its pictures; or the tokens of a sequence.
    """

    draws = True

    def __init__(self, name: str, batch: int, shape: Shape | int, precision: str, norm: bool = True) -> None:
        pixels = shape if isinstance(shape, tuple) else (1, 1, 1)
        super().__init__(batch, pixels, precision, fused=False, norm=norm)
        self.sketch, self._prefix = Sketch(name, precision), ""
        self._returned: list[Sheet] = []
        self._tables: list[Sheet] = []
        self._turns: tuple[Sheet, Sheet] | None = None
        self._parts: _Parts | None = None
        self.at = (
            self.sketch.given("input", (batch, *shape))
            if isinstance(shape, tuple)
            else self.sketch.given("tokens", (batch, shape), "int64")
        )

    # --- where we are ------------------------------------------------------------------------

    @property
    def returned(self) -> tuple[Sheet, ...]:
        """What the network hands back: the tensors of :meth:`hand_back`, and the one as it is now."""
        return (*self._returned, self.at)

    def finished(self) -> Template:
        """Return the graph."""
        return self.sketch.finished(*self.returned)

    def hand_back(self) -> None:
        """Return the tensor as it is now, and go on."""
        self._returned.append(self.at)

    @property
    def here(self) -> Sheet:
        """The tensor as it is now."""
        return self.at

    def go_to(self, here: Sheet) -> None:
        """Go on from a picture that was there before."""
        _, *shape = here.shape
        self.at, self.shape = here, (shape[0], shape[1], shape[2])

    def scope(self, name: str) -> None:
        """Put ``name`` before the names of what follows."""
        self._prefix = f"{name} " if name else ""

    def repeated(self, times: int) -> Iterator[int]:
        """Yield as often as what is appended meanwhile runs: each time it has weights of its own."""
        for place in range(times):
            self.scope(f"layer {place + 1}")
            yield place
        self.scope("")

    def _call(self, name: str, target: str, shape: tuple[int, ...], arguments: Mapping[str, Any], **more: Any) -> Sheet:
        return self.sketch.call(f"{self._prefix}{name}", target, shape, arguments, **more)

    def _weight(self, layer: str, name: str, *shape: int) -> Sheet:
        return self.sketch.weight(f"{self._prefix}{layer}.{name}", *shape)

    def _pointwise(self, name: str, target: str, *sheets: Sheet, **told: Any) -> Sheet:
        """Append an operator on single elements of one tensor or two, the second no larger than the first."""
        arguments = dict(zip(("self", "other"), sheets, strict=False)) | told
        return self._call(name, target, sheets[0].shape, arguments, pointwise=True)

    # --- pictures ----------------------------------------------------------------------------

    def _convolve(
        self,
        name: str,
        made: Shape,
        kernel: tuple[int, int],
        stride: int,
        padding: Pair | str | None,
        dilation: int,
        groups: int,
        bias: bool,
        extra: int,
    ) -> None:
        into, (out, *_) = self.channels, made
        if padding is None or isinstance(padding, str):  # on both sides alike, as torch pads
            padding = (dilation * (kernel[0] // 2), dilation * (kernel[1] // 2))
        arguments = {
            "input": self.at,
            "weight": self._weight(name, "weight", out, into // groups, *kernel),
            "bias": self._weight(name, "bias", out) if bias else None,
            "stride": (stride, stride),
            "padding": padding if isinstance(padding, tuple) else (padding, padding),
            "dilation": (dilation, dilation),
            "groups": groups,
        }
        self.at, self.shape = self._call(name, "conv2d.default", (self.batch, *made), arguments), made

    def batch_norm(self, name: str) -> None:
        """Append a normalisation of each channel by its stored mean and variance."""
        arguments = {
            "input": self.at,
            **{label: self._weight(name, label, self.channels) for label in ("weight", "bias")},
            **{
                label: self.sketch.statistic(f"{self._prefix}{name}.{label}", self.channels)
                for label in ("running_mean", "running_var")
            },
            **{"training": False, "momentum": 0.1, "eps": 1e-05, "cudnn_enabled": False},
        }
        self.sketch.counts_batches()
        self.at = self._call(name, "batch_norm.default", self.at.shape, arguments)

    def _pool(self, name: str, made: Shape, kernel: int, stride: int, padding: int | str, ceil: bool) -> None:
        if isinstance(padding, str):
            raise ArgumentError(f"{name!r} cannot be drawn: torch pads both sides alike. Give its padding as a number")
        pairs = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": 1}
        told = {label: (size, size) for label, size in pairs.items()}
        arguments = {"self": self.at, **told, "ceil_mode": ceil}
        self.at, self.shape = self._call(name, "max_pool2d.default", (self.batch, *made), arguments), made

    def global_pool(self) -> None:
        """Average each channel."""
        self.shape = (self.channels, 1, 1)
        arguments = {"self": self.at, "output_size": (1, 1)}
        self.at = self._call("global pool", "adaptive_avg_pool2d.default", (self.batch, *self.shape), arguments)

    def as_tokens(self, tokens: int, width: int) -> None:
        """Read the pixels as tokens, put one of their class before them and add learned positions."""
        pixels = tokens - 1
        first = self.sketch.weight("class token", 1, 1, width)
        places = self.sketch.weight("positions", 1, tokens, width)
        flat = ((self.batch, width, pixels), (width * pixels, pixels, 1), 0)
        (rows,) = self.sketch.look("flatten.using_ints", self.at, [flat], {"start_dim": 2, "end_dim": -1})
        rows = self._transposed(rows)
        size = (self.batch, -1, -1)
        wide = ((self.batch, 1, width), (0, width, 1), 0)
        (first,) = self.sketch.look("expand.default", first, [wide], {"size": size, "implicit": False})
        arguments = {"tensors": (first, rows), "dim": 1}
        self.at = self._call("class token and patches", "cat.default", (self.batch, tokens, width), arguments)
        self.at = self._pointwise("positions", "add.Tensor", self.at, places, alpha=1)

    # --- rows --------------------------------------------------------------------------------

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
        """Append a dense layer over the last axis; of a pooled picture it sees the channels."""
        if len(self.at.shape) == 4:
            flat = ((self.batch, inputs), (inputs, 1), 0)
            (self.at,) = self.sketch.look("flatten.using_ints", self.at, [flat], {"start_dim": 1, "end_dim": -1})
        if parts:
            self._parts = _Parts(self.at, dict(parts), bias)
        else:
            self.at = self._linear(name, self.at, outputs, bias, self._tables[0] if tied else None)

    def _linear(self, name: str, given: Sheet, outputs: int, bias: bool, weight: Sheet | None = None) -> Sheet:
        arguments = {
            "input": given,
            "weight": weight or self._weight(name, "weight", outputs, given.shape[-1]),
            "bias": self._weight(name, "bias", outputs) if bias else None,
        }
        return self._call(name, "linear.default", (*given.shape[:-1], outputs), arguments)

    def norm(self, name: str, rows: int, width: int, *, centred: bool = True) -> None:
        """Append a normalisation over the last axis: of mean and variance, or of the mean square alone."""
        arguments: dict[str, Any] = {"input": self.at, "normalized_shape": (width,)}
        arguments["weight"] = self._weight(name, "weight", width)
        if centred:
            arguments |= {"bias": self._weight(name, "bias", width), "eps": 1e-05, "cudnn_enable": False}
        else:
            arguments["eps"] = None
        target = "layer_norm.default" if centred else "rms_norm.default"
        self.at = self._call(name, target, self.at.shape, arguments)

    def norm_after(self, name: str, rows: int, width: int) -> None:
        """Append a normalisation over the last axis."""
        self.norm(name, rows, width)

    def activation(self, name: str, elements: int, kind: str, inputs: int = 1) -> None:
        """Append an activation; a gate multiplies it with a second layer of the same input."""
        target, told = _ACTIVATIONS[kind]
        if inputs == 1:
            self.at = self._pointwise(name, target, self.at, **told)
            return
        (gate, width), (up, _) = self._taken_apart().items()
        given, bias = self.at, bool(self._parts and self._parts.bias)
        gated = self._pointwise(name, target, self._linear(gate, given, width, bias), **told)
        self.at = self._pointwise(f"{name} gate", "mul.Tensor", gated, self._linear(up, given, width, bias))

    def _taken_apart(self) -> dict[str, int]:
        assert self._parts is not None
        return self._parts.widths

    def add(self, name: str, elements: int, start: Any = None, body: Any = None) -> None:
        """Add the tensor ``body`` to ``start``."""
        self.at = self._pointwise(name, "add.Tensor", start, body, alpha=1)

    # --- sequences ---------------------------------------------------------------------------

    def embedding(
        self, name: str, rows: int, width: int, parameters: int, tables: int = 1, lengths: Sequence[int] = ()
    ) -> None:
        """Append look-ups of tokens, of places, and of the kind of each token, and their sum."""
        tokens, places = self.at, None
        length = tokens.shape[1]
        if tables > 1:
            places = self._arange("places", length, {"end": length})
        self.at = self._rows(name, lengths[0], width, tokens)
        if places is not None:
            found = self._rows(f"{name} of places", lengths[1], width, places)
            self.at = self._pointwise(f"{name} add", "add.Tensor", self.at, found, alpha=1)
        if tables > 2:
            told = dict.fromkeys(("dtype", "layout", "device"))
            told = {"self": tokens, **told, "pin_memory": False, "memory_format": None}
            kinds = self._call("kinds", "zeros_like.default", tokens.shape, told, dtype="int64")
            found = self._rows(f"{name} of kinds", lengths[2], width, kinds)
            self.at = self._pointwise(f"{name} add", "add.Tensor", self.at, found, alpha=1)

    def _rows(self, name: str, length: int, width: int, which: Sheet) -> Sheet:
        table = self._weight(name, "weight", length, width)
        self._tables.append(table)
        told = {"padding_idx": -1, "scale_grad_by_freq": False, "sparse": False}
        return self._call(name, "embedding.default", (*which.shape, width), {"weight": table, "indices": which, **told})

    def _arange(self, name: str, length: int, told: Mapping[str, int]) -> Sheet:
        arguments = {**told, "dtype": None, "layout": None, "device": "meta", "pin_memory": False}
        target = "arange.default" if len(told) == 1 else "arange.start_step"
        return self._call(name, target, (length,), arguments, dtype="int64")

    def first_token(self) -> None:
        """Go on with the first token of each sequence alone."""
        batch, _, width = self.at.shape
        first = (batch, width), (self.at.strides[0], 1), 0
        (self.at,) = self.sketch.look("select.int", self.at, [first], {"dim": 1, "index": 0})

    def attention(
        self,
        name: str,
        batch: int,
        heads: int,
        queries: int,
        keys: int,
        head_dim: int,
        kv_heads: int | None = None,
        pairs: int | None = None,
        extra: int = 0,
        *,
        causal: bool = False,
        rotary: bool = False,
    ) -> None:
        """Append attention of what the dense layer before it made: queries, keys and values."""
        shared = kv_heads or heads
        if self._parts is not None and self._parts.sheet is self.at:
            given, bias = self.at, self._parts.bias
            sides = []
            for (layer, width), count in zip(self._parts.widths.items(), (heads, shared, shared), strict=True):
                side = self._heads(self._linear(layer, given, width, bias), count)
                sides.append(self._turned(layer, side) if rotary and layer != "value" else side)
        else:
            width = heads * head_dim
            views = [
                ((batch, queries, width), self.at.strides, place * width) for place in range(3)
            ]  # heads of keys and values are as many as those of queries
            parts = self.sketch.look("chunk.default", self.at, views, {"chunks": 3, "dim": -1})
            sides = [self._heads(part, heads) for part in parts]
        told = {"attn_mask": None, "dropout_p": 0.0, "is_causal": causal, "scale": None, "enable_gqa": shared != heads}
        arguments = dict(zip(("query", "key", "value"), sides, strict=True)) | told
        seen = self._call(name, "scaled_dot_product_attention.default", sides[0].shape, arguments)
        flat = {"self": self._transposed(seen), "start_dim": 2, "end_dim": -1}
        self.at = self._call(f"{name} rows", "flatten.using_ints", (batch, queries, heads * head_dim), flat)

    def _heads(self, rows: Sheet, heads: int) -> Sheet:
        """Return (batch, tokens, width) as (batch, heads, tokens, head)."""
        batch, tokens, width = rows.shape
        shape = (batch, tokens, heads, width // heads)
        strides = (*rows.strides[:2], width // heads, 1)
        (split,) = self.sketch.look("view.default", rows, [(shape, strides, rows.offset)], {"size": shape})
        return self._transposed(split)

    def _transposed(self, sheet: Sheet) -> Sheet:
        """Return a look in which the second and the third axis have changed places."""
        shape, strides = ((first, third, second, *rest) for first, second, third, *rest in (sheet.shape, sheet.strides))
        (turned,) = self.sketch.look(
            "transpose.int", sheet, [(tuple(shape), tuple(strides), sheet.offset)], {"dim0": 1, "dim1": 2}
        )
        return turned

    def rotary_positions(self, tokens: int, head_dim: int) -> None:
        """Append the cosine and the sine of each place and pair of features, in FP32 until they are used."""
        plain = None if self.sketch.dtype in ("float32", "tf32") else "float32"
        half, sketch = head_dim // 2, self.sketch
        rates = self._arange("pairs", half, {"start": 0, "end": head_dim, "step": 2})
        rates = sketch.call("negated", "neg.default", (half,), {"self": rates}, pointwise=True, dtype="int64")
        rates = sketch.call(
            "share", "div.Tensor", (half,), {"self": rates, "other": head_dim}, pointwise=True, dtype=plain
        )
        told = {"self": _ROTATION, "exponent": rates}
        rates = sketch.call("rates", "pow.Scalar", (half,), told, pointwise=True, dtype=plain)
        places = self._arange("places", tokens, {"end": tokens})
        (places,) = sketch.look("view.default", places, [((tokens, 1), (1, 1), 0)], {"size": (tokens, 1)})
        told = {"self": places, "other": rates}
        angles = sketch.call("angles", "mul.Tensor", (tokens, half), told, pointwise=True, dtype=plain)
        told = {"self": angles, "repeats": (1, 2)}
        angles = sketch.call("angles twice", "repeat.default", (tokens, head_dim), told, dtype=plain)
        told = {"dtype": f"torch.{sketch.dtype}", "non_blocking": False, "copy": False, "memory_format": None}
        if plain is None:
            (angles,) = sketch.look("to.dtype", angles, [angles.layout], told)
        else:
            angles = sketch.call("angles rounded", "to.dtype", angles.shape, {"self": angles, **told})
        self._turns = (self._pointwise("cosine", "cos.default", angles), self._pointwise("sine", "sin.default", angles))

    def _turned(self, name: str, sheet: Sheet) -> Sheet:
        """Return rotary positions (Su et al. 2021) applied to (batch, heads, tokens, head)."""
        assert self._turns is not None
        cosine, sine = self._turns
        half = (*sheet.shape[:3], sheet.shape[3] // 2)
        views = [(half, sheet.strides, sheet.offset + place * half[-1]) for place in range(2)]
        first, second = self.sketch.look("chunk.default", sheet, views, {"chunks": 2, "dim": -1})
        kept = self._pointwise(f"{name} cosine", "mul.Tensor", sheet, cosine)
        second = self._pointwise(f"{name} negated", "neg.default", second)
        swapped = self._call(f"{name} swapped", "cat.default", sheet.shape, {"tensors": (second, first), "dim": -1})
        swapped = self._pointwise(f"{name} sine", "mul.Tensor", swapped, sine)
        return self._pointwise(f"{name} turned", "add.Tensor", kept, swapped, alpha=1)
