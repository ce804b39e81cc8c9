"""Rows of training steps: what was trained, how it was split, and what a step was fed, from the code that ran."""

import re
from dataclasses import replace

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.rows import Row
from mlsys_evidence.ingest import language
from mlsys_evidence.ingest.draft import Draft
from mlsys_evidence.ingest.networks import program, shape, software_kind
from mlsys_evidence.ingest.reading import batch_of
from mlsys_evidence.questions.shapes import usual_name

# Rows of steps that compute activations again for the gradients; and of those whose own weights stay as they are, so
# that each product has one behind it, for its inputs: low-rank matrices beside them learn (Hu et al. 2021,
# arXiv:2106.09685).
_TWICE, _FROZEN = r"activation ckpt True|(?<!no )(?<!selective )activation checkpointing", r"\bQ?LoRA\b"
# Programs that write the scores of attention out: from before FlashAttention.
_WRITING_SCORES = r"Megatron-DeepSpeed|PyTorch [01]\."
# Frameworks of PyTorch for language models whose kernels join what lies between products, and attend by one.
_JOINED = r"Megatron|NeMo|InternEvo|PaddleNLP|FlashAttention|fused kernels|transformer kernels"
# Programs whose attention is that of NVIDIA's own library, written for each generation.
_OF_CUDNN = r"NeMo|Megatron-Bridge"
_EXAMPLES = "DeepLearningExamples"
# Its table of batches has those of all cards together: 1,520 of GNMT on one A100, 12,160 on eight
# (lambdal/deeplearning-benchmark at aa5addb6, pytorch/pytorch-train-bs-fp16.json).
_LAMBDA = "lambdal/deeplearning-benchmark"
# Sentences of WMT16, English to German, up to 50 subwords long: a pair has 48.6 subwords, those of both languages, and
# each side of its batch is 31 long. The log of a step of GNMT states its seconds and its subwords a second, whose
# product over the batch is 48.4 to 49.0 on average in those of eighteen runs of one card; those of single batches
# fall in the five groups, by their longer side, that the sampler makes, which are 9, 19, 29, 39 and 50 long, and
# of which 0.79 is no padding (lambdal/deeplearning-benchmark at aa5addb6, pytorch/results/*_v1/PyTorch_gnmt_*;
# NVIDIA/DeepLearningExamples at 729963dd, PyTorch/Translation/GNMT, seq2seq/data/sampler.py).
GNMT_COUNTED, GNMT_PADDED = 48.6, 31
# Tokens of a sample of BERT's second phase, up to 512, in NVIDIA's PyTorch. Since January 2022 a batch is of one bin of
# 64 lengths, drawn as often as its texts are, and as long as its longest text, rounded up to eight; the first phase is
# all in one bin (NVIDIA/DeepLearningExamples at 729963dd, PyTorch/LanguageModeling/BERT, README.md and
# scripts/run_pretraining.sh; NVIDIA/LDDL at e4006d2b, README.md and lddl/torch/bert.py). That is 278 of 16 texts, 279
# of 32, by the lengths of Wikipedia's 16 million samples, 256 on average (Krell et al. 2021, arXiv:2107.02027,
# figure 1; graphcore/examples at 2d8b5653, tutorials/blogs_code/packedBERT/histograms.py).
BINNED_TOKENS = 278
_BINNED = r"PyTorch.*LAMB"
# From the same release on TorchScript's compiler makes what lies between its products.
_COMPILED = "TorchScript with nvFuser"
# Sequences that Graphcore packs into one of so many tokens, and counts: as many as make its updates of 54,784 and of
# 9,600 packs those of 65,536 and 16,384 sequences, in as many steps (graphcore/examples at 09b7c672, nlp/bert/popart,
# utils/iteration.py, configs/pretrain_large_128.json and _512.json, and those of the same names in configs/packed).
PACKED = {128: 65536 / 54784, 512: 16384 / 9600}


def training(draft: Draft) -> None:
    """Fill in one training step of one device among as many as the row has."""
    citation = draft.row
    network = _fill_inputs(draft)
    _sequences_of_a_sample(draft)
    draft.in_format()
    draft.on()
    plain = with_run_settings(citation)
    plain = replace(plain, model=re.sub(r" (phase|Ph)\s*\d.*| pre-training.*| training.*", "", plain.model))
    tokens = not network and ("tokens" in citation.unit or citation.unit == "TFLOP/s")
    draft.row = plain
    if not network:
        shape(draft)
    program(draft)
    if network:
        draft.set(network=network)
    if tokens:
        language.network(draft)
    elif draft.columns["network"] != usual_name(citation.model):
        draft.set(label=usual_name(citation.model))
    draft.set(operation="language training" if tokens else "training", batch=batch_of(plain))
    if not tokens:
        draft.mark("head of pre-training", "pre-training", plain.workload)
        if "HF" not in plain.note:
            draft.features.discard("head of pre-training")
    draft.mark("activations again", _TWICE, f"{citation.seq_or_shape}; {citation.note}")
    draft.mark("weights frozen", _FROZEN, citation.workload)
    draft.mark("scores of training written out", _WRITING_SCORES, citation.software)
    draft.mark("attention of cuDNN", _OF_CUDNN, citation.software)
    software = software_kind(plain)
    if "Megatron" in plain.software or (software == "eager" and re.search(_JOINED, plain.software)):
        draft.set(software="Megatron")
    draft.mark("encoder and decoder", "^Switch", plain.model)
    if _LAMBDA in citation.source:
        draft.features.add("batch of all devices")
    draft.mark("torchgpipe", "torchgpipe", citation.source)
    _pipeline(draft, citation)
    _ways(draft, plain)


def _pipeline(draft: Draft, row: Row) -> None:
    """Fill in the stages through which a mini-batch goes in pieces."""
    if not draft.take("pipeline_stages", r"pipeline of (\d+)", row.workload):
        return
    draft.take("micro_batches", r"(\d+) micro-batches", row.note)
    draft.mark("activations recomputed", "activations recomputed", row.workload)


def _ways(draft: Draft, row: Row) -> None:
    """Fill in how a step over a language model is split, and its batches."""
    stated = re.search(r"tensor parallel (\d+), data parallel (\d+), pipeline parallel (\d+)", row.note)
    count = max(1, row.n_devices)
    if stated:
        names = ("tensor_parallel", "data_parallel", "pipeline_parallel")
        draft.numbers |= dict(zip(names, map(int, stated.groups()), strict=True))
        draft.take("accumulated", r"accum (\d+)", row.batch)
    elif "pipeline parallel" in row.workload:
        draft.numbers["pipeline_parallel"] = count
    elif "tensor parallel" in row.workload:
        draft.numbers["tensor_parallel"] = count
    elif "data parallel" in row.workload:
        draft.numbers["data_parallel"] = count
    draft.take("micro_batch", r"^(?:micro )?(\d+)", row.batch)
    draft.take("global_batch", r"global (\d+)", row.batch)
    # The micro-batch named is that of the whole job.
    if "global" in row.batch and "micro" in row.batch and "accum" not in row.batch:
        draft.features.add("micro-batch of all devices")


def _fill_inputs(draft: Draft) -> str:
    """Fill in what a step was fed by its code, and return its network; an empty string where the row says so itself.

    Raises
    ------
    Inexpressible
        If neither says.
    """
    row = draft.row
    if "GNMT" in row.model and _EXAMPLES in f"{row.source} {row.software}":
        draft.numbers |= {"tokens": GNMT_PADDED, "tokens_counted": GNMT_COUNTED}
        draft.features.add("smoothed labels")
        return "gnmt"
    if "Transformer-XL" in row.model:
        return _transformer_xl(draft)
    if "GNMT" in row.model:
        raise Inexpressible(f"training of {row.model}: the lengths it is fed are not described")
    return ""


def _transformer_xl(draft: Draft) -> str:
    """Fill in Lambda's Transformer-XL, whose options leave the adaptive softmax out.

    All of their logs have ``adaptive=False``, and segments of 192 tokens, of 256 where the network is the large one,
    with a memory as long (lambdal/deeplearning-benchmark at aa5addb6, pytorch/scripts/config_v1).
    """
    row = draft.row
    size = re.search("base|large", f"{row.workload} {row.model}")
    if size is None:
        raise Inexpressible(f"training of {row.model}: which of its sizes is not stated")
    if _LAMBDA not in row.source:
        raise Inexpressible(
            f"training of {row.model}: how many of its words are rare, and compared apart, is not stated"
        )
    length = 192 if size[0] == "base" else 256
    draft.numbers |= {"tokens": length, "tokens_counted": length}
    draft.features.add("long rows of logits")
    return f"transformer_xl_{size[0]}"


def with_run_settings(row: Row) -> Row:
    """Return a row with what its source shows of how it ran: compiler, batch, and the length of what it was fed.

    Examples
    --------
    >>> from mlsys_evidence.rows import shipped_rows
    >>> row = replace(shipped_rows()[0], workload="BERT pre-training", software="PyTorch NGC (LAMB)",
    ...               source="NVIDIA/DeepLearningExamples", seq_or_shape="seq 512")
    >>> with_run_settings(row).seq_or_shape, with_run_settings(replace(row, seq_or_shape="seq 128")).seq_or_shape
    ('seq 278', 'seq 128')
    """
    if _EXAMPLES not in row.source or "BERT pre-training" not in row.workload or not re.search(_BINNED, row.software):
        return row
    both = re.match(r"\d+ +and +(\d+)$", row.batch)  # of TF32 or FP32, and of FP16
    batch = both.group(1) if both and "amp" in row.precision else row.batch
    text = re.sub(r"\bseq 512\b", f"seq {BINNED_TOKENS}", row.seq_or_shape)
    return replace(row, batch=batch, seq_or_shape=text, software=f"{row.software}, {_COMPILED}")


def _sequences_of_a_sample(draft: Draft) -> None:
    """Fill in how many sequences that a rate counts one sample has, where short ones are packed."""
    row = draft.row
    if "packed" not in row.model:
        return
    length = re.search(r"seq (\d+)", row.seq_or_shape)
    packed = PACKED.get(int(length.group(1))) if length and "BERT" in row.model else None
    if packed is None:
        raise Inexpressible(f"training of {row.model}: how many sequences a pack has is not stated")
    draft.numbers["sequences_of_a_sample"] = packed
