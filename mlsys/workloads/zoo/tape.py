"""Writes networks down operator by operator, in plain integers.

The makers of :mod:`mlsys.workloads.operators` check every argument and remember where a
number came from; that costs a tenth of a millisecond each. The networks of the catalogue
have known shapes and hundreds of operators, so they are counted here in integers, by the
same formulas (a test holds the two together).

What is counted. By default normalisation is folded into the product before it, and
activations, additions, pooling and rearranging ride along in registers: the tape holds the
matrix products, attention and table look-ups, and nothing else. With ``fused=False`` each
of the others is an operator of its own that reads and writes whole tensors, and the scores
of attention cross memory. Biases and folded normalisation count as parameters; their few
bytes do not count as traffic.
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
        "gelu": 10,  # of the tanh form: cube and scale (4), tanh (4), add, multiply
    }
)


def _changed(operator: Operator, **values: Any) -> Operator:
    """Return an operator with other values, as ``replace`` does, which sets every field anew and one by one."""
    other = object.__new__(Operator)
    other.__dict__.update(operator.__dict__, **values)
    return other


def attention_in_one_kernel(operator: Operator) -> Operator:
    """Return attention whose scores stay on the chip, as torch's ``scaled_dot_product_attention``; others unchanged.

    Examples
    --------
    >>> tape = Tape("fp16", fused=False)
    >>> tape.attention("attention", 1, 1, 4, 4, 8)
    >>> print(tape.operators[0].data, attention_in_one_kernel(tape.operators[0]).data)
    384.0 B 256.0 B
    """
    if operator.kind != "attention":
        return operator
    data = operator.data.m_as("byte") - _score_bytes(operator.shape, PRECISIONS[operator.precision] / 8)
    return _changed(operator, data=ureg.Quantity(data, _BYTE))


def _score_bytes(shape: Mapping[str, int], size: float) -> float:
    """Return the bytes of scores that are written, read, written as probabilities, and read."""
    pairs = shape.get("pairs", shape["queries"] * shape["keys"])
    return 4 * shape["batch"] * shape["heads"] * pairs * size


class Tape:
    """A list of operators in the making.

    Parameters
    ----------
    precision
        Number format of activations, and of weights unless ``weight_bits`` says otherwise.
    fused
        Leave out what can ride along with a product.
    weight_bits
        Bits that one stored weight takes, scales of its block included.
    whole
        Whether the work of what rides along counts with the operator that it rides on.
    cache_precision
        Number format of keys and values kept from earlier steps; by default ``precision``.
    """

    def __init__(
        self,
        precision: str = "fp16",
        fused: bool = True,
        weight_bits: float | None = None,
        cache_precision: str | None = None,
        whole: bool = False,
    ) -> None:
        self.whole, self._waiting = whole, 0
        self.precision = precision_name(precision)
        self.fused = fused
        self.size = PRECISIONS[self.precision] / 8
        self.weight_size = self.size if weight_bits is None else weight_bits / 8
        self.weights_alike = weight_bits is not None  # whether one format of all weights was asked for
        self.operator_bits: Mapping[str, float] | None = None  # bits of a stored weight, where operators differ
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
        """Append an operator of ``flops`` that moves ``moved`` bytes, ``weights`` of them parameters."""
        flops, self._waiting = flops + self._waiting, 0
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

    draws = False  # whether it follows every tensor: layers that are alike must then be appended one by one

    def repeated(self, times: int) -> Iterator[int]:
        """Yield once, and let everything appended meanwhile run ``times`` times in all, as the same objects."""
        first = len(self.operators)
        yield 0
        self.operators += self.operators[first:] * (times - 1)

    @property
    def counts_all(self) -> bool:
        """Whether work beside the products counts: additions of biases, say."""
        return self.whole or not self.fused

    @property
    def here(self) -> Any:
        """The tensor as it is now, which a tape that counts does not follow."""
        return None

    def weight_size_of(self, name: str) -> float:
        """Return the bytes that one stored weight of an operator takes."""
        return self.weight_size if self.operator_bits is None else self.operator_bits[name] / 8

    @staticmethod
    def without_parameters(operator: Operator) -> Operator:
        """Return the same operator with weights that another one holds."""
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
        """Append rows × inputs by inputs × outputs, the second a weight; ``extra`` parameters fold into it.

        ``parts`` are the outputs of the layers that it is made of, where code has several; the matrix of a ``tied``
        layer is the table of an earlier look-up.
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
        """Append, for each head, rows × inputs by inputs × outputs, the second a weight of its own."""
        stored = heads * inputs * outputs
        weights = stored * self.weight_size_of(name)
        moved = weights + heads * rows * (inputs + outputs) * self.size
        shape = {"m": rows, "n": outputs, "k": inputs, "copies": heads}
        self.write(name, "gemm", 2 * rows * stored, moved, weights, stored, shape)

    def batched(self, name: str, m: int, n: int, k: int, copies: int) -> None:
        """Append ``copies`` products of two activations."""
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

        ``values_among_keys`` is the width of values that are a part of their keys, and not read again.
        ``pairs`` is how many of the queries × keys scores are computed (a causal mask halves them); ``causal`` and
        ``rotary`` positions say what code does, and count nothing here.
        """
        shared = heads if kv_heads is None else kv_heads
        scores = batch * heads * (queries * keys if pairs is None else pairs)
        moved = batch * head_dim * (2 * heads * queries * self.size + 2 * shared * keys * self.cache_size)
        moved -= batch * shared * keys * values_among_keys * self.cache_size
        shape = {"batch": batch, "heads": heads, "queries": queries, "keys": keys, "head_dim": head_dim}
        if pairs is not None and pairs != queries * keys:
            shape["pairs"] = pairs
        if not self.fused:
            moved += _score_bytes(shape, self.size)
        self.write(name, "attention", (4 * head_dim + _SOFTMAX) * scores, moved, parameters=extra, shape=shape)

    def embedding(
        self, name: str, rows: int, width: int, parameters: int, tables: int = 1, lengths: Sequence[int] = ()
    ) -> None:
        """Append ``rows`` look-ups in each of ``tables`` tables, of these ``lengths``, whose rows are summed."""
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
        if self.fused and self.whole:  # it is done by whoever reads it
            self._waiting += rows * width * _LAYER_NORM
        else:
            self.ride_along(name, rows * width, _LAYER_NORM)

    def add(self, name: str, elements: int, start: Any = None, body: Any = None) -> None:
        """Add a shortcut; what is added is said where the edges are drawn too."""
        self.ride_along(name, elements, 1, inputs=2)

    def activation(self, name: str, elements: int, kind: str, inputs: int = 1) -> None:
        """Append an activation; a gate multiplies it with a second input."""
        self.ride_along(name, elements, ACTIVATION_OPERATIONS[kind] + inputs - 1, inputs)

    def rotary_positions(self, tokens: int, head_dim: int) -> None:
        """Make what turns queries and keys, once for all layers: a few numbers for each token."""

    def first_token(self) -> None:
        """Go on with the first token of each sequence alone."""

    def hand_back(self) -> None:
        """Return the tensor as it is now, and go on."""

    def norm_after(self, name: str, rows: int, width: int) -> None:
        """Append a layer normalisation that whoever makes its input does."""
        self.ride_along(name, rows * width, _LAYER_NORM)

    def norm_of_whole(self, name: str, elements: int, parameters: int = 0) -> None:
        """Append a normalisation of whole pictures, which rides along with nothing.

        Its statistics are known when all was read, which is then read once more.
        """
        moved, operations = 3 * elements * self.size, elements * _LAYER_NORM if self.counts_all else 0
        self.write(name, "elementwise", operations, moved, parameters=parameters, shape={"elements": elements})

    def ride_along(self, name: str, elements: int, per_element: int, inputs: int = 1, parameters: int = 0) -> None:
        """Append an element-wise operator; fused, or of no elements, only its parameters stay, with the last."""
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
        """Count work with the operator before it, where the whole work is asked for."""
        if self.whole and flops:
            last = self.operators[-1]  # counted in FLOP, as `write` has it
            whole = ureg.Quantity(last.operations.magnitude + flops, _FLOP)
            self.operators[-1] = _changed(last, operations=whole)
