"""Tensor layouts: where an element lies, and which order of axes each operator should work in.

PyTorch makes tensors in NCHW on every device (``torch.contiguous_format``); NHWC is asked for with
``x.to(memory_format=torch.channels_last)``. The axes keep their logical order, and only the strides change.
"""

from mlsys.planner.layout.choose import METHODS, LayoutPlan, Transpose, choose_layouts, tensor_core_traffic
from mlsys.planner.layout.formats import layout_offsets

__all__ = ["METHODS", "LayoutPlan", "Transpose", "choose_layouts", "layout_offsets", "tensor_core_traffic"]
