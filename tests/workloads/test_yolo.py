"""YOLO networks have the parameters and the work that their makers publish."""

import pytest

from mlsys.errors import ArgumentError
from mlsys.workloads import load, zoo

# Parameters to the last one, as the makers' configurations state them (release 8 counts 16 constants that turn bins
# into sides), and GFLOP at 640 × 640 as their tables round them: ultralytics v8 configuration, YOLOv5 v6.0 README
# and summaries, YOLOX README.
EXACT = {
    "yolov5n": (1_872_157, 4.5),
    "yolov5s": (7_235_389, 16.5),
    "yolov5m": (21_190_557, 49.0),
    "yolov8n": (3_157_200 - 16, 8.7),
    "yolov8s": (11_166_560 - 16, 28.6),
    "yolov8m": (25_902_640 - 16, 78.9),
    "yolov8l": (43_691_520 - 16, 165.2),
    "yolov8x": (68_229_648 - 16, 257.8),
    "yolo11n": (2_624_064, 6.6),
    "yolo11s": (9_458_736, 21.7),
    "yolo11m": (20_114_672, 68.5),
    "yolo11l": (25_372_144, 87.6),
    "yolo11x": (56_966_160, 196.0),
}
ROUNDED = {
    "yolov5x": (86.7, 205.7), "yolox_s": (9.0, 26.8), "yolox_m": (25.3, 73.8), "yolox_x": (99.1, 281.9),
    "yolov10n": (2.3, 6.7),  # Wang et al. 2024, table 1
    "yolov7_tiny": (6.2, 13.7),  # WongKinYiu/yolov7: 13.7 GFLOP when fused
    "yolov6n": (4.3, 11.1), "yolov6s": (17.2, 44.2),  # meituan/YOLOv6, README, release 0.2
    # Millions of parameters and GFLOP in the tables of hailo-ai/hailo_model_zoo.
    "yolov4_tiny": (6.05, 6.92), "nanodet_repvgg_a0": (6.74, 11.28), "nanodet_repvgg_a1": (10.79, 42.8),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_parameters_are_those_of_the_configuration(name: str) -> None:
    network = zoo.network(name, batch=1)
    parameters, work = EXACT[name]
    assert network.parameters.m_as("param") == parameters
    assert network.flops.m_as("GFLOP") == pytest.approx(work, rel=0.01)


@pytest.mark.parametrize("name", ROUNDED)
def test_parameters_and_work_are_those_of_the_table(name: str) -> None:
    network = zoo.network(name, batch=1)
    millions, work = ROUNDED[name]
    assert network.parameters.m_as("param") / 1e6 == pytest.approx(millions, abs=0.06)
    assert network.flops.m_as("GFLOP") == pytest.approx(work, rel=0.01)


def test_a_larger_picture_is_more_work_and_no_more_parameters() -> None:
    small, large = (zoo.network("yolov8n", batch=1, image=side) for side in (320, 640))
    assert large.flops == 4 * small.flops
    assert large.parameters == small.parameters


def test_the_one_door_knows_them() -> None:
    assert load("YOLOv8n", batch=2).flops == 2 * load("yolov8n").flops
    assert zoo.resolve("YOLOv8-Detection").name == "yolov8n"  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["yolov5n", "yolov8n", "yolox_s", "yolo11n", "yolov10n", "yolov6n"])
def test_a_picture_that_does_not_halve_five_times_is_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="multiples of 32"):
        zoo.network(name, batch=1, image=100)
