"""Energy: meters, power traces, and a model fitted to measurements."""

from mlsys.measure.energy.meters import INA226, Rapl
from mlsys.measure.energy.model import EnergyFit, EnergySample, fit_energy
from mlsys.measure.energy.trace import PowerTrace, read_power

__all__ = ["INA226", "EnergyFit", "EnergySample", "PowerTrace", "Rapl", "fit_energy", "read_power"]
