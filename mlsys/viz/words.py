"""Formatting of numbers, percentages and device names in figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlsys.formatting import natural
from mlsys.units import Quantity

if TYPE_CHECKING:
    from mlsys.hardware.device import Device


def number(value: Quantity | float, digits: int = 3) -> str:
    """Return a number with about ``digits`` significant digits, without floating-point noise.

    Examples
    --------
    >>> number(20.000000000000018), number(16.8067)
    ('20', '16.8')
    """
    return natural(float(f"{float(getattr(value, 'magnitude', value)):.12g}"), digits)


def times(value: Quantity | float) -> str:
    """Return a factor, such as ``'16.8×'``."""
    return f"{number(value)}×"


def percent(value: Quantity | float, digits: int = 3) -> str:
    """Return a share in percent, such as ``'84.0%'``.

    Examples
    --------
    >>> percent(0.95), percent(1 / 3)
    ('95%', '33.3%')
    """
    return f"{number(100 * float(getattr(value, 'magnitude', value)), digits)}%"


def device_name(device: Device) -> str:
    """Return the short name of a device in the catalogue.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> device_name(Hardware.Cloud.A100)
    'A100'
    """
    return device.aliases[0] if device.aliases else device.id.replace("_", " ")
