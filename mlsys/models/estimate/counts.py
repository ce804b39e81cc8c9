"""Count of the numbers fitted for the calibrated model."""

from dataclasses import dataclass

from mlsys.models.estimate.effects import fitted_effects
from mlsys.models.estimate.library import fitted, machines
from mlsys.models.estimate.parameters import Parameters


@dataclass(frozen=True)
class FittedNumbers:
    """Count of the fitted numbers in the shipped files.

    Attributes
    ----------
    software
        Kinds of software with their own parameters.
    parameters
        Efficiencies and costs: one set of :class:`~mlsys.models.estimate.Parameters` per kind of software.
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

    Variances of effects and widths of ranges are not counted: they change no estimate.

    Examples
    --------
    >>> count = count_fitted()
    >>> count.total == count.parameters + count.machines + count.effects + count.curves
    True
    """
    software = len({id(parameters) for parameters in fitted().values()})  # aliases share one set of parameters
    pools = fitted_effects().values()
    return FittedNumbers(
        software=software,
        parameters=software * len(Parameters.names()),
        machines=sum(len(factors) for factors in machines().values()),
        effects=sum(len(group["levels"]) for pool in pools for group in pool["groups"].values()),
        curves=sum(len(values) for pool in pools for values in pool["curves"].values()),
    )
