"""The saved state of a lab as a JSON file: prediction, sliders and answers."""

import json
import reprlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from mlsys.files import write_text

VERSION = 3
"""Version of the file format; files of other versions are refused."""

_PARTS = {
    "lab": str, "version": int, "student": str, "started": str, "prediction": dict, "controls": dict, "answers": dict,
    "designs": dict, "measurements": dict,
}  # fmt: skip
_MOST_BYTES = 1_000_000
_MOST_LETTERS = 10_000


class Accepts(Protocol):
    """Protocol of objects that can check a value: controls and questions."""

    def accepts(self, value: object, /) -> bool:
        """Return whether ``value`` is acceptable."""


class LabStateError(ValueError):
    """A saved state cannot be restored; the lab is left as it was."""


def state_text(state: Mapping[str, Any]) -> str:
    """Return a state as the text of its file."""
    return json.dumps(state, indent=2, ensure_ascii=False) + "\n"


def write_state(state: Mapping[str, Any], path: str | Path) -> Path:
    """Write a state atomically, and return the path."""
    return write_text(path, state_text(state))


def read_state(source: Mapping[str, Any] | str | Path, lab: str) -> dict[str, Any]:
    """Return a state of the lab ``lab`` from a file or a dictionary, with its format checked.

    Raises
    ------
    LabStateError
        If there is no such file, it is not JSON, or it is not a state of this lab.

    Examples
    --------
    >>> read_state({"lab": "lab-02-roofline"}, "lab-01-amdahl")
    Traceback (most recent call last):
        ...
    mlsys.widgets.state.LabStateError: the given state lacks version, student, started, \
prediction, controls, answers, designs, measurements. Save a new one with lab.save()
    """
    where, data = _load(source)
    if not isinstance(data, dict):
        raise LabStateError(f"{where} holds {_kind(data)}, not the state of a lab. Save a new one with lab.save()")
    missing = [part for part in _PARTS if part not in data]
    if missing:
        raise LabStateError(f"{where} lacks {', '.join(missing)}. Save a new one with lab.save()")
    for part, kind in _PARTS.items():
        if not isinstance(data[part], kind) or isinstance(data[part], bool):
            raise LabStateError(f"{where}: `{part}` must be {_NAMES[kind]}, got {_kind(data[part])}")
    if data["lab"] != lab:
        raise LabStateError(f"{where} belongs to the lab {_shown(data['lab'])}, this is {lab!r}. Restore it there")
    if data["version"] != VERSION:
        raise LabStateError(
            f"{where} has version {_shown(data['version'])} of the state, this mlsys reads version {VERSION}. "
            "Answer anew, or install the mlsys that wrote it"
        )
    unknown = sorted(map(_shown, set(data) - set(_PARTS)))
    if unknown:
        raise LabStateError(f"{where} has unknown parts: {', '.join(unknown)}")
    return data


def check_state(
    data: Mapping[str, Any],
    controls: Mapping[str, Accepts],
    questions: Mapping[str, Accepts],
    designs: Mapping[str, Accepts],
    prediction: Accepts,
) -> None:
    """Raise a LabStateError if a state contains anything that this lab cannot show.

    Raises
    ------
    LabStateError
        If a part is missing, unknown, or has a value that the lab does not offer.
    """
    for part, known in (("controls", controls), ("answers", questions), ("designs", designs)):
        if set(data[part]) != set(known):
            wrong = ", ".join(sorted(map(_shown, set(data[part]) ^ set(known))))
            raise LabStateError(f"`{part}` of the state do not match this lab: {wrong} missing or unknown")
    for name, value in data["controls"].items():
        if not controls[name].accepts(value):
            raise LabStateError(f"`controls.{name}` cannot be {_shown(value)}: the lab does not offer it")
    for name, answer in data["answers"].items():
        _check_answer(f"answers.{name}", answer, questions[name])
    for name, design in data["designs"].items():
        _check_design(f"designs.{name}", design, designs[name])
    _check_prediction(data["prediction"], prediction)
    if data["started"]:
        _check_time("started", data["started"])


def _held(where: str, value: Any, *names: str) -> None:
    if not isinstance(value, dict) or set(value) != set(names):
        raise LabStateError(f"`{where}` must hold {', '.join(f'`{name}`' for name in names)}, got {_shown(value)}")


def _check_answer(where: str, answer: Any, question: Accepts) -> None:
    _held(where, answer, "attempts", "shown")
    if not isinstance(answer["shown"], bool):
        raise LabStateError(f"`{where}.shown` must be true or false, got {_shown(answer['shown'])}")
    if not isinstance(answer["attempts"], list):
        raise LabStateError(f"`{where}.attempts` must be a list, got {_kind(answer['attempts'])}")
    for attempt in answer["attempts"]:
        _held(f"{where}.attempts", attempt, "at", "answer")
        _check_time(f"{where}.at", attempt["at"])
        if not question.accepts(attempt["answer"]):
            raise LabStateError(
                f"`{where}` cannot be answered by {_shown(attempt['answer'])}: the question does not offer it"
            )


def _check_design(where: str, design: Any, task: Accepts) -> None:
    _held(where, design, "choice", "reason")
    if not isinstance(design["reason"], str) or len(design["reason"]) > _MOST_LETTERS:
        raise LabStateError(f"`{where}.reason` must be a text of at most {_MOST_LETTERS:,} letters")
    if design["choice"] is not None and not task.accepts(design["choice"]):
        raise LabStateError(f"`{where}.choice` cannot be {_shown(design['choice'])}: the task does not offer it")


def _check_prediction(prediction: Any, question: Accepts) -> None:
    _held("prediction", prediction, "given", "locked")
    given, locked = prediction["given"], prediction["locked"]
    if not isinstance(locked, bool):
        raise LabStateError(f"`prediction.locked` must be true or false, got {_shown(locked)}")
    if given is not None and not question.accepts(given):
        raise LabStateError(f"`prediction.given` cannot be {_shown(given)}: the question does not offer it")
    if locked != (given is not None):
        raise LabStateError(
            f"`prediction`: `given` is {_shown(given)} but `locked` is {locked!r}; they contradict each other"
        )


def _check_time(where: str, text: Any) -> None:
    try:
        datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise LabStateError(f"`{where}` must be a time in ISO 8601, got {_shown(text)}") from None


def _load(source: Mapping[str, Any] | str | Path) -> tuple[str, Any]:
    if isinstance(source, Mapping):
        return "the given state", dict(source)
    path = Path(source)
    try:
        if path.exists() and not path.is_file():
            raise LabStateError(f"{path.name} is no file that can be read. Give the file that lab.save() wrote")
        if path.exists() and path.stat().st_size > _MOST_BYTES:
            raise LabStateError(f"{path.name} is larger than any state of a lab. Give the file that lab.save() wrote")
        return path.name, json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse, object_pairs_hook=_once)
    except FileNotFoundError:
        raise LabStateError(
            f"there is no file {path.name!r}. Save a state first, with the button or lab.save()"
        ) from None
    except OSError as error:
        raise LabStateError(f"{path.name} cannot be read: {error.strerror or error}") from None
    except LabStateError:
        raise
    except RecursionError:
        raise LabStateError(f"{path.name} is nested too deeply for a state. Save a new one with lab.save()") from None
    except ValueError as error:  # no JSON, no UTF-8, or a number of thousands of digits
        raise LabStateError(f"{path.name} is not JSON ({error}). Save a new one with lab.save()") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping from its pairs; duplicate keys raise an error, since they are ambiguous."""
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise LabStateError(f"the key {_shown(twice)} stands twice in one mapping. Save a new state with lab.save()")
    return record


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number")


_NAMES = {str: "text", int: "a whole number", dict: "a set of named values", list: "a list", float: "a number"}


def _kind(value: Any) -> str:
    return "nothing" if value is None else "true or false" if isinstance(value, bool) else _NAMES.get(type(value), "?")


def _shown(value: Any) -> str:
    """Return a value as it is written, shortened; a number of thousands of digits cannot be written."""
    try:
        return reprlib.repr(value)
    except (ValueError, RecursionError):
        return _kind(value)
