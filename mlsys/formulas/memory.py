"""Memory footprint of models, limits of bandwidth and latency, and signal delays."""

import numbers

from mlsys.errors import ArgumentUnitError
from mlsys.unit_checks import count, efficiency, nonnegative, positive, quantity_function
from mlsys.units import Quantity, Unit, ureg

SPEED_OF_LIGHT = 299_792_458.0
"""Speed of light in vacuum, m/s; exact by the definition of the metre."""


@quantity_function("byte", parameters=positive("param"), bytes_per_parameter=positive("byte"))
def weight_bytes(parameters: float, bytes_per_parameter: float) -> float:
    """Return the size of the weights of a model, in bytes.

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


def model_memory(parameters: Quantity | float, bytes_per_parameter: Quantity, unit: str | Unit = "MB") -> float:
    """Return the size of the weights of a model as a float in ``unit``.

    Parameters
    ----------
    parameters
        Number of parameters, in param or as a bare number.
    bytes_per_parameter
        Size of one stored parameter, byte; ``BYTES_FP16`` and the like.
    unit
        Unit of the result: ``GB`` is decimal, ``GiB`` binary.

    Returns
    -------
    float
        A bare number, for text. Use :func:`weight_bytes` for further computation.

    Raises
    ------
    ArgumentUnitError, ArgumentError
        If the size lacks its unit or ``unit`` is not a unit of information.

    Examples
    --------
    >>> from mlsys.constants import BYTES_FP16, GB
    >>> from mlsys.units import Q_
    >>> model_memory(Q_(7, "Gparam"), Q_(2, "byte"), "GB")
    14.0
    >>> model_memory(7e9, BYTES_FP16, GB)
    14.0
    """
    target = ureg.Unit(unit)
    if not target.is_compatible_with(ureg.Unit("byte")):
        raise ArgumentUnitError(
            f'model_memory(): `unit` must be a unit of information, got {target:~P}. Write e.g. unit="GB"'
        )
    bare: object = parameters
    if not isinstance(bare, bool) and isinstance(bare, numbers.Real):
        parameters = ureg.Quantity(parameters, "param")
    return float(weight_bytes(parameters, bytes_per_parameter).m_as(target))


@quantity_function(
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
    """Return the size of the key-value cache, 2·L·H·d·tokens·batch elements.

    Parameters
    ----------
    layers, kv_heads, head_dim
        Shape of the model; with grouped-query attention ``kv_heads`` is the smaller number.
    tokens
        Number of tokens in context, per sequence.
    element_size
        Bytes per element.
    batch
        Number of sequences.

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


@quantity_function(
    "token/s",
    weights=positive("byte"),
    bandwidth=positive("byte/s"),
    kv_cache=nonnegative("byte"),
    batch=count(),
)
def decode_rate_ceiling(weights: float, bandwidth: float, kv_cache: float = 0.0, batch: int = 1) -> float:
    """Return the upper bound that memory bandwidth sets on the decode rate, in tokens per second.

    Parameters
    ----------
    weights
        Bytes of weights read per step, once for the whole batch.
    bandwidth
        Memory bandwidth, byte/s.
    kv_cache
        Bytes of key-value cache read per step, for all sequences together.
    batch
        Number of sequences decoded together.

    Returns
    -------
    Quantity
        token/s over the whole batch; an upper bound, as compute time is ignored.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{decode_rate_ceiling(Q_(14, 'GB'), Q_(2039, 'GB/s')):.0f}")
    146 token/s
    """
    return batch * bandwidth / (weights + kv_cache)


@quantity_function("byte", bandwidth=positive("byte/s"), latency=positive("s"))
def bytes_in_flight(bandwidth: float, latency: float) -> float:
    """Return the bytes in flight that are needed to sustain ``bandwidth``, bandwidth · latency.

    This is Little's law: the mean number of items in a queue is the arrival rate times the mean time each stays.

    Parameters
    ----------
    bandwidth
        Bandwidth to sustain, byte/s.
    latency
        Time from a request to its response, s.

    Returns
    -------
    Quantity
        byte.

    References
    ----------
    J. D. C. Little, A Proof for the Queuing Formula L = λW, Operations Research 9(3), 1961.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(bytes_in_flight(Q_(2039, "GB/s"), Q_(500, "ns")).to("MB"))
    1.0195 MB
    >>> bytes_in_flight(Q_(2039, "GB"), Q_(500, "ns"))
    Traceback (most recent call last):
        ...
    mlsys.errors.ArgumentUnitError: bytes_in_flight(): `bandwidth` must be a quantity in byte/s, got 2039 GB, ...
    """
    return bandwidth * latency


@quantity_function("byte/s", in_flight=positive("byte"), latency=positive("s"))
def latency_bound_bandwidth(in_flight: float, latency: float) -> float:
    """Return the bandwidth that ``in_flight`` outstanding bytes can sustain, in_flight / latency.

    Parameters
    ----------
    in_flight
        Bytes requested that have not yet arrived.
    latency
        Time from a request to its response, s.

    Returns
    -------
    Quantity
        byte/s; the memory's own bandwidth is a second limit.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(latency_bound_bandwidth(Q_(64, "byte"), Q_(100, "ns")).to("GB/s"))
    0.64 GB/s
    """
    return in_flight / latency


@quantity_function("s", length=positive("m"), delay_per_length=positive("s/m"))
def wire_delay(length: float, delay_per_length: float) -> float:
    """Return the delay of a wire with repeaters, length · delay_per_length.

    With repeaters the delay of a resistive wire grows linearly with its length, not quadratically.

    Parameters
    ----------
    length
        Length of the wire, m.
    delay_per_length
        Delay per length of the wire with its repeaters, s/m; some tens of ps/mm on a chip.

    Returns
    -------
    Quantity
        s.

    References
    ----------
    N. Weste, D. Harris, CMOS VLSI Design, 4th edition, section 6.4.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(wire_delay(Q_(20, "mm"), Q_(41, "ps/mm")).to("ns"))
    0.82 ns
    """
    return length * delay_per_length


@quantity_function("s", distance=positive("m"), share_of_light_speed=efficiency())
def flight_time(distance: float, share_of_light_speed: float = 1.0) -> float:
    """Return the minimum time a signal needs to travel ``distance``.

    Parameters
    ----------
    distance
        Distance to travel, m.
    share_of_light_speed
        Speed of the signal relative to light in vacuum, above 0 and up to 1; about one half on
        a printed circuit board.

    Returns
    -------
    Quantity
        s.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{flight_time(Q_(5, 'cm'), 0.5).to('ps'):.0f}")
    334 ps
    """
    return distance / (share_of_light_speed * SPEED_OF_LIGHT)
