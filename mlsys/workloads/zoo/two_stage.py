"""Two-stage detectors on ResNets (Faster, Mask and Keypoint R-CNN), and the encoder of Segment Anything."""

from mlsys.workloads.zoo.cnn_builder import CnnBuilder, Shape
from mlsys.workloads.zoo.encoders import feed_forward
from mlsys.workloads.zoo.residual import resnet_stages

# Region proposals of the first stage, and detections with masks or keypoints: facebookresearch/maskrcnn-benchmark,
# maskrcnn_benchmark/config/defaults.py (FPN_POST_NMS_TOP_N_TEST, DETECTIONS_PER_IMG), and detectron2's configurations.
PROPOSALS, DETECTIONS = 1000, 100
WIDTH = 256
# Object classes by third head: those of COCO, but only people have keypoints. Scores have one more, for the
# background; boxes and masks do not (detectron2, modeling/roi_heads: FastRCNNOutputLayers, mask_head).
OBJECTS = {"": 80, "mask": 80, "points": 1}


def _propose(net: CnnBuilder, levels: list[Shape], width: int, anchors: int) -> None:
    """Append the region proposal network: one convolution, scores and boxes, with weights shared by all levels."""
    for index, shape in enumerate(levels):
        net.shape, first = shape, len(net.operators)
        net.conv(f"propose {index}", width, 3, norm=False)
        seen = net.shape
        net.conv(f"proposed scores {index}", anchors, 1, norm=False, act=None)
        net.shape = seen
        net.conv(f"proposed boxes {index}", 4 * anchors, 1, norm=False, act=None)
        if index:
            net.operators[first:] = [net.without_parameters(operator) for operator in net.operators[first:]]


def _pyramid(net: CnnBuilder, backbone: list[Shape]) -> list[Shape]:
    """Append a feature pyramid of four levels and a fifth for proposals only; return the shapes of all five."""
    levels = []
    for index, shape in enumerate(backbone, start=2):
        net.shape = shape
        net.conv(f"lateral {index}", WIDTH, 1, norm=False, act=None)
        net.conv(f"pyramid {index}", WIDTH, 3, norm=False, act=None)
        levels.append(net.shape)
    net.pool(1, 2)
    return [*levels, net.shape]


def _on_regions(net: CnnBuilder, regions: int, shape: Shape) -> CnnBuilder:
    """Return a builder whose batch is ``regions`` regions of each image."""
    return CnnBuilder(net.batch * regions, shape, net.precision, net.fused, norm=False, whole=net.whole)


def _convolved(net: CnnBuilder, name: str, side: int, convolutions: int, width: int, out: int, kernel: int) -> None:
    """Append convolutions over the detected regions, and a transposed one that doubles their side."""
    region = _on_regions(net, DETECTIONS, (WIDTH, side, side))
    for index in range(1, convolutions + 1):
        region.conv(f"{name} {index}", width, 3)
    pixels, grown = region.batch * side**2, width if kernel == 2 else out
    _transposed(region, f"{name} larger", pixels, width, grown, kernel)
    if kernel == 2:  # a transposed convolution whose patches do not overlap; then one output for each class
        region.shape = (grown, 2 * side, 2 * side)
        region.conv(f"{name} out", out, 1, act=None)
    net.operators += region.operators


def _transposed(net: CnnBuilder, name: str, pixels: int, inputs: int, outputs: int, kernel: int) -> None:
    """Append a transposed convolution: one product per position of its patch, and one bias per channel."""
    patches = outputs * kernel**2
    net.dense(name, pixels, inputs, patches, extra=outputs - patches)


def _score(net: CnnBuilder, regions: int, inputs: int, objects: int) -> None:
    """Append the scores of each region, including the background, and the boxes of each class."""
    net.dense("region scores and boxes", regions, inputs, objects + 1 + 4 * objects)


def rcnn(net: CnnBuilder, depth: int, *, heads: str = "", groups: int = 1, width: int = 64) -> None:
    """Append Faster R-CNN (Ren et al. 2015) on a feature pyramid (Lin et al. 2017): 1,000 proposals of 7 × 7 pixels.

    ``heads`` may be ``"mask"`` (He et al. 2017) or ``"points"``, which run on the 100 detections kept.
    """
    backbone = resnet_stages(net, depth, groups=groups, width=width, early_stride=groups == 1)
    _propose(net, _pyramid(net, backbone), WIDTH, 3)
    regions = net.batch * PROPOSALS
    net.dense("region a", regions, 49 * WIDTH, 1024)
    net.dense("region b", regions, 1024, 1024)
    _score(net, regions, 1024, OBJECTS[heads])
    if heads == "mask":
        _convolved(net, "mask", 14, 4, WIDTH, OBJECTS[heads], 2)
    elif heads == "points":
        _convolved(net, "points", 14, 8, 512, 17, 4)


def rcnn_c4(net: CnnBuilder, depth: int, *, masks: bool = False) -> None:
    """Append R-CNN with proposals from stage 4; stage 5 runs on each proposal (He et al. 2016, appendix)."""
    shape = resnet_stages(net, depth, early_stride=True, stages=3)[-1]
    _propose(net, [shape], 1024, 15)
    region = _on_regions(net, PROPOSALS, (1024, 14, 14))
    for block in range(3):
        start = region.shape
        region.conv(f"region {block}a", 512, 1, 2 if block == 0 else 1)
        region.conv(f"region {block}b", 512, 3)
        region.conv(f"region {block}c", 2048, 1, act=None)
        if block == 0:
            region.shape = start
            region.conv(f"region {block} shortcut", 2048, 1, 2, act=None)
    region.global_pool()
    _score(region, region.batch, 2048, OBJECTS["mask" if masks else ""])
    net.operators += region.operators
    if masks:  # on the outputs of stage 5 for the detections kept
        small = _on_regions(net, DETECTIONS, (WIDTH, 14, 14))
        _transposed(small, "mask larger", small.batch * 49, 2048, WIDTH, 2)
        small.conv("mask out", OBJECTS["mask"], 1, act=None)
        net.operators += small.operators


# Layers, width and heads of the image encoders of Segment Anything, and how many layers have global attention:
# facebookresearch/segment-anything, segment_anything/build_sam.py; the others attend in windows of 14 × 14 tokens.
SAMS = {"b": (12, 768, 12, 4), "l": (24, 1024, 16, 4), "h": (32, 1280, 16, 4)}
WINDOW = 14


def segment_anything(net: CnnBuilder, size: str) -> None:
    """Append the image encoder of Segment Anything (Kirillov et al. 2023, ICCV), without the small mask decoder."""
    layers, width, heads, global_layers = SAMS[size]
    net.conv("patches", width, 16, 16, 0, norm=False, act=None)
    side = net.shape[1]
    net.as_tokens(side * side, width)
    windows = (-(-side // WINDOW)) ** 2
    for _ in net.repeated(global_layers):
        _sam_block(net, net.batch, side * side, width, heads, side * side)
    for _ in net.repeated(layers - global_layers):
        _sam_block(net, net.batch * windows, WINDOW**2, width, heads, side * side)
    net.conv("neck a", 256, 1, norm=False, act=None)
    net.conv("neck b", 256, 3, norm=False, act=None)


def _sam_block(net: CnnBuilder, parts: int, tokens: int, width: int, heads: int, pixels: int) -> None:
    """Append a block that attends within each of ``parts`` windows of ``tokens`` tokens, including padding."""
    net.norm("attention norm", net.batch * pixels, width)
    net.dense("query, key, value", parts * tokens, width, 3 * width, extra=2 * width)
    net.attention("attention", parts, heads, tokens, tokens, width // heads)
    net.dense("attention output", parts * tokens, width, width)
    net.add("attention add", net.batch * pixels * width)
    feed_forward(net, net.batch * pixels, width, 4 * width)
