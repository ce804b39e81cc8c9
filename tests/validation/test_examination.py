"""The examination is frozen, of sources that the fit does not know, read as published, and answered without it."""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from click.testing import CliRunner

from mlsys.cli.main import main
from mlsys.errors import ArgumentError
from mlsys.models.calibrated import Stack, calibrated_times
from mlsys.models.calibrated.library import fitted, nearest
from mlsys.models.calibrated.ranges import UNKNOWN, range_of
from mlsys.validation import cited_rows, examination_rows, examined, refit, shipped_rows, validate
from mlsys.validation.cases import Inexpressible, interpret
from mlsys.validation.examination import examination_sources, first_answers, grade
from mlsys.validation.rows import DATA, Row

# Of the rows, taken before any of them was predicted for the first time.
FROZEN = "98fc9366bedb239392b0eb2d8ed7d41811d668c333abe39b37c2d9d9d58c7481"
# Lines of tables as their sources print them, and which of their numbers are rows.
PUBLISHED = (
    ("jcjohnson/cnn-benchmarks", "|GTX 1080 Ti|5.1.10|34.14|67.06|101.21|", "34.14 101.21"),
    ("deepseek-ai/DeepGEMM", "| 4096 | 2112  | 7168  | 1009 TFLOPS |     503 GB/s     |  1.1x   |", "1009"),
    ("mit-han-lab/llm-awq", "| LLaMA-3-8B  | 17.07             | 6.39              | 2.69x   |", "17.07 6.39"),
    ("openppl-public/ppl.nn", "| resnet50 |1.00594 | 1.07656 | 0.72971 | 0.753079 |", "1.00594 1.07656 .72971 .753079"),
    ("bytedance/effective_transformer", "| 100  | 15.08 | 10.39 | 1.45 | 8.75 | 1.72 |", "15.08 10.39"),
    ("Tencent/TNN", "| DenseNet 121    | 65.70                       | 45.83        |", "65.70 45.83"),
    ("turboderp-org/exllamav2", "| Llama2     | EXL2 4.0 bpw | 7B    | -  | -   | 185 t/s | **211** t/s |", "211"),
    ("tlkh/tf-metal-experiments", "| BERTLarge   | M1 Max 32c | 16        | 19 seq/sec  | 36W   | 14 GB  |", "19"),
    ("google-coral/pycoral", "inception_v4_299_quant_edgetpu.tflite 100.33", "100.33"),
    ("sipeed/TinyMaix", "|STM32H750   |ARM CM7   |  1MB|  1024KB| 480M| 94  | 64  | 15  | <1  ||", "94 64"),
)  # fmt: skip
OPEN = ("MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause")


def of(source: str, **wanted: object) -> Row:
    """Return the only row of a source that has these values."""
    (row,) = (
        row
        for row in examination_rows()
        if row.source == source and all(getattr(row, name) == value for name, value in wanted.items())
    )
    return row


def test_the_set_is_the_one_that_was_frozen_before_the_first_answer() -> None:
    assert hashlib.sha256(gzip.decompress((DATA / "examination.csv.gz").read_bytes())).hexdigest() == FROZEN
    assert len({row.id for row in examination_rows()}) == len(examination_rows()) == 504


@pytest.mark.parametrize(("source", "line", "rows"), PUBLISHED)
def test_rows_are_what_their_sources_print(source: str, line: str, rows: str) -> None:
    printed = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", line)}
    values = {float(number) for number in rows.split()}
    assert values <= printed, "the quotation itself"
    own: dict[str, set[float]] = {}
    for row in examination_rows():
        if row.source == source:
            own.setdefault(row.source_path, set()).add(row.value)
    assert values in own.values()


def test_no_source_of_the_fit_examines_it() -> None:
    known = {row.source.lower() for row in (*shipped_rows(), *cited_rows())}
    for name, source in examination_sources().items():
        assert not any(name.lower() in other or other in name.lower() for other in known), name
        assert source["licence"].startswith(OPEN), name
        assert source["version"] and source["method"]
    assert {row.source for row in examination_rows()} == set(examination_sources())
    for row in examination_rows():
        version = row.source_path.partition("@")[2].split()[0]
        assert examination_sources()[row.source]["version"].startswith(version[:7])


def test_the_fit_reads_no_row_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refit, "shipped_rows", lambda: shipped_rows()[::40])
    asked = {case.row.id for cases in refit.settings().values() for case in cases}
    assert asked
    assert not asked & {row.id for row in examination_rows()}
    published = {(row.device, row.seq_or_shape, row.model, row.workload, row.value) for row in shipped_rows()}
    assert not [
        row
        for row in examination_rows()
        if (row.device, row.seq_or_shape, row.model, row.workload, row.value) in published
    ]


def test_grades_are_those_of_each_row_by_hand() -> None:
    told = validate(examination_rows()).predictions
    errors = [abs(each.value - each.row.value) / each.row.value for each in told if each.case]
    whole = examined()[-1]
    assert whole.now.answered == len(errors)
    assert whole.now.error == pytest.approx(median(errors), abs=1e-4)
    first = {row.id: first_answers()[row.id] for row in examination_rows() if row.id in first_answers()}
    by_id = {row.id: row for row in examination_rows()}
    inside = sum(low <= by_id[name].value <= high for name, (_, low, high) in first.items())
    assert whole.first.answered == len(first) == len(first_answers())
    assert whole.first.covered == pytest.approx(inside / len(first), abs=1e-4)
    assert sum(each.now.rows for each in examined()[:-1]) == whole.now.rows == 504


def test_a_grade_counts_rows_without_an_answer_and_no_more() -> None:
    nothing = grade([1.0, 2.0], [None, None])
    assert (nothing.rows, nothing.answered) == (2, 0)
    assert nothing.error != nothing.error
    exact = grade([4.0, 8.0], [(4.0, 3.0, 5.0), (8.0, 4.0, 16.0)])
    assert (exact.error, exact.covered, exact.within_two, exact.width) == (0, 1, 1, pytest.approx(2.833, abs=1e-3))
    twice_and_half = grade([4.0] * 3, [(8.0, 1.0, 9.0), (2.0, 1.0, 9.0), None])
    assert (exact.typical, twice_and_half.typical) == (1, pytest.approx(2))


def test_the_command_examines_and_takes_no_rows_beside_it() -> None:
    run = CliRunner()
    done = run.invoke(main, ["validate", "--exam"])
    assert done.exit_code == 0, done.output
    line = next(line for line in done.output.splitlines() if line.startswith("all, as first answered"))
    assert line.split()[4:6] == ["504", "353"]
    for other in (["--refit"], ["--data", str(DATA / "cited.csv")]):
        refused = run.invoke(main, ["validate", "--exam", *other])
        assert refused.exit_code == 2
        assert "--exam" in refused.output


def test_bits_of_a_weight_are_read_where_they_are_stated() -> None:
    four, three = (
        interpret(of("turboderp-org/exllamav2", model="llama-2-7b", precision=f"EXL2 {bits} bpw weights, fp16")).work
        for bits in ("4.0", "3.0")
    )
    assert four.weights / three.weights == pytest.approx(4 / 3, rel=1e-6)


def test_an_edge_tpu_streams_what_its_memory_does_not_hold() -> None:
    board = "Google Coral Edge TPU (Dev Board)"
    small = interpret(of("google-coral/pycoral", device=board, model="MobileNet-v1 1.0")).work
    large = interpret(of("google-coral/pycoral", device=board, model="inception_v4")).work
    assert small.weights == 0, "4.2 million parameters of a byte fit 6.9 MiB"
    assert large.weights == pytest.approx(42.7e6 - 6.9 * 2**20, rel=0.03)


def test_a_language_model_on_one_thread_has_one_core() -> None:
    row = of("microsoft/T-MAC", device="NVIDIA Jetson AGX Orin", value=1.04)
    one, twelve = (
        interpret(replace(row, workload=f"LLM decode (autoregressive) on CPU {threads}")).engine
        for threads in ("1 thread", "12 threads")
    )
    assert twelve.matmul / one.matmul == pytest.approx(12, rel=0.01)


def test_a_kernel_of_a_controller_may_state_time_or_ticks() -> None:
    row = next(row for row in examination_rows() if row.workload == "kernel" and row.device == "ESP32-S3")
    ticks = replace(row, value=row.value * 240, unit="CPU ticks")
    assert interpret(ticks).seconds == pytest.approx(interpret(row).seconds) == pytest.approx(row.value * 1e-6)


def test_messages_between_machines_are_refused() -> None:
    row = next(row for row in examination_rows() if "nodes" in row.workload)
    with pytest.raises(Inexpressible, match="between nodes"):
        interpret(row)


def test_four_in_five_lie_within_the_range_where_another_setting_stands_in() -> None:
    known = fitted()
    reached: dict[str, list[bool]] = {}
    for row in shipped_rows()[::9]:
        try:
            case = interpret(row)
        except (ArgumentError, Inexpressible):
            continue
        other = nearest(case.setting, [name for name in known if name != case.setting])
        if not other:
            continue
        stack = Stack.of([(case.engine, case.work, case.stays)])
        told = max(float(calibrated_times(stack, known[other].vectorised()[None])[0]), case.at_least)
        reached.setdefault(case.setting, []).append(UNKNOWN[0] < case.seconds / told < UNKNOWN[1])
    assert len(reached) > 60
    assert 0.72 < np.mean([np.mean(own) for own in reached.values()]) < 0.88
    stranger = range_of("TensorFlow XLA transformer on GPU", "V100")
    assert (stranger.low, stranger.high) == UNKNOWN
    assert "stands in" in stranger.why
