"""Eager execution: the memory-bound kernels that a framework adds when operators run one by one.

Compiled networks fuse activations, additions and normalisations with a product. Eager execution reads the inputs
and writes the result of each, and writes the attention scores to memory. The number of kernels follows from PyTorch
code: huggingface/transformers scales, masks and normalises the scores one after the other (``_attn`` of
models/gpt2/modeling_gpt2.py), and computes the approximate GELU with eight operators (``NewGELUActivation``).
"""

import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlsys.mapping.fusion import in_loops
from mlsys.models.estimate.lowering import Format, concatenated, kernels_of
from mlsys.models.estimate.work import MATMUL, VECTOR, Work
from mlsys.precision import element_size
from mlsys.units import number_in, ureg
from mlsys.workloads import Network, Operator
from mlsys.workloads.counted_operator import CountedOperator

_BYTE = ureg.Unit("byte")

# Settings fitted to individual kernels; eager settings on CPUs were fitted to products that include the rest.
# TensorFlow, too, runs operators individually unless XLA compiles them (tensorflow.org/xla: "one by one").
_SETTINGS = re.compile(
    r"((eager( ROCm| small units)?|TensorFlow) (network|llm prefill)|eager( small units)? training) on GPU"
    r"|eager transformer network on CPU"
)
# Eager PyTorch on CPUs was fitted to convolutional networks, with the rest included; other networks run one by one.
_OF_CONVOLUTIONS, WITHOUT_CONVOLUTIONS = "eager network on CPU", "eager transformer network on CPU"
# PyTorch's Inductor and XLA generate loops, and call cuBLAS and cuDNN for products and convolutions, without fusing
# anything into them (pytorch.org/docs, torch.compiler; openxla.org/xla, "library calls").
_LOOPS = re.compile(r"(torch\.compile|TensorFlow XLA( 1)?) network on GPU")

# Kernels over the scores in addition to the two products: scale, mask, softmax; each reads and writes all scores.
SCORE_KERNELS = 3.0
# Networks that add a tensor to the scores, which is read as well: OPT adds a mask as large as the scores of one head,
# read from memory again for each head, then takes a maximum; T5 and similar networks add a bias per head, without
# scaling (models/opt/modeling_opt.py, models/t5/modeling_t5.py of transformers 4.33).
ADDED_TO_SCORES = ((re.compile("OPT-|opt-"), 2.0), (re.compile("T5|t5|[Ss]witch"), 1.0))
# Bytes of the gradient of a memory-bound operator, relative to the operator itself: that of a unary operator reads two
# tensors and writes one instead of one and one; that of a product of two tensors writes two.
GRADIENT_PASSES = 1.5
# Weight-sized tensors moved when a gradient is added to the previous one.
ADDING = 3.0
# The approximate GELU as separate operators: their number, and tensors read and written relative to one fused kernel.
GELU_KERNELS, GELU_PASSES, GELU_OPERATIONS = 8.0, 18.0 / 2.0, 10


def one_by_one(setting: str) -> bool:
    """Return whether the parameters of a setting apply to individually run operators.

    Examples
    --------
    >>> one_by_one("eager network on GPU"), one_by_one("compiled network on GPU")
    (True, False)
    """
    return _SETTINGS.fullmatch(setting) is not None


def loops_between_products(setting: str) -> bool:
    """Return whether a setting's software compiles loops between products and calls libraries for the products.

    Examples
    --------
    >>> loops_between_products("torch.compile network on GPU"), loops_between_products("compiled network on GPU")
    (True, False)
    """
    return _LOOPS.fullmatch(setting) is not None


@lru_cache(maxsize=512)
def run_as(setting: str) -> str:
    """Return how a setting's software runs a network: ``"kernels"``, ``"loops"`` or ``"one by one"``.

    ``"with convolutions"`` means fused kernels for networks that have convolutions, and one by one for others.

    Examples
    --------
    >>> [run_as(f"{program} network on GPU") for program in ("compiled", "torch.compile", "eager")]
    ['kernels', 'loops', 'one by one']
    """
    if setting == _OF_CONVOLUTIONS:
        return "with convolutions"
    return "one by one" if one_by_one(setting) else "loops" if loops_between_products(setting) else "kernels"


def of_network(setting: str, convolutions: bool) -> str:
    """Return the setting whose parameters apply to a network: that of plain products if it has no convolutions.

    Linear layers of eager PyTorch on a CPU call the same library as those of torch.compile.

    Examples
    --------
    >>> [of_network("eager network on CPU", convolutions) for convolutions in (True, False)]
    ['eager network on CPU', 'eager transformer network on CPU']
    """
    return WITHOUT_CONVOLUTIONS if setting == _OF_CONVOLUTIONS and not convolutions else setting


class Ran(NamedTuple):
    """Kernels that a network runs as, with the row of the network's arrays (the operator) that each belongs to."""

    work: Work
    owner: NDArray[np.intp]


def eager_kernels(network: Network, fmt: Format, written_out: bool = True, winograd: float = 1.0) -> Work:
    """Return the kernels of a network whose operators run one by one.

    Parameters
    ----------
    network
        Built in FP16, without fusion.
    fmt
        Bytes of a weight and of another value.
    written_out
        Whether attention scores are written to memory, as by code written before PyTorch 2; false where it calls
        ``scaled_dot_product_attention``.
    winograd
        As for :func:`mlsys.models.estimate.lowering.kernels_of`.

    Examples
    --------
    >>> from mlsys.models.estimate.lowering import kernels_of
    >>> from mlsys.workloads import zoo
    >>> half = Format("fp16", 2, 2)
    >>> compiled = kernels_of(zoo.network("gpt2", precision="fp16"), half)
    >>> eager = eager_kernels(zoo.network("gpt2", precision="fp16", fused=False), half)
    >>> int(compiled["count"].sum()), int(eager["count"].sum())
    (62, 255)
    """
    return ran_apart(network, fmt, written_out, winograd).work


def ran_apart(network: Network, fmt: Format | None, written_out: bool, winograd: float = 1.0) -> Ran:
    """Return the kernels of :func:`eager_kernels` with the operators they belong to; ``fmt`` as for ``kernels_of``."""
    plain = kernels_of(network, fmt, winograd=winograd)
    columns = plain.columns.copy()
    row_of = Work.FIELDS.index
    for row, operator in enumerate(network.distinct):
        if operator.kind == "elementwise" and operator.name.endswith(" gelu"):
            elements = operator.shape["elements"]
            if columns[row_of("flops"), row] == GELU_OPERATIONS * elements:
                columns[row_of("count"), row] = plain["count"][row] * GELU_KERNELS
                columns[row_of("moved"), row] = plain["moved"][row] * GELU_PASSES / GELU_KERNELS
    scores, width = _scores(network, fmt)
    here, rows = scores > 0, np.arange(columns.shape[1])
    # Counted without fusion, scores cross the memory four times: written and read by the products, and once in between.
    columns[row_of("moved")] -= np.where(here, (2 if written_out else 4) * scores * width, 0.0)
    if not written_out:
        return Ran(Work(columns), rows)
    second = _halved(columns, here)
    plainly, adds = score_kernels(network.name)
    beside, adding = np.zeros((2, len(Work.FIELDS), int(here.sum())))
    for kernels, tensors, times in ((beside, 2, plainly), (adding, 3, float(adds))):
        kernels[row_of("kind")] = VECTOR
        kernels[row_of("moved")] = (tensors * scores * width)[here]
        for name in ("m", "n", "k", "batch", "ranks"):
            kernels[row_of(name)] = 1.0
        kernels[row_of("count")] = times * plain["count"][here]
    adding[row_of("flops")] = scores[here]
    own = [columns, second, beside, *([adding] if adds else [])]
    return Ran(concatenated(*(Work(part) for part in own)), np.concatenate([rows, *(len(own) - 1) * [rows[here]]]))


def score_kernels(network: str) -> tuple[float, bool]:
    """Return the number of kernels that read and write a network's scores, and whether one adds a tensor to them.

    Examples
    --------
    >>> score_kernels("GPT-2 774M"), score_kernels("OPT-1.3B")
    ((3.0, False), (2.0, True))
    """
    plainly = next((count for pattern, count in ADDED_TO_SCORES if pattern.match(network)), None)
    return (SCORE_KERNELS, False) if plainly is None else (plainly, True)


def ran_as_listed(network: Network, fmt: Format | None, written_out: bool, winograd: float = 1.0) -> Ran:
    """Return one kernel for each operator of a network; attention without its scores if it is one kernel."""
    work = kernels_of(network, fmt, winograd=winograd)
    columns = work.columns.copy()
    if not written_out:
        scores, width = _scores(network, fmt)
        columns[Work.FIELDS.index("moved")] -= 4 * scores * width
    return Ran(Work(columns), np.arange(columns.shape[1]))


def _scores(network: Network, fmt: Format | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the attention scores counted in each row of a network's arrays, and the bytes of a value."""
    scores, width = np.zeros((2, len(network.arrays)))
    for row, operator in enumerate(network.distinct):
        if operator.kind == "attention":
            scores[row] = scores_of(operator)
            width[row] = fmt.value if fmt else number_in(element_size(operator.precision), _BYTE)
    return scores, width


def _halved(columns: NDArray[np.float64], here: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Halve the columns in place, for the first product of attention (queries by keys), and return the second's."""
    row_of = Work.FIELDS.index
    for name in ("flops", "moved", "batch"):
        columns[row_of(name), here] /= 2
    second = columns[:, here].copy()
    second[row_of("n")], second[row_of("k")] = columns[row_of("k"), here], columns[row_of("n"), here]
    return second


def with_gradients(work: Work, width: float, passes: float = 1.0) -> Work:
    """Return a forward pass of operators that run one by one, followed by the kernels of its gradients.

    A product (M × K) by (K × N) adds two products, for the gradients of its two operands: (M × N) by (N × K), and (K ×
    M) by (M × N). A product by weights adds two more kernels, which sum the gradient for the bias and accumulate the
    weight gradient. The gradient of every other kernel moves ``GRADIENT_PASSES`` times its bytes.

    Parameters
    ----------
    work
        The forward pass.
    width
        Bytes of a value.
    passes
        Number of forward runs: 2 with activation recomputation.

    Examples
    --------
    >>> from mlsys.models.estimate.work import Kernel
    >>> both = with_gradients(Work.of([Kernel(MATMUL, 2.0 * 8 * 4 * 2, 0.0, m=8, n=4, k=2)]), width=4)
    >>> [tuple(int(both[name][row]) for name in "mnk") for row in range(3)]
    [(8, 4, 2), (8, 2, 4), (2, 4, 8)]
    """
    row_of = Work.FIELDS.index
    product, by_weights = work["kind"] == MATMUL, (work["kind"] == MATMUL) & (work["weights"] > 0)
    forward, inputs, weights = work.columns.copy(), work.columns.copy(), work.columns[:, product].copy()
    forward[row_of("count")] *= passes
    inputs[row_of("n")] = np.where(product, work["k"], work["n"])
    inputs[row_of("k")] = np.where(product, work["n"], work["k"])
    inputs[row_of("moved")] *= np.where(product, 1.0, GRADIENT_PASSES)
    weights[row_of("m")], weights[row_of("k")] = work["k"][product], (work["m"] * (1 + work["extra_steps"]))[product]
    weights[row_of("extra_steps")] = 0.0
    weights[row_of("weights")] = 0.0
    sums, added = np.zeros((2, len(Work.FIELDS), int(by_weights.sum())))
    for name in ("m", "n", "k", "batch", "ranks"):
        sums[row_of(name)] = added[row_of(name)] = 1.0
    for kernels in (sums, added):
        kernels[row_of("kind")], kernels[row_of("count")] = VECTOR, work["count"][by_weights]
    sums[row_of("moved")] = (work["m"] * work["n"] * work["batch"] * (1 + work["extra_steps"]))[by_weights] * width
    added[row_of("moved")] = ADDING * work["weights"][by_weights]
    return concatenated(*(Work(columns) for columns in (forward, inputs, weights, sums, added)))


def looped_kernels(network: Network, fmt: Format, written_out: bool = True, winograd: float = 1.0) -> Work:
    """Return the kernels of a network with library products and one compiled loop between two products.

    Parameters
    ----------
    network, fmt, written_out, winograd
        As for :func:`eager_kernels`.

    Examples
    --------
    >>> from mlsys.workloads import zoo
    >>> network, half = zoo.network("resnet50", precision="fp16", fused=False), Format("fp16", 2, 2)
    >>> int(looped_kernels(network, half)["count"].sum()), int(eager_kernels(network, half)["count"].sum())
    (107, 174)
    """
    return ran_as_listed(in_loops(network), fmt, written_out, winograd).work


def image_by_image(work: Work, batch: int, width: float) -> Work:
    """Return a network's kernels where each convolution runs once per image, with an explicit im2col.

    Parameters
    ----------
    work
        Kernels of ``batch`` images.
    batch
        Number of images.
    width
        Bytes of a value.

    Notes
    -----
    Caffe and Torch7 do so without cuDNN (BVLC/caffe, src/caffe/layers/conv_layer.cu; torch/cunn,
    SpatialConvolutionMM.cu): the im2col matrix holds the inputs of every output, and a plain product reads it again.
    """
    here = (work["kind"] == MATMUL) & (work["weights"] > 0) & (work["m"] > batch)
    columns = work.columns.copy()
    row_of = Work.FIELDS.index
    unfolded = work["m"] / batch * work["k"] * width
    outputs = work["m"] / batch * work["n"] * work["batch"] * width
    for name, alone in (
        ("m", work["m"] / batch),
        ("flops", work["flops"] / batch),
        ("count", work["count"] * batch),
        ("moved", unfolded * work["batch"] + outputs + work["weights"]),
    ):
        columns[row_of(name)] = np.where(here, alone, columns[row_of(name)])
    unfolding = columns[:, here].copy()
    inputs = ((work["moved"] - work["weights"]) / batch - outputs)[here]
    unfolding[row_of("kind")] = VECTOR
    unfolding[row_of("moved")] = (unfolded * work["batch"])[here] + np.maximum(inputs, 0.0)
    for name, value in (("flops", 0.0), ("weights", 0.0), ("m", 1.0), ("n", 1.0), ("k", 1.0), ("batch", 1.0)):
        unfolding[row_of(name)] = value
    return concatenated(Work(columns), Work(unfolding))


def scores_of(operator: Operator) -> float:
    """Return the attention scores included in an operator's bytes; 0 for fused attention and for captured operators."""
    if isinstance(operator, CountedOperator):
        return 0.0
    shape = operator.shape
    heads = shape["batch"] * shape["heads"]
    most = 2 * heads * shape["head_dim"] * (shape["queries"] + shape["keys"])  # queries, keys, values and results
    if number_in(operator.data, _BYTE) <= most * number_in(element_size(operator.precision), _BYTE):
        return 0.0
    return float(heads * shape.get("pairs", shape["queries"] * shape["keys"]))
