"""Carbon of computing: energy of a facility, operational and embodied emissions, and their share per token.

Emissions are in grams of CO2 equivalent (gCO2e); embodied ones follow the ACT model.

References
----------
U. Gupta et al., ACT: designing sustainable computer systems with an architectural carbon modeling tool, ISCA 2022.
"""

from mlsys.unit_checks import at_least, count, efficiency, fraction, nonnegative, positive, quantity_function

_PUE = at_least(1)


@quantity_function("kWh", power=nonnegative("kW"), time=nonnegative("hour"), utilisation=fraction(), pue=_PUE)
def facility_energy(power: float, time: float, utilisation: float = 1.0, pue: float = 1.0) -> float:
    r"""Return the energy that a data centre draws for a machine, :math:`P\,t\,u \cdot \mathrm{PUE}`.

    Parameters
    ----------
    power
        Power *P* of the machine under load, W.
    time
        Time *t*.
    utilisation
        Fraction *u* of the time under load, 0 to 1; otherwise it draws nothing.
    pue
        Power usage effectiveness, 1 or more: energy of the facility over energy of the machines.

    Returns
    -------
    Quantity
        kWh.

    Raises
    ------
    ArgumentUnitError, ArgumentError
        If an argument has no unit or a wrong one, or is out of range.

    References
    ----------
    D. Patterson et al., Carbon Emissions and Large Neural Network Training, arXiv:2104.10350, 2021, section 2.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> t5 = facility_energy(512 * Q_(310, "W"), Q_(20, "day"), pue=1.12)
    >>> print(f"{t5.to('MWh'):.1f}")
    85.3 MWh
    """
    return power * time * utilisation * pue


@quantity_function(
    "J/inference", operations=nonnegative("FLOP/inference"), efficiency=positive("FLOP/J"), utilisation=efficiency()
)
def inference_energy(operations: float, efficiency: float, utilisation: float = 1.0) -> float:
    r"""Return the energy of one inference, :math:`O / (\eta_\mathrm{peak}\, u)`.

    Parameters
    ----------
    operations
        Work *O* of one inference, FLOP/inference.
    efficiency
        Peak rate over power, FLOP/s/W = FLOP/J.
    utilisation
        Fraction *u* of the peak that is reached, above 0 and up to 1, at full power.

    Returns
    -------
    Quantity
        J/inference.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{inference_energy(Q_(8.18, 'GFLOP/inference'), Q_(0.01, 'TFLOP/J'), 0.1).to('J/inference'):.2f}")
    8.18 J/inference
    """
    return operations / (efficiency * utilisation)


@quantity_function("kWh", inferences=nonnegative("inference"), energy=nonnegative("kWh/inference"), pue=_PUE)
def fleet_energy(inferences: float, energy: float, pue: float = 1.0) -> float:
    """Return the energy that a fleet draws for a number of inferences.

    Parameters
    ----------
    inferences
        Number of inferences.
    energy
        Energy of one inference on its machine, such as J/inference.
    pue
        Power usage effectiveness, 1 or more.

    Returns
    -------
    Quantity
        kWh.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{fleet_energy(Q_(1e9, 'inference'), Q_(8.18, 'J/inference')):.0f}")
    2272 kWh
    """
    return inferences * energy * pue


@quantity_function("gCO2e", energy=nonnegative("kWh"), grid_intensity=nonnegative("gCO2e/kWh"), pue=_PUE)
def operational_carbon(energy: float, grid_intensity: float, pue: float = 1.0) -> float:
    """Return the emissions of the electricity that a machine uses: energy × PUE × grid intensity.

    Parameters
    ----------
    energy
        Energy that the machine draws.
    grid_intensity
        Emissions of the grid per energy, gCO2e/kWh.
    pue
        Power usage effectiveness, 1 or more; 1 if ``energy`` is that of the whole facility.

    Returns
    -------
    Quantity
        gCO2e.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{operational_carbon(Q_(433_196, 'kWh'), Q_(57, 'gCO2e/kWh')).to('tCO2e'):.1f}")
    24.7 tCO2e
    """
    return energy * pue * grid_intensity


@quantity_function(
    "gCO2e/cm**2",
    fab_intensity=nonnegative("gCO2e/kWh"),
    energy_per_area=nonnegative("kWh/cm**2"),
    gas_per_area=nonnegative("gCO2e/cm**2"),
    material_per_area=nonnegative("gCO2e/cm**2"),
    fab_yield=efficiency(),
)
def carbon_per_area(
    fab_intensity: float,
    energy_per_area: float,
    gas_per_area: float,
    material_per_area: float,
    fab_yield: float,
) -> float:
    r"""Return the emissions of making a chip per area, :math:`(CI \cdot EPA + GPA + MPA) / Y` of the ACT model.

    Parameters
    ----------
    fab_intensity
        Emissions of the fab's electricity *CI*, gCO2e/kWh.
    energy_per_area
        Electricity of the fab per area *EPA*, kWh/cm².
    gas_per_area
        Emissions of its process gases *GPA* after abatement, gCO2e/cm².
    material_per_area
        Emissions of its raw materials *MPA*, gCO2e/cm².
    fab_yield
        Fraction *Y* of the area that ends in working chips.

    Returns
    -------
    Quantity
        gCO2e per cm² of working chip.

    References
    ----------
    U. Gupta et al., ACT, ISCA 2022, equation 5.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> area = "gCO2e/cm**2"
    >>> made = carbon_per_area(Q_(583, "gCO2e/kWh"), Q_(1.2, "kWh/cm**2"), Q_(162.5, area), Q_(500, area), 0.875)
    >>> print(f"{made:.1f}")
    1556.7 gCO2e/cm²
    """
    return (fab_intensity * energy_per_area + gas_per_area + material_per_area) / fab_yield


@quantity_function("gCO2e", die_area=nonnegative("cm**2"), carbon_per_area=nonnegative("gCO2e/cm**2"), dies=count())
def die_carbon(die_area: float, carbon_per_area: float, dies: int = 1) -> float:
    """Return the emissions of making dies: area × emissions per area.

    Parameters
    ----------
    die_area
        Area of one die.
    carbon_per_area
        As :func:`carbon_per_area` returns it.
    dies
        Number of dies.

    Returns
    -------
    Quantity
        gCO2e, without package.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{die_carbon(Q_(814, 'mm**2'), Q_(2778, 'gCO2e/cm**2')).to('kgCO2e'):.1f}")
    22.6 kgCO2e
    """
    return die_area * carbon_per_area * dies


@quantity_function(
    "gCO2e", capacity=nonnegative("GB"), carbon_per_capacity=nonnegative("gCO2e/GB"), fab_yield=efficiency()
)
def memory_carbon(capacity: float, carbon_per_capacity: float, fab_yield: float = 1.0) -> float:
    """Return the emissions of making memory or storage: capacity × emissions per capacity / yield.

    Parameters
    ----------
    capacity
        Capacity.
    carbon_per_capacity
        Emissions of its technology before yield, gCO2e/GB.
    fab_yield
        Fraction that works; 1 if the factor includes it.

    Returns
    -------
    Quantity
        gCO2e, without package.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{memory_carbon(Q_(3, 'GB'), Q_(65, 'gCO2e/GB'), 0.875):.3f}")
    222.857 gCO2e
    """
    return capacity * carbon_per_capacity / fab_yield


@quantity_function("gCO2e", embodied=nonnegative("gCO2e"), time=nonnegative("hour"), lifetime=positive("hour"))
def embodied_share(embodied: float, time: float, lifetime: float) -> float:
    r"""Return the part of the embodied emissions that a use of some time bears, :math:`E\,t / T`.

    Parameters
    ----------
    embodied
        Emissions *E* of making the machine.
    time
        Time *t* that the use occupies it.
    lifetime
        Time *T* that it is in use over its life: the years in service times the fraction of them in use.

    Returns
    -------
    Quantity
        gCO2e.

    References
    ----------
    U. Gupta et al., ACT, ISCA 2022, equation 1.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{embodied_share(Q_(164, 'kgCO2e'), Q_(1, 'hour'), Q_(4, 'year')):.2f}")
    4.68 gCO2e
    """
    return embodied * time / lifetime


@quantity_function("gCO2e/Mtoken", emissions=nonnegative("gCO2e/hour"), token_rate=positive("token/hour"))
def token_carbon(emissions: float, token_rate: float) -> float:
    """Return the emissions of a million tokens on a machine with some emissions per hour.

    Parameters
    ----------
    emissions
        Operational and embodied emissions of the machine per hour of work, gCO2e/hour.
    token_rate
        Tokens per time.

    Returns
    -------
    Quantity
        gCO2e per million tokens.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{token_carbon(Q_(360, 'gCO2e/hour'), Q_(1000, 'token/s')):.0f}")
    100 gCO2e/Mtoken
    """
    return emissions / token_rate * 1e6
