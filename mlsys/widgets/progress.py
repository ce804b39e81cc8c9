"""Where the work in a lab is kept: a file beside the notebook, or the memory of this kernel."""

import hashlib
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from mlsys.widgets.state import LabStateError, read_state, state_text, write_state

Place = Literal["file", "memory", "nowhere"]
_PAUSE = 0.5
"""Seconds that a slider rests before its value is written."""
_MEMORY: dict[str, tuple[dict[str, Any], str | None]] = {}


def place_here() -> Place:
    """Return where work is kept: ``MLSYS_LAB_STATE`` if it is set, and otherwise a file.

    Voilà shows one folder to many readers: nothing is written there.
    """
    told = os.environ.get("MLSYS_LAB_STATE", "")
    if told in ("file", "memory", "nowhere"):
        return told  # type: ignore[return-value]
    shared = os.environ.get("VOILA_REQUEST_URL") or os.environ.get("SERVER_SOFTWARE", "").startswith("voila")
    return "memory" if shared else "file"


class Progress:
    """Keeps the state of one lab by itself, and never over the work of somebody else.

    Parameters
    ----------
    lab
        Name of the lab.
    kept_in
        ``"file"``: ``<lab>.state.json`` beside the notebook. ``"memory"``: as long as the kernel
        lives. ``"nowhere"``: not at all.
    """

    def __init__(self, lab: str, kept_in: Place) -> None:
        self.lab, self.kept_in = lab, kept_in
        self.file = Path(f"{lab}.state.json").absolute()
        self.conflict = False
        self._known: str | None = None  # digest of the file as this lab last saw it
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def recall(self) -> dict[str, Any] | None:
        """Return the state that was kept before; None where there is none.

        Raises
        ------
        LabStateError
            If there is a file, and it is no state of this lab. It is then not written over, except by hand.
        """
        if self.kept_in == "nowhere":
            return None
        kept, digest = _MEMORY.get(self.lab, (None, None))
        if self.kept_in == "memory":
            return kept
        current = self._digest()
        if current is None or (kept is not None and current == digest):
            self._known = current
            return kept if current is not None else None
        state = read_state(self.file, self.lab)
        self._known = current
        return state

    def keep(self, state: Mapping[str, Any], *, by_hand: bool = False) -> str:
        """Keep a state; return what is to be said about it.

        Raises
        ------
        OSError
            If the file cannot be written; the one that was there stays.
        """
        if self.kept_in == "nowhere":
            return ""
        with self._lock:
            self._stop()
            if self.kept_in == "memory":
                _MEMORY[self.lab] = (dict(state), None)
                return "Kept as long as this page is open."
            digest = self._digest()
            told_before, self.conflict = self.conflict, digest != self._known
            if self.conflict and not (by_hand and told_before):
                return (
                    f"Not saved: {self.file.name} holds other work, from another notebook perhaps. "
                    "Restore takes that over, Save my state puts this in its place."
                )
            write_state(state, self.file)
            self.conflict = False
            self._known = _digest(state_text(state).encode("utf-8"))
            _MEMORY[self.lab] = (dict(state), self._known)
            return f"Saved in {self.file.name}, beside this notebook."

    def keep_soon(self, keep: Callable[[], None]) -> None:
        """Call ``keep`` when a slider has come to rest."""
        if self.kept_in == "nowhere":
            return
        with self._lock:
            self._stop()
            self._timer = threading.Timer(_PAUSE, keep)
            self._timer.daemon = True
            self._timer.start()

    def take_over(self) -> None:
        """Take the file as it stands for one that this lab knows."""
        self._known, self.conflict = self._digest(), False

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _digest(self) -> str | None:
        try:
            return _digest(self.file.read_bytes()) if self.file.is_file() else None
        except OSError as error:
            raise LabStateError(f"{self.file.name} cannot be read: {error.strerror or error}") from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
