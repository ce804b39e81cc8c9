"""The graph builder for whole networks: each layer that a recipe appends becomes the torch calls it consists of."""

from collections.abc import Mapping, Sequence

from mlsys.workloads.graph_builder.builder import TensorRef
from mlsys.workloads.graph_builder.image_layers import ImageLayers

_ROTARY_BASE = 10000.0  # Su et al. 2021, section 3.3


class NetworkBuilder(ImageLayers):
    """Builder of the graph of any network whose recipe states the inputs of every layer.

    It takes the arguments of :class:`mlsys.workloads.graph_builder.SequenceLayers`.

    Examples
    --------
    >>> net = NetworkBuilder("two layers", 4, (3, 32, 32), "fp32")
    >>> net.conv("first", 16, 3)
    >>> net.classify(10)
    >>> print(net.finished().at({}).macs)
    1770112 MAC
    """

    def embedding(
        self, name: str, rows: int, width: int, parameters: int, tables: int = 1, lengths: Sequence[int] = ()
    ) -> None:
        """Append look-ups of the embeddings of tokens, positions and token types, and their sum."""
        tokens, positions = self.at, None
        length = tokens.shape[1]
        if tables > 1:
            positions = self._arange("places", length, {"end": length})
        self.at = self._look_up(name, lengths[0], width, tokens)
        if positions is not None:
            looked_up = self._look_up(f"{name} of places", lengths[1], width, positions)
            self.at = self._pointwise(f"{name} add", "add.Tensor", self.at, looked_up, alpha=1)
        if tables > 2:
            defaults = dict.fromkeys(("dtype", "layout", "device"))
            arguments = {"self": tokens, **defaults, "pin_memory": False, "memory_format": None}
            types = self._call("kinds", "zeros_like.default", tokens.shape, arguments, dtype="int64")
            looked_up = self._look_up(f"{name} of kinds", lengths[2], width, types)
            self.at = self._pointwise(f"{name} add", "add.Tensor", self.at, looked_up, alpha=1)

    def _look_up(self, name: str, length: int, width: int, indices: TensorRef) -> TensorRef:
        table = self._weight(name, "weight", length, width)
        self._tables.append(table)
        arguments = {
            "weight": table,
            "indices": indices,
            "padding_idx": -1,
            "scale_grad_by_freq": False,
            "sparse": False,
        }
        return self._call(name, "embedding.default", (*indices.shape, width), arguments)

    def _arange(self, name: str, length: int, bounds: Mapping[str, int]) -> TensorRef:
        arguments = {**bounds, "dtype": None, "layout": None, "device": "meta", "pin_memory": False}
        target = "arange.default" if len(bounds) == 1 else "arange.start_step"
        return self._call(name, target, (length,), arguments, dtype="int64")

    def first_token(self) -> None:
        """Select the first token of each sequence."""
        batch, _, width = self.at.shape
        first = (batch, width), (self.at.strides[0], 1), 0
        (self.at,) = self.graph.view("select.int", self.at, [first], {"dim": 1, "index": 0})

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
        values_among_keys: int = 0,
    ) -> None:
        """Append attention over the queries, keys and values that the preceding dense layer returns."""
        assert not values_among_keys, "only decoding steps attend to a latent cache, and no graph is built of them"
        shared = kv_heads or heads
        if self._parts is not None and self._parts.source is self.at:
            source, bias = self.at, self._parts.bias
            sides = []
            for (layer, width), count in zip(self._parts.widths.items(), (heads, shared, shared), strict=True):
                side = self._heads(self._linear(layer, source, width, bias), count)
                sides.append(self._rotated(layer, side) if rotary and layer != "value" else side)
        else:
            width = heads * head_dim
            views = [
                ((batch, queries, width), self.at.strides, index * width) for index in range(3)
            ]  # keys and values have as many heads as queries
            parts = self.graph.view("chunk.default", self.at, views, {"chunks": 3, "dim": -1})
            sides = [self._heads(part, heads) for part in parts]
        options = {
            "attn_mask": None, "dropout_p": 0.0, "is_causal": causal, "scale": None, "enable_gqa": shared != heads
        }  # fmt: skip
        arguments = dict(zip(("query", "key", "value"), sides, strict=True)) | options
        attended = self._call(name, "scaled_dot_product_attention.default", sides[0].shape, arguments)
        flat = {"self": self._transposed(attended), "start_dim": 2, "end_dim": -1}
        self.at = self._call(f"{name} rows", "flatten.using_ints", (batch, queries, heads * head_dim), flat)

    def _heads(self, rows: TensorRef, heads: int) -> TensorRef:
        """Return a view of (batch, tokens, width) as (batch, heads, tokens, head_dim)."""
        batch, tokens, width = rows.shape
        shape = (batch, tokens, heads, width // heads)
        strides = (*rows.strides[:2], width // heads, 1)
        (split,) = self.graph.view("view.default", rows, [(shape, strides, rows.offset)], {"size": shape})
        return self._transposed(split)

    def rotary_positions(self, tokens: int, head_dim: int) -> None:
        """Append the cosine and sine of each position and feature pair, computed in FP32 and then rounded."""
        dtype = None if self.graph.dtype in ("float32", "tf32") else "float32"
        half, graph = head_dim // 2, self.graph
        rates = self._arange("pairs", half, {"start": 0, "end": head_dim, "step": 2})
        rates = graph.call("negated", "neg.default", (half,), {"self": rates}, pointwise=True, dtype="int64")
        rates = graph.call(
            "share", "div.Tensor", (half,), {"self": rates, "other": head_dim}, pointwise=True, dtype=dtype
        )
        arguments = {"self": _ROTARY_BASE, "exponent": rates}
        rates = graph.call("rates", "pow.Scalar", (half,), arguments, pointwise=True, dtype=dtype)
        positions = self._arange("places", tokens, {"end": tokens})
        (positions,) = graph.view("view.default", positions, [((tokens, 1), (1, 1), 0)], {"size": (tokens, 1)})
        arguments = {"self": positions, "other": rates}
        angles = graph.call("angles", "mul.Tensor", (tokens, half), arguments, pointwise=True, dtype=dtype)
        arguments = {"self": angles, "repeats": (1, 2)}
        angles = graph.call("angles twice", "repeat.default", (tokens, head_dim), arguments, dtype=dtype)
        cast = {"dtype": f"torch.{graph.dtype}", "non_blocking": False, "copy": False, "memory_format": None}
        if dtype is None:
            (angles,) = graph.view("to.dtype", angles, [angles.layout], cast)
        else:
            angles = graph.call("angles rounded", "to.dtype", angles.shape, {"self": angles, **cast})
        self._rotations = (
            self._pointwise("cosine", "cos.default", angles), self._pointwise("sine", "sin.default", angles)
        )  # fmt: skip

    def _rotated(self, name: str, tensor: TensorRef) -> TensorRef:
        """Return a (batch, heads, tokens, head_dim) tensor with rotary positions (Su et al. 2021) applied."""
        assert self._rotations is not None
        cosine, sine = self._rotations
        half = (*tensor.shape[:3], tensor.shape[3] // 2)
        views = [(half, tensor.strides, tensor.offset + index * half[-1]) for index in range(2)]
        first, second = self.graph.view("chunk.default", tensor, views, {"chunks": 2, "dim": -1})
        kept = self._pointwise(f"{name} cosine", "mul.Tensor", tensor, cosine)
        second = self._pointwise(f"{name} negated", "neg.default", second)
        swapped = self._call(f"{name} swapped", "cat.default", tensor.shape, {"tensors": (second, first), "dim": -1})
        swapped = self._pointwise(f"{name} sine", "mul.Tensor", swapped, sine)
        return self._pointwise(f"{name} turned", "add.Tensor", kept, swapped, alpha=1)
