"""Facts of embodied carbon, read from their file at first use."""

import functools

from mlsys._facts.make import fact_of, quoted
from mlsys.units import Quantity


@functools.cache
def carbon_facts() -> dict[str, Quantity]:
    """Return the factors of the ACT model (``ACT_…``) and footprints of products (``PCF_…``), by name.

    Examples
    --------
    >>> print(carbon_facts()["ACT_EPA_7NM"], carbon_facts()["PCF_B200"])
    2.15 kWh/cm² 284 kgCO2e
    """
    return {name: fact_of(name, entry) for name, entry in quoted("carbon")}
