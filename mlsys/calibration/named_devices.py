"""Devices by the names that people and drivers use for them."""

import re
from functools import lru_cache

from mlsys.frozen import FrozenDict
from mlsys.hardware import Device, Hardware

# Board names of NVIDIA's driver.
_DRIVERS = {
    "NVIDIA A100-SXM4-80GB": "A100_80GB",
    "NVIDIA A100-SXM4-40GB": "A100_40GB",
    "NVIDIA A100-PCIE-40GB": "A100_40GB_PCIe",
    "NVIDIA H100 80GB HBM3": "H100_SXM",
    "NVIDIA GH200 480GB": "GH200",
}
_MAKERS = (
    "nvidia", "amd", "intel", "google", "apple", "qualcomm", "aws", "hisilicon", "rockchip", "mediatek", "huawei",
    "allwinner", "microsoft", "azure", "phytium", "loongson",
)  # fmt: skip


def _plain(name: str) -> str:
    makers = "|".join(_MAKERS)
    return re.sub(rf"[^a-z0-9]|{makers}|geforce|instinct|tesla|modelb", "", name.lower())


def _of_another_maker(name: str, device: Device) -> bool:
    """Return whether a name begins with another maker than the device's: NVIDIA's A16 is not Apple's."""
    own_maker = next((maker for maker in _MAKERS if name.lower().startswith(maker)), "")
    made = device.vendor.lower()
    same = {"aws": "amazon", "azure": "microsoft", "huawei": "hisilicon"}
    return (
        bool(own_maker)
        and own_maker not in made
        and same.get(own_maker, own_maker) not in made
        and made in "".join(_MAKERS)
    )


@lru_cache(maxsize=1)
def _known() -> FrozenDict[str, str]:
    return FrozenDict({_plain(spelling): device for spelling, device in Hardware.spellings()})


@lru_cache(maxsize=1024)
def device_named(name: str, *, cpu: bool = False) -> Device | None:
    """Return the device of the catalogue with the given name, or None.

    Parameters
    ----------
    name
        With or without its maker, capitals and punctuation; parts in parentheses may be omitted.
    cpu
        Whether the CPU cluster of a system on chip is meant.

    Examples
    --------
    >>> [device.id for name in ("nvidia l4", "Tesla T4") if (device := device_named(name))]
    ['L4', 'T4']
    >>> device_named("NVIDIA A100-SXM4-80GB").id  # as torch.cuda.get_device_name() says
    'A100_80GB'
    >>> device_named("NVIDIA A16")  # Apple's A16 is another maker's
    """
    if name in _DRIVERS:
        return Hardware[_DRIVERS[name]]
    spellings = [_plain(name), _plain(re.sub(r"\(.*?\)", "", name))]
    if cpu:
        spellings = [spelling + "cpu" for spelling in spellings] + spellings
    for spelling in spellings:
        device = Hardware[_known()[spelling]] if spelling in _known() else None
        if device is None or _of_another_maker(name, device):
            continue
        if not (cpu and device.kind in ("GPU", "NPU", "TPU")):
            return device
    return None
