"""Configurations of transformers, read without torch: layers, parameters, bytes of weights, cache."""

from mlsys.workloads.transformer_config.load import load_decoder
from mlsys.workloads.transformer_config.quantization import QuantizedWeights
from mlsys.workloads.transformer_config.read import UnknownArchitectureError, read_config, read_file
from mlsys.workloads.transformer_config.structure import TransformerConfig

__all__ = [
    "QuantizedWeights",
    "TransformerConfig",
    "UnknownArchitectureError",
    "load_decoder",
    "read_config",
    "read_file",
]
