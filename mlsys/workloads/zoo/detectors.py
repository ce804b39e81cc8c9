"""Catalogue entries of Darknet, mobile, pyramid and two-stage detectors, and of image segmentation."""

from collections.abc import Callable, Iterator
from functools import partial

from mlsys.workloads.zoo import detection, efficientdet, mobile, nanodet, two_stage, yolo, yolo_darknet
from mlsys.workloads.zoo.cnn_builder import CnnBuilder, Shape
from mlsys.workloads.zoo.entry import Entry
from mlsys.workloads.zoo.residual import RESNETS

_NOTE = "80 classes; without non-maximum suppression"
_NANODET = "RangiLyu/nanodet, config"


def _entry(
    name: str, title: str, source: str, draw: Callable[[CnnBuilder], None], *aliases: str, shape: int | Shape,
    note: str = _NOTE, family: str = "detector",
) -> Entry:  # fmt: skip
    image = (3, shape, shape) if isinstance(shape, int) else shape
    return Entry(name, title, family, source, aliases, image=image, draw=draw, note=note)


def detectors() -> Iterator[Entry]:
    """Yield the entries in catalogue order."""
    third = "Redmon & Farhadi 2018, arXiv:1804.02767; pjreddie/darknet, cfg/{}.cfg"
    yield _entry("yolov3", "YOLOv3 at 416", third.format("yolov3"), yolo_darknet.yolo_v3, shape=416)
    yield _entry("yolov3_spp", "YOLOv3-SPP at 608", third.format("yolov3-spp"),
                 partial(yolo_darknet.yolo_v3, pooled=True), shape=608)  # fmt: skip
    yield _entry("yolov3_tiny", "YOLOv3-tiny at 416", third.format("yolov3-tiny"), yolo_darknet.yolo_v3_tiny,
                 "tiny_yolov3", shape=416)  # fmt: skip
    yield _entry("yolov4", "YOLOv4 at 608", "Bochkovskiy et al. 2020, arXiv:2004.10934; AlexeyAB/darknet, "
                 "cfg/yolov4.cfg", yolo_darknet.yolo_v4, shape=608)  # fmt: skip
    for size in ("nano", "tiny"):
        yield _entry(f"yolox_{size}", f"YOLOX-{size.capitalize()} at 416", "Ge et al. 2021, arXiv:2107.08430",
                     partial(yolo.yolox, size=size), shape=416)  # fmt: skip
    for width in nanodet.PYRAMIDS:
        times = "" if width == "1.0" else f"_{width}x"
        yield _entry(f"nanodet_plus_m{times}", f"NanoDet-Plus-m{times.replace('_', '-')} at 416",
                     f"{_NANODET}/nanodet-plus-m{times.replace('_', '-')}_416.yml",
                     partial(nanodet.nanodet_plus, width=width), shape=416)  # fmt: skip
        yield _entry(f"nanodet_m{times}", f"NanoDet-m{times.replace('_', '-')} at 320",
                     f"{_NANODET}/legacy_v0.x_configs/nanodet-m{times.replace('_', '-')}.yml",
                     partial(nanodet.nanodet, width=width), shape=320)  # fmt: skip
    for size, made in efficientdet.SIZES.items():
        yield _entry(f"efficientdet_{size}", f"EfficientDet-{size.capitalize()}",
                     "Tan et al. 2020, CVPR, table 1; google/automl, efficientdet",
                     partial(efficientdet.efficientdet, size=size), f"tf_efficientdet_{size}", shape=made.side,
                     note="90 classes; without non-maximum suppression")  # fmt: skip
    for depth in RESNETS:
        yield _entry(f"retinanet_resnet{depth}", f"RetinaNet ResNet{depth}-FPN",
                     "Lin et al. 2017, ICCV; NVIDIA/retinanet-examples, odtk",
                     partial(detection.retinanet_resnet, depth=depth), f"RetinaNet R{depth}-FPN", shape=(3, 800, 1280),
                     note=f"{_NOTE}; shorter side 800")  # fmt: skip
    yield _entry("deeplab_v3_mobilenet_v2", "DeepLab v3, MobileNet v2", "Sandler et al. 2018, CVPR, section 6.3; "
                 "tensorflow/models, research/deeplab", mobile.deeplab_mobile, "deeplabv3_mnv2", shape=513,
                 note="21 classes; output not upsampled to the input size", family="segmentation")  # fmt: skip
    yield from _two_stage()


def _two_stage() -> Iterator[Entry]:
    note = "{}; 1,000 proposals, 100 detections; without RoI pooling and non-maximum suppression"
    for spelled, depth, groups, width in (("R-50", 50, 1, 64), ("R-101", 101, 1, 64), ("X-101-32x8d", 101, 32, 8)):
        for kind, heads in (("Faster", ""), ("Mask", "mask"), ("Keypoint", "points")):
            objects = two_stage.OBJECTS[heads]
            also = [f"{kind} R-CNN {spelled}-FPN (proposals given)"]
            also += [f"{kind} R-CNN R{depth}-FPN"] if groups == 1 else []
            yield _entry(f"{kind.lower()}_rcnn_{spelled.lower()}_fpn", f"{kind} R-CNN {spelled}-FPN",
                         "Lin et al. 2017, CVPR; He et al. 2017, ICCV; facebookresearch/detectron2, configs",
                         partial(two_stage.rcnn, depth=depth, heads=heads, groups=groups, width=width),
                         *also, shape=(3, 800, 1333),
                         note=note.format("1 class" if objects == 1 else f"{objects} classes"))  # fmt: skip
        if groups == 1:
            for kind in ("Faster", "Mask"):
                yield _entry(f"{kind.lower()}_rcnn_{spelled.lower()}_c4", f"{kind} R-CNN {spelled}-C4",
                             "He et al. 2016, CVPR, appendix; facebookresearch/detectron2, configs",
                             partial(two_stage.rcnn_c4, depth=depth, masks=kind == "Mask"),
                             f"{kind} R-CNN R{depth}-C4", shape=(3, 800, 1333),
                             note=note.format("80 classes"))  # fmt: skip
    for size in two_stage.SAMS:
        yield _entry(f"sam_vit_{size}", f"Segment Anything, ViT-{size.upper()}, encoder",
                     "Kirillov et al. 2023, ICCV; facebookresearch/segment-anything, build_sam.py",
                     partial(two_stage.segment_anything, size=size), f"SAM vit_{size}", shape=1024,
                     note="image encoder only; relative positions not counted", family="segmentation")  # fmt: skip
