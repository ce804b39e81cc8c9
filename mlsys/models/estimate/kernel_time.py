"""Time laws of single kernels: matrix products, fused attention, and the power limit.

Each takes the columns of the kernels, the rates of the engines that run them and the fitted parameters, all one
value for each kernel, and ``here``, which of them are meant. :mod:`mlsys.models.estimate.model` puts them together.
"""

import numpy as np
from numpy.typing import NDArray

from mlsys.models.estimate.best_tile import at_best_tiles
from mlsys.models.estimate.work import MATMUL, Work

Array = NDArray[np.float64]

# Cycles from one step of a sum to the next, however small the block: an instruction of a matrix unit, of 16 steps,
# takes about 33 (Ampere, recalled), one of the vector units 4 ("typically", says NVIDIA's CUDA C++ programming guide,
# Multiprocessor Level, of compute capability 7.x); twice as many fit the measurements worse.
# Formats of 4 bits take more steps an instruction; those of 8 bits too, but their sums are then moved on to wider ones.
CHAINED, CHAINED_VECTOR = 2.0, 4.0
LANES = 32.0
# 16-bit FLOP each cycle beyond which a unit is an array of its own, no multiprocessor with a chain of instructions.
LARGEST_UNIT = 10_000.0
# 16-bit FLOP that a unit does each cycle where its tiles are fed one by one (an A100's). Machines whose units do
# more hand an operand to their neighbours as well: clusters of two on Hopper, pairs of pairs on Blackwell.
FED_ALONE = 2048.0
MOST_SHARING = 4.0
# What an operation of the vector units costs over one of the same width in the matrix units, which fetch and
# decode one instruction for hundreds of them: an A100 does 19.5 TFLOP/s in FP32 with the power of 156 in TF32.
VECTOR_ENERGY = 5.0
# What an instruction of four products of 8 bits (DP4A) takes of one of FP32: it fetches as much and multiplies less. A
# T4's 70 W pay for 23 TOP/s of the one, and for 3.7 to 4.5 TFLOP/s of the other, a quarter of which would be less.
DOT_PRODUCT_ENERGY = 0.7
# Units with less than this over their vector rate have no matrix units at work.
MATRIX_UNITS = 1.5
# Rows of queries, and keys, that a block of fused attention takes at a time; and operations of softmax for a score.
QUERIES, KEYS, SCORE_OPERATIONS = 128.0, 64.0, 8.0
# Seconds that a block of fused attention takes however few its keys: to load its queries and the first keys, one after
# the other, to fill its pipeline and to write what it has. Of 0 to 6 microseconds by the error left out.
BLOCK_LATENCY = 4e-6
# With less than this part of all products counted, attention is causal; fewest rows of queries that share the keys
# which they leave out below the diagonal.
CAUSAL, FEWEST_MASKED = 0.75, 64.0
# Rows of queries that a block computes at least: of a prompt, and of new tokens against many keys, whose kernels
# (FlashAttention's splits along the keys, and Hopper's products of 64 rows) have no smaller block.
FEWEST_OF_PROMPT, FEWEST_OF_TOKEN = 16.0, 64.0
# Operations of the vector units that make a multiplier's operand of a weight stored narrower (shift, mask, convert,
# scale), and rows of the output that a block computes from weights once made.
UNPACKING, ROWS_UNPACKED_FOR = 2.0, 128.0
# Part of a vector unit's rate in half precision that one block alone draws, of kernels that say how small their blocks
# are: it waits for its own loads, and two of them take the time of one (P100, 16 to 56 blocks of cuDNN's; 0.4 to 0.6).
ALONE_IN_HALF = 0.5
# Units that do less each cycle are cores of a processor, whose products take narrow weights as they are.
SMALLEST_MULTIPROCESSOR = 256.0
# Instructions that a microcontroller's core issues for a multiply-accumulate besides the multiplication. With pairs of
# 16 bits, as CMSIS-NN's loops have them: of two rows by two columns of the result and four steps, 17 (two loads of four
# weights, eight to widen and order them, four loads of inputs widened before, the loop) for 16; of one row, three
# columns at a time, 23 for 12. One at a time: two loads that step their pointers, and one that closes the loop. Vectors
# of bytes are loaded beside their multiplication.
BLOCK_OF_PAIRS, ROW_OF_PAIRS, ONE_BY_ONE = 17 / 16, 23 / 12, 3.0
# Multiply-accumulates that a core does at once: more than these are pairs, and more than those whole vectors.
ONE, PAIR = 1.0, 2.0


def power_ceiling(engines: dict[str, Array], parameters: dict[str, Array]) -> Array:
    """Return the FLOP/s that the design power can sustain."""
    vector = VECTOR_ENERGY * np.where(engines["bits"] <= 8, DOT_PRODUCT_ENERGY, 1.0)
    each = np.where(_on_matrix_units(engines), 1.0, vector)
    joules = each * parameters["energy"] * engines["bits"] / 16 * np.sqrt(engines["node"] / 7)
    ceiling: Array = engines["power"] / joules
    return ceiling


def _on_matrix_units(engines: dict[str, Array]) -> NDArray[np.bool_]:
    """Return whether products run on different units from element-wise work."""
    matrix_units: NDArray[np.bool_] = engines["over_vector"] > MATRIX_UNITS
    return matrix_units


def sustained(engines: dict[str, Array], parameters: dict[str, Array], here: NDArray[np.bool_]) -> Array:
    """Return the FLOP/s that full tiles sustain: a fraction of the peak, or the power limit.

    Vector units that issue no faster than they multiply lose an issue slot to each operand load.
    """
    issued = np.where(_on_matrix_units(engines), 1.0, engines["issuing"])
    peak = parameters["compute"] * issued * engines["matmul"]
    rate: Array = np.minimum(peak, power_ceiling(engines, parameters))[here]
    return rate


def sharing(engines: dict[str, Array]) -> Array:
    """Return the number of units that share an operand feed, 1 to ``MOST_SHARING``."""
    units: Array = np.clip(engines["each_cycle"] / FED_ALONE, 1.0, MOST_SHARING)
    return units


def _chain(engines: dict[str, Array]) -> Array:
    """Return the least seconds of each reduction step of a block; 0 in a systolic array."""
    is_one = (engines["array"] <= 1) & (engines["each_cycle"] <= LARGEST_UNIT)
    narrow = np.minimum(engines["bits"], 8.0) / 8
    cycles = np.where(_on_matrix_units(engines), CHAINED * narrow, CHAINED_VECTOR)
    seconds: Array = np.where(is_one, cycles / engines["clock"], 0.0)
    return seconds


def _unpacked(kernels: Work, engines: dict[str, Array]) -> NDArray[np.bool_]:
    """Return which products have weights stored in a narrower format than the matrix units multiply."""
    values = kernels["k"] * kernels["n"] * kernels["batch"]
    stored = kernels["weights"]
    each = engines["each_cycle"]
    multiprocessor = (engines["array"] <= 1) & (each >= SMALLEST_MULTIPROCESSOR) & (each <= LARGEST_UNIT)
    multiprocessor &= _on_matrix_units(engines) & np.isfinite(engines["over_vector"])
    narrow: NDArray[np.bool_] = (stored > 0) & (engines["bits"] / 8 * values > stored) & multiprocessor
    return narrow


def unpacking_seconds(
    kernels: Work, engines: dict[str, Array], parameters: dict[str, Array], moving: Array, here: NDArray[np.bool_]
) -> Array:
    """Return the seconds that the vector units take to unpack weights stored in a narrower format.

    A loop that waits for its loads does so before it unpacks them, so that this time adds to the transfer's,
    ``moving``; wide weights are stored where unpacking costs more than narrow ones save. None where the vector
    units multiply as well, which take narrow operands as they are, in systolic arrays, or where no vector units are
    known: a neural processor widens weights on their way into its multipliers.
    """
    values = (kernels["k"] * kernels["n"] * kernels["batch"])[here]
    saved = engines["bits"][here] / 8 * values - kernels["weights"][here]
    times = np.ceil(kernels["m"][here] / ROWS_UNPACKED_FOR)
    unpacking = UNPACKING * values * times / (parameters["vector"][here] * engines["vector"][here])
    most = saved * moving[here] / np.maximum(kernels["moved"][here], 1.0)
    narrow = _unpacked(kernels, engines)[here]
    seconds: Array = np.where(narrow, np.minimum(unpacking, most), 0.0)
    return seconds


def widening_seconds(
    kernels: Work, engines: dict[str, Array], parameters: dict[str, Array], here: NDArray[np.bool_]
) -> Array:
    """Return the seconds that CPU cores take to unpack weights stored in a narrower format.

    The vector units both multiply and unpack, while data load: unpacking costs time only if it takes longest.
    """
    values = (kernels["k"] * kernels["n"] * kernels["batch"])[here]
    stored = kernels["weights"][here]
    narrow = (stored > 0) & (engines["bits"][here] / 8 * values > stored) & (engines["controller"][here] == 0)
    narrow &= (engines["each_cycle"][here] < SMALLEST_MULTIPROCESSOR) & np.isfinite(engines["over_vector"][here])
    times = np.ceil(kernels["m"][here] / ROWS_UNPACKED_FOR)
    seconds: Array = np.where(
        narrow, UNPACKING * values * times / (parameters["vector"] * engines["vector"])[here], 0.0
    )
    return seconds


def issuing_seconds(kernels: Work, engines: dict[str, Array], parameters: dict[str, Array]) -> Array:
    """Return the seconds of a microcontroller's instructions other than multiplications.

    A core loads its operands, widens those of 8 bits to pairs of 16, and closes its loop by instructions that stand
    in line with the multiplications; ``ramp`` more requantise and store each number of the result, or several at a
    time where vectors do. Of element-wise work half of what it moves is result. None for other machines, nor for arrays
    of multipliers beside a core.
    """
    if not engines["controller"].any():
        return np.zeros(len(engines["controller"]))
    at_once, product = _at_once(engines), kernels["kind"] == MATMUL
    pairs = np.where(kernels["m"] > 1, BLOCK_OF_PAIRS, ROW_OF_PAIRS)
    each = np.where(at_once > PAIR, 0.0, np.where(at_once > ONE, pairs, ONE_BY_ONE))
    moved = (kernels["moved"] - kernels["weights"]) * 8 / engines["bits"]
    results = np.where(
        product, kernels["m"] * kernels["n"] * kernels["batch"] * (1 + kernels["extra_steps"]), moved / 2
    )
    issued = np.where(product, each * kernels["flops"] / 2, 0.0) + parameters["ramp"] * results / engines["requantised"]
    rate = parameters["compute"] * engines["controller"] * engines["units"] * engines["clock"]
    seconds: Array = np.where(engines["controller"] > 0, issued / np.maximum(rate, 1.0), 0.0)
    return seconds


def element_rate(engines: dict[str, Array]) -> Array:
    """Return the FLOP/s of element-wise work and depthwise convolutions.

    Byte vectors of a microcontroller, if any, also multiply element by element.
    """
    vectors = (engines["controller"] > 0) & (_at_once(engines) > PAIR)
    rate: Array = np.where(vectors, np.maximum(engines["matmul"], engines["vector"]), engines["vector"])
    return rate


def _at_once(engines: dict[str, Array]) -> Array:
    """Return the multiply-accumulates per cycle of a unit."""
    number: Array = engines["each_cycle"] * 16 / engines["bits"] / 2
    return number


def attention_seconds(
    kernels: Work, engines: dict[str, Array], parameters: dict[str, Array], here: NDArray[np.bool_]
) -> Array:
    """Return the seconds of fused attention without its main-memory traffic.

    A block takes up to ``QUERIES`` rows of one head past all keys, and below a diagonal past those before its last
    row. Its products run beside the softmax of others, never quite: the root of the sum of squares lies between the
    longer of both and their sum. Where the heads leave units idle, the keys are split among them, and each part is
    written and read once more.
    """
    m, n, k, batch = (kernels[name][here] for name in ("m", "n", "k", "batch"))
    units = engines["units"][here]
    rate = sustained(engines, parameters, here) / units
    vector = parameters["vector"][here] * engines["vector"][here] / units
    fewest = np.where(m < n, FEWEST_OF_TOKEN, FEWEST_OF_PROMPT)
    rows = np.minimum(QUERIES, np.maximum(fewest, 2 ** np.ceil(np.log2(m))))
    blocks = np.ceil(m / rows) * batch
    part = np.minimum(1.0, kernels["flops"][here] / (4 * batch * m * n * k))
    # Of t blocks below the diagonal the first passes one block of keys, and the last all t.
    along = np.ceil(n / np.maximum(rows, FEWEST_MASKED))
    part = np.where((part < CAUSAL) & (m == n), (along + 1) / (2 * along), part)
    splits = np.clip(np.floor(units / blocks), 1.0, np.maximum(1.0, np.ceil(n / KEYS)))
    steps = np.ceil(n / splits / KEYS) * KEYS + parameters["ramp"][here]
    block = np.hypot(4 * rows * steps * k / rate, SCORE_OPERATIONS * rows * steps / vector)
    waves = np.ceil(blocks * splits / units)
    seconds: Array = np.maximum(waves * part, 1.0) * block + waves * BLOCK_LATENCY
    return seconds


def product_seconds(
    kernels: Work, engines: dict[str, Array], parameters: dict[str, Array], feed: Array, here: NDArray[np.bool_]
) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the seconds of products at their best tiles without main-memory traffic, and what limits them.

    Steps of a recurrence are sequential, each on the whole machine. The second array says which products are limited by
    operand delivery, the third which by the latency of a sum's instructions. Machines whose units share operands run
    kernels that stay on their units and take the next part of any block's reduction, so that no wave ends half empty;
    each unit then hands over one block half done.
    """
    m, n, k, batch = (kernels[name][here] for name in ("m", "n", "k", "batch"))
    steps = 1 + kernels["extra_steps"][here]
    operands = kernels["moved"][here] / steps + (1 - 1 / steps) * kernels["weights"][here]  # of one step
    units, array = engines["units"][here], engines["array"][here]
    shared, fed = sharing(engines)[here], feed[here]
    # A product by a vector gives each sum to a group of lanes, which add up what they have at the end. So do kernels
    # that unpack narrow weights beside matrix units, where one row is no work for these: AWQ's gemv_cuda.cu,
    # llama.cpp's mmvq.cu and ExLlamaV2's q_gemm_kernel.cuh; those that take several experts at once do not. Cores of
    # processors, and of phones' GPUs, multiply narrow numbers in the vectors that they have, only more of them at once.
    vector = np.minimum(m, n) <= 1
    in_vectors = ~_on_matrix_units(engines)[here] | (engines["each_cycle"][here] < SMALLEST_MULTIPROCESSOR)
    by_lanes = vector & (in_vectors | (_unpacked(kernels, engines)[here] & (batch <= 1)))
    columns = {
        "m": m, "n": n, "k": k, "batch": batch, "units": units, "array": array, "shared": shared, "feed": fed,
        "rate": sustained(engines, parameters, here) / units,
        "supply": fed / units * shared,
        "width": np.maximum(operands / np.maximum(batch * (m * k + k * n + m * n), 1.0), 0.5),
        "tall": np.where(array > 1, np.ceil(k / array) * array, k),  # a systolic array pads the reduction
        "chain": parameters["chain"][here] * _chain(engines)[here] / np.where(by_lanes, LANES, 1.0),
        "splits": parameters["splits"][here],
        "ramp": np.where(engines["controller"] > 0, 0.0, parameters["ramp"])[here],  # see issuing_seconds
        "team": engines["team"][here],
        "threads": np.where(engines["joining"] > 1, engines["units"], 1.0)[here],
        "block_rows": kernels["block_rows"][here],
        "block_columns": kernels["block_columns"][here],
        "alone": np.where((engines["bits"] == 16) & ~_on_matrix_units(engines), ALONE_IN_HALF, 1.0)[here],
    }  # fmt: skip
    times, waits, chained = at_best_tiles(columns)
    # Lanes that take the sums of one vector take those of a few as well, one after the other.
    few = np.minimum(m, n)
    several = (few > 1) & (few <= LANES) & in_vectors & (columns["block_rows"] == 0)
    if several.any():
        alone = {name: values[several] for name, values in columns.items()}
        alone |= {
            "m": np.where(m <= n, 1.0, m)[several], "n": np.where(m <= n, n, 1.0)[several],
            "batch": (few * batch)[several], "chain": alone["chain"] / LANES,
        }  # fmt: skip
        sums = at_best_tiles(alone)
        quicker = sums[0] < times[several]
        for whole, part in zip((times, waits, chained), sums, strict=True):
            whole[several] = np.where(quicker, part, whole[several])
    return steps * times, waits, chained
