"""How many numbers the calibrated model was fitted with."""

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
        Kinds of software that have parameters of their own.
    parameters
        Efficiencies and costs: as many of each kind of software as :class:`~mlsys.models.estimate.Parameters` has.
    machines
        Factors of single machines under one kind of software.
    effects
        Effects of machines, families, networks, versions and what these have in common.
    curves
        Values of the curves of a kernel's shape, one at each knot.
    """

    software: int
    parameters: int
    machines: int
    effects: int
    curves: int

    @property
    def total(self) -> int:
        """Number of fitted numbers in all."""
        return self.parameters + self.machines + self.effects + self.curves


def count_fitted() -> FittedNumbers:
    """Count the fitted numbers in ``parameters.yaml``, ``machines.yaml`` and ``effects.json``.

    Variances of effects and the widths of ranges, which change no estimate, are not among them.

    Examples
    --------
    >>> count = count_fitted()
    >>> count.total == count.parameters + count.machines + count.effects + count.curves
    True
    """
    software = len({id(parameters) for parameters in fitted().values()})  # an alias names the same parameters
    pools = fitted_effects().values()
    return FittedNumbers(
        software=software,
        parameters=software * len(Parameters.names()),
        machines=sum(len(factors) for factors in machines().values()),
        effects=sum(len(group["levels"]) for pool in pools for group in pool["groups"].values()),
        curves=sum(len(values) for pool in pools for values in pool["curves"].values()),
    )
