"""Detectors that look twice, Segment Anything, pictures made by transformers, ResNeXts: as others counted them."""

import pytest

from mlsys.workloads import zoo

# Parameters, millions: black-forest-labs, FLUX.1-dev, sum of flux1-dev.safetensors; THUDM/CogVideoX-2b and -5b.
PARAMETERS = {
    "flux": 11_901.4,
    "cogvideox_2b": 1_693.9, "cogvideox_5b": 5_570.3, "sam_vit_h": 637.0, "sam_vit_b": 89.67,
    # torchvision, resnext101_64x4d; Cadene/pretrained-models.pytorch, resnext101_32x4d.
    "resnext101_64x4d": 83.455, "resnext101_32x4d": 44.178,
}  # fmt: skip
# Billions of multiply-adds: Liu et al. 2021 (Swin), table 2, Mask R-CNN on ResNet-50 at 800 × 1280, whose stride stands
# in the 3 × 3 (5 more); Zhang et al. 2024 (EfficientViT-SAM), table 1, whole Segment Anything.
WORK = {
    "mask_rcnn_r-50_fpn": 260 - 5,
    "sam_vit_h": 2973,
    "sam_vit_l": 1493,
    "sam_vit_b": 488,
    "resnext101_64x4d": 15.46,
}


# torchvision, model pages of fasterrcnn_, maskrcnn_ and keypointrcnn_resnet50_fpn: parameters, and classes, of which
# the background is one and has a box and a mask of its own.
IN_TORCHVISION = {
    "faster_rcnn_r-50_fpn": (41_755_286, 91),
    "mask_rcnn_r-50_fpn": (44_401_393, 91),
    "keypoint_rcnn_r-50_fpn": (59_137_258, 2),
}
FROZEN = 2 * (64 + 3 * (64 + 64 + 256) + 256 + 4 * (128 + 128 + 512) + 512 + 6 * (256 + 256 + 1024) + 1024
              + 3 * (512 + 512 + 2048) + 2048)  # fmt: skip


@pytest.mark.parametrize("name", IN_TORCHVISION)
def test_every_class_has_a_score_a_box_and_a_mask_and_the_background_a_score_alone(name: str) -> None:
    """Exactly; torchvision freezes the normalisations of its ResNet-50, which so are no parameters there."""
    parameters, there = IN_TORCHVISION[name]
    objects = 1 if "keypoint" in name else 80
    head = 1025 * ((objects + 1 + 4 * objects) - 5 * there)
    masks = 257 * (objects - there) if "mask" in name else 0
    assert zoo.network(name).parameters.m_as("param") == parameters + FROZEN + head + masks


@pytest.mark.parametrize(("backbone", "millions"), [("r-50", 59.19), ("r-101", 78.18), ("x-101-32x8d", 122.42)])
def test_keypoints_are_those_of_one_class(backbone: str, millions: float) -> None:
    """facebookresearch/detectron2, configs/COCO-Keypoints/Base-Keypoint-RCNN-FPN.yaml: NUM_CLASSES: 1."""
    assert round(zoo.network(f"keypoint_rcnn_{backbone}_fpn").parameters.m_as("param") / 1e6, 2) == millions


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_those_published(name: str) -> None:
    assert zoo.network(name).parameters.m_as("param") / 1e6 == pytest.approx(PARAMETERS[name], rel=0.003)


@pytest.mark.parametrize("name", WORK)
def test_work_is_that_published(name: str) -> None:
    size = {"image": (800, 1280)} if "rcnn" in name else {}
    network = zoo.entry(name).build(**size)  # type: ignore[arg-type]
    assert network.macs.m_as("MAC") / 1e9 == pytest.approx(WORK[name], rel=0.015)


def test_regions_cost_as_much_however_large_the_picture_is() -> None:
    """1,000 regions through ResNet-50's fifth stage, whose three blocks and shortcut see 7 × 7 pixels of each."""
    blocks = (1024 + 2 * 2048) * 512 + 3 * (9 * 512 * 512 + 512 * 2048) + 1024 * 2048
    small, large = (
        sum(
            op.operations.m_as("FLOP") / 2
            for op in zoo.entry("faster_rcnn_r-50_c4").build(image=side).operators
            if "region" in op.name
        )
        for side in ((512, 512), (800, 1333))
    )
    assert small == large == pytest.approx(1000 * (49 * blocks + 2048 * (81 + 4 * 80)))


def test_a_look_of_flux_is_two_operations_for_each_weight_and_token_and_its_attention() -> None:
    """Of its weights those of the modulations see one token of a picture, not 4,608."""
    network = zoo.network("flux")
    tokens, width = 4096 + 512, 3072
    modulations = (19 * 2 * 6 + 38 * 3 + 2) * width**2
    streams = 19 * 12 * width**2 * tokens + 38 * 12 * width**2 * tokens
    attention = 57 * 2 * tokens**2 * width
    assert modulations > 0.2 * network.parameters.m_as("param")
    assert network.macs.m_as("MAC") == pytest.approx(modulations + streams + attention, rel=0.01)
