"""What a step of training was fed, where its row does not say: the code that ran, its options and its data do."""

import re
from dataclasses import dataclass, replace

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.rows import Row
from mlsys.models.estimate import VECTOR, Kernel, Work
from mlsys.models.estimate.lowering import Format, joined
from mlsys.models.estimate.steps import ONCE, step_kernels
from mlsys_evidence.ingest.network_lookup import built

_EXAMPLES = "DeepLearningExamples"
# Its table of batches has those of all cards together: 1,520 of GNMT on one A100, 12,160 on eight
# (lambdal/deeplearning-benchmark at aa5addb6, pytorch/pytorch-train-bs-fp16.json).
_LAMBDA = "lambdal/deeplearning-benchmark"

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

# Sentences of WMT16, English to German, up to 50 subwords long: a pair has 48.6 subwords, those of both languages, and
# each side of its batch is 31 long. The log of a step of GNMT states its seconds and its subwords a second, whose
# product over the batch is 48.4 to 49.0 on average in those of eighteen runs of one card; those of single batches
# fall in the five groups, by their longer side, that the sampler makes, which are 9, 19, 29, 39 and 50 long, and
# of which 0.79 is no padding (lambdal/deeplearning-benchmark at aa5addb6, pytorch/results/*_v1/PyTorch_gnmt_*;
# NVIDIA/DeepLearningExamples at 729963dd, PyTorch/Translation/GNMT, seq2seq/data/sampler.py).
GNMT_COUNTED, GNMT_PADDED = 48.6, 31


@dataclass(frozen=True)
class Fed:
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
        return joined(step_kernels(network, fmt, ONCE, written_out=True), Work.of([loss]))


def fed(row: Row) -> Fed | None:
    """Return what a row was fed by its code, or None where the row says so itself.

    Raises
    ------
    Inexpressible
        If neither says.
    """
    if "GNMT" in row.model and _EXAMPLES in f"{row.source} {row.software}":
        return Fed("gnmt", GNMT_PADDED, GNMT_COUNTED, smoothed=True)
    if "Transformer-XL" in row.model:
        return _transformer_xl(row)
    if "GNMT" in row.model:
        raise Inexpressible(f"training of {row.model}: the lengths it is fed are not described")
    return None


def _transformer_xl(row: Row) -> Fed:
    """Return Lambda's Transformer-XL, whose options leave the adaptive softmax out.

    All of their logs have ``adaptive=False``, and segments of 192 tokens, of 256 where the network is the large one,
    with a memory as long (lambdal/deeplearning-benchmark at aa5addb6, pytorch/scripts/config_v1).
    """
    size = re.search("base|large", f"{row.workload} {row.model}")
    if size is None:
        raise Inexpressible(f"training of {row.model}: which of its sizes is not stated")
    if _LAMBDA not in row.source:
        raise Inexpressible(
            f"training of {row.model}: how many of its words are rare, and compared apart, is not stated"
        )
    length = 192 if size.group() == "base" else 256
    return Fed(f"transformer_xl_{size.group()}", length, length, OF_LONG_LOGITS)


# Tokens of a sample of BERT's second phase, up to 512, in NVIDIA's PyTorch. Since January 2022 a batch is of one bin of
# 64 lengths, drawn as often as its texts are, and as long as its longest text, rounded up to eight; the first phase is
# all in one bin (NVIDIA/DeepLearningExamples at 729963dd, PyTorch/LanguageModeling/BERT, README.md and
# scripts/run_pretraining.sh; NVIDIA/LDDL at e4006d2b, README.md and lddl/torch/bert.py). That is 278 of 16 texts, 279
# of 32, by the lengths of Wikipedia's 16 million samples, 256 on average (Krell et al. 2021, arXiv:2107.02027,
# figure 1; graphcore/examples at 2d8b5653, tutorials/blogs_code/packedBERT/histograms.py).
BINNED_TOKENS = 278
_BINNED = r"PyTorch.*LAMB"
# What lies between its products TorchScript's compiler makes, from the same release on.
_COMPILED = "TorchScript with nvFuser"

# Sequences that Graphcore packs into one of so many tokens, and counts: as many as make its updates of 54,784 and of
# 9,600 packs those of 65,536 and 16,384 sequences, in as many steps (graphcore/examples at 09b7c672, nlp/bert/popart,
# utils/iteration.py, configs/pretrain_large_128.json and _512.json, and those of the same names in configs/packed).
PACKED = {128: 65536 / 54784, 512: 16384 / 9600}


def as_fed(row: Row) -> Row:
    """Return a row with what its source shows of how it ran: compiler, batch, and the length of what it was fed.

    Examples
    --------
    >>> from mlsys_evidence.rows import shipped_rows
    >>> row = replace(shipped_rows()[0], workload="BERT pre-training", software="PyTorch NGC (LAMB)",
    ...               source="NVIDIA/DeepLearningExamples", seq_or_shape="seq 512")
    >>> as_fed(row).seq_or_shape, as_fed(replace(row, seq_or_shape="seq 128")).seq_or_shape
    ('seq 278', 'seq 128')
    """
    if _EXAMPLES not in row.source or "BERT pre-training" not in row.workload or not re.search(_BINNED, row.software):
        return row
    both = re.match(r"\d+ +and +(\d+)$", row.batch)  # of TF32 or FP32, and of FP16
    batch = both.group(1) if both and "amp" in row.precision else row.batch
    shape = re.sub(r"\bseq 512\b", f"seq {BINNED_TOKENS}", row.seq_or_shape)
    return replace(row, batch=batch, seq_or_shape=shape, software=f"{row.software}, {_COMPILED}")


def sequences_of_each(row: Row) -> float:
    """Return how many sequences that a rate counts one sample has: more than one where short ones are packed."""
    if "packed" not in row.model:
        return 1.0
    length = re.search(r"seq (\d+)", row.seq_or_shape)
    packed = PACKED.get(int(length.group(1))) if length and "BERT" in row.model else None
    if packed is None:
        raise Inexpressible(f"training of {row.model}: how many sequences a pack has is not stated")
    return packed


def batch_of_each(row: Row, batch: int) -> int:
    """Return the batch of one machine where a source states that of all."""
    return max(1, batch // max(1, row.n_devices)) if _LAMBDA in row.source else batch
