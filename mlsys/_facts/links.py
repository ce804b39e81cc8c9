"""Links between chips and machines, one direction, as the standard defines them."""

from __future__ import annotations

from mlsys._facts.make import Derived, fact
from mlsys.units import Quantity

__all__ = ["DERIVED", "FACTS"]


def _pcie(value: float, generation: int, rate: int, revision: str, date: str) -> Quantity:
    return fact(
        value,
        "GB/s",
        name=f"PCIE_GEN{generation}_BW",
        meaning=f"PCI Express {revision}, 16 lanes, one direction: {rate} GT/s per lane after 128b/130b encoding,"
        f" before packet headers. The customary {2 * rate} GB/s leaves the encoding out",
        source=f"PCI-SIG, PCI Express Base Specification, revision {revision}",
        date=date,
        confidence="secondary",
    )


def _infiniband(value: float, speed: str, lane: int, date: str) -> Quantity:
    return fact(
        value,
        "GB/s",
        name=f"INFINIBAND_{speed}_BW",
        meaning=f"InfiniBand {speed}, a port of 4 lanes, one direction: {4 * lane} Gbit/s, before packet headers",
        source=f"InfiniBand Trade Association, InfiniBand Architecture Specification: {lane} Gbit/s per lane",
        date=date,
        confidence="secondary",
    )


FACTS = (
    _pcie(15.75, 3, 8, "3.0", "2010-11"),
    _pcie(31.5, 4, 16, "4.0", "2017-10"),
    _pcie(63.0, 5, 32, "5.0", "2019-05"),
    _infiniband(25.0, "HDR", 50, "2017"),
    _infiniband(50.0, "NDR", 100, "2020"),
)

DERIVED: tuple[Derived, ...] = ()
