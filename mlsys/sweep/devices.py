"""Devices selected by the criteria of a specification."""

from collections.abc import Mapping
from typing import Any


def matching(entry: Mapping[str, Any]) -> list[str]:
    """Return the ids of the devices that meet the criteria of one entry."""
    from mlsys.hardware import Hardware
    from mlsys.hardware.find import find

    criteria = dict(entry)
    wanted = criteria.pop("class", None)
    everything = [*Hardware, *(Hardware.Generic if wanted else ())]
    chosen = [
        device for device in everything if wanted is None or Hardware.class_of(device.id).lower() == wanted.lower()
    ]
    # A vendor or kind may be absent in one class and present in another: then nothing matches, and no name is unknown.
    named = {key: criteria[key] for key in ("kind", "vendor") if key in criteria}
    find(Hardware, **named)
    present = [device for device in chosen if all(getattr(device, k).lower() == v.lower() for k, v in named.items())]
    return [device.id for device in find(present, **criteria)] if present else []
