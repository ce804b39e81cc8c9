"""Tensor layouts: element offsets, and the choice of an axis order for each operator.

PyTorch creates tensors in NCHW on every device (``torch.contiguous_format``); NHWC is requested by
``x.to(memory_format=torch.channels_last)``. The axes keep their logical order, and only the strides change.
"""

from mlsys.planner.layout.choose import METHODS, LayoutPlan, Transpose, choose_layouts, tensor_core_traffic
from mlsys.planner.layout.formats import layout_offsets

__all__ = ["METHODS", "LayoutPlan", "Transpose", "choose_layouts", "layout_offsets", "tensor_core_traffic"]
