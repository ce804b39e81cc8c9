"""Whose numbers an answer rests on: devices, changed facts and calibrations that the reader brought."""

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any

_KEY = "own_numbers"


def own_numbers(
    twins: Iterable[Any] | None = None, *, estimates: bool = False, asked: Collection[str] = ()
) -> tuple[str, ...]:
    """Return a sentence for everything that stands in for a number of the catalogue.

    Parameters
    ----------
    twins
        The devices of the answer; None for all.
    estimates
        Whether the answer has estimates, which a calibration changes.
    asked
        The settings that they were asked in; none where that is not known.

    Examples
    --------
    >>> own_numbers()
    ()
    """
    from mlsys.hardware import Hardware
    from mlsys.models.estimate.library import CALIBRATION
    from mlsys.provenance import active_whatifs

    ids = None if twins is None else {twin.id for twin in twins}
    told = [
        f"{name} is as {origin} has it, not as the catalogue" if replaced else f"{name} is from {origin}"
        for name, (origin, replaced) in sorted(Hardware.own.items())
        if ids is None or name in ids
    ]
    told += [f"{fact} is multiplied by {factor:g} (MLSYS_PERTURB)" for fact, factor in active_whatifs()]
    file = os.environ.get(CALIBRATION, "")
    if estimates and file:
        told.append(_of_calibration(file, ids, asked))
    return tuple(told)


def _of_calibration(file: str, ids: set[str] | None, asked: Collection[str]) -> str:
    """Return what a calibration file does for the devices of an answer, or why it does nothing."""
    from mlsys.errors import UnknownNameError, did_you_mean
    from mlsys.hardware import Hardware
    from mlsys.models.estimate.library import calibrated_device, fitted

    device, settings = calibrated_device()
    try:
        twin = Hardware[device].id
    except UnknownNameError:
        known = [name for group in (*Hardware.groups, Hardware.Generic) for name in dir(group)]
        return f"{file} is not used: there is no twin {device[:80]!r}.{did_you_mean(device, known)}"
    if twin != device:
        return f"{file} is not used: it is of {device!r}. Write the twin's own name into it, device: {twin}"
    if ids is not None and device not in ids:
        return f"{file} is not used: it is of {device}, which is no device of this answer"
    strange = [setting for setting in settings if setting not in fitted()]
    if strange:
        return f"{file} is used in part: no estimate knows the settings {', '.join(map(repr, strange))[:200]}"
    if asked and not set(settings) & set(asked):
        return f"{file} is not used: it measured {', '.join(settings)}, and this is {', '.join(dict.fromkeys(asked))}"
    return f"estimates of {device} are calibrated by {file}, of what it measured: {', '.join(settings)}"


def with_own(answer: Any, own: Sequence[str]) -> Any:
    """Return the data of an answer, each record of it with whose numbers it rests on; as it is where all are ours.

    Examples
    --------
    >>> with_own([{"a": 1}], ["a is from mine.yaml"])
    [{'a': 1, 'own_numbers': 'a is from mine.yaml'}]
    """
    if not own:
        return answer
    if isinstance(answer, dict):
        return {**answer, _KEY: "; ".join(own)}
    return [{**record, _KEY: "; ".join(own)} for record in answer]
