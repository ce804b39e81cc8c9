"""What each lab asks a student and how an answer is marked, with the changes of an answer key."""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.faults import is_number, short
from mlsys.inputs import read_text, yaml_of

__all__ = ["DESIGN_POINTS", "Item", "Key", "Marker", "check_key", "read_key", "with_key"]

DESIGN_POINTS = 3.0
"""Points of a design task; a question or a claim has one."""

Marker = Callable[[str, str], Sequence["Item"]]
"""What a lab asks a student: the name of the lab and of the student lead to the items."""


@dataclass(frozen=True)
class Item:
    """One question, claim or design task as one student got it.

    Attributes
    ----------
    id
        Its name in the hand-in.
    part
        ``"questions"``, ``"claims"`` or ``"design"``.
    prompt, answer, solution
        The question, the right answer and its explanation, in words.
    mark
        Returns the score of an answer, from 0 to 1, and what to say about it.
    points
        What it counts.
    """

    id: str
    part: str
    prompt: str
    answer: str
    solution: str
    mark: Callable[[Any], tuple[float, str]]
    points: float = 1.0


Key = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Changes by lab and item: ``accept`` (answers that count as well), ``tolerance``, ``points``, ``drop``."""

_CHANGES = {"accept", "points", "drop", "tolerance", "answer"}


def read_key(path: str | Path) -> Key:
    """Return the changes that an answer key makes, from a YAML file.

    For each lab and item it may say ``answer`` (the one right answer instead of the computed one), ``accept`` (a list
    of answers that are right as well), ``tolerance`` (relative, of a number), ``points`` and ``drop: true``.

    Raises
    ------
    ArgumentError
        If it is not such a file.
    """
    import yaml

    try:
        data = yaml_of(read_text(path, 1_000_000))
    except yaml.YAMLError as error:
        raise ArgumentError(f"{path}: not readable as YAML ({str(error).splitlines()[0]})") from None
    except RecursionError:
        raise ArgumentError(f"{path}: nested too deeply") from None
    if not isinstance(data, dict):
        raise ArgumentError(f"{path}: must map labs to items, as in `01-amdahl: {{profile: {{accept: [88]}}}}`")
    for lab, items in data.items():
        for item, changes in _mapping(items, f"{path}: {lab}").items():
            for name, value in _mapping(changes, f"{path}: {lab}.{item}").items():
                if name not in _CHANGES:
                    raise ArgumentError(
                        f"{path}: {lab}.{item}: unknown key {name!r}.{did_you_mean(name, _CHANGES)} "
                        f"Known: {', '.join(sorted(_CHANGES))}"
                    )
                _check_change(f"{path}: {lab}.{item}.{name}", str(name), value)
    return {str(lab): {str(item): change for item, change in items.items()} for lab, items in data.items()}


def _mapping(value: object, where: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise ArgumentError(f"{where}: must be a mapping, got {short(value)}")
    return value


def _check_change(where: str, name: str, value: object) -> None:
    if name == "accept" and not isinstance(value, list):
        raise ArgumentError(f"{where}: must be a list of answers, got {short(value)}")
    if name == "drop" and not isinstance(value, bool):
        raise ArgumentError(f"{where}: must be true or false, got {short(value)}")
    if name in ("points", "tolerance") and not (is_number(value) and 0 <= float(str(value)) <= 1000):
        raise ArgumentError(f"{where}: must be a number from 0 to 1000, got {short(value)}")


def check_key(known: Collection[str], changes: Mapping[str, Mapping[str, Any]], lab: str) -> None:
    """Raise an error if an answer key names an item that a lab asks of no student.

    Parameters
    ----------
    known
        Names of the items.
    changes
        Of this lab, by item.
    lab
        Its name, for the message.

    Raises
    ------
    UnknownNameError
        If there is no such item.
    """
    for name in changes:
        if name not in known:
            raise UnknownNameError(
                f"the answer key names {name!r}, which lab {lab} does not ask.{did_you_mean(name, known)}"
            )


def with_key(items: Sequence[Item], changes: Mapping[str, Mapping[str, Any]]) -> tuple[Item, ...]:
    """Return the items of one student with the changes of an answer key; changes of other items do nothing.

    Parameters
    ----------
    items
        What the lab asks.
    changes
        Of this lab, by item.

    Examples
    --------
    >>> item = Item("gain", "questions", "How much?", "8", "", lambda answer: (float(answer == 8), ""))
    >>> changed, = with_key([item], {"gain": {"accept": [9]}})
    >>> changed.mark(9)[0], changed.mark(10)[0]
    (1.0, 0.0)
    """
    kept = []
    for item in items:
        change = changes.get(item.id, {})
        if change.get("drop"):
            continue
        if {"answer", "accept"} & set(change):
            mark = functools.partial(_accepting, item.mark, change)
            item = replace(item, mark=mark, answer=str(change.get("answer", item.answer)))
        kept.append(replace(item, points=float(change.get("points", item.points))))
    return tuple(kept)


def _accepting(
    mark: Callable[[Any], tuple[float, str]], change: Mapping[str, Any], answer: object
) -> tuple[float, str]:
    right = [*change.get("accept", ()), *([change["answer"]] if "answer" in change else [])]
    if any(_same(answer, each, float(change.get("tolerance", 0.02))) for each in right):
        return 1.0, "Accepted by the answer key."
    return mark(answer) if "answer" not in change else (0.0, "")


def _same(answer: object, right: object, tolerance: float) -> bool:
    if isinstance(answer, (int, float)) and isinstance(right, (int, float)) and is_number(answer):
        return abs(answer - right) <= tolerance * abs(right)
    return type(answer) is type(right) and answer == right
