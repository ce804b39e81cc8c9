"""Storage of a lab's state: a file beside the notebook, or the memory of the kernel."""

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from mlsys.widgets.state import LabStateError, read_state, state_text, write_state

Place = Literal["file", "memory", "nowhere"]
_PAUSE = 0.5
"""Idle time of a slider before its value is saved, s."""
_MEMORY: dict[str, tuple[dict[str, Any], str | None]] = {}


def place_here() -> Place:
    """Return where the state is kept: ``MLSYS_LAB_STATE`` if set, otherwise in a file.

    Under Voilà, which serves one folder to many readers, nothing is written.
    """
    setting = os.environ.get("MLSYS_LAB_STATE", "")
    if setting in ("file", "memory", "nowhere"):
        return setting  # type: ignore[return-value]
    shared = os.environ.get("VOILA_REQUEST_URL") or os.environ.get("SERVER_SOFTWARE", "").startswith("voila")
    return "memory" if shared else "file"


class Progress:
    """Automatic storage of one lab's state that never overwrites somebody else's work.

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

    def where(self) -> str:
        """Return where work is saved here, and how long it stays there."""
        if self.kept_in == "nowhere":
            return "Nothing is saved here: take your work along with Save my state."
        if self.kept_in == "memory":
            return "Your work is kept as long as this page is open, and is gone after that: hand in before you leave."
        saved = f"Your work saves itself in {self.file}"
        if "google.colab" in sys.modules:
            return f"{saved}, on a machine of Colab that is deleted when its session ends: hand in before you leave."
        if "BINDER_SERVICE_HOST" in os.environ or "BINDER_REF_URL" in os.environ:
            return f"{saved}, on a machine of Binder that is deleted when you leave: hand in before you do."
        return f"{saved}, and comes back when the cells are run again."

    def recall(self) -> dict[str, Any] | None:
        """Return the saved state, or None.

        Raises
        ------
        LabStateError
            If the file is not a state of this lab. It is then only overwritten on explicit request.
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
        """Save a state; return the message to show.

        Raises
        ------
        OSError
            If the file cannot be written; the existing one is kept.
        """
        if self.kept_in == "nowhere":
            return ""
        with self._lock:
            self._stop()
            if self.kept_in == "memory":
                _MEMORY[self.lab] = (dict(state), None)
                return "Kept as long as this page is open."
            digest = self._digest()
            reported_before, self.conflict = self.conflict, digest != self._known
            if self.conflict and not (by_hand and reported_before):
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
        """Call ``keep`` once the sliders are idle."""
        if self.kept_in == "nowhere":
            return
        with self._lock:
            self._stop()
            self._timer = threading.Timer(_PAUSE, keep)
            self._timer.daemon = True
            self._timer.start()

    def take_over(self) -> None:
        """Accept the current file as known to this lab."""
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
