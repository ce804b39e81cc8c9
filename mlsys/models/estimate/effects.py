"""Random effects learned from similar measurements, on top of the parameters of a setting.

The parameters of a setting describe how fast a kind of software is on a class of machine. The remaining error is
partly shared: by a machine under all software, by machines of its family, by networks of one family, by a network on
all machines, by a network under one software, and by shapes that a library handles well or badly. Each of these is an
effect on the logarithm of time, and all are fitted at once as the random effects of a mixed model: many sweeps move an
effect away from zero, one sweep hardly does, and without measurements it is zero. An estimate is the product of the
setting's time and these factors, and never lies below its bound.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mlsys.frozen import FrozenDict

_PLACE = Path(__file__).parent / "effects.json"
# Limit of all effects together: a larger factor means that another mechanism is at work.
MOST = math.e
# Residual error of memory-bound and of host-bound calls: mean square, over the measured calls.
PART_OF_A_CALL = 0.45
# Typical error of an estimate without effects, in logarithm of time: the unit of the quantiles.
USUAL = 0.25


@dataclass(frozen=True)
class Pool:
    """Settings whose effects are fitted together.

    Attributes
    ----------
    settings
        Regular expression of their names.
    groups
        Grouping factors of their measurements; see :func:`levels_of`. ``host`` applies to launches only, and ``memory``
        to the rest of a time.
    curves
        Features of a shape, each with a smooth curve of its own; see
        :func:`mlsys.models.estimate.features.features`.
    factors
        Whether a factor per machine is fitted before the effects, so that the effects describe only what machines of
        a family share beyond it.
    least
        Smallest effect that is kept, in logarithm of time; a smaller one is within the noise of what it belongs to.
    """

    settings: str
    groups: tuple[str, ...]
    curves: tuple[str, ...] = ()
    factors: bool = False
    least: float = 0.03


# The first pattern found decides. Groups and curves are those whose removal raised the error on sweeps or machines left
# out, in some class of thirty rows, by 0.2 points (``mlsys_evidence.evaluate.ablation``). An energy is predicted with
# the times of its kind: a network that is slow on a machine draws longer, and what a machine draws beside is an effect
# of its own, of "energy of" that software on it. A pool without groups has no effects, and factors of machines neither.
_VERSION = "version"
_CROSSED = ("network and software", "network", "machine and network", _VERSION)
POOLS: dict[str, Pool] = {
    # One sweep per machine: no effect can be fitted.
    "networks of RKNN": Pool(r"^RKNN .*network on NPU$", (), factors=True),
    # Few networks on few machines, each far from the other: small effects tell more than elsewhere.
    "networks on NPU": Pool(
        r" network on NPU$",
        ("machine", "family", "machine and software", "family and software", *_CROSSED),
        least=0.02,
    ),
    "networks on CPU": Pool(
        r" network on CPU$", ("machine", "family", "machine and software", "network family", *_CROSSED)
    ),
    # What Vulkan attains on a phone's GPU tells little of OpenCL on its kin, and of a card nothing of CUDA on it.
    "networks on SoC": Pool(r" network on SoC$|^vulkan network on GPU$", ("family", "network"), factors=True),
    # What a family's matrix units attain tells nothing of its vector units in FP32.
    "wholes on vector units": Pool(r"^(eager small|Megatron vector) units .* on GPU$", ()),
    "wholes on GPU": Pool(
        r" (network|training|llm prefill) on GPU$",
        (
            *("machine", "machine and software", "family and software", "network family", "network and software"),
            *("machine and network", "machine and runtime", _VERSION),
        ),
    ),
    "microcontrollers": Pool(r" on MCU$", ("family", "network family", *_CROSSED), factors=True),
    # Called from Python, where the call and cuBLAS's choice for FP32 decide: no curve of a captured graph's tells them.
    "eager products": Pool(r"^eager( ROCm)?( batched)? gemm on ", ()),
    "products": Pool(r" gemm(, \w+ units)? on ", (), ("rows", "columns", "depth", "intensity", "launch", "cached")),
    # Once the algorithm is known, neither shape nor card explains the rest of a convolution's error.
    "convolutions": Pool(r" convolution(, \w+ units)? on ", ()),
    "recurrent": Pool(r" recurrent layer(, \w+ units)? on ", (), ("launch",), factors=True),
    "decode attention": Pool(
        r" decode attention on ", ("family", _VERSION), ("columns", "intensity", "launch", "cached")
    ),
    "attention": Pool(r" attention on ", (), ("copies",)),
    # One call at a time: its host starts it, and its memory does the rest.
    "eager calls": Pool(r"^eager( ROCm)? call on GPU$", ("memory", "host")),
    "collectives": Pool(r"collective", ("family", "machine and software"), ("time",)),
}
# Knots of each feature's curve: lowest, highest, and spacing.
CURVES: dict[str, tuple[float, float, float]] = {
    "rows": (0, 20, 2),
    "columns": (0, 16, 2),
    "depth": (0, 16, 2),
    "copies": (0, 14, 2),
    "intensity": (-8, 8, 1.5),
    "launch": (0, 1, 0.25),
    "cached": (0, 1, 0.5),
    "time": (-7, 0, 0.5),
}


@dataclass(frozen=True)
class Effect:
    """Deviation from the parameters of a setting.

    Attributes
    ----------
    factor
        Factor of time.
    parts
        Its components: a description, and the factor of each.
    starting
        Factor of launches, used instead of ``factor`` for them where the host has its own effect.
    """

    factor: float
    parts: tuple[tuple[str, float], ...] = ()
    starting: float | None = None


NO_EFFECT = Effect(1.0)


@lru_cache(maxsize=1)
def fitted_effects() -> FrozenDict[str, Any]:
    """Return the fitted effects by pool."""
    return FrozenDict(json.loads(_PLACE.read_text(encoding="utf-8")) if _PLACE.exists() else {})


@lru_cache(maxsize=512)
def pool_of(setting: str) -> str:
    """Return the name of the pool that a setting belongs to; empty if it has none.

    Examples
    --------
    >>> pool_of("compiled network on GPU"), pool_of("vulkan network on GPU"), pool_of("an abacus")
    ('wholes on GPU', 'networks on SoC', '')
    """
    return next((name for name, pool in POOLS.items() if re.search(pool.settings, setting)), "")


# Twins of phones. Their neural processors run at the highest clock for the second that a measurement takes; the same
# cores in a board, a car or a laptop at one that they keep, 1.5 to 2 times slower relative to their stated peaks.
_PHONES = r"Snapdragon\d|Apple_A\d|Kirin|Dimensity"


# Cores of Arm, whoever makes the chip, by how they feed their vector units: in order, where a load holds up what
# follows; out of order with one multiply-add of 128 bits a cycle; out of order with two or more (Armv8.2 and after).
_CORE = r"Cortex-[AX]\d+|Neoverse|Kryo|Oryon|FTC\d+|TaiShan|Carmel|Firestorm|Apple M\d"
_IN_ORDER, _NARROW = (
    {"Cortex-A7", "Cortex-A53", "Cortex-A55"},
    {"Cortex-A57", "Cortex-A72", "Cortex-A73", "Kryo", "FTC663"},
)


def _kind_of_core(architecture: str) -> str:
    """Return the kind of Arm cores that an architecture names first; empty if there are none."""
    named = re.search(_CORE, architecture)
    if not named:
        return ""
    core = named.group()
    return "Arm in order" if core in _IN_ORDER else f"Arm out of order{'' if core in _NARROW else ', two a cycle'}"


@lru_cache(maxsize=512)
def _family(device: str) -> str:
    """Return vendor and architecture family of a device; for Arm cores, their kind."""
    from mlsys.errors import UnknownNameError
    from mlsys.hardware import Hardware

    try:
        twin = Hardware[device]
    except UnknownNameError:
        return ""
    core = _kind_of_core(twin.architecture) if twin.kind in ("CPU", "SoC") else ""
    if core:
        return core
    plain = twin.architecture.replace("Arm Cortex", "Cortex").replace("Apple ", "Apple")
    where = " in a phone" if twin.kind == "NPU" and re.match(_PHONES, twin.id) else ""
    return f"{twin.vendor} {re.sub(r'[ ,(].*', '', plain)}{where}"


@lru_cache(maxsize=4096)
def _network(name: str) -> str:
    """Return a normalised spelling of a network's name."""
    from mlsys.workloads import zoo

    entry = zoo.resolve(name) if name else None
    return entry.name if entry is not None else name.lower()


@lru_cache(maxsize=4096)
def _kin(name: str) -> str:
    """Return the family prefix of a network's name: ``vgg`` for ``vgg13``, ``mobilenet_v2`` for itself."""
    family = re.match(r"[a-z]+(_v\d+)?", name)
    return family.group() if family else name


def levels_of(setting: str, device: str, network: str = "", version: str = "") -> dict[str, str]:
    """Return the grouping levels of a measurement; PyTorch is one group, compiled or not.

    Parameters
    ----------
    setting, device
        As for :func:`mlsys.models.estimate.library.parameters_of`.
    network
        Its name; empty for a single kernel.
    version
        Software version as the source spells it; empty if not given.
    """
    software = setting.rpartition(" on ")[0].replace("torch.compile", "eager")
    levels = {"machine": device, "family": _family(device), "machine and software": f"{device}, {software}"}
    levels["family and software"] = f"{levels['family']}, {software}"
    levels["machine and runtime"] = f"{device}, {_WORK.sub('', software)}"
    levels |= {"memory": device, "host": device}
    if network:
        name = _network(network)
        levels["network family"] = _kin(name)
        levels |= {"network": name, "network and software": f"{name}, {software}"}
        levels["machine and network"] = f"{device}, {name}"
    if version:
        # What a version makes faster draws its power for a shorter time.
        levels[_VERSION] = f"{software.removeprefix('energy of ')}: {version}"
    return levels


# Kind of work in a setting's name, after the name of the runtime.
_WORK = re.compile(r" (network|training|llm \w+)$")
# What a machine's own parameters hold already; of its networks each has an effect of its own.
_ABOUT_THE_MACHINE = ("machine", "family", "machine and software", "machine and runtime", "memory", "host")


def tells_machines(setting: str) -> bool:
    """Return whether only effects distinguish the machines of a setting, which share its parameters.

    A factor of each machine, found before, leaves nothing that tells what those of a family have in common, and one
    that was never measured then has no more than the mean of all.

    Examples
    --------
    >>> tells_machines("ncnn network on CPU"), tells_machines("RKNN int8 network on NPU")
    (True, False)
    """
    pool = POOLS.get(pool_of(setting))
    return pool is not None and not pool.factors


def effect_of(setting: str, device: str = "", network: str = "", *, machine: bool = True, version: str = "") -> Effect:
    """Return the combined effect of similar measurements on a question.

    Parameters
    ----------
    setting, device, network, version
        As for :func:`levels_of`.
    machine
        Whether to include the effects of the machine; not needed for a machine with its own measurements.

    Examples
    --------
    >>> effect_of("an abacus", "A100").factor
    1.0
    """
    name = pool_of(setting)
    fitted = fitted_effects().get(name)
    if fitted is None or not device:
        return NO_EFFECT
    levels = levels_of(setting, device, network, version)
    parts, starting = [], None
    for group in fitted["groups"]:
        if group not in levels or not (machine or group not in _ABOUT_THE_MACHINE):
            continue
        value = _level_effect(fitted, group, levels[group])[0]
        if group == "host":
            starting = min(max(math.exp(value), 1 / MOST), MOST)
        elif value:
            parts.append((f"{group}: {levels[group]}", math.exp(value)))
    whole = min(max(math.prod(factor for _, factor in parts), 1 / MOST), MOST)
    return Effect(whole, tuple(parts), starting)


def _level_effect(fitted: Mapping[str, Any], group: str, level: str) -> tuple[float, int]:
    """Return the effect of a level, and the sweeps that it was measured in; an effect too small to keep is zero."""
    level_effect = fitted["groups"][group]["levels"].get(level, 0)
    return (0.0, level_effect) if isinstance(level_effect, int) else (level_effect[0], level_effect[1])


def curves_of(setting: str) -> Mapping[str, list[float]]:
    """Return the knot values of each curve of a setting's pool; empty if it has none."""
    curves: Mapping[str, list[float]] = fitted_effects().get(pool_of(setting), {}).get("curves", {})
    return curves


def spread(groups: Mapping[str, Any], rest: float, counts: Iterable[tuple[str, int]]) -> float:
    """Return the expected error of an estimate: one standard deviation of the logarithm of time.

    Parameters
    ----------
    groups
        Grouping factors, each with its variance under ``"variance"``.
    rest
        Variance between and within sweeps.
    counts
        Sweeps to which each level was fitted: more sweeps leave less uncertainty.
    """
    open_ = 0.0
    for group, number in counts:
        variance = groups[group]["variance"]
        share = PART_OF_A_CALL if group in ("memory", "host") else 1.0
        open_ += share * variance * rest / (rest + number * variance)
    return math.sqrt(rest + open_)


def spread_of(setting: str, device: str = "", network: str = "", version: str = "") -> tuple[float, tuple[str, ...]]:
    """Return the expected error of an estimate, and its groups that were never measured.

    ``USUAL`` for settings without a pool.
    """
    name = pool_of(setting)
    fitted = fitted_effects().get(name)
    if fitted is None:
        return USUAL, ()
    levels = levels_of(setting, device, network, version)
    counts = []
    for group in fitted["groups"]:
        counts.append((group, _level_effect(fitted, group, levels.get(group, ""))[1]))
    unseen = tuple(group for group, number in counts if not number)
    return spread(fitted["groups"], fitted["rest"], counts), unseen
