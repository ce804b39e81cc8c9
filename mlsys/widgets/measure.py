"""A button that runs a measurement on the reader's machine, in a subprocess that can be stopped."""

import html
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets

from mlsys.widgets import parts

_LOOK_EVERY = 0.25  # s


class MeasureHere:
    """Runner of a command that prints JSON, with elapsed time, a stop button and a time limit.

    Parameters
    ----------
    command
        Called at each press of the button; returns the command and its arguments.
    summarize
        Function from the command's JSON to the sentence that is shown.
    limit
        Seconds after which it is stopped.
    then
        Called with the command's JSON after a successful measurement, before its sentence is shown.
    start_message
        Message at the start.
    """

    def __init__(
        self,
        command: Callable[[], Sequence[str]],
        summarize: Callable[[dict[str, Any]], str],
        limit: float = 120.0,
        then: Callable[[dict[str, Any]], None] = lambda record: None,
        start_message: str = "Started. A compiler and two timings take some tens of seconds.",
    ) -> None:
        self._command, self._summarize, self._limit, self._then, self._start_message = (
            command,
            summarize,
            limit,
            then,
            start_message,
        )
        self._process: subprocess.Popen[str] | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.start_button = parts.button("Measure on this machine", "primary")
        self.stop_button = parts.button("Stop")
        self.stop_button.disabled = True
        self.message = ipywidgets.HTML("")
        self.start_button.on_click(lambda _: self.start())
        self.stop_button.on_click(lambda _: self.stop())
        self.view = ipywidgets.VBox([ipywidgets.HBox([self.start_button, self.stop_button]), self.message])
        self.view.add_class("mlsys-measure")

    @property
    def running(self) -> bool:
        """Whether a measurement is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start a measurement unless one is running; return immediately."""
        if self.running:
            return
        self._stopped.clear()
        self.start_button.disabled, self.stop_button.disabled = True, False
        self._say("note", self._start_message)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop a running measurement."""
        self._stopped.set()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()

    def wait(self) -> None:
        """Wait until the measurement has ended."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            kind, words = self._outcome(list(self._command()))
        except (OSError, ValueError) as error:
            kind, words = "wrong", f"It could not be measured: {error}."
        self._process = None
        self._say(kind, words)
        self.start_button.disabled, self.stop_button.disabled = False, True

    def _outcome(self, command: list[str]) -> tuple[str, str]:
        started = time.monotonic()
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not self._stopped.is_set():
            try:
                out, err = self._process.communicate(timeout=_LOOK_EVERY)
            except subprocess.TimeoutExpired:
                taken = time.monotonic() - started
                if taken > self._limit:
                    self._process.kill()
                    self._process.communicate()
                    return "wrong", f"Stopped after {self._limit:.0f} s: this machine is too slow or too busy for it."
                # Not spoken at every step: a screen reader would never be silent.
                self.message.value = f"<p>Measuring, {taken:.0f} s of at most {self._limit:.0f} s …</p>"
                continue
            if self._stopped.is_set():
                break
            if self._process.returncode:
                return "wrong", _last_line(err)
            record = json.loads(out)
            reported = self._summarize(record)
            self._then(record)
            return "right", reported
        self._process.kill()
        self._process.communicate()
        return "note", "Stopped. Nothing was kept."

    def _say(self, kind: str, words: str) -> None:
        self.message.value = parts.live_note(kind, words)


def _last_line(text: str) -> str:
    """Return the error message of a command, without its traceback."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return html.unescape(lines[-1].removeprefix("Error: ")) if lines else "The measurement ended without a word."


def this_python(*arguments: str) -> list[str]:
    """Return a command that runs ``mlsys`` with the current Python."""
    return [sys.executable, "-m", "mlsys", *arguments]
