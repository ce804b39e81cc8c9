"""Results as plain data, and the facts that they lean on."""

import json
import pickle

import pytest

import mlsys
from mlsys import Hardware
from mlsys.models import roofline
from mlsys.models.analysis import analyze
from mlsys.models.architecture import architecture
from mlsys.models.tiling import Tiling, tiled_gemm
from mlsys.provenance import traced, unrecorded
from mlsys.units import Q_
from mlsys.workloads import gemm, zoo

A100 = Hardware.Cloud.A100
MADE = {
    "roofline": lambda: roofline(A100, zoo.network("resnet50", batch=2, precision="fp16")),
    "tiling": lambda: tiled_gemm(A100, gemm(1024, 1024, 1024), Tiling(96, "L1", buffers=2)),
    "architecture": lambda: architecture(A100, zoo.network("resnet50", batch=2, precision="fp16")),
    "analysis": lambda: analyze(A100, zoo.network("resnet50", batch=2, precision="fp16")),
}
NEEDED = {"A100_80GB/memory/HBM/bandwidth", "A100_80GB/peaks/fp16/matrix/dense"}


@pytest.mark.parametrize("model", MADE)
def test_a_record_survives_json_and_names_its_version_its_units_and_its_facts(model: str) -> None:
    result = MADE[model]()
    record = json.loads(json.dumps(result.record(), allow_nan=False))
    assert record["record"] == 1
    assert set(record["facts"]) == {fact.name for fact in result.facts} >= NEEDED
    assert record["device"] == A100.name


ANSWERS = {
    **MADE,
    "fusion": lambda: mlsys.fusion_gain(A100, mlsys.fuse(mlsys.load("resnet8", precision="fp16"))),
    "tiles": lambda: mlsys.tiles(A100, "resnet8"),
    "mapper": lambda: mlsys.mapper("GenericTPU", "gemm:64x64x64").layers[0],
}


@pytest.mark.parametrize("model", ANSWERS)
def test_every_answer_has_the_same_members(model: str) -> None:
    answer = ANSWERS[model]()
    assert sum(part.m_as("s") for part in answer.parts.values()) == pytest.approx(answer.time.m_as("s"))
    assert answer.range[0] <= answer.time <= answer.range[1]
    assert answer.bound_by in ("compute", "memory", "launch", "on-chip memory")
    assert answer.facts and json.dumps(answer.record()) and answer.explain()


@pytest.mark.parametrize("model", ["roofline", "tiling", "architecture"])
def test_the_parts_of_a_record_sum_to_its_time_in_seconds(model: str) -> None:
    record = MADE[model]().record()
    assert record["time"]["unit"] == "s"
    assert sum(part["value"] for part in record["parts"].values()) == pytest.approx(record["time"]["value"])
    if record["children"]:
        assert sum(child["time"]["value"] for child in record["children"]) == pytest.approx(record["time"]["value"])


def test_the_room_that_a_tile_needs_is_among_the_facts_of_a_tiling() -> None:
    assert "A100_80GB/memory/L1/usable" in {fact.name for fact in MADE["tiling"]().facts}


def test_a_traced_answer_keeps_its_arguments_as_they_are() -> None:
    shared = Q_(1, "s")

    @traced
    def model(device, given):
        return {"own": Q_(2, "s") + 0 * given, "given": given, "count": 3, "bandwidth": device.memory_bw}

    answer = model(A100, shared)
    assert shared.origin is None, "what a caller hands in stays the caller's"
    assert answer["own"].origin.expression() == "model(device=NVIDIA A100 80 GB SXM4, given=1 s)"
    assert answer["bandwidth"].origin.expression() == "the fact A100_80GB/memory/HBM/bandwidth"
    assert answer["count"] == 3 and [fact.name for fact in answer["count"]._origin.facts()] == [
        "A100_80GB/memory/HBM/bandwidth"
    ]
    assert json.dumps(answer["count"]) == "3" and pickle.loads(pickle.dumps(answer["count"])) == 3


def test_facts_are_kept_where_nobody_listens_outside() -> None:
    with unrecorded():
        assert {fact.name for fact in MADE["analysis"]().facts} >= NEEDED
