"""Bytes that a model occupies, and how fast it can be read."""

from __future__ import annotations

from typing import Any

from mlsys.door import count, door, nonnegative, positive
from mlsys.errors import ArgumentUnitError
from mlsys.units import Unit, ureg

__all__ = ["decode_rate_ceiling", "kv_cache_bytes", "model_memory", "weight_bytes"]


@door("byte", parameters=positive("param"), bytes_per_parameter=positive("byte"))
def weight_bytes(parameters: float, bytes_per_parameter: float) -> float:
    """Return the bytes that the weights of a model occupy.

    Parameters
    ----------
    parameters
        Number of parameters, in param.
    bytes_per_parameter
        Size of one stored parameter, byte.

    Returns
    -------
    Quantity
        byte.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(weight_bytes(Q_(7, "Gparam"), Q_(2, "byte")).to("GB"))
    14 GB
    """
    return parameters * bytes_per_parameter


def model_memory(parameters: Any, bytes_per_parameter: Any, unit: str | Unit = "MB") -> float:
    """Return the magnitude, in ``unit``, of the bytes that a model's weights occupy.

    Parameters
    ----------
    parameters
        Number of parameters, in param.
    bytes_per_parameter
        Size of one stored parameter, byte; ``BYTES_FP16`` and the like.
    unit
        Unit of the answer: ``GB`` counts in thousands, ``GiB`` in 1024s.

    Returns
    -------
    float
        A bare number, for text. Use :func:`weight_bytes` to go on computing.

    Raises
    ------
    ArgumentUnitError, ArgumentError
        If an argument lacks its unit or ``unit`` is not one of information.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> model_memory(Q_(7, "Gparam"), Q_(2, "byte"), "GB")
    14.0
    """
    target = ureg.Unit(unit)
    if not target.is_compatible_with(ureg.Unit("byte")):
        raise ArgumentUnitError(
            f'model_memory(): `unit` must be a unit of information, got {target:~P}. Write e.g. unit="GB"'
        )
    return float(weight_bytes(parameters, bytes_per_parameter).m_as(target))


@door(
    "byte",
    layers=count(),
    kv_heads=count(),
    head_dim=count(),
    tokens=count(),
    batch=count(),
    element_size=positive("byte"),
)
def kv_cache_bytes(
    layers: int, kv_heads: int, head_dim: int, tokens: int, element_size: float, batch: int = 1
) -> float:
    """Return the bytes of the key-value cache, 2·L·H·d·tokens·batch elements.

    Parameters
    ----------
    layers, kv_heads, head_dim
        Shape of the model; with grouped-query attention ``kv_heads`` is the smaller number.
    tokens
        Tokens in context, per sequence.
    element_size
        Bytes per element.
    batch
        Sequences.

    Returns
    -------
    Quantity
        byte.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(kv_cache_bytes(32, 32, 128, 1, Q_(2, "byte")))
    524288 B
    """
    return 2 * layers * kv_heads * head_dim * tokens * batch * element_size


@door(
    "token/s",
    weights=positive("byte"),
    bandwidth=positive("byte/s"),
    kv_cache=nonnegative("byte"),
    batch=count(),
)
def decode_rate_ceiling(weights: float, bandwidth: float, kv_cache: float = 0.0, batch: int = 1) -> float:
    """Return the tokens per second that bandwidth allows when decoding.

    Parameters
    ----------
    weights
        Bytes of weights read for each step, once for the whole batch.
    bandwidth
        Memory bandwidth, byte/s.
    kv_cache
        Bytes of key-value cache read for each step, all sequences together.
    batch
        Sequences decoded together.

    Returns
    -------
    Quantity
        token/s over the whole batch; an upper bound, compute is not looked at.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{decode_rate_ceiling(Q_(14, 'GB'), Q_(2039, 'GB/s')):.0f}")
    146 token/s
    """
    return batch * bandwidth / (weights + kv_cache)
