"""What sources say that FasterTransformer and PyTorch do, counted by hand from rows that ship."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from mlsys.calibration.case import Case
from mlsys.calibration.rows import Row
from mlsys.models.estimate import VECTOR
from mlsys.models.estimate.effects import pool_of
from mlsys_evidence import validate
from mlsys_evidence.evaluate.blind_evaluation import blind_evaluation_rows
from mlsys_evidence.fit.refit import fitted_with
from mlsys_evidence.questions import interpret
from mlsys_evidence.questions.encoders import down_a_pipeline
from mlsys_evidence.rows import shipped_rows


def _rows(workload: str, **words: str) -> Iterator[Row]:
    for row in shipped_rows():
        if workload in row.workload and all(word in getattr(row, name) for name, word in words.items()):
            yield row


def _passes_over_scores(case: Case) -> float:
    """Return the bytes of kernels that compute nothing."""
    work = case.work
    here = (work["kind"] == VECTOR) & (work["flops"] == 0) & (work["weights"] == 0)
    return float((work["moved"] * work["count"])[here].sum())


def test_a_picture_of_577_tokens_is_attended_to_in_three_kernels_and_a_text_of_384_in_one() -> None:
    picture = next(_rows("vision transformer", precision="FP16", software="FasterTransformer", batch="8"))
    assert _passes_over_scores(interpret(picture)) == pytest.approx(12 * 4 * 8 * 12 * (24 * 24 + 1) ** 2 * 2)
    text = next(_rows("transformer encoder", precision="FP16", software="FasterTransformer", seq_or_shape="seq 384"))
    assert _passes_over_scores(interpret(text)) == 0


def test_a_pipeline_of_two_runs_half_of_the_layers_once_for_each_text_and_once_to_fill() -> None:
    """128 texts of 1,024 tokens are too long to go down together: 129 rounds of half of the layers of one text."""
    flops = {}
    for stages in (1, 2):
        note = f"tensor parallel 1, pipeline parallel {stages}"
        row = next(_rows("transformer encoder", model="BERT-6B", seq_or_shape="seq 1024", note=note, batch="128"))
        work = interpret(row).work
        flops[stages] = float((work["flops"] * work["count"]).sum())
    assert flops[2] / flops[1] == pytest.approx(129 / 256)


@pytest.mark.parametrize(("batch", "tokens", "stages"), [(128, 1024, 2), (128, 128, 3), (12, 1, 3), (7, 4096, 4)])
def test_a_pipeline_takes_as_long_as_its_last_piece_at_its_last_stage(batch: int, tokens: int, stages: int) -> None:
    """Each piece enters a stage when the one before has left it: the schedule, drawn step by step."""
    piece, turns = down_a_pipeline(batch, tokens, stages)
    assert batch % piece == 0
    left = [0.0] * (stages + 1)
    for _ in range(batch // piece):
        for stage in range(1, stages + 1):
            left[stage] = max(left[stage], left[stage - 1]) + 1 / stages
    assert turns == pytest.approx(left[stages])


def test_a_prompt_goes_down_a_pipeline_in_pieces_and_its_tokens_do_not() -> None:
    """Megatron-530B on three times eight A100: the arithmetic of its prompts alone fills 24 peaks for 2.2 seconds."""
    row = next(_rows("LLM generation", model="Megatron-530B", note="TP=8, PP=3", batch="128"))
    (result,) = validate([row]).predictions
    least = 2 * 530e9 * 128 * 128 / (24 * 312e12)
    assert least < result.bound < result.case.seconds, "three stages work at a time"
    assert result.excuse == ""


def test_softmax_reads_rows_of_broken_vectors_again() -> None:
    """2,048 values of FP32 are read and written once on an A100; 2,419 are not a multiple of four."""
    reads = {}
    for row in _rows("softmax", software="PyTorch 2.1.0", device="A100"):
        case = interpret(row)
        rows, length = (int(part.split("=")[1].split()[0]) for part in row.seq_or_shape.split(","))
        reads[length] = float(case.work["moved"][0]) / (4 * rows * length) - 1
    assert reads[2048] == reads[1024] == 1
    assert reads[2419] == reads[3177] == 2


def _kernl(program: str, batch: str = "8", tokens: int = 512) -> Row:
    rows = _rows("BERT inference", source="ELS-RD/kernl", software=program, seq_or_shape=f"seq {tokens}")
    return next(row for row in rows if row.batch == batch)


def test_libraries_before_flash_attention_write_the_scores_of_each_layer() -> None:
    """12 layers of 12 heads: written by a product, read and written by the softmax, read by a product, in 2 bytes."""
    for program in ("DeepSpeed", "ONNX Runtime"):
        assert _passes_over_scores(interpret(_kernl(program))) == pytest.approx(12 * 4 * 8 * 12 * 512**2 * 2)
    assert _passes_over_scores(interpret(_kernl("TensorRT"))) == 0


def test_xla_writes_the_scores_that_fastertransformer_keeps() -> None:
    """Of 256 tokens: twice at least, out of one product and into the next."""
    by_xla, by_hand = (
        interpret(
            next(_rows("encoder", source="bytedance/ByteTransformer", software=name, seq_or_shape="seq 256"))
        ).work
        for name in ("XLA", "FasterTransformer")
    )
    more = by_xla["moved"] @ by_xla["count"] - by_hand["moved"] @ by_hand["count"]
    assert more > 12 * 2 * 12 * 256**2 * 2


def test_a_graph_starts_a_networks_kernels_without_its_host() -> None:
    """BERT-base on an RTX 3090: 74 kernels of AITemplate's, 1.2 ms for 16 tokens; one by one they take far longer."""
    row = replace(_kernl("AITemplate", "1", 16), software="PyTorch eager, CUDA graph")
    in_a_graph, alone = (
        validate([replace(row, software=name)]).predictions[0].value
        for name in ("PyTorch eager, CUDA graph", "PyTorch eager")
    )
    assert in_a_graph < 1.2 * 1.07 < 3 * in_a_graph, "the graph of PyTorch's own operators takes 1.07 ms there"
    assert alone > 3 * in_a_graph


def test_tensorrt_of_today_attains_more_than_a_geforce_sums_in_fp32() -> None:
    """85 million weights and attention of 12 layers on an RTX 3090, beside a peak into FP32 of 71 TFLOP/s."""
    card = 71.16e12
    for program, faster in (("TensorRT", True), ("AITemplate", False)):
        case = interpret(_kernl(program, "32", 256))
        assert (case.work.flops / case.seconds > 0.95 * card) == faster
        assert (case.engine.matmul > 1.9 * card) == faster


def test_transformers_beside_lightseq_computed_in_fp32() -> None:
    """Its table says FP16, its script loads FP32; a T4 does 8.1 TFLOP/s of that, and 65 of FP16 (datasheet)."""
    rows = [row for row in blind_evaluation_rows(4) if row.source == "bytedance/lightseq" and "BERT" in row.model]
    attained = {"Transformers": 0.0, "LightSeq": 0.0}
    for row in rows:
        case = interpret(row)
        name = next(name for name in attained if name in row.software)
        attained[name] = max(attained[name], case.work.flops / case.seconds)
        assert case.engine.computes_in == ("fp32" if name == "Transformers" else "fp16")
    assert attained["Transformers"] < 0.5 * 8.1e12 < 8.1e12 < attained["LightSeq"]


def test_an_encoder_of_eager_pytorch_is_the_network_that_it_is() -> None:
    """What keras.io's benchmarks call a forward pass of BERT, operator by operator in FP32, is one of any source."""
    rows = _rows("inference", source="sitar-lab/NeuSight", device="H100")
    first = next(row for row in rows if "bert" in row.model.lower() and row.n_devices == 1)
    row = replace(first, workload="transformer encoder forward", software="PyTorch eager (Hugging Face)")
    encoder, network = interpret(row), interpret(replace(row, workload="network inference"))
    assert (encoder.setting, encoder.kind) == ("eager small units network on GPU", "transformer")
    assert (encoder.work.columns == network.work.columns).all()


def test_steps_of_megatron_on_vector_units_learn_no_habit_of_matrix_units() -> None:
    """In FP32 an H100 does 67 TFLOP/s, in FP16 990 (datasheet): what it attains of these says nothing of those."""
    rows = [row for row in shipped_rows() if "Megatron" in row.software and "training" in row.workload]
    cases = [interpret(row) for row in rows]
    pools: dict[str, set[str]] = {}
    for case in cases:
        pools.setdefault(case.row.precision, set()).add(pool_of(case.setting))
    assert pools == {"fp32": {"wholes on vector units"}, "amp fp16": {"wholes on GPU"}}
    assert len({fitted_with(case.setting) for case in cases}) == 1, "launches, and what lies between, are the same"
