"""What a step of training was fed: networks, lengths and packs that the code and the logs of a source state."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys.calibration.case import Inexpressible
from mlsys.calibration.rows import Row
from mlsys.hardware import Hardware
from mlsys.models.estimate import MATMUL
from mlsys.workloads import zoo
from mlsys_evidence.ingest.training import BINNED_TOKENS, GNMT_COUNTED, GNMT_PADDED, PACKED, with_run_settings
from mlsys_evidence.questions import interpret
from mlsys_evidence.rows import shipped_rows

_LAMBDA = "github.com/lambdal/deeplearning-benchmark"
_NVIDIA = "github.com/NVIDIA/DeepLearningExamples"


def _row(model: str, batch: str, value: float, unit: str = "tokens/s", **words: object) -> Row:
    row = replace(
        next(row for row in shipped_rows() if row.device == "NVIDIA A100 80GB SXM"),
        n_devices=1, workload=f"{model} training", model=model, precision="amp fp16", batch=batch, seq_or_shape="",
        metric="throughput", value=value, unit=unit, software="NVIDIA DeepLearningExamples PyTorch (NGC)",
        source=_LAMBDA, note="", quality="primary",
    )  # fmt: skip
    return replace(row, **words)  # type: ignore[arg-type]


def test_transformer_xl_is_as_large_as_the_logs_of_its_code_say() -> None:
    """``n_all_param`` and ``n_nonemb_param`` of lambdal/deeplearning-benchmark at aa5addb6, A100_80GB_SXM4_v1."""
    for name, parameters, beside_words in (("base", 191_948_759, 54_599_680), ("large", 519_963_095, 245_532_672)):
        network = zoo.network(f"transformer_xl_{name}")
        assert network.parameters.magnitude == parameters
        words = 267_735 * (512 if name == "base" else 1024)
        biases = 2 * (512 if name == "base" else 1024)
        assert parameters - words - 267_735 - biases == beside_words


def test_gnmt_is_as_large_as_the_log_of_its_code_says() -> None:
    """159,605,817 with 31,800 words, as the log has it; each word is a row of the table, and of the classifier."""
    assert zoo.network("gnmt").parameters.magnitude - (32_320 - 31_800) * (2 * 1024 + 1) == 159_605_817


def test_ssd300_has_the_boxes_of_its_paper() -> None:
    """Liu et al. 2016, section 3.1: 8,732 boxes, on maps of 38, 19, 10, 5, 3 and 1; as many of each of 81 classes."""
    heads = [each for each in zoo.network("SSD300") if each.name.startswith("head")]
    sides = [each.shape["out_size"] for each in heads]
    assert sides == [side for side in (38, 19, 10, 5, 3, 1) for _ in range(2)]
    places = [each.shape["out_size"] ** 2 * each.shape["out_channels"] for each in heads]
    assert sum(places[::2]) == 8732 * 4
    assert sum(places[1::2]) == 8732 * 81


def test_a_transformer_xl_compares_every_token_with_all_words() -> None:
    case = interpret(_row("Transformer-XL", "24", 20000.0, workload="Transformer-XL base training"))
    widest = case.work["n"] * (case.work["kind"] == MATMUL)
    assert widest.max() == 267_735
    assert case.work["m"][widest.argmax()] == 24 * 192
    assert case.seconds == pytest.approx(24 * 192 / 20000)
    assert Hardware["A100_80GB"].memory["L2"].capacity.m_as("byte") < 108 * 267_735 * 2  # a row a unit at a time
    assert np.isclose(case.work["moved"], (3 + 1 + 1 + 3 + 1 + 1) * 24 * 192 * 267_735 * 2).any()
    large = interpret(_row("Transformer-XL", "8", 8000.0, workload="Transformer-XL large training"))
    assert large.seconds == pytest.approx(8 * 256 / 8000)


def test_a_rate_of_gnmt_counts_the_subwords_of_both_languages_and_no_padding() -> None:
    """Lengths in groups of ten are padded to the longest: less than ten more than the mean, and not less than it."""
    case = interpret(_row("GNMT", "128", 100_000.0))
    assert case.seconds == pytest.approx(128 * GNMT_COUNTED / 100_000)
    assert 0 < GNMT_PADDED - GNMT_COUNTED / 2 < 10


def test_smoothed_labels_move_forty_bytes_a_logit() -> None:
    """In FP16, 2 + 4 + 4 forward and 30 for the gradient; logits of four bytes are read and written once: 4 more."""
    case = interpret(_row("GNMT", "64", 100_000.0))
    assert np.isclose(case.work["moved"], 40 * 64 * GNMT_PADDED * 32_320).any()
    single = interpret(_row("GNMT", "64", 100_000.0, precision="tf32"))
    assert np.isclose(single.work["moved"], 44 * 64 * GNMT_PADDED * 32_320).any()


def test_batches_of_all_cards_are_shared_among_them() -> None:
    one, eight = (interpret(_row("GNMT", str(1520 * n), 1e5 * n, n_devices=n)) for n in (1, 8))
    assert eight.seconds == pytest.approx(one.seconds)
    assert (eight.work.columns == one.work.columns).all()


def test_what_the_code_does_not_say_is_refused() -> None:
    for row, reason in (
        (_row("Transformer-XL", "8", 1.0), "which of its sizes"),
        (_row("Transformer-XL", "8", 1.0, workload="Transformer-XL base training", source=_NVIDIA), "words are rare"),
        (_row("GNMT", "8", 1.0, source="elsewhere", software="PyTorch 1.9"), "lengths it is fed"),
        (_row("BERT-Large (packed)", "8", 1.0, "sequences/s", seq_or_shape="seq 384"), "sequences a pack has"),
    ):
        with pytest.raises(Inexpressible, match=reason):
            interpret(row)


def _wikipedia(length: int) -> float:
    """Return the part of samples up to so many tokens: sums over 64 lengths of the histogram of Krell et al. 2021."""
    return (0, 0.1759, 0.3694, 0.4834, 0.5663, 0.6308, 0.6836, 0.7280, 1)[length // 64]


def test_a_batch_of_one_bin_is_shorter_than_its_top_by_less_than_its_rounding() -> None:
    bins = range(64, 513, 64)
    padded = sum(top * (_wikipedia(top) - _wikipedia(top - 64)) for top in bins)
    assert padded - 8 < BINNED_TOKENS < padded


def test_bert_of_the_second_phase_is_fed_bins_and_of_the_first_all_it_has_room_for() -> None:
    row = _row("BERT-Large", "16", 100.0, "sequences/s", seq_or_shape="seq 512", workload="BERT pre-training",
               source=_NVIDIA, software="PyTorch NGC (LAMB)", precision="tf32")  # fmt: skip
    assert interpret(row).work["m"].max() == 16 * BINNED_TOKENS
    assert interpret(replace(row, seq_or_shape="seq 128")).work["m"].max() == 16 * 128
    both = replace(row, batch="16 and 32")
    for precision, batch in (("tf32", 16), ("amp fp16", 32)):
        assert interpret(replace(both, precision=precision)).work["m"].max() == batch * BINNED_TOKENS
    assert with_run_settings(replace(row, software="TensorFlow 1.15")).seq_or_shape == "seq 512"


def test_a_pack_counts_the_sequences_that_it_holds() -> None:
    """No more than two of Wikipedia's samples fit 512 tokens: they have 255.8 on average (arXiv:2107.02027)."""
    row = _row("BERT-Large phase 2 (packed)", "global 9600", 2000.0, "sequences/s", seq_or_shape="seq 512",
               device="Graphcore Bow IPU", precision="fp16 (16.16)", software="PopART SDK3.1", source="")  # fmt: skip
    plain = interpret(replace(row, model="BERT-Large phase 2"))
    assert interpret(row).seconds == pytest.approx(plain.seconds * PACKED[512])
    assert 1 < PACKED[128] < PACKED[512] < 512 / 255.8
