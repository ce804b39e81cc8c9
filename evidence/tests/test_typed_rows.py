"""A row in typed columns and the same row in words are one question."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.estimates import estimated
from mlsys.calibration.questions import typed_case
from mlsys.calibration.rows import Row
from mlsys.calibration.times import stack_of
from mlsys.measure.ten_measurements import _NETWORKS
from mlsys_evidence.questions import interpret, kind_of

EMPTY = dict.fromkeys(("id", "source", "source_path", "quality", "group", "note", "workload", "model"), "")
PYTORCH = "PyTorch 2.99 eager"
MACHINES = {
    ("Xeon_8480", "cpu", "fp32"): 56, ("EPYC_9654", "cpu", "fp32"): 2, ("RaspberryPi5", "cpu", "fp32"): 4,
    ("A100_80GB", "cuda", "fp32"): None, ("A100_80GB", "cuda", "fp16"): None, ("T4", "cuda", "fp32"): None,
    ("JetsonAGXOrin", "cuda", "fp16"): None,
}  # fmt: skip


def typed(device: str, processor: str, precision: str, threads: int | None, name: str, batch: int) -> Row:
    language = name.startswith("bert")
    return Row(
        device=device, device_class="", n_devices=1, precision=precision, batch=str(batch), seq_or_shape="",
        metric="latency", value=5.0, unit="ms", software=PYTORCH, network=name, stack="eager", processor=processor,
        threads=threads, image=None if language else 224, tokens=128 if language else None,
        tf32="convolutions" if (processor, precision) == ("cuda", "fp32") else "none" if processor == "cuda" else "",
        **EMPTY,
    )  # fmt: skip


def in_words(row: Row) -> Row:
    kind = "BERT" if row.tokens else "CNN"
    on = " on CPU" if row.processor == "cpu" else ""
    shape = f"seq {row.tokens}" if row.tokens else f"{row.image}x{row.image} image"
    note = f"98% of {row.threads} threads" if row.threads else ""
    plain = {"network": "", "stack": "", "processor": "", "tf32": "", "image": None, "tokens": None, "threads": None}
    return replace(row, workload=f"{kind} inference{on}", model=row.network, seq_or_shape=shape, note=note, **plain)


def seconds(case: Case) -> float:
    return float(estimated([case], stack_of([case]))[0])


@pytest.mark.parametrize("machine", MACHINES, ids=" ".join)
def test_networks_of_a_session_are_read_the_same_way(machine: tuple[str, str, str]) -> None:
    for name, batch in _NETWORKS[machine[1]]:
        row = typed(*machine, MACHINES[machine], name, batch)
        own, words = typed_case(row), interpret(in_words(row))
        result = (own.setting, own.twin, own.seconds, own.inverse, own.version, own.kind)
        assert result == (words.setting, words.twin, words.seconds, words.inverse, words.version, words.kind), name
        assert own.engine.matmul == words.engine.matmul and own.engine.bandwidth == words.engine.bandwidth
        assert own.work.flops == pytest.approx(words.work.flops, rel=1e-6), name
        assert seconds(own) == pytest.approx(seconds(words), rel=0.015), name
        assert interpret(row) == own and kind_of(row) == own.kind


@pytest.mark.parametrize(("operator", "arrays"), [("copy", "Copy"), ("add", "Add"), ("triad", "Triad")])
def test_streams_are_read_the_same_way(operator: str, arrays: str) -> None:
    row = replace(
        typed("L4", "cuda", "fp32", None, "", 1), operator=operator, elements=1 << 24, unit="GB/s", value=250.0
    )
    words = replace(row, operator="", elements=None, workload=f"STREAM {arrays}", seq_or_shape="67.108864 MB per array")
    own, read = typed_case(row), interpret(words)
    assert (own.setting, own.twin, own.cached) == (read.setting, read.twin, read.cached)
    assert own.seconds == pytest.approx(read.seconds) and np.isclose(seconds(own), seconds(read), rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"network": "resnet5O"}, "resnet50"),
        ({"device": "L999"}, "no L999 in the catalogue"),
        ({"stack": "egaer"}, "Did you mean 'eager'"),
        ({"batch": "micro 4"}, "`batch` must be a whole number"),
        ({"stack": ""}, "`stack` must name the software"),
        ({"precision": "fp13"}, "`precision` must be fp32"),
        ({"unit": "GB/s"}, "not a time or a rate"),
        ({"network": "", "operator": "add"}, "`elements` must be"),
    ],
)
def test_a_row_that_cannot_be_predicted_states_the_reason(change: dict[str, str], reason: str) -> None:
    with pytest.raises(Inexpressible, match=reason):
        typed_case(replace(typed("L4", "cuda", "fp16", None, "resnet50", 1), **change))
