"""Pipelines through which a mini-batch goes in pieces, and pictures that are seen in windows."""

from dataclasses import replace

import pytest

from mlsys_evidence.questions import interpret, typed
from mlsys_evidence.questions.pipelines import Stages
from mlsys_evidence.rows import shipped_rows

PIPELINED = [row for row in shipped_rows() if "pipeline of" in row.workload and "torchgpipe" in row.source]


def turns(stages: int, pieces: int) -> int:
    """Return the turns after which the last piece has left the last stage, by moving each piece stage by stage."""
    done, clock = [[-1] * stages for _ in range(pieces)], 0
    while done[-1][-1] < 0:
        for stage in range(stages):
            piece = clock - stage
            if 0 <= piece < pieces and (stage == 0 or 0 <= done[piece][stage - 1] < clock):
                done[piece][stage] = clock
        clock += 1
    return clock


@pytest.mark.parametrize(("stages", "pieces"), [(1, 1), (1, 2), (4, 1), (4, 3), (8, 40)])
def test_a_pipeline_takes_the_turns_of_its_last_piece(stages: int, pieces: int) -> None:
    assert Stages(stages, pieces).turns == pytest.approx(turns(stages, pieces) / stages)


def test_measured_pipelines_are_read_with_what_they_compute_again() -> None:
    assert len(PIPELINED) == 6
    for row in PIPELINED:
        pipeline = Stages.of(typed(row))
        assert pipeline.stages == row.n_devices
        assert pipeline.again == pytest.approx(1 - 1 / pipeline.pieces)
        interpret(row)


def test_computing_again_takes_longer_than_keeping() -> None:
    row = next(row for row in PIPELINED if "pipeline of 8" in row.workload)
    kept = replace(row, workload=row.workload.replace(", activations recomputed", ""))
    again, once = (interpret(each).work.flops for each in (row, kept))
    assert again / once == pytest.approx((3 + 149 / 150) / 3, rel=0.02)


@pytest.mark.parametrize(
    ("shape", "count"),
    [("1024x2048 image, in slides of 769x769", 8), ("1024x2048 image", 1), ("769x769 image, in slides of 769x769", 1),
     ("770x769 image, in slides of 769x769", 2)],
)  # fmt: skip
def test_windows_cover_the_picture(shape: str, count: int) -> None:
    row = replace(next(row for row in shipped_rows() if "slides" in row.seq_or_shape), seq_or_shape=shape)
    assert typed(row).get("windows", 1) == count


def test_a_picture_in_windows_is_as_much_work_as_each_of_them() -> None:
    row = next(row for row in shipped_rows() if "ResNet-50, stride 8" in row.model and "slides" in row.seq_or_shape)
    window, whole = interpret(row), interpret(replace(row, seq_or_shape="1024x2048 image"))
    places = (769 / 8) ** 2 / (1024 / 8 * 2048 / 8)  # an eighth of each side is left
    assert window.work.flops / whole.work.flops == pytest.approx(places, rel=0.03)
    assert window.seconds == pytest.approx(whole.seconds / 8)


def test_a_run_on_a_processor_and_its_graphics_is_no_run_of_the_processor() -> None:
    row = next(row for row in shipped_rows() if "ICL-I3-1005G1" in row.source_path)
    with pytest.raises(Exception, match="the GPU beside it"):
        interpret(row)


def test_a_board_that_is_overclocked_is_as_much_faster() -> None:
    row = next(row for row in shipped_rows() if "overclocked to" in row.note)
    usual = interpret(replace(row, note="whole demonstration"))
    assert interpret(row).engine.matmul / usual.engine.matmul == pytest.approx(1925 / 1500)
