"""Formulas: pure functions named after the quantity they return.

Each checks the units and ranges of its arguments, and provides the plain function
over floats and arrays as ``.bare``.
"""

from mlsys.formulas.amdahl import (
    amdahl_ceiling,
    amdahl_speedup,
    device_bound_fraction,
    gustafson_speedup,
    required_accelerator_speedup,
    required_parallel_fraction,
    serial_share,
)
from mlsys.formulas.fusion import chain_bytes, flash_attention_bytes, standard_attention_bytes
from mlsys.formulas.iron_law import overlapped_time, sequential_time
from mlsys.formulas.memory import (
    bytes_in_flight,
    decode_rate_ceiling,
    flight_time,
    kv_cache_bytes,
    latency_bound_bandwidth,
    model_memory,
    weight_bytes,
    wire_delay,
)
from mlsys.formulas.operations import (
    attention_bytes,
    attention_macs,
    conv2d_bytes,
    conv2d_macs,
    conv_output_size,
    elementwise_bytes,
    elementwise_flops,
    gemm_bytes,
    gemm_intensity,
    gemm_macs,
)
from mlsys.formulas.queueing import (
    erlang_c,
    md1_wait,
    mg1_wait,
    mm1_sojourn_percentile,
    mm1_wait,
    mmc_wait,
    offered_utilisation,
    padding_waste,
    requests_in_system,
)
from mlsys.formulas.roofline import (
    arithmetic_intensity,
    attainable_performance,
    required_bandwidth,
    ridge_point,
    roofline_time,
    utilisation_ceiling,
)

__all__ = [
    "amdahl_ceiling",
    "amdahl_speedup",
    "arithmetic_intensity",
    "attainable_performance",
    "attention_bytes",
    "attention_macs",
    "bytes_in_flight",
    "chain_bytes",
    "conv2d_bytes",
    "conv2d_macs",
    "conv_output_size",
    "decode_rate_ceiling",
    "device_bound_fraction",
    "elementwise_bytes",
    "elementwise_flops",
    "erlang_c",
    "flash_attention_bytes",
    "flight_time",
    "gemm_bytes",
    "gemm_intensity",
    "gemm_macs",
    "gustafson_speedup",
    "kv_cache_bytes",
    "latency_bound_bandwidth",
    "md1_wait",
    "mg1_wait",
    "mm1_sojourn_percentile",
    "mm1_wait",
    "mmc_wait",
    "model_memory",
    "offered_utilisation",
    "overlapped_time",
    "padding_waste",
    "requests_in_system",
    "required_accelerator_speedup",
    "required_bandwidth",
    "required_parallel_fraction",
    "ridge_point",
    "roofline_time",
    "sequential_time",
    "serial_share",
    "standard_attention_bytes",
    "utilisation_ceiling",
    "weight_bytes",
    "wire_delay",
]
