"""Graph builders for the networks of the catalogue: the recipe that counts the operators also records the edges."""

from mlsys.workloads.graph_builder.builder import GraphBuilder, GraphCall, TensorRef
from mlsys.workloads.graph_builder.network_builder import NetworkBuilder
from mlsys.workloads.graph_builder.sequence_layers import SequenceLayers

__all__ = ["GraphBuilder", "GraphCall", "NetworkBuilder", "SequenceLayers", "TensorRef"]
