"""Asynchronous kernel launches: a queue between the host's and the device's timeline."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.provenance import traced
from mlsys.unit_checks import checked_number, nonnegative, positive
from mlsys.units import Quantity, ureg


@dataclass(frozen=True)
class LaunchTimeline:
    """Timeline of host and device while kernels are launched asynchronously.

    Attributes
    ----------
    launched
        Time at which the host finishes each launch and continues.
    started, ended
        Times at which the device starts and ends each kernel.
    """

    launched: tuple[Quantity, ...]
    started: tuple[Quantity, ...]
    ended: tuple[Quantity, ...]

    @property
    def time(self) -> Quantity:
        """Time from the first call to the end of the last kernel, as seen by a host that synchronises at the end."""
        return self.ended[-1]

    @property
    def busy(self) -> Quantity:
        """Time during which the device computes."""
        spans = zip(self.started, self.ended, strict=True)
        worked: Quantity = sum((end - begin for begin, end in spans), start=ureg.Quantity(0.0, "s"))
        return worked


@traced
def launch_timeline(launch: Quantity, kernels: Sequence[Quantity]) -> LaunchTimeline:
    """Return the timeline of kernels that the host launches one after the other without waiting.

    The host spends ``launch`` on each kernel. The device runs kernels in order, and starts one as soon as it has been
    launched and its predecessor has ended.

    Parameters
    ----------
    launch
        Time that the host spends on one launch.
    kernels
        Time of each kernel on the device, in the order of the launches.

    Returns
    -------
    LaunchTimeline

    Raises
    ------
    ArgumentError
        If there are no kernels.
    If an argument is not a time.
        If an argument is no time.

    References
    ----------
    NVIDIA, CUDA C++ Programming Guide, section Asynchronous Concurrent Execution.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> short = launch_timeline(Q_(5, "us"), [Q_(2, "us")] * 4)
    >>> print(f"{short.time.to('us'):.3g}, {short.busy.to('us'):.3g}")  # the device waits for the host
    22 µs, 8 µs
    >>> print(f"{launch_timeline(Q_(5, 'us'), [Q_(20, 'us')] * 4).time.to('us'):.3g}")  # launches are hidden
    85 µs
    """
    where = "launch_timeline"
    step = checked_number(where, "launch", launch, nonnegative("s"), {})
    lengths = [
        checked_number(where, f"kernels[{index}]", kernel, positive("s"), {}) for index, kernel in enumerate(kernels)
    ]
    if not lengths:
        raise ArgumentError(f'{where}(): `kernels` must hold at least one time, got none. Write e.g. [Q_(2, "us")] * 4')
    launched, started, ended = [], [], []
    free = 0.0
    for index, length in enumerate(lengths, start=1):
        launched.append(index * step)
        started.append(max(index * step, free))
        free = started[-1] + length
        ended.append(free)
    return LaunchTimeline(
        *(tuple(ureg.Quantity(float(at), "s") for at in times) for times in (launched, started, ended))
    )
