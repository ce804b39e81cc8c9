"""Recurrent networks: LSTM and GRU layers, and MLPerf's speech recogniser and translator."""

from mlsys.unit_checks import checked_choice, checked_count
from mlsys.workloads.operator import Network
from mlsys.workloads.zoo.layer_builder import LayerBuilder

# Matrices by which a cell multiplies its input, and as many for its state.
CELLS = {"vanilla": 1, "gru": 3, "lstm": 4}


def write_layer(builder: LayerBuilder, name: str, cell: str, batch: int, steps: int, inputs: int, hidden: int) -> None:
    """Append a recurrent layer: one product for the inputs of all steps, then one product per step for the state.

    The state product is one operator with a copy per step, because steps are sequential (``steps`` in its shape).
    Its weights are counted once, as if they stayed on the chip, which keeps the result a lower bound.
    """
    width = CELLS[cell] * hidden
    builder.dense(f"{name} input", batch * steps, inputs, width)
    weights = hidden * width * builder.weight_size
    builder.write(
        f"{name} state",
        "gemm",
        2 * batch * steps * hidden * width,
        weights + batch * steps * (hidden + width) * builder.size,
        weights,
        hidden * width + width,
        {"m": batch, "n": width, "k": hidden, "copies": steps, "steps": steps},
    )
    builder.activation(f"{name} gates", batch * steps * width, "sigmoid")


def recurrent_layer(
    cell: str, batch: int, steps: int, inputs: int, hidden: int, precision: str = "fp16", fused: bool = True
) -> Network:
    """Return one recurrent layer, as in DeepBench.

    Parameters
    ----------
    cell
        ``"vanilla"``, ``"gru"`` or ``"lstm"``.
    batch, steps
        Number of sequences, and length of each.
    inputs, hidden
        Width of the input, and of the state.
    precision, fused
        As in :func:`mlsys.workloads.zoo.network`.

    Raises
    ------
    UnknownNameError
        If the cell is unknown.
    ArgumentError
        If a size is not a positive integer.

    Examples
    --------
    >>> print(recurrent_layer("LSTM", batch=16, steps=25, inputs=512, hidden=512).macs.to("MMAC"))
    838.8608 MMAC
    """
    kind = str(cell).lower()
    checked_choice("recurrent_layer", "cell", kind, CELLS)
    sizes = {"batch": batch, "steps": steps, "inputs": inputs, "hidden": hidden}
    for name, value in sizes.items():
        sizes[name] = checked_count("recurrent_layer", name, value)
    builder = LayerBuilder(precision, fused)
    write_layer(builder, kind.upper(), kind, **sizes)
    return Network(f"{kind.upper()} {inputs}→{hidden}, {steps} steps of {batch}", tuple(builder.operators))


def rnn_t(builder: LayerBuilder, batch: int, frames: int) -> None:
    """Append MLPerf Inference's RNN-T: an encoder of five LSTM layers, a prediction network of two, a joint network.

    ``frames`` are 240 wide and 30 ms long. The prediction and joint networks are counted once per pair
    of frames; greedy decoding runs them once per pair plus once per emitted letter.
    """
    for layer, inputs in enumerate((240, 1024), start=1):
        write_layer(builder, f"encoder {layer}", "lstm", batch, frames, inputs, 1024)
    pairs = -(-frames // 2)
    for layer, inputs in enumerate((2048, 1024, 1024), start=3):
        write_layer(builder, f"encoder {layer}", "lstm", batch, pairs, inputs, 1024)
    builder.embedding("letters", batch * pairs, 320, 28 * 320)
    for layer in (1, 2):
        write_layer(builder, f"prediction {layer}", "lstm", batch, pairs, 320, 320)
    rows = batch * pairs
    builder.dense("joint encoder", rows, 1024, 512)
    builder.dense("joint prediction", rows, 320, 512)
    builder.activation("joint relu", rows * 512, "relu")
    builder.dense("joint letters", rows, 512, 29)


# Width of GNMT's layers, and its vocabulary: subwords shared by both languages (32,317, padded to 32,320).
GNMT_WIDTH, GNMT_VOCABULARY = 1024, 32320


def gnmt(builder: LayerBuilder, batch: int, tokens: int) -> None:
    """Append MLPerf's GNMT: four LSTM encoder layers, the first bidirectional, and four decoder layers with attention.

    NVIDIA/DeepLearningExamples, PyTorch/Translation/GNMT, seq2seq/models (encoder.py, decoder.py, attention.py). The
    translation is as long as the sentence and teacher-forced; beam search has ``batch`` times the beam width of
    translations, and decodes word by word.
    """
    width, rows = GNMT_WIDTH, batch * tokens

    def layer(name: str, inputs: int) -> None:
        write_layer(builder, name, "lstm", batch, tokens, inputs, width)

    builder.embedding("words", rows, width, GNMT_VOCABULARY * width)
    for name in ("encoder 1 forward", "encoder 1 backward"):
        layer(name, width)
    layer("encoder 2", 2 * width)
    for index in (3, 4):
        layer(f"encoder {index}", width)
    builder.operators.append(builder.without_parameters(builder.operators[0]))
    layer("decoder 1", width)
    builder.dense("attention query", rows, width, width, False)
    builder.dense("attention key", rows, width, width, False)
    _pairs(builder, batch * tokens * tokens * width, 3 * rows * width * builder.size, 2 * width + 1)
    builder.batched("attention context", tokens, width, tokens, batch)
    for index in (2, 3, 4):
        layer(f"decoder {index}", 2 * width)
    builder.dense("classifier", rows, width, GNMT_VOCABULARY)


def _pairs(builder: LayerBuilder, elements: int, moved: float, parameters: int) -> None:
    """Append additive attention scores: for each pair of tokens, tanh of a sum, times one learned vector.

    Fused, only ``moved`` bytes cross memory. Unfused, as in PyTorch's code, the sums are written, read and written
    with the bias, read and written as their tanh, and read for the product.
    """
    shape = {"elements": elements}
    if builder.fused:
        builder.write("attention scores", "elementwise", 8 * elements, moved, parameters=parameters, shape=shape)
        return
    for name, flops, times in (("sums", 1, 1), ("bias", 1, 2), ("tanh", 5, 2), ("scores", 1, 1)):
        held = parameters if name == "scores" else 0
        builder.write(
            f"attention {name}", "elementwise", flops * elements, times * elements * builder.size, 0, held, shape
        )
