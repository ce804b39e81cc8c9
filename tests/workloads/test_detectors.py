"""Detectors of Darknet, of phones and of pyramids have the parameters and the work that their makers publish."""

import pytest

from mlsys.errors import ArgumentError
from mlsys.workloads import zoo

# Millions of parameters as PyTorch implementations of the configurations sum them up (ultralytics/yolov3 of 2020 prints
# 6.19491e+07, 6.29987e+07 and 8.85237e+06; Tianxiaomo/pytorch-YOLOv4 64,363,101), and GFLOP, where one multiply-add is
# two, as Darknet prints them: AlexeyAB/darknet, README; RangiLyu/nanodet and YOLOX, READMEs.
PUBLISHED = {
    "yolov3": (61.949, 65.86),
    "yolov3_spp": (62.999, 141.45),
    "yolov3_tiny": (8.852, 5.56),
    "yolov4": (64.363, 128.46),
    "yolox_nano": (0.91, 1.08),
    "yolox_tiny": (5.06, 6.45),
    "nanodet_plus_m": (1.17, 1.52),
    "nanodet_plus_m_1.5x": (2.44, 2.97),
    "nanodet_m": (0.95, 0.72),
    "nanodet_m_1.5x": (2.08, 1.44),
    # facebookresearch/detectron2 and MMDetection of the same network; 239.3 billion multiply-adds at 800 × 1280.
    "retinanet_resnet50": (37.97, 2 * 239.32),
    # tensorflow/models, research/deeplab/g3doc/model_zoo.md: 2.75 billion multiply-adds; Apple's file of 8.6 MB.
    "deeplab_v3_mobilenet_v2": (2.11, 2 * 2.75),
}  # fmt: skip
# Millions of parameters and billions of multiply-adds: google/automl, efficientdet/README.md.
EFFICIENTDET = {
    "d0": (3.9, 2.54), "d1": (6.6, 6.10), "d2": (8.1, 11.0), "d3": (12.0, 24.9), "d4": (20.7, 55.2),
    "d5": (33.7, 135), "d6": (51.9, 226), "d7": (51.9, 325), "d7x": (77.0, 410),
}  # fmt: skip
# Millions of parameters: rwightman/efficientdet-pytorch, README.md.
LIGHT = {"lite0": 3.24, "lite1": 4.25}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_and_work_are_those_published(name: str) -> None:
    network = zoo.network(name)
    millions, work = PUBLISHED[name]
    assert network.parameters.m_as("param") / 1e6 == pytest.approx(millions, rel=0.03 if "nano" in name else 0.002)
    counted = 0.04 if name.startswith("yolox") else 0  # YOLOX's counter adds normalisations
    close = 0.06 if name.startswith("nanodet_m") else 0.006
    assert network.flops.m_as("GFLOP") + counted == pytest.approx(work, rel=close)


@pytest.mark.parametrize("size", EFFICIENTDET)
def test_efficientdet_is_as_large_as_its_table_says(size: str) -> None:
    network = zoo.network(f"EfficientDet-{size.upper()}")
    millions, work = EFFICIENTDET[size]
    assert network.parameters.m_as("param") / 1e6 == pytest.approx(millions, abs=0.2 if size == "d7x" else 0.06)
    assert network.macs.m_as("GMAC") == pytest.approx(work, rel=0.02)


@pytest.mark.parametrize("size", LIGHT)
def test_a_light_efficientdet_has_the_parameters_of_its_port(size: str) -> None:
    network = zoo.network(f"EfficientDet-{size.capitalize()}")
    assert network.parameters.m_as("param") / 1e6 == pytest.approx(LIGHT[size], abs=0.005)
    assert not any("squeeze" in operator.name for operator in network.operators)


def test_a_deep_network_shares_its_heads_among_levels() -> None:
    """The heads hold as many parameters for one level as for five, beside what normalises each."""
    network = zoo.network("efficientdet_d0")
    boxes = [each for each in network.operators if each.name.startswith("boxes")]
    assert sum(each.parameters for each in boxes if each.name.startswith("boxes 5")) < 1000
    assert sum(each.parameters for each in boxes if each.name.startswith("boxes 3")) > 10_000


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("tiny-yolov3", "yolov3_tiny"), ("YOLOv4", "yolov4"), ("EfficientDet-D7x", "efficientdet_d7x"),
     ("RetinaNet R101-FPN", "retinanet_resnet101"), ("nanodet_plus_m_1.5x", "nanodet_plus_m_1.5x"),
     ("deeplab_v3 mobilenet_v2", "deeplab_v3_mobilenet_v2"), ("resnet50d", "resnet50_vd")],
)  # fmt: skip
def test_names_of_the_measurements_are_known(spelling: str, name: str) -> None:
    entry = zoo.resolve(spelling)
    assert entry is not None
    assert entry.name == name


def test_a_picture_may_have_two_sides() -> None:
    """Convolutions with a pyramid see as many places as the picture has: 800 × 1344 has 1.05 times those of 1280."""
    usual, longer = (zoo.entry("retinanet_resnet50").build(image=sides).flops for sides in (None, (800, 1344)))
    assert (longer / usual).m_as("") == pytest.approx(1344 / 1280, rel=1e-3)
    with pytest.raises(ArgumentError, match="one side"):
        zoo.entry("densenet121").build(image=(224, 320))
