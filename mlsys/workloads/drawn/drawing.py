"""A tape that draws: each layer that a recipe appends becomes the calls that torch would make of it."""

from collections.abc import Mapping, Sequence

from mlsys.workloads.drawn.pictures import DrawnPictures
from mlsys.workloads.drawn.sketch import Sheet

_ROTATION = 10000.0  # Su et al. 2021, section 3.3


class DrawnTape(DrawnPictures):
    """Draws any network whose recipe says what reads what; arguments as of :class:`mlsys.workloads.drawn.DrawnRows`.

    Examples
    --------
    >>> net = DrawnTape("two layers", 4, (3, 32, 32), "fp32")
    >>> net.conv("first", 16, 3)
    >>> net.classify(10)
    >>> print(net.finished().at({}).macs)
    1770112 MAC
    """

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
            looked_up = self._rows(f"{name} of places", lengths[1], width, places)
            self.at = self._pointwise(f"{name} add", "add.Tensor", self.at, looked_up, alpha=1)
        if tables > 2:
            told = dict.fromkeys(("dtype", "layout", "device"))
            told = {"self": tokens, **told, "pin_memory": False, "memory_format": None}
            kinds = self._call("kinds", "zeros_like.default", tokens.shape, told, dtype="int64")
            looked_up = self._rows(f"{name} of kinds", lengths[2], width, kinds)
            self.at = self._pointwise(f"{name} add", "add.Tensor", self.at, looked_up, alpha=1)

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
        values_among_keys: int = 0,
    ) -> None:
        """Append attention of what the dense layer before it made: queries, keys and values."""
        assert not values_among_keys, "only steps of decoding attend to a latent cache, and no step is drawn"
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
                ((batch, queries, width), self.at.strides, index * width) for index in range(3)
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
        views = [(half, sheet.strides, sheet.offset + index * half[-1]) for index in range(2)]
        first, second = self.sketch.look("chunk.default", sheet, views, {"chunks": 2, "dim": -1})
        kept = self._pointwise(f"{name} cosine", "mul.Tensor", sheet, cosine)
        second = self._pointwise(f"{name} negated", "neg.default", second)
        swapped = self._call(f"{name} swapped", "cat.default", sheet.shape, {"tensors": (second, first), "dim": -1})
        swapped = self._pointwise(f"{name} sine", "mul.Tensor", swapped, sine)
        return self._pointwise(f"{name} turned", "add.Tensor", kept, swapped, alpha=1)
