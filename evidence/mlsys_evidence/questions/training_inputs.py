"""What a step of training was fed, where its row does not say: the code that ran, its options and its data do."""

from dataclasses import dataclass

from mlsys.models.estimate import VECTOR, Kernel, Work
from mlsys.models.estimate.lowering import Format, concatenated
from mlsys.models.estimate.steps import ONCE, step_kernels
from mlsys_evidence.questions.network_lookup import built
from mlsys_evidence.typed_rows import TypedRow

# Tensors as large as the logits that a loss and its gradient move, of PyTorch's logarithm of softmax: read, written;
# its gradient set to nought, read, with the logarithms, and written.
OF_LOGITS = 6.0
# The same of rows so long that no cache keeps those at work, one a unit at least: 267,735 words of FP16 are half a
# megabyte, 58 MB on an A100. They are read for the maximum, for the sum and for the result, and the gradient for its
# sum and once more (pytorch/pytorch at 000cace5, aten/src/ATen/native/cuda/SoftMax.cu, cunn_SoftMaxForward and
# -Backward); what that writes is read again for the gradient of the words' biases.
OF_LONG_LOGITS = 10.0
# Bytes that one with smoothed labels moves for a logit beside reading it and writing its gradient, all in FP32
# (seq2seq/train/smoothing.py of GNMT): 4 written, and read for the mean; for the gradient 4 each of the mean and of the
# word, 12 to add the two, and 8 read.
OF_A_SMOOTHED_LOGIT = 36.0


@dataclass(frozen=True)
class TrainingSample:
    """A network, its sample and its loss.

    Attributes
    ----------
    network
        Its name in the catalogue.
    length
        Tokens of a sample, padding included.
    counted
        Tokens of a sample that a rate counts.
    of_logits
        Tensors as large as the logits that the loss and its gradient move.
    smoothed
        Whether its loss has smoothed labels, and moves more.
    """

    network: str
    length: int
    counted: float
    of_logits: float = OF_LOGITS
    smoothed: bool = False

    def step(self, fmt: Format, batch: int) -> Work:
        """Return the kernels of one step of a program that runs operators one by one, all of them in ``fmt``.

        Apex's level O2 keeps a network in FP16 whole: there are no casts between its operators.
        """
        network = built(self.network, batch=batch, sequence=self.length, fused=False)
        words = network.operators[-1].shape
        of_each = 2 * fmt.value + OF_A_SMOOTHED_LOGIT if self.smoothed else self.of_logits * fmt.value
        loss = Kernel(VECTOR, flops=0.0, moved=of_each * words["m"] * words["n"])
        return concatenated(step_kernels(network, fmt, ONCE, written_out=True), Work.of([loss]))


def training_sample(row: TypedRow) -> TrainingSample | None:
    """Return what a step was fed, or None where a rate counts samples."""
    if "tokens_counted" not in row.numbers:
        return None
    logits = OF_LONG_LOGITS if row.has("long rows of logits") else OF_LOGITS
    length, counted = row.number("tokens"), row.get("tokens_counted")
    return TrainingSample(row.network, length, counted, logits, row.has("smoothed labels"))


def batch_of_each(row: TypedRow, batch: int) -> int:
    """Return the batch of one device where a source states that of all."""
    return max(1, batch // max(1, row.row.n_devices)) if row.has("batch of all devices") else batch
