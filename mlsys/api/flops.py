"""``mlsys.flops``: operations, weights and memory traffic of a network."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.api.arguments import NetworkRequest
from mlsys.choices import Phase
from mlsys.models.record import with_units
from mlsys.units import Quantity
from mlsys.workloads.operator import Network
from mlsys.workloads.used_sizes import sizes_in_words, sizes_used
from mlsys.workloads.workload import Workload


@dataclass(frozen=True)
class NetworkCount:
    """Operations, weights and memory traffic of a network.

    Attributes
    ----------
    network
        The counted network.
    """

    network: Workload

    @property
    def flops(self) -> Quantity:
        """All floating-point operations, FLOP."""
        return self.network.flops

    @property
    def macs(self) -> Quantity:
        """Multiply-accumulates in products, convolutions and attention, MAC."""
        return self.network.macs

    @property
    def parameters(self) -> Quantity:
        """Number of parameters of the network."""
        return self.network.parameters

    def rows(self) -> list[dict[str, Any]]:
        """Return one row of plain data per kind of operator."""
        return [
            {
                "kind": row.kind,
                "operators": row.count,
                "macs": int(row.macs.m_as("MAC")),
                "flops": int(row.flops.m_as("FLOP")),
                "product_flops": int(row.product_flops.m_as("FLOP")),
                "elementwise_flops": int(row.elementwise.m_as("FLOP")),
                "bytes": int(row.data.m_as("byte")),
            }
            for row in self.network.by_kind()
        ]

    def record(self) -> dict[str, Any]:
        """Return the record printed by ``mlsys flops --json``."""
        network, rows = self.network, self.rows()
        nodes = len(network) + network.views
        by_kind = {
            name: {row["kind"]: row[name] for row in rows if row[name]}
            for name in ("flops", "product_flops", "elementwise_flops")
        }
        return with_units(
            {
                "model": network.name,
                **sizes_used(network),
                "source": network.source,
                "flops": int(network.flops.m_as("FLOP")),
                "product_flops": int(network.product_flops.m_as("FLOP")),
                "macs": int(network.macs.m_as("MAC")),
                "elementwise_flops": int(network.elementwise_flops.m_as("FLOP")),
                **{f"{name}_by_kind": values for name, values in by_kind.items()},
                "operators": {row["kind"]: row["operators"] for row in rows},
                "params": int(network.parameters.m_as("param")),
                **_decoder_record(network),
                "bytes": {
                    "weights": int(network.weight_bytes.m_as("byte")),
                    "buffers": int(network.buffer_bytes.m_as("byte")),
                    "inputs": int(network.input_bytes.m_as("byte")),
                    "activations": int(network.activation_bytes.m_as("byte")),
                    "read": int(network.read.m_as("byte")),
                    "written": int(network.written.m_as("byte")),
                },
                "coverage": {"percent": round(100 * network.coverage, 2), "nodes": nodes, "views": network.views},
                "unknown": [
                    {
                        "name": name.name,
                        "operator": name.target,
                        "module": name.path,
                        "bytes": int(name.data.m_as("byte")),
                    }
                    for name in network.unknown
                ],
            }
        )

    def explain(self) -> str:
        """Return the counts by kind of operator, the KV cache of a decoder, and the sizes, as text."""
        lines = [self.network.explain(), *_decoder_lines(self.network), sizes_in_words(self.network, notes=False)]
        return "\n".join(lines)


def flops(
    network: Network | str | Path,
    *,
    batch: int | None = None,
    sequence: int | None = None,
    image: int | None = None,
    phase: Phase | None = None,
    precision: str | None = None,
    sizes: Mapping[str, int] | None = None,
    shape: tuple[int, ...] | None = None,
    weight_format: str | None = None,
    kv_format: str | None = None,
    option: str = "`{}`",
) -> NetworkCount:
    """Return the operations, weights and memory traffic of a network, as the command ``mlsys flops`` does.

    Parameters
    ----------
    network
        A network, or anything that :func:`mlsys.workloads.load` accepts.
    batch, sequence, image, phase, precision, sizes, shape, weight_format, kv_format, option
        As for :func:`mlsys.workloads.load`.

    Returns
    -------
    NetworkCount
        Its ``record()`` is printed by ``mlsys flops --json``.

    Raises
    ------
    UnknownNameError
        If the network, number format or size is unknown.
    ArgumentError
        If an argument does not apply to the network.

    Examples
    --------
    >>> count = flops("resnet50", batch=32)
    >>> print(count.macs.to("GMAC"), count.record()["precision"])
    130.853896 GMAC fp32
    """
    request = NetworkRequest(batch, sequence, image, phase, precision, sizes, shape, option, weight_format, kv_format)
    loaded = request.network(network)
    return NetworkCount(loaded if isinstance(loaded, Workload) else Workload.from_network(loaded))


def _decoder_lines(network: Workload) -> list[str]:
    if network.decoder is None:
        return []
    active, token, cache = network.active_parameters, network.kv_cache_bytes_per_token, network.kv_cache_bytes
    whole = token * network.sizes["sequence"] * network.sizes.get("batch", 1)
    windows = f", {whole.to_compact():.6g~P} if local layers keep all tokens" if whole > cache else ""
    return [
        f"{active.to_compact():.4g~P} active per token",
        *(
            [f"states of recurrent layers: {network.state_bytes.to_compact():.6g~P} at this batch, at any length"]
            if network.state_bytes.magnitude
            else []
        ),
        f"KV cache: {token.to_compact():.6g~P} per token, {cache.to_compact():.6g~P} at this length and batch{windows}",
    ]


def _decoder_record(network: Workload) -> dict[str, Any]:
    """Return the additional entries of a decoder language model."""
    if network.decoder is None:
        return {}
    return {
        "active_parameters": int(network.active_parameters.m_as("param")),
        "kv_cache_bytes_per_token": round(network.kv_cache_bytes_per_token.m_as("byte")),
        "kv_cache_bytes": round(network.kv_cache_bytes.m_as("byte")),
        "context": getattr(network.decoder, "context", 0) or None,
        "state_bytes": round(network.state_bytes.m_as("byte")),
        "weight_bytes": round(network.weight_bytes.m_as("byte")),
        "weight_format": str(network.decoder.quantization or network.precision),
    }
