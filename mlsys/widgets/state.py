"""What a lab remembers, as a plain JSON file: the prediction, the sliders, the answers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

__all__ = ["VERSION", "LabStateError", "check_state", "read_state", "write_state"]

VERSION = 1
"""Version of the form below; a file of another version is refused."""

_PARTS = {"lab": str, "version": int, "prediction": dict, "controls": dict, "answers": dict}


class Accepts(Protocol):
    """Anything that knows its own values: a control, a question."""

    def accepts(self, value: Any, /) -> bool:
        """Whether ``value`` is one of them."""


class LabStateError(ValueError):
    """A saved state cannot be restored; the lab is left as it was."""


def write_state(state: Mapping[str, Any], path: str | Path) -> Path:
    """Write a state; a file that was there is replaced whole or not at all."""
    target = Path(path)
    draft = target.with_name(target.name + ".part")
    draft.write_text(json.dumps(state, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(draft, target)
    return target


def read_state(source: Mapping[str, Any] | str | Path, lab: str) -> dict[str, Any]:
    """Return a state of the lab ``lab`` from a file or a dictionary, checked as far as its form goes.

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
        raise LabStateError(f"{where} belongs to the lab {data['lab']!r}, this is {lab!r}. Restore it there")
    if data["version"] != VERSION:
        raise LabStateError(
            f"{where} has version {data['version']} of the state, this mlsys reads version {VERSION}. "
            "Answer anew, or install the mlsys that wrote it"
        )
    unknown = sorted(set(data) - set(_PARTS))
    if unknown:
        raise LabStateError(f"{where} has unknown parts: {', '.join(map(repr, unknown))}")
    return data


def check_state(
    data: Mapping[str, Any], controls: Mapping[str, Accepts], questions: Mapping[str, Accepts], prediction: Accepts
) -> None:
    """Refuse a state with anything in it that this lab could not show.

    Raises
    ------
    LabStateError
        If a part is missing, unknown, or has a value that the lab does not offer.
    """
    for part, known in (("controls", controls), ("answers", questions)):
        if set(data[part]) != set(known):
            wrong = ", ".join(sorted(map(repr, set(data[part]) ^ set(known))))
            raise LabStateError(f"`{part}` of the state do not match this lab: {wrong} missing or unknown")
    for name, value in data["controls"].items():
        if not controls[name].accepts(value):
            raise LabStateError(f"`controls.{name}` cannot be {value!r}: the lab does not offer it")
    for name, answer in data["answers"].items():
        _check_answer(f"answers.{name}", answer, questions[name], "tries")
    _check_answer("prediction", data["prediction"], prediction, "locked")


def _check_answer(where: str, answer: Any, question: Accepts, flag: str) -> None:
    if not isinstance(answer, dict) or set(answer) != {"given", flag}:
        raise LabStateError(f"`{where}` must hold `given` and `{flag}`, got {answer!r}")
    given, done = answer["given"], answer[flag]
    if flag == "tries" and (isinstance(done, bool) or not isinstance(done, int) or done < 0):
        raise LabStateError(f"`{where}.tries` must be a whole number of 0 or more, got {done!r}")
    if flag == "locked" and not isinstance(done, bool):
        raise LabStateError(f"`{where}.locked` must be true or false, got {done!r}")
    if given is not None and not question.accepts(given):
        raise LabStateError(f"`{where}.given` cannot be {given!r}: the question does not offer it")
    if bool(done) != (given is not None):
        raise LabStateError(f"`{where}`: `given` is {given!r} but `{flag}` is {done!r}; they contradict each other")


def _load(source: Mapping[str, Any] | str | Path) -> tuple[str, Any]:
    if isinstance(source, Mapping):
        return "the given state", dict(source)
    path = Path(source)
    try:
        return path.name, json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise LabStateError(
            f"there is no file {path.name!r}. Save a state first, with the button or lab.save()"
        ) from None
    except OSError as error:
        raise LabStateError(f"{path.name} cannot be read: {error.strerror or error}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise LabStateError(f"{path.name} is not JSON ({error}). Save a new one with lab.save()") from None


_NAMES = {str: "text", int: "a whole number", dict: "a set of named values", list: "a list", float: "a number"}


def _kind(value: Any) -> str:
    return "nothing" if value is None else "true or false" if isinstance(value, bool) else _NAMES.get(type(value), "?")
