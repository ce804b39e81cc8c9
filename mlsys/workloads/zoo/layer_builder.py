"""The builder that counts a network operator by operator, in plain integers.

The constructors of :mod:`mlsys.workloads.operators` check every argument and record the
provenance of every number, which costs a tenth of a millisecond each. The networks of the
catalogue have known shapes and hundreds of operators, so they are counted here in integers
by the same formulas (a test compares the two).

By default, normalisation is folded into the preceding matrix product, and activations,
additions, pooling and rearrangements are fused in registers: the builder lists only matrix
products, attention and embedding look-ups. With ``fused=False`` each of the others is an
operator of its own that reads and writes whole tensors, and attention scores cross memory.
Biases and folded normalisations count as parameters; their few bytes do not count as traffic.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlsys.frozen import FrozenDict
from mlsys.precision import PRECISIONS, precision_name
from mlsys.units import ureg
from mlsys.workloads.operator import Operator
from mlsys.workloads.operators import LAYER_NORM_OPERATIONS, SOFTMAX_OPERATIONS

_FLOP, _BYTE = ureg.Unit("FLOP"), ureg.Unit("byte")
_SOFTMAX = sum(SOFTMAX_OPERATIONS.values())
_LAYER_NORM = sum(LAYER_NORM_OPERATIONS.values())

# FLOP per element, each comparison, addition, multiplication, division or exponential counted as one.
ACTIVATION_OPERATIONS = FrozenDict(
    {
        "relu": 1,
        "relu6": 2,
        "squared relu": 2,
        "leaky relu": 2,
        "hard sigmoid": 4,  # add, two comparisons, scale
        "sigmoid": 4,  # negate, exponential, add, divide
        "tanh": 5,  # two exponentials' worth: scale, exponential, add, subtract, divide
        "hard swish": 5,
        "quick gelu": 6,  # scale, then silu
        "silu": 5,
        "mish": 9,  # two exponentials' worth: exponential, add, logarithm, then tanh (5) and a product
        "exact gelu": 5,  # scale, error function, add one, product, halve
        # Both branches: square, scale, line, add; least, exponential, subtract, scale, add; and the choice.
        "xielu": 10,
        "gelu": 10,  # of the tanh form: cube and scale (4), tanh (4), add, multiply
    }
)


def _changed(operator: Operator, **values: Any) -> Operator:
    """Return a copy of an operator with some values changed; faster than ``dataclasses.replace``."""
    other = object.__new__(Operator)
    other.__dict__.update(operator.__dict__, **values)
    return other


def attention_in_one_kernel(operator: Operator) -> Operator:
    """Return attention whose scores stay on the chip, as torch's ``scaled_dot_product_attention``; others unchanged.

    Examples
    --------
    >>> builder = LayerBuilder("fp16", fused=False)
    >>> builder.attention("attention", 1, 1, 4, 4, 8)
    >>> print(builder.operators[0].data, attention_in_one_kernel(builder.operators[0]).data)
    384 B 256 B
    """
    if operator.kind != "attention":
        return operator
    data = operator.data.m_as("byte") - _score_bytes(operator.shape, PRECISIONS[operator.precision] / 8)
    return _changed(operator, data=ureg.Quantity(data, _BYTE))


def _score_bytes(shape: Mapping[str, int], size: float) -> float:
    """Return the bytes of scores that are written, read, written as probabilities, and read."""
    pairs = shape.get("pairs", shape["queries"] * shape["keys"])
    return 4 * shape["batch"] * shape["heads"] * pairs * size


class LayerBuilder:
    """Builder of a list of operators.

    Parameters
    ----------
    precision
        Number format of activations, and of weights unless ``weight_bits`` is given.
    fused
        Whether to leave out operators that can be fused with a matrix product.
    weight_bits
        Bits per stored weight, including the scales of its block.
    whole
        Whether the work of fused operators counts with the operator that they are fused with.
    cache_precision
        Number format of the key-value cache; by default ``precision``.
    """

    def __init__(
        self,
        precision: str = "fp16",
        fused: bool = True,
        weight_bits: float | None = None,
        cache_precision: str | None = None,
        whole: bool = False,
    ) -> None:
        self.whole, self._pending_flops = whole, 0
        self.precision = precision_name(precision)
        self.fused = fused
        self.size = PRECISIONS[self.precision] / 8
        self.weight_size = self.size if weight_bits is None else weight_bits / 8
        self.uniform_weights = weight_bits is not None  # whether one format for all weights was requested
        self.operator_bits: Mapping[str, float] | None = None  # bits per stored weight, if operators differ
        self.cache_size = self.size if cache_precision is None else PRECISIONS[precision_name(cache_precision)] / 8
        self.operators: list[Operator] = []

    def write(
        self,
        name: str,
        kind: str,
        flops: int,
        moved: float,
        weights: float = 0,
        parameters: int = 0,
        shape: dict[str, int] | None = None,
    ) -> None:
        """Append an operator of ``flops`` FLOP that moves ``moved`` bytes, ``weights`` of them weights."""
        flops, self._pending_flops = flops + self._pending_flops, 0
        self.operators.append(
            Operator(
                name=name,
                kind=kind,
                precision=self.precision,
                operations=ureg.Quantity(flops, _FLOP),
                data=ureg.Quantity(moved, _BYTE),
                shape=FrozenDict(shape or {}),
                weights=ureg.Quantity(weights, _BYTE),
                parameters=parameters,
            )
        )

    draws = False  # whether it tracks tensors: identical layers must then be appended one by one

    def repeated(self, times: int) -> Iterator[int]:
        """Yield once; the operators appended in the loop body are then repeated to run ``times`` times in all."""
        first = len(self.operators)
        yield 0
        self.operators += self.operators[first:] * (times - 1)

    @property
    def counts_all(self) -> bool:
        """Whether work besides the matrix products counts, such as bias additions."""
        return self.whole or not self.fused

    @property
    def here(self) -> Any:
        """The current tensor, which this builder does not track."""
        return None

    def weight_size_of(self, name: str) -> float:
        """Return the bytes per stored weight of an operator."""
        return self.weight_size if self.operator_bits is None else self.operator_bits[name] / 8

    @staticmethod
    def without_parameters(operator: Operator) -> Operator:
        """Return the operator without parameters, for one that shares another's weights."""
        return _changed(operator, parameters=0)

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
        """Append a dense layer: (rows × inputs) by (inputs × outputs), the second a weight matrix.

        ``extra`` parameters are folded into it. ``parts`` gives the outputs of the separate layers that the code
        has instead; a ``tied`` layer shares the table of an earlier embedding.
        """
        stored = inputs * outputs
        weights = stored * self.weight_size_of(name)
        self.write(
            name,
            "gemm",
            2 * rows * stored + (rows * outputs if bias and self.counts_all else 0),
            weights + rows * (inputs + outputs) * self.size,
            weights,
            (0 if tied else stored) + (outputs if bias else 0) + extra,
            {"m": rows, "n": outputs, "k": inputs},
        )

    def heads_apart(self, name: str, rows: int, inputs: int, outputs: int, heads: int) -> None:
        """Append one (rows × inputs) by (inputs × outputs) product per head, each with its own weights."""
        stored = heads * inputs * outputs
        weights = stored * self.weight_size_of(name)
        moved = weights + heads * rows * (inputs + outputs) * self.size
        shape = {"m": rows, "n": outputs, "k": inputs, "copies": heads}
        self.write(name, "gemm", 2 * rows * stored, moved, weights, stored, shape)

    def batched(self, name: str, m: int, n: int, k: int, copies: int) -> None:
        """Append ``copies`` (m × k) by (k × n) products of two activations."""
        self.write(
            name,
            "gemm",
            2 * m * n * k * copies,
            copies * (m * k + k * n + m * n) * self.size,
            shape={"m": m, "n": n, "k": k, "copies": copies},
        )

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
        """Append scaled-dot-product attention.

        ``values_among_keys`` is the width of values that are part of their keys and not read again.
        ``pairs`` is the number of queries × keys scores computed (a causal mask halves it). ``causal`` and
        ``rotary`` matter to the graph builder and count nothing here.
        """
        shared = heads if kv_heads is None else kv_heads
        scores = batch * heads * (queries * keys if pairs is None else pairs)
        moved = batch * head_dim * (2 * heads * queries * self.size + 2 * shared * keys * self.cache_size)
        moved -= batch * shared * keys * values_among_keys * self.cache_size
        shape = {"batch": batch, "heads": heads, "queries": queries, "keys": keys, "head_dim": head_dim}
        if pairs is not None and pairs != queries * keys:
            shape["pairs"] = pairs
        if queries == 1 and shared < heads:  # read once for all queries of a group
            shape["kv_heads"] = shared
        if not self.fused:
            moved += _score_bytes(shape, self.size)
        self.write(name, "attention", (4 * head_dim + _SOFTMAX) * scores, moved, parameters=extra, shape=shape)

    def embedding(
        self, name: str, rows: int, width: int, parameters: int, tables: int = 1, lengths: Sequence[int] = ()
    ) -> None:
        """Append ``rows`` look-ups in each of ``tables`` embedding tables of ``lengths`` rows, and their sum."""
        read = rows * width * tables * self.weight_size_of(name)
        self.write(
            name,
            "embedding",
            rows * width * (tables - 1),
            read + rows * width * self.size,
            read,
            parameters,
            {"rows": rows, "width": width, "tables": tables},
        )

    def norm(self, name: str, rows: int, width: int, *, centred: bool = True) -> None:
        """Append a layer normalisation, whose parameters the product that reads it counts as ``extra``."""
        if self.fused and self.whole:  # fused into the operator that reads it
            self._pending_flops += rows * width * _LAYER_NORM
        else:
            self.ride_along(name, rows * width, _LAYER_NORM)

    def add(self, name: str, elements: int, start: Any = None, body: Any = None) -> None:
        """Append a residual addition; ``start`` and ``body`` matter only to the graph builder."""
        self.ride_along(name, elements, 1, inputs=2)

    def activation(self, name: str, elements: int, kind: str, inputs: int = 1) -> None:
        """Append an activation; with two ``inputs``, it gates the second one."""
        self.ride_along(name, elements, ACTIVATION_OPERATIONS[kind] + inputs - 1, inputs)

    def rotary_positions(self, tokens: int, head_dim: int) -> None:
        """Append the rotary position table that all layers share; too small to count here."""

    def first_token(self) -> None:
        """Select the first token of each sequence."""

    def hand_back(self) -> None:
        """Add the current tensor to the outputs of the network."""

    def norm_after(self, name: str, rows: int, width: int) -> None:
        """Append a layer normalisation that is fused into the operator before it."""
        self.ride_along(name, rows * width, _LAYER_NORM)

    def norm_of_whole(self, name: str, elements: int, parameters: int = 0) -> None:
        """Append a normalisation over whole images (instance or group norm), which is never fused.

        Its statistics need a full pass over the input, which is then read a second time.
        """
        moved, operations = 3 * elements * self.size, elements * _LAYER_NORM if self.counts_all else 0
        self.write(name, "elementwise", operations, moved, parameters=parameters, shape={"elements": elements})

    def ride_along(self, name: str, elements: int, per_element: int, inputs: int = 1, parameters: int = 0) -> None:
        """Append an element-wise operator; if fused or empty, only add its parameters to the last operator."""
        if elements and not self.fused:
            moved = elements * (inputs + 1) * self.size
            self.write(
                name, "elementwise", elements * per_element, moved, parameters=parameters, shape={"elements": elements}
            )
            return
        self.work_along(elements * per_element)
        if parameters:
            last = self.operators[-1]
            self.operators[-1] = _changed(last, parameters=last.parameters + parameters)

    def work_along(self, flops: int) -> None:
        """Add fused work to the last operator if ``whole``."""
        if self.whole and flops:
            last = self.operators[-1]  # counted in FLOP, as `write` has it
            whole = ureg.Quantity(last.operations.magnitude + flops, _FLOP)
            self.operators[-1] = _changed(last, operations=whole)
