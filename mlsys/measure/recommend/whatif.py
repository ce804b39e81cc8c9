"""Upper bounds on the gain of a change, from the attributed time: Amdahl's law, cause by cause.

A change applies to some causes only, and only if its premise holds; otherwise it is *not applicable*, with a reason.
The factor is a bound or comes from measured rates: none is taken from a table of typical gains.
"""

from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.measure.attribution import Attribution, Cause
from mlsys.measure.log import Log

_WORTH = 0.05


@dataclass(frozen=True)
class Gain:
    """Possible gain of one change.

    Attributes
    ----------
    change
        The change in words.
    applies
        Whether its premise holds.
    why
        The premise, or why it fails.
    share
        Affected fraction of the time, 0 to 1.
    factor
        Upper bound of the speed-up of that fraction.
    time, speedup, limit
        Time of the whole, ms, its speed-up, and Amdahl's limit for that fraction.
    """

    change: str
    applies: bool
    why: str
    share: float = 0.0
    factor: float = 1.0
    time: float | None = None
    speedup: float = 1.0
    limit: float = 1.0


def amdahl(share: float, factor: float) -> float:
    """Return the speed-up of the whole when a fraction ``share`` of its time is sped up by ``factor``.

    Parameters
    ----------
    share
        0 to 1.
    factor
        At least 1; infinite for a part that vanishes.

    Raises
    ------
    ArgumentError
        If a number is out of its range.

    Examples
    --------
    >>> round(amdahl(0.8, 4), 9), round(amdahl(0.5, float("inf")), 9)
    (2.5, 2.0)
    """
    if not 0 <= share <= 1:
        raise ArgumentError(f"amdahl(): `share` must be 0 to 1, got {share!r}. Write e.g. share=0.8")
    if not factor >= 1:
        raise ArgumentError(f"amdahl(): `factor` must be at least 1, got {factor!r}. Write e.g. factor=2")
    left = 1 - share + share / factor
    return 1 / left if left > 0 else float("inf")


def _touched(attribution: Attribution, causes: tuple[Cause, ...]) -> float:
    shares = attribution.shares
    return min(1.0, max(0.0, sum(shares[cause] for cause in causes) / 100))


def _gain(attribution: Attribution, change: str, causes: tuple[Cause, ...], factor: float, why: str) -> Gain:
    share = _touched(attribution, causes)
    if share <= 0:
        return Gain(change, False, f"none of the time is spent on {' or '.join(causes)}")
    speedup = amdahl(share, factor)
    return Gain(change, True, why, share, factor, attribution.total / speedup, speedup, amdahl(share, float("inf")))


def what_ifs(
    attribution: Attribution, log: Log | None = None, *, int8_ops_per_s: float | None = None, idle_cores: int = 0
) -> tuple[Gain, ...]:
    """Return the possible gain of each change, largest first, followed by changes that do not apply.

    Parameters
    ----------
    attribution
        Attribution of the time.
    log
        Log of the same measurement, for number format and threads.
    int8_ops_per_s
        Measured rate of INT8 products on the same machine; None if not measured.
    idle_cores
        Number of unused cores of the machine.

    Examples
    --------
    >>> from mlsys.measure import attribute, stored_logs
    >>> log = stored_logs()["ds-cnn fp32 eager"]
    >>> all(gain.speedup <= gain.limit for gain in what_ifs(attribute(log), log))
    True
    """
    gains = []
    number = log.format if log is not None else "fp32"
    if number == "int8":
        gains.append(Gain("INT8 arithmetic", False, "the network computes in INT8 already"))
    elif int8_ops_per_s is None:
        gains.append(Gain("INT8 arithmetic", False, "the INT8 rate of this machine was not measured"))
    elif int8_ops_per_s <= attribution.ops_per_s:
        gains.append(Gain("INT8 arithmetic", False, "INT8 products are no faster than FP32 ones on this machine"))
    else:
        gains.append(
            _gain(
                attribution,
                "INT8 arithmetic",
                ("compute",),
                int8_ops_per_s / attribution.ops_per_s,
                "at the measured INT8 rate",
            )
        )
    if number == "int8":
        gains.append(Gain("INT8 weights and activations", False, "they are in INT8 already"))
    else:
        gains.append(_gain(attribution, "INT8 weights and activations", ("memory",), 4.0, "a quarter of the bytes"))
    layers = [layer for layer in attribution.layers if layer.time > 0]
    if len(layers) < 2:
        gains.append(Gain("fusing all layers into one kernel", False, "there is only one layer"))
    else:
        gains.append(
            _gain(
                attribution, "fusing all layers into one kernel", ("launch",), float(len(layers)),
                f"one launch instead of {len(layers)}",
            )
        )  # fmt: skip
    arithmetic = [layer for layer in attribution.layers if layer.bound == "compute"]
    if arithmetic:
        gains.append(
            Gain("vector instructions", False, "the compute bound is at the rate of vector instructions already")
        )
    else:
        gains.append(Gain("vector instructions", False, "no layer is limited by arithmetic"))
    if idle_cores:
        gains.append(
            _gain(attribution, f"{idle_cores} more cores", ("compute",), 1.0 + idle_cores, "arithmetic divided evenly")
        )
    else:
        gains.append(Gain("more cores", False, "there are no more cores, or their number is unknown"))
    gains.append(
        _gain(
            attribution,
            "kernels that attain the bound",
            ("launch", "residual"),
            float("inf"),
            "only the bounds remain",
        )
    )
    return tuple(sorted(gains, key=lambda gain: (not gain.applies, -gain.speedup, gain.change)))


def advice(attribution: Attribution, log: Log) -> tuple[str, ...]:
    """Return advice in sentences, from the largest gain that applies.

    Parameters
    ----------
    attribution, log
        Attribution of the time, and the measurement.
    """
    lines = []
    for gain in what_ifs(attribution, log):
        if gain.applies and gain.speedup > 1 + _WORTH:
            lines.append(
                f"{gain.change}: at most {gain.speedup:.2f}× ({gain.why}; it affects {gain.share:.0%} of the time)"
            )
    return tuple(lines[:3])
