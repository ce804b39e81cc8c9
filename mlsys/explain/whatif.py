"""What a change could gain at most, from where the time went: Amdahl's law, cause by cause.

A change applies to some causes only, and only where its premise holds; elsewhere it is *not applicable*, with the
reason. The factor is a bound, or comes from measured rates: none is taken from a table of typical gains.
"""

from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.explain.attribution import Attribution, Cause
from mlsys.explain.log import Log

_WORTH = 0.05


@dataclass(frozen=True)
class Gain:
    """What one change could do.

    Attributes
    ----------
    change
        In words.
    applies
        Whether its premise holds.
    why
        The premise, or how it fails.
    share
        Part of the time that it touches, 0 to 1.
    factor
        How many times faster that part becomes, at most.
    time, speedup, limit
        Of the whole: ms, times as fast, and Amdahl's limit for that share.
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
    """Return how many times as fast the whole is when ``share`` of its time runs ``factor`` times as fast.

    Parameters
    ----------
    share
        0 to 1.
    factor
        One or more; infinite for a part that vanishes.

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
        raise ArgumentError(f"amdahl(): `factor` must be one or more, got {factor!r}. Write e.g. factor=2")
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
    """Return what each change could gain, the largest first, then those that do not apply.

    Parameters
    ----------
    attribution
        Where the time went.
    log
        Of the same measurement, for number format and threads.
    int8_ops_per_s
        Rate of INT8 products that was measured on the same machine; None where it was not.
    idle_cores
        Further cores that the machine has.

    Examples
    --------
    >>> from mlsys.explain import attribute, stored_logs
    >>> log = stored_logs()["ds-cnn fp32 eager"]
    >>> all(gain.speedup <= gain.limit for gain in what_ifs(attribute(log), log))
    True
    """
    gains = []
    number = log.format if log is not None else "fp32"
    if number == "int8":
        gains.append(Gain("INT8 arithmetic", False, "it computes in INT8 already"))
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
                f"one launch in place of {len(layers)}",
            )
        )  # fmt: skip
    arithmetic = [layer for layer in attribution.layers if layer.bound == "compute"]
    if arithmetic:
        gains.append(
            Gain("vector instructions", False, "the compute bound is at the rate of vector instructions already")
        )
    else:
        gains.append(Gain("vector instructions", False, "no layer is held by arithmetic"))
    if idle_cores:
        gains.append(
            _gain(attribution, f"{idle_cores} more cores", ("compute",), 1.0 + idle_cores, "arithmetic shared evenly")
        )
    else:
        gains.append(Gain("more cores", False, "there is no further core, or how many is not known"))
    gains.append(
        _gain(
            attribution,
            "kernels that attain the bound",
            ("launch", "residual"),
            float("inf"),
            "nothing but the bounds left",
        )
    )
    return tuple(sorted(gains, key=lambda gain: (not gain.applies, -gain.speedup, gain.change)))


def advice(attribution: Attribution, log: Log) -> tuple[str, ...]:
    """Return what to try first, in sentences, from the largest gain that applies.

    Parameters
    ----------
    attribution, log
        Where the time went, and the measurement.
    """
    told = []
    for gain in what_ifs(attribution, log):
        if gain.applies and gain.speedup > 1 + _WORTH:
            told.append(
                f"{gain.change}: at most {gain.speedup:.2f}× ({gain.why}; it touches {gain.share:.0%} of the time)"
            )
    return tuple(told[:3])
