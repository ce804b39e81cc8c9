"""When kernels run that a host asks for and does not wait for: a queue between two clocks."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlsys.errors import ArgumentError
from mlsys.provenance import traced
from mlsys.unit_checks import checked_number, nonnegative, positive
from mlsys.units import Quantity, ureg


@dataclass(frozen=True)
class LaunchTimeline:
    """Host and device while kernels are launched asynchronously.

    Attributes
    ----------
    asked
        When the host is done with each launch, and goes on to the next.
    begun, ended
        When the device begins and ends each kernel.
    """

    asked: tuple[Quantity, ...]
    begun: tuple[Quantity, ...]
    ended: tuple[Quantity, ...]

    @property
    def time(self) -> Quantity:
        """From the first call to the end of the last kernel: what a host that waits at the end sees."""
        return self.ended[-1]

    @property
    def busy(self) -> Quantity:
        """Time in which the device works."""
        spans = zip(self.begun, self.ended, strict=True)
        worked: Quantity = sum((end - begin for begin, end in spans), start=ureg.Quantity(0.0, "s"))
        return worked


@traced
def launch_timeline(launch: Quantity, kernels: Sequence[Quantity]) -> LaunchTimeline:
    """Return when each kernel runs if the host launches one after the other and never waits.

    The host spends ``launch`` on each kernel. The device takes kernels in order, and begins one as
    soon as it has been asked for and the one before has ended.

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
    UnitError
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
        raise ArgumentError(f'{where}(): `kernels` must hold one time or more, got none. Write e.g. [Q_(2, "us")] * 4')
    asked, begun, ended = [], [], []
    free = 0.0
    for index, length in enumerate(lengths, start=1):
        asked.append(index * step)
        begun.append(max(index * step, free))
        free = begun[-1] + length
        ended.append(free)
    return LaunchTimeline(*(tuple(ureg.Quantity(float(at), "s") for at in times) for times in (asked, begun, ended)))
