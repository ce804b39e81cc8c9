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


def _gain(attribution: Attribution, change: str, causes: tuple[Cause, ...], factor: float, why: str) -> Gain:
    share = min(1.0, max(0.0, sum(attribution.shares[cause] for cause in causes) / 100))
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
    layers = sum(layer.time > 0 for layer in attribution.layers)
    narrow = log is not None and log.format == "int8"
    faster = (int8_ops_per_s or 0.0) / attribution.ops_per_s
    vectors = "the compute bound is at the rate of vector instructions already"
    if not any(layer.bound == "compute" for layer in attribution.layers):
        vectors = "no layer is limited by arithmetic"
    changes: tuple[tuple[str, str, tuple[Cause, ...], float, str], ...] = (  # change, reason against it, its effect
        (
            "INT8 arithmetic",
            "the network computes in INT8 already" if narrow
            else "the INT8 rate of this machine was not measured" if int8_ops_per_s is None
            else "INT8 products are no faster than FP32 ones on this machine" if faster <= 1 else "",
            ("compute",), faster, "at the measured INT8 rate",
        ),
        (
            "INT8 weights and activations", "they are in INT8 already" if narrow else "",
            ("memory",), 4.0, "a quarter of the bytes",
        ),
        (
            "fusing all layers into one kernel", "there is only one layer" if layers < 2 else "",
            ("launch",), float(layers), f"one launch instead of {layers}",
        ),
        ("vector instructions", vectors, (), 1.0, ""),
        (
            f"{idle_cores} more cores" if idle_cores else "more cores",
            "" if idle_cores else "there are no more cores, or their number is unknown",
            ("compute",), 1.0 + idle_cores, "arithmetic divided evenly",
        ),
        ("kernels that attain the bound", "", ("launch", "residual"), float("inf"), "only the bounds remain"),
    )  # fmt: skip
    gains = [
        Gain(change, False, against) if against else _gain(attribution, change, causes, factor, why)
        for change, against, causes, factor, why in changes
    ]
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
