"""Keys of the fitted ranges: kinds of work, and the classes of machine that a setting is divided by."""

import re
from functools import lru_cache

from mlsys.workloads.operator import NETWORK

# Consumer cards, by name: their drivers and power limits differ from those of data-centre cards.
_CONSUMER = re.compile(r"GeForce|GTX|TITAN|RTX \d{4}\b|Radeon RX")
# Separator between a kind of work and the setting that runs it, where a setting runs several kinds.
OF_WORK = " by "


def work_of_network(kind: str, setting: str) -> str:
    """Return the kind of work of one pass of a network, as measurements are grouped by it.

    Parameters
    ----------
    kind
        As :attr:`mlsys.workloads.Network.kind`.
    setting
        Software that runs it.

    Examples
    --------
    >>> work_of_network("llm decode", "compiled llm decode on GPU"), work_of_network("network", "ncnn network on CPU")
    ('llm decode', 'network inference')
    >>> work_of_network("network", "microcontroller runtime on MCU")
    'mcu inference'
    """
    if kind != NETWORK:
        return kind
    if "microcontroller" in setting or setting.endswith(" on MCU"):
        return "mcu inference"
    return "transformer" if " transformer on " in setting else "network inference"


def work_on(work: str, setting: str, device: str) -> str:
    """Return the key of the factor for unknown sources, of a kind of work on a class of machine.

    Examples
    --------
    >>> work_on("gemm", "library gemm on GPU", "RTX_4090"), work_on("training", "eager training on GPU", "A100")
    ('gemm on consumer GPU', 'training on GPU')
    """
    return f"{work} on {setting_on(setting, device).rpartition(' on ')[2]}"


@lru_cache(maxsize=512)
def setting_on(setting: str, device: str) -> str:
    """Return the setting of the interval, which separates consumer cards and the CPUs of phones and boards.

    Examples
    --------
    >>> setting_on("stream on GPU", "RTX_4090"), setting_on("stream on GPU", "A100")
    ('stream on consumer GPU', 'stream on GPU')
    >>> setting_on("ncnn network on CPU", "RaspberryPi5")
    'ncnn network on small CPU'
    """
    from mlsys.errors import UnknownNameError
    from mlsys.hardware import Hardware

    if not device or not setting.endswith((" on GPU", " on CPU")):
        return setting
    try:
        name, group = Hardware[device].name, Hardware.class_of(device)
    except UnknownNameError:
        return setting
    if setting.endswith(" on CPU"):
        return setting.replace(" on CPU", " on small CPU") if group in ("Mobile", "Edge", "Tiny") else setting
    return setting.replace(" on GPU", " on consumer GPU") if _CONSUMER.search(name) else setting


def work_in(work: str, setting: str) -> str:
    """Return the key of the interval of one kind of work, for a setting that runs several."""
    return f"{work}{OF_WORK}{setting}"
