"""Schematic of a system: chips, what joins them, hosts and the fabric between nodes, with the rates of the links."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from mlsys.hardware.system import Link, System
from mlsys.viz.schematics.shapes import box, note
from mlsys.viz.shown import drawn
from mlsys.viz.style import COLORS
from mlsys.viz.words import device_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DRAWN = 8  # chips of a node that are drawn one by one
_CHIP, _STEP = 0.78, 1.0
_TOP, _CHIPS, _HOSTS, _FABRIC = 3.35, 1.95, 0.55, -0.85  # lower edges of the rows
_COLORS = {"scale_up": "BlueLine", "host": "OrangeLine", "scale_out": "GreenLine", "between_hosts": "VioletLine"}
_DASHES = {"scale_up": "-", "host": "--", "scale_out": "-.", "between_hosts": ":"}
_NAMES = {
    "scale_up": "between chips",
    "host": "to the host",
    "scale_out": "between nodes",
    "between_hosts": "host to host",
}


@drawn
def system_map(ax: Axes, system: System) -> Axes:
    """Draw one node of a system and the fabrics that it is part of.

    Parameters
    ----------
    ax
        Axes to draw into, about 8 by 4 inches.
    system
        A system; of a node of many chips a few are drawn.

    Returns
    -------
    Axes
        Boxes are chips, hosts and switches; lines are links, with their rates beside them, of one chip in one
        direction. Each kind of link has a dash pattern of its own.

    Raises
    ------
    UnknownNameError
        If a link of the system has no recorded bandwidth.
    """
    shown = min(system.chips_per_node, _DRAWN)
    cut = system.chips_per_node > shown
    width = shown * _STEP + (0.7 if cut else 0.0)
    label = _in_two_lines(device_name(system.device))
    for index in range(shown):
        box(ax, (index * _STEP, _CHIPS), (_CHIP, 0.62), label, "Blue",
            role="chip", letters=9)  # fmt: skip
    if cut:
        note(ax, shown * _STEP + 0.05, _CHIPS + 0.31, f"… {system.chips_per_node:,}\nin all", fontsize=9)
    centres = [index * _STEP + _CHIP / 2 for index in range(shown)]
    _scale_up(ax, system.scale_up, centres, width)
    _hosts(ax, system, centres, width)
    if system.scale_out is not None:
        nodes = f"{system.nodes:,} nodes" if system.nodes > 1 else "to other nodes"
        kind = system.scale_out.kind.partition(",")[0]
        box(ax, (0, _FABRIC), (width, 0.45), f"{kind} ({system.scale_out.topology}), {nodes}", "Green",
            role="scale_out", letters=9)  # fmt: skip
        for x in centres:
            _line(ax, system.scale_out, (x + 0.2, _CHIPS), (x + 0.2, _FABRIC + 0.45))
    _legend(ax, system, width)
    ax.set(xlim=(-0.2, width + 3.75), ylim=(-1.1, 4.25))
    ax.set_axis_off()
    return ax


def _in_two_lines(name: str) -> str:
    """Return a name that fits a chip: cut at its first space, or before its number."""
    name = name.replace("_", " ")
    if " " in name:
        return name.replace(" ", "\n", 1)
    return name if len(name) <= 4 else re.sub(r"^([A-Za-z]{2,3})(?=[v\d])", r"\1\n", name)


def _line(ax: Axes, link: Link, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.plot(
        *zip(start, end, strict=True), color=COLORS[_COLORS[link.name]], linestyle=_DASHES[link.name], linewidth=1.4,
        zorder=0.5, gid=link.name,
    )  # fmt: skip


def _arc(ax: Axes, link: Link, start: float, end: float) -> None:
    from matplotlib.patches import Arc

    reach = abs(end - start)
    ax.add_patch(
        Arc(
            ((start + end) / 2, _CHIPS + 0.62), reach, min(0.5 + 0.33 * reach, 2.9), theta1=0, theta2=180,
            color=COLORS[_COLORS[link.name]], linewidth=0.9, gid=link.name,
        )
    )  # fmt: skip


def _scale_up(ax: Axes, link: Link, centres: list[float], width: float) -> None:
    if len(centres) < 2:
        return
    if link.topology == "switch":
        name = f"switches ({link.in_network_reduction})" if link.in_network_reduction else "switches"
        box(ax, (0, _TOP), (width, 0.45), name, "Violet", role="switch", letters=9)
        for x in centres:
            _line(ax, link, (x, _CHIPS + 0.62), (x, _TOP))
    elif link.topology == "full mesh":
        for index, start in enumerate(centres):
            for end in centres[index + 1 :]:
                _arc(ax, link, start, end)
    elif link.topology == "torus":
        for start, end in pairwise(centres):
            _arc(ax, link, start, end)
        _arc(ax, link, centres[0], centres[-1])
        shape = " × ".join(map(str, link.dimensions))
        note(
            ax,
            (centres[0] + centres[-1]) / 2,
            _TOP + 0.05,
            f"torus of {shape}: a part of one axis,\nwhich closes to a ring",
            fontsize=9,
            ha="center",
        )
    elif link.topology == "host":
        note(ax, 0, _TOP - 0.3, "no link of their own:\nchips reach each other through the host", fontsize=9)


def _hosts(ax: Axes, system: System, centres: list[float], width: float) -> None:
    if not system.host.exists:
        return
    count = min(system.hosts_per_node, 2)
    share = len(centres) / count
    more = f" (of {system.hosts_per_node:,})" if system.hosts_per_node > 2 else ""
    for index in range(count):
        own = [x for at, x in enumerate(centres) if int(at / share) == index] or centres
        left = own[0] - _CHIP / 2
        box(ax, (left, _HOSTS), (own[-1] - own[0] + _CHIP, 0.5), f"host{more}", "Orange", role="host", letters=9)
    for x in centres:
        _line(ax, system.host, (x - 0.2, _CHIPS), (x - 0.2, _HOSTS + 0.5))
    if system.between_hosts is not None and count == 2:
        middle = len(centres) // 2
        start, end = centres[middle - 1] + _CHIP / 2, centres[middle] - _CHIP / 2
        _line(ax, system.between_hosts, (start, _HOSTS + 0.25), (end, _HOSTS + 0.25))


def _legend(ax: Axes, system: System, width: float) -> None:
    """Write the links with their rates beside the drawing, each after a piece of its line."""
    places = {"scale_up": 3.0, "host": 1.5, "between_hosts": 0.75, "scale_out": -0.1}
    for link in system.links:
        own = link.name == "scale_up" and (system.chips_per_node < 2 or link.topology == "host")
        if own or link.topology in ("shared memory", ""):
            continue
        y = places[link.name]
        _line(ax, link, (width + 0.1, y), (width + 0.55, y))
        rate = link.bandwidth.m_as("GB/s")
        kind = "" if link.name == "scale_out" else re.split(r",| between", link.kind)[0]
        text = "\n".join(filter(None, (f"{_NAMES[link.name]}: {rate:,.4g} GB/s", kind)))
        note(ax, width + 0.65, y, text, fontsize=9, color=COLORS["primary"])
