"""Embodied carbon of chips by the method of ACT: silicon by area and node, memory by capacity, package."""

from __future__ import annotations

import functools
import math
from typing import Literal, get_args

from mlsys._facts.embodied import carbon_facts
from mlsys.errors import ArgumentError, UnrecordedError
from mlsys.formulas.carbon import carbon_per_area, die_carbon, memory_carbon
from mlsys.frozen import FrozenDict
from mlsys.hardware import Hardware
from mlsys.hardware.device import Device
from mlsys.hardware.technology import Technology
from mlsys.hardware.view import view
from mlsys.models.breakdown import Breakdown
from mlsys.models.grid import grid_intensity
from mlsys.models.prices import Machine, device_and_chips
from mlsys.provenance import as_recorded, read
from mlsys.unit_checks import checked_choice, checked_number, efficiency, nonnegative, positive
from mlsys.units import Quantity, computed, total, ureg

Abatement = Literal["95 %", "97 %", "99 %"]
"""Share of its process gases that a fab abates; 97 % is the mean of the two that are published."""
EmbodiedMethod = Literal["ACT", "published"]
"""By the ACT model, or as the maker or a study published it for the product."""
NODES = (28, 20, 14, 10, 8, 7, 5, 3)
"""Process nodes of the ACT model, nm."""

_NODE, _GRAM = ureg.Unit("nm"), "gCO2e"
_ACCELERATORS = ("GPU", "TPU", "NPU")
_ON_BOARD = (Technology.HBM, Technology.GDDR, Technology.LPDDR, Technology.STACKED)


def fab_carbon_per_area(
    node: Quantity,
    *,
    abatement: Abatement = "97 %",
    fab: str | Quantity | None = None,
    fab_yield: float | None = None,
) -> Quantity:
    """Return the emissions of making logic per area of working chip, by the ACT model.

    Parameters
    ----------
    node
        Name of the process node, nm, one of the model: 28, 20, 14, 10, 8, 7, 5 or 3 nm.
    abatement
        Share of the process gases that is abated.
    fab
        Country of the fab, or the carbon intensity of its electricity, gCO2e/kWh; by default Taiwan as ACT has it.
    fab_yield
        Share of the area that ends in working chips, above 0 and up to 1; by default 0.875.

    Returns
    -------
    Quantity
        gCO2e/cm².

    Raises
    ------
    ArgumentError
        If the model has no such node, or the yield is out of range.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{fab_carbon_per_area(Q_(14, 'nm')):.1f}")
    1556.7 gCO2e/cm²
    """
    where = "fab_carbon_per_area"
    checked_number(where, "node", node, positive("nm"), {})
    checked_choice(where, "abatement", abatement, get_args(Abatement))
    nm = round(node.m_as("nm"), 6)
    if nm not in NODES:
        raise ArgumentError(
            f"fab_carbon_per_area(): `node` must be one of {', '.join(map(str, NODES))} nm, got {node:~P}. "
            f'Write e.g. node=Q_({nearest_node(nm)}, "nm")'
        )
    gas = [_fact(f"ACT_GPA{share}_{nm:g}NM") for share in ({"97 %": (95, 99)}.get(abatement) or (abatement[:2],))]
    intensity = _fab_intensity(fab)
    share = _fact("ACT_YIELD") if fab_yield is None else checked_number(where, "fab_yield", fab_yield, efficiency(), {})
    return carbon_per_area(
        intensity, _fact(f"ACT_EPA_{nm:g}NM"), sum(gas[1:], gas[0]) / len(gas), _fact("ACT_MPA"), share
    )


def storage_carbon(
    technology: str, capacity: Quantity, *, fab_yield: float | None = None, packages: int = 0
) -> Quantity:
    """Return the emissions of making memory or storage, by the ACT model.

    Parameters
    ----------
    technology
        Such as ``"DRAM_DDR4_10NM"``, ``"SSD_NAND_30NM"`` or ``"HDD_BARRACUDA"``.
    capacity
        Capacity of all of it.
    fab_yield
        Share that works, above 0 and up to 1; by default 0.875.
    packages
        Number of packages of integrated circuits.

    Returns
    -------
    Quantity
        gCO2e.

    Raises
    ------
    UnknownNameError
        If the model has no such technology.

    Examples
    --------
    >>> from mlsys.units import Q_
    >>> print(f"{storage_carbon('DRAM_DDR4_10NM', Q_(3, 'GB')):.2f}")
    222.86 gCO2e
    """
    known = [
        name.removeprefix("ACT_") for name in carbon_facts() if name.startswith(("ACT_DRAM", "ACT_SSD", "ACT_HDD"))
    ]
    checked_choice("storage_carbon", "technology", technology, known)
    whole = checked_number("storage_carbon", "packages", packages, nonnegative(), {})
    share = _fact("ACT_YIELD") if fab_yield is None else fab_yield
    made = memory_carbon(capacity, _fact(f"ACT_{technology}"), share)
    return made + _fact("ACT_PACKAGE") * whole if whole else made


def embodied(
    machine: Machine,
    *,
    method: EmbodiedMethod = "ACT",
    die_area: Quantity | None = None,
    memory: Quantity | None = None,
    fab: str | Quantity | None = None,
    abatement: Abatement = "97 %",
    fab_yield: float | None = None,
) -> Breakdown:
    """Return the emissions of making the chips of a machine.

    Parameters
    ----------
    machine
        A device or a system, of which the chips alone are counted.
    method
        ``"ACT"``: silicon, memory and package of the chip. ``"published"``: the footprint of the product, with its
        board and heat sink, where one is published.
    die_area
        Area of all its dies; by default as recorded, or from the number of transistors and the densities of other
        chips of that node.
    memory
        Capacity of its DRAM; by default that of the main memory where it is soldered to the chip or its board.
    fab, abatement, fab_yield
        As for :func:`fab_carbon_per_area`.

    Returns
    -------
    Breakdown
        gCO2e. Its range covers the neighbouring nodes where ACT lacks the node, 95 to 99 % abatement, an unrecorded
        area, and the generation of the DRAM.

    Raises
    ------
    ArgumentError
        If neither the area nor the number of transistors is recorded, or the node is not.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> made = embodied(Hardware.Cloud.H100)
    >>> print(f"{made.total.to('kgCO2e'):.1f}, of which silicon {made.parts['silicon'].to('kgCO2e'):.1f}")
    28.7 kgCO2e, of which silicon 22.6 kgCO2e
    >>> print(f"{embodied(Hardware.Cloud.H100, method='published').total:.0f}")
    164 kgCO2e
    """
    checked_choice("embodied", "method", method, get_args(EmbodiedMethod))
    device, chips = device_and_chips("embodied", machine)
    if method == "published":
        return _published(machine.name, device, chips)
    node = _node(device)
    central, low_node, high_node = _act_nodes(node)
    areas, words = _areas(device, central, die_area)
    low_abated: Abatement = "99 %" if abatement == "97 %" else abatement
    high_abated: Abatement = "95 %" if abatement == "97 %" else abatement
    cases: tuple[tuple[int, Abatement, Quantity, int], ...] = (
        (central, abatement, areas[0], 0),
        (low_node, low_abated, areas[1], 1),
        (high_node, high_abated, areas[2], 2),
    )
    capacity, technology, memory_assumptions = _memory(device, memory)
    ends = []
    for each, abated, area, end in cases:
        node_name = computed(float(each), _NODE)
        per_area = fab_carbon_per_area(node_name, abatement=abated, fab=fab, fab_yield=fab_yield)
        parts = {"silicon": die_carbon(area, per_area)}
        if capacity is not None:
            parts["memory"] = storage_carbon(technology[end], capacity, fab_yield=fab_yield)
        parts["package"] = _fact("ACT_PACKAGE")
        parts = {name: part.to(_GRAM) * chips if chips > 1 else part.to(_GRAM) for name, part in parts.items()}
        ends.append((total(parts.values(), _GRAM), parts))
    return Breakdown(
        "embodied",
        f"making of {machine.name}",
        ends[0][0],
        ends[1][0],
        ends[2][0],
        FrozenDict(ends[0][1]),
        FrozenDict({"die area": areas[0]}),
        (
            f"ACT at {central} nm" + ("" if node == central else f" for {node:g} nm, which it does not have"),
            words,
            *memory_assumptions,
            "chips alone: no board, heat sink, host, transport or disposal",
        ),
    )


def nearest_node(nm: float) -> int:
    """Return the node of the ACT model whose name is closest by ratio.

    Examples
    --------
    >>> nearest_node(4), nearest_node(12), nearest_node(16), nearest_node(90)
    (5, 14, 14, 28)
    """
    return min(NODES, key=lambda node: abs(math.log(node / nm)))


def _act_nodes(nm: float) -> tuple[int, int, int]:
    """Return the node to compute with, and the neighbours with the lowest and the highest emissions."""
    if nm in NODES:
        return int(nm), int(nm), int(nm)
    older = [node for node in NODES if node > nm]
    newer = [node for node in NODES if node < nm]
    return nearest_node(nm), min(older, default=max(NODES)), max(newer, default=min(NODES))


def _fact(name: str) -> Quantity:
    quantity: Quantity = read(carbon_facts()[name])
    return quantity


def _fab_intensity(fab: str | Quantity | None) -> Quantity:
    if fab is None:
        return _fact("ACT_GRID_TAIWAN")
    return grid_intensity(fab) if isinstance(fab, str) else fab


def _node(device: Device) -> float:
    machine = view(device)
    if not machine.has("node"):
        raise UnrecordedError(
            f"embodied(): no process node of {device.name} is recorded, and the making of a chip depends on it. "
            "Add it, with its source, to the device's YAML file"
        )
    return float(machine.quantity("node").m_as("nm"))


def _areas(device: Device, node: int, given: Quantity | None) -> tuple[tuple[Quantity, Quantity, Quantity], str]:
    """Return the area of the dies with its low and high end, and where it is from."""
    if given is not None:
        checked_number("embodied", "die_area", given, positive("mm**2"), {})
        return (given, given, given), "die area as given"
    machine = view(device)
    if machine.has("die_area"):
        area = machine.quantity("die_area")
        return (area, area, area), "die area as recorded"
    if not machine.has("transistors"):
        raise UnrecordedError(
            f"embodied(): neither the die area nor the number of transistors of {device.name} is recorded. "
            'Write e.g. die_area=Q_(800, "mm**2")'
        )
    densities = _densities(node)
    if not densities:
        raise UnrecordedError(
            f"embodied(): no chip near {node} nm is recorded with its area and transistors. "
            'Write e.g. die_area=Q_(800, "mm**2")'
        )
    transistors = machine.quantity("transistors")
    middle = densities[len(densities) // 2]
    areas = tuple((transistors / each).to("mm**2") for each in (middle, densities[-1], densities[0]))
    words = (
        f"die area from {transistors.m:.3g} transistors at the density of {len(densities)} chips near {node} nm, "
        f"{densities[0].m_as('1/mm**2') / 1e6:.0f} to {densities[-1].m_as('1/mm**2') / 1e6:.0f} million a mm²"
    )
    return (areas[0], areas[1], areas[2]), words


@functools.cache
def _densities(node: int) -> tuple[Quantity, ...]:
    """Return the transistors per area of the recorded chips whose node is nearest to ``node``, smallest first."""
    found = []
    with as_recorded():
        for device in Hardware:
            machine = view(device)
            known = all(machine.has(field) for field in ("die_area", "transistors", "node"))
            if known and device.kind in _ACCELERATORS and nearest_node(machine.quantity("node").m_as("nm")) == node:
                found.append((machine.quantity("transistors") / machine.quantity("die_area")).to("1/mm**2"))
    return tuple(sorted(set(found), key=lambda density: density.m))


def _memory(device: Device, given: Quantity | None) -> tuple[Quantity | None, tuple[str, str, str], tuple[str, ...]]:
    """Return the capacity of the DRAM, ACT's name of it with a low and a high one, and what is assumed."""
    central = ("DRAM_DDR4_10NM", "DRAM_LPDDR4", "DRAM_DDR3_30NM")
    level = view(device).main
    kind = level.technology
    words = "ACT has no factor for its DRAM: that of 10 nm DDR4 is used, with a range from LPDDR4 to 30 nm DDR3"
    if given is not None:
        checked_number("embodied", "memory", given, nonnegative("byte"), {})
        return given, central, (words,)
    if kind not in _ON_BOARD or not level.has("capacity"):
        return None, central, ("no memory: it is not soldered to the chip or its board",)
    if kind is Technology.LPDDR:
        lpddr = ("DRAM_LPDDR4", "DRAM_LPDDR4", "DRAM_DDR4_10NM")
        return level.quantity("capacity"), lpddr, ("DRAM as LPDDR4, up to DDR4 of 10 nm",)
    return level.quantity("capacity"), central, (words,)


def _published(name: str, device: Device, chips: int) -> Breakdown:
    fact = f"PCF_{device.id}"
    if fact not in carbon_facts():
        have = ", ".join(each.removeprefix("PCF_") for each in carbon_facts() if each.startswith("PCF_"))
        raise UnrecordedError(
            f"embodied(): no footprint of {device.name} is published; those of {have} are. Write e.g. method='ACT'"
        )
    each = _fact(fact)
    made = each * chips if chips > 1 else each
    return Breakdown(
        "embodied",
        f"making of {name}",
        made,
        made,
        made,
        FrozenDict({"product": made}),
        FrozenDict({}),
        ("as published for the product, with its share of board and heat sink; no host",),
    )
