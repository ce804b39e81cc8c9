"""Sizes and fusion of a network in an analysis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlsys.frozen import FrozenDict
from mlsys.mapping.fusion import FusedWorkload
from mlsys.precision import precision_name
from mlsys.workloads.operator import Network
from mlsys.workloads.used_sizes import sizes_in_words, sizes_used
from mlsys.workloads.workload import Workload

DEFAULT_PRECISION = "fp16"
"""Number format of an estimate where neither the caller nor the network specifies one."""


@dataclass(frozen=True)
class NetworkRun:
    """Sizes and fusion of a network in an analysis.

    Attributes
    ----------
    sizes
        Batch, sequence, image, number format, source and notes, as plain data.
    product_flops
        FLOP of the network's matrix products.
    kernels
        Number of kernels that the operators run as, in words.
    sizes_in_words
        The sizes as text, with one line per note.
    """

    sizes: Mapping[str, Any]
    product_flops: float
    kernels: str
    sizes_in_words: str

    @classmethod
    def of(cls, network: Network, kernels: Network) -> NetworkRun:
        """Return the sizes and fusion of ``network``, run as ``kernels``.

        Examples
        --------
        >>> from mlsys.workloads import load
        >>> network = load("resnet50")
        >>> NetworkRun.of(network, network).kernels
        '174 kernels, one for each operator: not fused'
        """
        sizes = FrozenDict(sizes_used(network))
        return cls(sizes, network.product_flops.m_as("FLOP"), kernels_used(network, kernels), sizes_in_words(network))

    def merged(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the record of an analysis with the sizes and fusion of its network."""
        return {
            **self.sizes,
            **record,
            "batch": self.sizes["batch"],
            "product_flops": self.product_flops,
            "kernels": self.kernels,
        }

    def __str__(self) -> str:
        return f"{self.sizes_in_words}\n{self.kernels}"


def kernels_used(network: Network, kernels: Network) -> str:
    """Return a description of the number of kernels that a network's operators run as.

    Examples
    --------
    >>> from mlsys.mapping.fusion import as_kernels
    >>> from mlsys.workloads import load
    >>> kernels_used(load("resnet50"), as_kernels(load("resnet50")))
    '54 kernels for 174 operators: fused as the software does, or as listed in the catalogue'
    """
    count = f"{len(kernels)} kernel{'' if len(kernels) == 1 else 's'}"
    if isinstance(network, FusedWorkload):
        return f"{count} for {len(network.unfused)} operators: fused by the caller"
    if len(kernels) == len(network):
        return f"{count}, one for each operator: not fused"
    return f"{count} for {len(network)} operators: fused as the software does, or as listed in the catalogue"


def precision_of(workload: Network, precision: str | None) -> str | None:
    """Return the compute format; None where operators built by hand specify their own.

    It is the requested format, else that of the workload, else FP16.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> precision_of(load("resnet50"), None), precision_of(load("resnet50", precision="int8"), None)
    ('fp16', 'int8')
    """
    if precision is not None:
        return precision_name(precision)
    if not isinstance(workload, Workload):
        return None
    return DEFAULT_PRECISION if workload.default_format else workload.precision


def in_format(workload: Network, precision: str | None) -> Network:
    """Return a network with every value stored in a number format, if it can be converted.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> in_format(load("resnet50"), "fp16").precision
    'fp16'
    """
    if precision is None or not isinstance(workload, Workload) or not workload.is_convertible:
        return workload
    return workload if workload.precision == precision else workload.stored_as(precision)
