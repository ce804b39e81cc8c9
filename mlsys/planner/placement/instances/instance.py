"""A published instance of operator placement, and what a placement of it is worth.

The format is ``mlsys-placement-1``: a graph of operators, one class of accelerators with a memory cap each
and one of CPUs, and what it costs to carry the output of an operator between memories. The instances come
from J. M. Tarnawski et al., Efficient algorithms for device placement of DNN graph operators, NeurIPS 2020.

:func:`evaluate` is plain Python and shares nothing with the search: it is what checks the search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlsys.errors import ScenarioFileError, UnreadableError
from mlsys.faults import short
from mlsys.inputs import read_json

FORMAT = "mlsys-placement-1"
OBJECTIVES = ("max_load", "latency")
_NODE = ("id", "cpu_ms", "acc_ms", "bytes", "acc_ok", "colour")
_EDGE = ("src", "dst", "transfer_ms")
_MOST = 1e100  # of any time or size: sums and products stay finite, and below what stands for "never"


@dataclass(frozen=True)
class Instance:
    """Operators, what they cost on either class of device, and the devices.

    Attributes
    ----------
    name, objective
        ``"max_load"``, the largest load of a device, whose inverse is the throughput of a pipeline; or
        ``"latency"``, the end of one sample.
    ids
        Of the operators, in the order of the file; all further sequences are in this order.
    cpu_ms, acc_ms
        Time on a CPU and on an accelerator, ms.
    size
        Bytes that the operator needs in the memory of an accelerator.
    acc_ok
        Whether it may run on an accelerator at all.
    colour
        Operators of one colour share a device; -1 for none.
    transfer_ms
        What it costs to carry the output between an accelerator and the outside, ms.
    edges
        Pairs of places, from producer to consumer, each once.
    accelerators, memory
        How many there are, and the bytes of each (infinite for no cap).
    cpus
        How many CPU cores there are.
    """

    name: str
    objective: str
    ids: tuple[Any, ...]
    cpu_ms: tuple[float, ...]
    acc_ms: tuple[float, ...]
    size: tuple[float, ...]
    acc_ok: tuple[bool, ...]
    colour: tuple[int, ...]
    transfer_ms: tuple[float, ...]
    edges: tuple[tuple[int, int], ...]
    accelerators: int
    memory: float
    cpus: int

    @classmethod
    def load(cls, path: str | Path) -> Instance:
        """Read an instance.

        Raises
        ------
        ScenarioFileError
            If the file is unreadable or has faults; each is reported with its place.
        """
        path = Path(path)
        try:
            data = read_json(path)
        except UnreadableError as error:
            raise ScenarioFileError(str(error)) from None
        try:
            return cls.from_data(data)
        except ScenarioFileError as error:
            raise ScenarioFileError("\n".join(f"{path}: {line}" for line in str(error).splitlines())) from None

    @classmethod
    def from_data(cls, data: Any) -> Instance:
        """Read an instance from plain data; see :meth:`load`."""
        faults = _Faults()
        if not isinstance(data, Mapping):
            raise ScenarioFileError("an instance is a mapping of keys to values")
        if data.get("format") != FORMAT:
            faults.add("format", f"must be {FORMAT!r}, got {data.get('format')!r}")
        if data.get("objective") not in OBJECTIVES:
            faults.add("objective", f"must be one of {', '.join(OBJECTIVES)}, got {data.get('objective')!r}")
        nodes = _rows(data, "node", _NODE, faults)
        edges = _rows(data, "edge", _EDGE, faults)
        accelerators, memory, cpus = _devices(data.get("devices"), faults)
        places: dict[Any, int] = {}
        for row, node in enumerate(nodes):
            if isinstance(node["id"], bool) or not isinstance(node["id"], (int, str)):
                faults.add(f"nodes.{row}", f"id must be a whole number or a text, got {short(node['id'])}")
            elif node["id"] in places:
                faults.add(f"nodes.{row}", f"node {node['id']!r} is there twice")
            else:
                places[node["id"]] = row
            for key in ("cpu_ms", "acc_ms", "bytes"):
                faults.amount(f"nodes.{row}.{key}", node[key])
            if node["acc_ok"] not in (0, 1):
                faults.add(f"nodes.{row}.acc_ok", f"must be 0 or 1, got {short(node['acc_ok'])}")
        transfer = [0.0] * len(nodes)
        pairs: dict[tuple[int, int], None] = {}
        for row, edge in enumerate(edges):
            ends = [
                places.get(edge[key]) if isinstance(edge[key], (int, str)) and not isinstance(edge[key], bool) else None
                for key in ("src", "dst")
            ]
            for key, end in zip(("src", "dst"), ends, strict=True):
                if end is None:
                    faults.add(f"edges.{row}.{key}", f"there is no node {short(edge[key])}")
            if "bytes" in edge:
                faults.amount(f"edges.{row}.bytes", edge["bytes"])
            if faults.amount(f"edges.{row}.transfer_ms", edge["transfer_ms"]) and None not in ends:
                source, target = ends
                assert source is not None and target is not None
                if source == target:
                    faults.add(f"edges.{row}", f"node {edge['src']!r} feeds itself")
                transfer[source] = max(transfer[source], float(edge["transfer_ms"]))
                pairs[source, target] = None
        if not nodes:
            faults.add("nodes", "there is no node")
        if not faults.lines and not _acyclic(len(nodes), pairs):
            faults.add("edges", "the graph has a cycle")
        if faults.lines:
            raise ScenarioFileError("\n".join(faults.lines))
        colours: dict[Any, int] = {}
        return cls(
            str(data.get("name", "instance")),
            str(data["objective"]),
            tuple(node["id"] for node in nodes),
            tuple(float(node["cpu_ms"]) for node in nodes),
            tuple(float(node["acc_ms"]) for node in nodes),
            tuple(float(node["bytes"]) for node in nodes),
            tuple(bool(node["acc_ok"]) for node in nodes),
            tuple(
                -1 if node["colour"] is None else colours.setdefault(str(node["colour"]), len(colours))
                for node in nodes
            ),
            tuple(transfer),
            tuple(pairs),
            accelerators,
            memory,
            cpus,
        )


class _Faults:
    """Faults with their places, all of one pass."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, path: str, text: str) -> None:
        self.lines.append(f"{path}: {text}")

    def amount(self, path: str, value: Any) -> bool:
        sound = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf
        if not sound:
            self.add(path, f"must be a finite number that is not negative, got {short(value)}")
        elif value > _MOST:
            self.add(path, f"must be at most {_MOST:g}, got {short(value)}")
        return sound and value <= _MOST


def _rows(data: Mapping[str, Any], what: str, needed: Sequence[str], faults: _Faults) -> list[dict[str, Any]]:
    heads, rows = data.get(f"{what}_columns"), data.get(f"{what}s")
    if not isinstance(heads, list) or not isinstance(rows, list):
        faults.add(f"{what}s", f"`{what}s` and `{what}_columns` must be lists")
        return []
    if not all(isinstance(name, str) for name in heads):
        faults.add(f"{what}_columns", "must be a list of names")
        return []
    missing = [name for name in needed if name not in heads]
    if missing:
        faults.add(f"{what}_columns", f"missing: {', '.join(missing)}")
        return []
    good = []
    for number, row in enumerate(rows):
        if isinstance(row, list) and len(row) == len(heads):
            good.append(dict(zip(heads, row, strict=True)))
        else:
            faults.add(f"{what}s.{number}", f"must be a list of {len(heads)} values, one for each column")
    return good


def _devices(devices: Any, faults: _Faults) -> tuple[int, float, int]:
    counts, memory = {"accelerator": 0, "cpu": 0}, math.inf
    if not isinstance(devices, list) or not devices:
        faults.add("devices", "must be a list of classes of devices")
        return 0, memory, 0
    for number, device in enumerate(devices):
        path = f"devices.{number}"
        kind = device.get("class") if isinstance(device, Mapping) else None
        if not isinstance(kind, str) or kind not in counts:
            faults.add(path, f"class must be accelerator or cpu, got {kind!r}")
            continue
        count, room = device.get("count"), device.get("memory_bytes")
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= 1000:
            faults.add(f"{path}.count", f"must be a whole number from 0 to 1000, got {count!r}")
        else:
            counts[kind] += count
        if room is not None and faults.amount(f"{path}.memory_bytes", room) and kind == "accelerator":
            memory = min(memory, float(room))
    return counts["accelerator"], memory, counts["cpu"]


def _acyclic(number: int, edges: Mapping[tuple[int, int], None] | Sequence[tuple[int, int]]) -> bool:
    after: list[list[int]] = [[] for _ in range(number)]
    waiting = [0] * number
    for source, target in edges:
        after[source].append(target)
        waiting[target] += 1
    ready = [index for index in range(number) if not waiting[index]]
    for stage in ready:
        for later in after[stage]:
            waiting[later] -= 1
            if not waiting[later]:
                ready.append(later)
    return len(ready) == number


@dataclass(frozen=True)
class PlacementScore:
    """What a placement is worth.

    Attributes
    ----------
    value_ms
        The objective, ms.
    loads_ms
        Load of each device, the CPU first, ms.
    broken
        Rules that the placement breaks, in words; empty for a placement that is allowed.
    """

    value_ms: float
    loads_ms: tuple[float, ...]
    broken: tuple[str, ...]


def evaluate(instance: Instance, placement: Sequence[int]) -> PlacementScore:
    """Return what a placement is worth, and which rules it breaks.

    Parameters
    ----------
    instance
        What is placed.
    placement
        Device of each operator in the order of the file: 0 is a CPU, 1 and more an accelerator.

    Returns
    -------
    PlacementScore

    Raises
    ------
    ScenarioFileError
        If there is not one known device for each operator.
    """
    number = len(instance.ids)
    known = range(instance.accelerators + 1)
    if len(placement) != number or any(device not in known for device in placement):
        raise ScenarioFileError(
            f"evaluate(): `placement` must be a device from 0 to {instance.accelerators} for each of {number} operators"
        )
    broken = []
    loads = [0.0] * (instance.accelerators + 1)
    held = [0.0] * (instance.accelerators + 1)
    by_colour: dict[int, set[int]] = {}
    for index, device in enumerate(placement):
        loads[device] += instance.acc_ms[index] if device else instance.cpu_ms[index]
        held[device] += instance.size[index]
        if device and not instance.acc_ok[index]:
            broken.append(f"node {instance.ids[index]!r} may not run on an accelerator")
        if not device and not instance.cpus:
            broken.append(f"node {instance.ids[index]!r} runs on a CPU, and there is none")
        if instance.colour[index] >= 0:
            by_colour.setdefault(instance.colour[index], set()).add(device)
    broken += [f"colour {colour} is on several devices" for colour, on in by_colour.items() if len(on) > 1]
    broken += [
        f"accelerator {device} holds {held[device]:,.0f} B, more than {instance.memory:,.0f} B"
        for device in known
        if device and held[device] > instance.memory
    ]
    carried: set[tuple[int, int]] = set()
    for source, target in instance.edges:
        if placement[source] != placement[target]:
            carried |= {(source, placement[source]), (source, placement[target])}
    for source, device in sorted(carried):
        if device:
            loads[device] += instance.transfer_ms[source]
    if instance.objective == "max_load":
        return PlacementScore(max(loads), tuple(loads), tuple(broken))
    end = _latest_end(instance, placement, loads)
    if end is None:
        broken.append("the blocks of the accelerators wait for each other in a circle")
    return PlacementScore(math.inf if end is None else end, tuple(loads), tuple(broken))


def _latest_end(instance: Instance, placement: Sequence[int], loads: Sequence[float]) -> float | None:
    """Return the end of one sample: every accelerator is one block, every operator of a CPU is one of its own."""
    number = len(instance.ids)
    block = [number + device if device else index for index, device in enumerate(placement)]
    takes = {number + device: loads[device] for device in range(1, instance.accelerators + 1)}
    takes |= {index: instance.cpu_ms[index] for index, device in enumerate(placement) if not device}
    after: dict[int, set[int]] = {unit: set() for unit in takes}
    waiting = dict.fromkeys(takes, 0)
    for source, target in instance.edges:
        first, then = block[source], block[target]
        if first != then and then not in after[first]:
            after[first].add(then)
            waiting[then] += 1
    starts = dict.fromkeys(takes, 0.0)
    ready = [unit for unit in takes if not waiting[unit]]
    for stage in ready:
        for later in after[stage]:
            starts[later] = max(starts[later], starts[stage] + takes[stage])
            waiting[later] -= 1
            if not waiting[later]:
                ready.append(later)
    if len(ready) < len(takes):
        return None
    return max((starts[unit] + takes[unit] for unit in takes), default=0.0)
