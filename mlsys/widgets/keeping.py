"""What a reader did in a lab: saved, restored, and handed in."""

import html
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlsys.labs.design import Design
from mlsys.labs.draw import Draw, same_student
from mlsys.labs.handin import HandIn
from mlsys.labs.questions import Question
from mlsys.widgets import parts
from mlsys.widgets.box import QuestionBox, now
from mlsys.widgets.design_box import DesignBox
from mlsys.widgets.progress import Progress, place_here
from mlsys.widgets.state import VERSION, LabStateError, check_state, read_state, write_state
from mlsys.widgets.wrapup import WrapUpBox


class KeepsWork(ABC):
    """The part of a lab that keeps the reader's work.

    Attributes
    ----------
    draw
        What is drawn from the student's name.
    started, locked
        Time of the first answer, and whether a prediction is locked.
    measurements
        What was measured on the reader's machine, by name.
    """

    id: str
    draw: Draw
    started: str
    locked: bool
    measurements: dict[str, Any]
    controls: dict[str, parts.Control]
    boxes: dict[str, QuestionBox]
    design_boxes: dict[str, DesignBox]
    questions: dict[str, Question]
    designs: dict[str, Design]
    prediction: Question
    progress: Progress
    message: Any
    where: Any
    field: Any
    wrap: WrapUpBox
    _given_student: str
    _predicted: Any

    @abstractmethod
    def _draw(self, student: str) -> str:
        """Draw the questions of a student, and return the name as it is kept."""

    @abstractmethod
    def _pose(self, student: str) -> None:
        """Show the questions that were drawn."""

    @abstractmethod
    def _open(self, locked: bool) -> None:
        """Open or close what a locked prediction opens."""

    @abstractmethod
    def _set(self, values: Mapping[str, Any]) -> None:
        """Set controls, and redraw once."""

    @abstractmethod
    def _restored(self) -> None:
        """Show again what came back with a state."""

    @property
    def student(self) -> str:
        """Name or id of the student whose numbers the questions have; empty for the printed ones."""
        return self.draw.student

    # --- handing in ----------------------------------------------------------------

    def work(self) -> HandIn:
        """Return what is handed in now."""
        answers = {name: box.answer() for name, box in self.boxes.items()}
        designs = {name: answer for name, box in self.design_boxes.items() if (answer := box.answer()) is not None}
        time = now()
        return HandIn(
            self.draw.lab,
            self.student,
            self.draw.seed,
            self.started or time,
            time,
            questions={name: answer for name, answer in answers.items() if self.questions[name].in_app},
            claims={name: answer for name, answer in answers.items() if not self.questions[name].in_app},
            design=designs,
            measurements=dict(self.measurements),
        )

    def missing(self) -> str:
        """Return in words what is not answered yet; empty when nothing is missing."""
        left = [box.question.in_app for box in self.boxes.values() if not box.answered]
        designs = sum(box.choice is None for box in self.design_boxes.values())
        reasons = sum(not box.reason.value.strip() for box in self.design_boxes.values())
        counts = ((sum(left), "question"), (len(left) - sum(left), "claim"), (designs, "design"), (reasons, "reason"))
        words = [f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts if count]
        return ", ".join(["the prediction", *words] if not self.locked else words)

    def keep_measurement(self, name: str, record: dict[str, Any]) -> None:
        """Keep what was measured on the reader's machine, to be handed in."""
        self.measurements[name] = {"at": now(), **record}
        self._keep()

    # --- keeping -------------------------------------------------------------------

    @property
    def file(self) -> Path:
        """The state file, beside the notebook."""
        return Path(f"{self.id}.state.json")

    def state(self) -> dict[str, Any]:
        """Return the reader's work as plain data."""
        return {
            "lab": self.id,
            "version": VERSION,
            "student": self.student,
            "started": self.started,
            "prediction": {"given": self._predicted, "locked": self.locked},
            "controls": {name: control.value for name, control in self.controls.items()},
            "answers": {name: box.state() for name, box in self.boxes.items()},
            "designs": {name: box.state() for name, box in self.design_boxes.items()},
            "measurements": dict(self.measurements),
        }

    def save(self, path: str | Path | None = None) -> Path:
        """Write the state to a JSON file, by default ``<id>.state.json`` beside the notebook."""
        return write_state(self.state(), path or self.file)

    def restore(self, source: Mapping[str, Any] | str | Path | None = None) -> None:
        """Restore a state from a file or a dictionary.

        Raises
        ------
        LabStateError
            If it is not a state of this lab; the lab is then left unchanged.
        """
        data = read_state(self.file if source is None else source, self.id)
        before, student = self.student, data["student"]
        if same_student(self._given_student) not in ("", same_student(student)):
            raise LabStateError(f"it is the work of {student!r}, and this lab that of {self._given_student!r}")
        self._draw(student)
        try:
            check_state(data, self.controls, self.questions, self.designs, self.prediction)
        except LabStateError:
            self._draw(before)
            raise
        self.started, self.measurements = data["started"], dict(data["measurements"])
        self.locked = False
        self._pose(student)
        self._predicted = data["prediction"]["given"]
        self.field.value = self.prediction.shown(self._predicted)
        for name, answer in data["answers"].items():
            self.boxes[name].restore(answer)
        for name, design in data["designs"].items():
            self.design_boxes[name].restore(design)
        self.wrap.open = False
        self._restored()
        self._open(data["prediction"]["locked"])
        self._set(data["controls"])

    def _keep(self, *, by_hand: bool = False) -> None:
        progress = self.progress
        if by_hand and progress.kept_in == "nowhere":
            progress = Progress(self.id, "file")
            progress.take_over()
        try:
            reported, kind = progress.keep(self.state(), by_hand=by_hand), "note"
        except (OSError, LabStateError) as error:
            reported, kind = f"Not saved: {getattr(error, 'strerror', None) or error}.", "wrong"
        shown = (
            parts.live_note(kind, reported) if by_hand or kind == "wrong" or progress.conflict else f"<p>{reported}</p>"
        )
        if reported and self.message.value != shown:
            self.message.value = shown

    def _restore_clicked(self) -> None:
        try:
            self.restore((self.progress.recall() or self.state()) if self.progress.kept_in == "memory" else None)
        except LabStateError as error:
            self.message.value = parts.live_note("wrong", f"Not restored: {error}.")
        else:
            self.progress.take_over()
            self.message.value = parts.live_note("note", f"Restored from {self.file.name}.")

    def _start_afresh(self) -> None:
        """Reset the lab; the saved state is kept until the next prediction is locked."""
        fresh: Any = type(self)
        self.restore(fresh(self.student).state())
        self.message.value = parts.live_note(
            "note", "Started afresh. Until you lock a prediction, Restore takes you back."
        )

    def _resume(self) -> None:
        """Restore the saved state when the cell is run again or the notebook is reopened."""
        self.progress = Progress(self.id, place_here())
        self.where.value = f"<p>{html.escape(self.progress.where())}</p>"
        try:
            kept = self.progress.recall()
            if kept is None:
                return
            self.restore(kept)
        except LabStateError as error:
            self.progress.conflict = True
            self.message.value = parts.live_note("wrong", f"Your earlier work was not restored: {error}.")
        else:
            self.message.value = "<p>Your earlier work is back. Start afresh empties the lab.</p>"
