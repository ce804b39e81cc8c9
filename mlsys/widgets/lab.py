"""The frame of every lab: purpose, predict, explore, check."""

from __future__ import annotations

import base64
import html
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ipywidgets

from mlsys.errors import UnknownNameError
from mlsys.viz.live import LiveFigure, image_tag
from mlsys.viz.views.view import SHARPNESS, Scene, View
from mlsys.widgets import parts
from mlsys.widgets.access import SCRIPT
from mlsys.widgets.questions import Question, QuestionBox, given_by, put_into
from mlsys.widgets.state import VERSION, LabStateError, check_state, read_state, write_state
from mlsys.widgets.static import INVITATION, lab_page, lab_text, question_page, widget_view

__all__ = ["Lab"]


class Lab:
    """A lab: the reader predicts, then moves sliders over a picture, then checks.

    A subclass names itself and says what to ask, what can be set, and what is drawn;
    it holds no physics. The sliders stay closed until a prediction is locked.

    Attributes
    ----------
    id, title, purpose
        Name of the lab (and of its state file), heading, and what it is for.
    scenario
        The controls that show the predicted situation, set when the prediction is locked.
    """

    id: str
    title: str
    purpose: str
    scenario: Mapping[str, Any]

    def __init__(self) -> None:
        self.prediction = self._prediction()
        self.controls = {control.name: control for control in self._controls()}
        self.questions = {question.name: question for question in self._questions()}
        self.locked = False
        self._predicted: Any = None
        self._quiet = False
        self._scene = self._make_scene()
        self._live = LiveFigure(self._scene.figure, self._scene.moving)
        self._size = tuple(round(side / SHARPNESS) for side in self._live.pixels)
        self.view: View
        self.png = b""
        self._build()
        self._open(False)
        self._redraw()

    # --- what a subclass says ------------------------------------------------------

    def _prediction(self) -> Question:
        raise NotImplementedError

    def _controls(self) -> tuple[parts.Control, ...]:
        raise NotImplementedError

    def _questions(self) -> tuple[Question, ...]:
        raise NotImplementedError

    def _make_scene(self) -> Scene:
        raise NotImplementedError

    def _parameters(self, **values: Any) -> dict[str, Any]:
        """Turn the values of the controls into the parameters of the scene."""
        return values

    # --- building ------------------------------------------------------------------

    def _build(self) -> None:
        self.field = self.prediction.widget()
        self.lock_button = parts.button("Lock in my prediction", "primary")
        self.lock_button.on_click(lambda _: self.lock())
        self.lock_button.add_class("mlsys-lock")
        self.comparison = ipywidgets.HTML("")
        predict = ipywidgets.VBox(
            [parts.text(f"<p>{html.escape(self.prediction.prompt)}</p>"), self.field, self.lock_button, self.comparison]
        )
        predict.add_class("mlsys-predict")
        self.picture = ipywidgets.HTML()
        self.picture.add_class("mlsys-picture")
        self.summary = ipywidgets.HTML()
        self.summary.add_class("mlsys-summary")
        in_app = [question for question in self.questions.values() if question.in_app]
        numbers = {question.name: f"{place}." for place, question in enumerate(in_app, start=1)}
        self.boxes = {name: QuestionBox(q, numbers.get(name, "")) for name, q in self.questions.items()}
        self.hint = ipywidgets.HTML()
        for control in self.controls.values():
            control.widget.observe(self._changed, names="value")
        self.root = ipywidgets.VBox(
            [
                parts.style_sheet(),
                parts.heading("Purpose"),
                parts.text(f"<p>{html.escape(self.purpose)}</p>"),
                parts.heading("Predict"),
                predict,
                parts.heading("Explore"),
                self.hint,
                self._panel(),
                self.picture,
                self.summary,
                parts.heading("Check"),
                *(self.boxes[question.name].view for question in in_app),
                self._keeping(),
            ]
        )
        self.root.add_class("mlsys-lab")

    def _panel(self) -> Any:
        """Return the controls, in the order that every lab keeps."""
        groups = []
        for group in parts.GROUPS:
            members = [control.widget for control in self.controls.values() if control.group == group]
            if members:
                label = parts.text(f'<p class="mlsys-group">{group}</p>')
                groups.append(ipywidgets.VBox([label, *members], layout={"min_width": "0"}))
        columns = "repeat(auto-fit, minmax(22em, 1fr))"
        return ipywidgets.GridBox(groups, layout={"grid_template_columns": columns, "grid_gap": "0 2em"})

    def _keeping(self) -> Any:
        self.save_button = parts.button("Save my state")
        self.restore_button = parts.button("Restore")
        self.message = ipywidgets.HTML("")
        self.save_button.on_click(lambda _: self._save_clicked())
        self.restore_button.on_click(lambda _: self._restore_clicked())
        buttons = ipywidgets.HBox([self.save_button, self.restore_button])
        return ipywidgets.VBox([parts.heading("Keep your work"), buttons, self.message])

    # --- what happens --------------------------------------------------------------

    def lock(self) -> None:
        """Take the prediction as it stands, compare it, and open the sliders."""
        given = given_by(self.prediction, self.field)
        if given is None:
            self.comparison.value = parts.note("told", "Please answer first; a guess is enough.")
            return
        self._predicted = given
        self._open(True)
        self._set(self.scenario)

    def predict(self, given: Any) -> None:
        """Put in a prediction and lock it: what the button does, for scripts.

        Raises
        ------
        ValueError
            If ``given`` cannot be an answer.
        """
        if not self.prediction.accepts(given):
            listed = ", ".join(map(repr, self.prediction.listed()))
            raise ValueError(f"predict(): {given!r} is no answer. Give {'one of ' + listed if listed else 'a number'}")
        put_into(self.prediction, self.field, given)
        self.lock()

    def _open(self, locked: bool) -> None:
        """Show the lab before the prediction is locked, or after."""
        self.locked = locked
        self.field.disabled = self.lock_button.disabled = locked
        for control in self.controls.values():
            control.widget.disabled = not locked
        for box in self.boxes.values():
            box.enable(locked or not box.question.in_app)
        self.hint.value = "" if locked else "<p>The sliders open when your prediction is locked.</p>"
        self.comparison.value = parts.note("told", self.prediction.judge(self._predicted)[1]) if locked else ""

    def _set(self, values: Mapping[str, Any]) -> None:
        """Move several controls with one redraw."""
        self._quiet = True
        try:
            for name, value in values.items():
                self.controls[name].widget.value = value
        finally:
            self._quiet = False
        self._redraw()

    def _changed(self, change: Any) -> None:
        if not self._quiet:
            self._redraw()

    def _redraw(self) -> None:
        """Compute, draw, and say what the picture shows."""
        values = {name: control.value for name, control in self.controls.items()}
        width, height = self._size
        try:
            self.view = self._scene.update(**self._parameters(**values))
        except UnknownNameError as error:
            self.picture.value = (
                f'<div style="opacity:.25">{image_tag(self.png, f"No picture: {error}", width, height)}</div>'
            )
            self.summary.value = parts.note("told", f"{error} Choose another one.")
            return
        self.png = self._live.png()
        self.picture.value = image_tag(self.png, self.view.alt, width, height)
        self.summary.value = parts.spoken(self.view.summary)

    # --- keeping -------------------------------------------------------------------

    @property
    def file(self) -> Path:
        """Where the buttons save to and restore from: beside the notebook."""
        return Path(f"{self.id}.state.json")

    def state(self) -> dict[str, Any]:
        """Return what the reader did, as plain data."""
        return {
            "lab": self.id,
            "version": VERSION,
            "prediction": {"given": self._predicted, "locked": self.locked},
            "controls": {name: control.value for name, control in self.controls.items()},
            "answers": {name: box.state() for name, box in self.boxes.items()},
        }

    def save(self, path: str | Path | None = None) -> Path:
        """Write the state to a JSON file, by default ``<id>.state.json`` beside the notebook."""
        return write_state(self.state(), path or self.file)

    def restore(self, source: Mapping[str, Any] | str | Path | None = None) -> None:
        """Bring back a state from a file or a dictionary.

        Raises
        ------
        LabStateError
            If it is not a state of this lab; the lab is then left exactly as it was.
        """
        data = read_state(self.file if source is None else source, self.id)
        check_state(data, self.controls, self.questions, self.prediction)
        self._predicted = data["prediction"]["given"]
        put_into(self.prediction, self.field, self._predicted)
        self._open(data["prediction"]["locked"])
        for name, answer in data["answers"].items():
            self.boxes[name].restore(answer)
        self._set(data["controls"])

    def _save_clicked(self) -> None:
        try:
            path = self.save()
        except OSError as error:
            self.message.value = parts.note("wrong", f"Not saved: {error.strerror or error}.")
        else:
            self.message.value = parts.note("told", f"Saved to {path.name}, beside this notebook.")

    def _restore_clicked(self) -> None:
        try:
            self.restore()
        except LabStateError as error:
            self.message.value = parts.note("wrong", f"Not restored: {error}.")
        else:
            self.message.value = parts.note("told", f"Restored from {self.file.name}.")

    # --- showing -------------------------------------------------------------------

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = {"text/plain": f"{self.title}\n{INVITATION}", **widget_view(self.root)}
        if not _on_colab():
            bundle["text/html"] = lab_page(self)
            bundle["image/png"] = base64.b64encode(self.png).decode("ascii")
        return bundle

    def show(self) -> None:
        """Show the lab below the cell."""
        self._display(self._repr_mimebundle_())
        # Where outputs may run scripts this names the sliders; print takes the text instead.
        self._display({"text/html": SCRIPT, "text/markdown": lab_text(self)})

    def ask(self, name: str) -> None:
        """Show one question of the page below the cell."""
        if name not in self.boxes:
            raise ValueError(f"ask(): no question {name!r}. Known: {', '.join(self.boxes)}")
        box = self.boxes[name]
        frame = ipywidgets.VBox([parts.style_sheet(), box.view])
        frame.add_class("mlsys-lab")
        bundle = widget_view(frame)
        if not _on_colab():
            bundle["text/html"], bundle["text/markdown"] = question_page(box.question)
        self._display(bundle)

    @staticmethod
    def _display(bundle: dict[str, Any]) -> None:
        from IPython.display import display

        display(bundle, raw=True)  # type: ignore[no-untyped-call]


def _on_colab() -> bool:
    """Whether to offer the widget alone: which of several forms Colab would show is not documented."""
    return "google.colab" in sys.modules
