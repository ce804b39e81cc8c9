"""Workloads: operations and bytes, with shapes and number formats, independent of hardware."""

from mlsys.workloads.arrays import NetworkArrays
from mlsys.workloads.counted_operator import CountedOperator
from mlsys.workloads.operator import Network, Operator, Products
from mlsys.workloads.operators import (
    LAYER_NORM_OPERATIONS,
    SOFTMAX_OPERATIONS,
    attention,
    conv2d,
    decode_step,
    dense,
    depthwise_conv2d,
    elementwise,
    gemm,
    layer_norm,
    relu,
    softmax,
)
from mlsys.workloads.resolve import load
from mlsys.workloads.workload import Workload

__all__ = [
    "LAYER_NORM_OPERATIONS",
    "SOFTMAX_OPERATIONS",
    "CountedOperator",
    "Network",
    "NetworkArrays",
    "Operator",
    "Products",
    "Workload",
    "attention",
    "conv2d",
    "decode_step",
    "dense",
    "depthwise_conv2d",
    "elementwise",
    "gemm",
    "layer_norm",
    "load",
    "relu",
    "softmax",
]
