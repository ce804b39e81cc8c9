"""The saved state of a lab as a JSON file: prediction, sliders and answers."""

import json
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from mlsys.files import write_text

VERSION = 2
"""Version of the file format; files of other versions are refused."""

_PARTS = {"lab": str, "version": int, "prediction": dict, "controls": dict, "answers": dict}
_MOST_BYTES = 1_000_000
_MOST_TRIES = 1_000_000


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
    mlsys.widgets.state.LabStateError: the given state lacks version, prediction, controls, answers. \
Save a new one with lab.save()
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
    data: Mapping[str, Any], controls: Mapping[str, Accepts], questions: Mapping[str, Accepts], prediction: Accepts
) -> None:
    """Raise a LabStateError if a state contains anything that this lab cannot show.

    Raises
    ------
    LabStateError
        If a part is missing, unknown, or has a value that the lab does not offer.
    """
    for part, known in (("controls", controls), ("answers", questions)):
        if set(data[part]) != set(known):
            wrong = ", ".join(sorted(map(_shown, set(data[part]) ^ set(known))))
            raise LabStateError(f"`{part}` of the state do not match this lab: {wrong} missing or unknown")
    for name, value in data["controls"].items():
        if not controls[name].accepts(value):
            raise LabStateError(f"`controls.{name}` cannot be {_shown(value)}: the lab does not offer it")
    for name, answer in data["answers"].items():
        _check_answer(f"answers.{name}", answer, questions[name], {"tries": int, "shown": bool})
    _check_answer("prediction", data["prediction"], prediction, {"locked": bool})


def _check_answer(where: str, answer: Any, question: Accepts, flags: Mapping[str, type]) -> None:
    if not isinstance(answer, dict) or set(answer) != {"given", *flags}:
        parts = ", ".join(f"`{name}`" for name in flags)
        raise LabStateError(f"`{where}` must hold `given` and {parts}, got {_shown(answer)}")
    given = answer["given"]
    for flag, kind in flags.items():
        value = answer[flag]
        if kind is bool and not isinstance(value, bool):
            raise LabStateError(f"`{where}.{flag}` must be true or false, got {_shown(value)}")
        if kind is int and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_TRIES):
            raise LabStateError(f"`{where}.{flag}` must be a whole number of 0 or more, got {_shown(value)}")
    if given is not None and not question.accepts(given):
        raise LabStateError(f"`{where}.given` cannot be {_shown(given)}: the question does not offer it")
    flag = next(iter(flags))
    if bool(answer[flag]) != (given is not None):
        raise LabStateError(
            f"`{where}`: `given` is {_shown(given)} but `{flag}` is {answer[flag]!r}; they contradict each other"
        )


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
    """Return a mapping from its pairs; which of two values of one key is meant nobody can know."""
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
