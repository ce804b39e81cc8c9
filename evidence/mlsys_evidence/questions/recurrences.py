"""Recurrent layers in stacks, as frameworks call them: one layer, direction and step after the other."""

from mlsys.calibration.case import Case
from mlsys.models.estimate import Kernel, Work
from mlsys.models.estimate.lowering import Format
from mlsys_evidence.questions.kernels import case_of, product, vector
from mlsys_evidence.typed_rows import TypedRow

# Matrices that a cell multiplies its input with, and its state with.
GATES = {"LSTM": 4, "GRU": 3}
# Operations of a gate on a number of it: the parts of the input and of the state and two biases are added, and a
# sigmoid or a hyperbolic tangent is taken; and of what joins the gates to the new state.
OF_A_GATE, OF_A_STATE = 3 + 4, 8
# Numbers of the state that a step reads and writes beside its gates: an LSTM has a cell, too.
STATES = {"LSTM": 2, "GRU": 1}


def stacked(row: TypedRow) -> Case:
    """Return the case of recurrent layers, each of which reads all that the one before wrote, in one direction or two.

    The inputs of all steps are one product, as they are known before the first step (J. Appleyard, T. Kočiský and P.
    Blunsom, arXiv:1604.01946, section 3.1, which cuDNN follows); each step multiplies the state and computes its
    gates. The states of both directions, side by side, are the input of the next layer.
    """
    sizes = {"hidden": row.number("hidden"), "batch": row.number("images"), "timesteps": row.number("steps")}
    fmt, ways, inputs = row.format, row.number("directions"), row.number("inputs")
    cell = "LSTM" if row.number("gates") == GATES["LSTM"] else "GRU"
    kernels: list[Kernel] = []
    for _ in range(row.number("layers")):
        kernels += recurrent_kernels(cell, inputs, sizes, ways, fmt)
        inputs = ways * sizes["hidden"]
    return case_of(row, "recurrent layer", row.software, Work.of(kernels), fmt)


def recurrent_kernels(cell: str, inputs: int, sizes: dict[str, int], ways: int, fmt: Format) -> list[Kernel]:
    """Return the kernels of one layer.

    Parameters
    ----------
    cell
        ``"LSTM"`` or ``"GRU"``.
    inputs
        Numbers of each step's input.
    sizes
        ``hidden``, ``batch`` and ``timesteps``.
    ways
        Directions, each with weights of its own.
    fmt
        Number formats.

    Examples
    --------
    >>> from mlsys_evidence.ingest.reading import number_format
    >>> sizes = {"hidden": 256, "batch": 10, "timesteps": 512}
    >>> known, step, gates = recurrent_kernels("GRU", 128, sizes, 2, number_format("fp32"))
    >>> known.m, known.count, step.m, step.n, step.count, gates.count
    (5120, 2, 768, 10, 1024, 1024)
    """
    hidden, batch, steps = sizes["hidden"], sizes["batch"], sizes["timesteps"]
    gates = GATES[cell]
    known = product(steps * batch, gates * hidden, inputs, fmt, count=ways, weights=True)
    step = product(gates * hidden, batch, hidden, fmt, count=ways * steps, weights=True)
    reads = 2 * gates + STATES[cell]
    states = vector(hidden * batch, gates * OF_A_GATE + OF_A_STATE, fmt, reads, STATES[cell], ways * steps)
    return [known, step, states]
