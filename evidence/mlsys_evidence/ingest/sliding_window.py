"""Pictures that a program labels window by window, each run by itself: MMSegmentation's ``slide_inference``."""

import math
import re

from mlsys.calibration.rows import Row

# Pixels from one window to the next, by their side: ``test_cfg`` of open-mmlab/mmsegmentation,
# configs/pspnet/pspnet_r50-d8_769x769_40k_cityscapes.py@b2724da80.
STEPS = {769: 513}


def window_of(row: Row) -> int:
    """Return the side of the windows that a row says its picture is seen in; 0 where it is seen whole."""
    stated = re.search(r"in slides of (\d+)x\1\b", row.seq_or_shape)
    return int(stated.group(1)) if stated else 0


def windows(row: Row) -> int:
    """Return how many windows cover the picture of a row, none of which reaches over its edges; 1 if whole."""
    side, stated = window_of(row), re.match(r"(\d+)x(\d+) image", row.seq_or_shape)
    if not side or not stated:
        return 1
    step = STEPS.get(side, side)
    return math.prod(max(0, math.ceil((int(length) - side) / step)) + 1 for length in stated.groups())
