"""User overrides: devices, changed facts and calibrations from the user, in place of the catalogue's numbers."""

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any

_KEY = "user_overrides"


def user_overrides(
    devices: Iterable[Any] | None = None, *, estimates: bool = False, settings: Collection[str] = ()
) -> tuple[str, ...]:
    """Return one sentence for each number of the catalogue that the user has overridden.

    Parameters
    ----------
    devices
        Devices of the answer; None for all.
    estimates
        Whether the answer has estimates, which a calibration changes.
    settings
        Software settings of the estimates; empty if unknown.

    Examples
    --------
    >>> user_overrides()
    ()
    """
    from mlsys.hardware import Hardware
    from mlsys.models.estimate.library import CALIBRATION
    from mlsys.provenance import active_whatifs

    ids = None if devices is None else {device.id for device in devices}
    sentences = [
        f"{name} is defined by {origin}, not by the catalogue" if replaced else f"{name} is from {origin}"
        for name, (origin, replaced) in sorted(Hardware.user_files.items())
        if ids is None or name in ids
    ]
    sentences += [f"{fact} is multiplied by {factor:g} (MLSYS_PERTURB)" for fact, factor in active_whatifs()]
    file = os.environ.get(CALIBRATION, "")
    if estimates and file:
        sentences.append(_effect_of_calibration(file, ids, settings))
    return tuple(sentences)


def _effect_of_calibration(file: str, ids: set[str] | None, settings: Collection[str]) -> str:
    """Return a sentence on the effect of a calibration file on an answer, or on why it has none."""
    from mlsys.errors import UnknownNameError, did_you_mean
    from mlsys.hardware import Hardware
    from mlsys.models.estimate.library import calibrated_device, fitted

    device, calibrated = calibrated_device()
    try:
        known_id = Hardware[device].id
    except UnknownNameError:
        known = [name for group in (*Hardware.groups, Hardware.Generic) for name in dir(group)]
        return f"{file} is not used: unknown device {device[:80]!r}.{did_you_mean(device, known)}"
    if known_id != device:
        return f"{file} is not used: {device!r} is not an id of a device. Write device: {known_id} in the file"
    if ids is not None and device not in ids:
        return f"{file} is not used: it calibrates {device}, which is not a device of this answer"
    unknown = [setting for setting in calibrated if setting not in fitted()]
    if unknown:
        return f"{file} is used in part: unknown settings {', '.join(map(repr, unknown))[:200]}"
    if settings and not set(calibrated) & set(settings):
        wanted = ", ".join(dict.fromkeys(settings))
        return f"{file} is not used: it calibrates {', '.join(calibrated)}, and this answer is for {wanted}"
    return f"estimates for {device} are calibrated by {file}, for {', '.join(calibrated)}"


def with_user_overrides(answer: Any, overrides: Sequence[str]) -> Any:
    """Return the data of an answer with the user's overrides added to each record; unchanged if there are none.

    Examples
    --------
    >>> with_user_overrides([{"a": 1}], ["a is from mine.yaml"])
    [{'a': 1, 'user_overrides': 'a is from mine.yaml'}]
    """
    if not overrides:
        return answer
    if isinstance(answer, dict):
        return {**answer, _KEY: "; ".join(overrides)}
    return [{**record, _KEY: "; ".join(overrides)} for record in answer]
