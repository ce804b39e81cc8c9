"""Count of the numbers fitted for the calibrated model."""

from dataclasses import dataclass

from mlsys.models.estimate.effects import fitted_effects
from mlsys.models.estimate.library import differing, fitted, machines


@dataclass(frozen=True)
class FittedNumbers:
    """Count of the fitted numbers in the shipped files.

    Attributes
    ----------
    software
        Kinds of software with their own parameters.
    parameters
        Efficiencies and costs of a kind of software that differ from what is expected before any measurement
        (:class:`~mlsys.models.estimate.Parameters`).
    machines
        Factors of single machines under one kind of software.
    effects
        Effects of machines, families, networks, versions and combinations of these.
    curves
        Knot values of the curves over a kernel's shape.
    """

    software: int
    parameters: int
    machines: int
    effects: int
    curves: int

    @property
    def total(self) -> int:
        """Total number of fitted numbers."""
        return self.parameters + self.machines + self.effects + self.curves


def count_fitted() -> FittedNumbers:
    """Count the fitted numbers in ``parameters.yaml``, ``machines.yaml`` and ``effects.json``.

    Variances of effects and widths of ranges are not counted: they change no estimate; nor are parameters that stayed
    as expected, machines without a factor and levels without an effect, of which the files say only that they were
    measured.

    Examples
    --------
    >>> count = count_fitted()
    >>> count.total == count.parameters + count.machines + count.effects + count.curves
    True
    """
    own = set(fitted().values())  # software that was fitted together shares one set of parameters
    pools = fitted_effects().values()
    return FittedNumbers(
        software=len(own),
        parameters=sum(len(differing(parameters)) for parameters in own),
        machines=sum(factor != 1 for factors in machines().values() for factor in factors.values()),
        effects=sum(
            not isinstance(level, int)
            for pool in pools
            for group in pool["groups"].values()
            for level in group["levels"].values()
        ),
        curves=sum(len(values) for pool in pools for values in pool["curves"].values()),
    )
