"""The base class of all labs: purpose, predict, explore, check, wrap up."""

import base64
import html
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets

from mlsys.errors import UnknownNameError
from mlsys.labs import lab_content
from mlsys.labs.draw import LONGEST_NAME, Draw
from mlsys.labs.questions import AnswerError
from mlsys.labs.wrapup import WrapUp
from mlsys.viz.live import LiveFigure, image_tag
from mlsys.viz.views.view import SHARPNESS, View
from mlsys.widgets import parts, static
from mlsys.widgets.access import SCRIPT
from mlsys.widgets.box import QuestionBox, answer_field, now, pose
from mlsys.widgets.design_box import DesignBox
from mlsys.widgets.hand_in import HandInBox, on_colab
from mlsys.widgets.keeping import KeepsWork
from mlsys.widgets.parts import on_enter
from mlsys.widgets.progress import Progress
from mlsys.widgets.wrapup import WrapUpBox


class Lab(KeepsWork):
    """A lab: the reader predicts, then explores a figure with sliders, then answers questions.

    A subclass defines the controls and the scene; questions and answers are in ``mlsys.labs``.
    Until a prediction is locked the figure is empty, the sliders are disabled, and nothing
    that is shown reveals the answer.

    Attributes
    ----------
    id, title, purpose
        Name of the lab (and of its state file), heading, and purpose.
    scene
        Class of the scene; its ``update`` takes the values of the controls.
    frames
        Controls that work in the built book, where no kernel runs, each with the values
        that it takes there.
    scenario
        Values of the controls for the predicted situation, set when the prediction is locked.
    predicts
        Controls that the prediction is about: it is drawn in the figure while they have the values of ``scenario``.
    view
        The current view; None before the prediction is locked.
    """

    id: str
    title: str
    purpose: str
    scene: Callable[[], Any]
    frames: Mapping[str, tuple[Any, ...]]
    predicts: tuple[str, ...] = ()

    def __init__(self, student: str = "") -> None:
        self.content = lab_content(self.id.removeprefix("lab-"))
        self._given_student = self._draw(student)
        self.controls = {control.name: control for control in self._controls()}
        self.measurements: dict[str, Any] = {}
        self.started = ""
        self.locked = False
        self._predicted: Any = None
        self._quiet = False
        self._scene = self.scene()
        self._live = LiveFigure(self._scene.figure, self._scene.moving)
        self.size = (round(self._live.pixels[0] / SHARPNESS), round(self._live.pixels[1] / SHARPNESS))
        self.view: View | None = None
        self.png = b""
        self.progress = Progress(self.id, "nowhere")
        self._build()
        self._open(False)
        self._redraw()

    def _draw(self, student: str) -> str:
        """Draw the questions of a student, and return the name as it is kept."""
        student = " ".join(student[:LONGEST_NAME].split())
        self.draw = Draw(self.id.removeprefix("lab-"), student)
        self.prediction = self.content.prediction(self.draw)
        self.scenario = self.content.scenario(self.draw)
        self.questions = {question.id: question for question in self.content.questions(self.draw)}
        self.designs = {design.id: design for design in self.content.designs(self.draw)}
        return student

    # --- what a subclass says ------------------------------------------------------

    def _controls(self) -> tuple[parts.Control, ...]:
        raise NotImplementedError

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the scene's ``update``, by default the value of each control."""
        return {name: control.value for name, control in self.controls.items()}

    def _wrap_up(self) -> WrapUp:
        return self.content.wrap_up(self.draw)

    def _guessed(self, given: Any) -> tuple[float, ...]:
        """Return where a predicted answer lies in the figure: a value, the ends of a range, or nothing."""
        return ()

    def _measured_at(self) -> float | None:
        """Return where a measurement on the reader's machine lies in the figure; None if it is not to be drawn."""
        return None

    def _restored(self) -> None:
        """Show again what came back with a state, after its measurements."""

    # --- building ------------------------------------------------------------------

    def _build(self) -> None:
        self.field = answer_field(self.prediction, "Your prediction")
        self.lock_button = parts.button("Lock in my prediction", "primary")
        self.lock_button.on_click(lambda _: self.lock())
        self.lock_button.add_class("mlsys-lock")
        self.lock_button.add_class("mlsys-enter")
        on_enter(self.field, self.lock)
        self.comparison = ipywidgets.HTML("")
        self.comparison.add_class("mlsys-comparison")
        self._prompt = parts.text("")
        self._prompt.add_class("mlsys-prompt")
        predict = ipywidgets.VBox([self._prompt, self.field, self.lock_button, self.comparison])
        predict.add_class("mlsys-predict")
        self.picture = ipywidgets.HTML()
        self.picture.add_class("mlsys-picture")
        self.summary = ipywidgets.HTML()
        self.summary.add_class("mlsys-summary")
        self.boxes = self._question_boxes()
        self.design_boxes = {name: DesignBox(design, self._answered) for name, design in self.designs.items()}
        self.hint = ipywidgets.HTML()
        self.wrap = WrapUpBox(self._wrap_up)
        self.handing = HandInBox(self.work, self.missing, lambda: self.progress.kept_in != "memory")
        for control in self.controls.values():
            control.widget.observe(self._changed, names="value")
        self.root = ipywidgets.VBox(
            [
                parts.style_sheet(),
                parts.heading("Purpose"),
                parts.text(f"<p>{html.escape(self.purpose)}</p>"),
                self._naming(),
                parts.heading("Predict"),
                predict,
                parts.heading("Explore"),
                self.hint,
                self._panel(),
                self.picture,
                self.summary,
                *self._below_picture(),
                parts.heading("Check"),
                *self._checks(),
                *([parts.heading("Design")] if self.design_boxes else []),
                *(box.view for box in self.design_boxes.values()),
                *self._more(),
                self._keeping(),
            ]
        )
        self.root.add_class("mlsys-lab")

    def _question_boxes(self) -> dict[str, QuestionBox]:
        in_app = [question for question in self.questions.values() if question.in_app]
        numbers = {question.id: f"{index}." for index, question in enumerate(in_app, start=1)}
        return {name: QuestionBox(q, numbers.get(name, ""), self._answered) for name, q in self.questions.items()}

    def _naming(self) -> Any:
        """Return the field for the name or id, which draws the numbers of the questions."""
        self.student_field = ipywidgets.Text(
            value=self.student,
            continuous_update=False,
            placeholder="a name or an id",
            description="Your name or id",
            style={"description_width": "initial"},
            layout={"width": "24em"},
        )
        self.student_field.observe(lambda change: self._named(change["new"]), names="value")
        self.student_button = parts.button("Use my numbers")
        self.student_button.add_class("mlsys-enter")
        self.student_button.on_click(lambda _: self._named(self.student_field.value))
        self.student_message = ipywidgets.HTML("")
        row = ipywidgets.HBox([self.student_field, self.student_button], layout={"flex_flow": "row wrap"})
        naming = ipywidgets.VBox([row, self.student_message])
        naming.add_class("mlsys-student")
        return naming

    def _below_picture(self) -> tuple[Any, ...]:
        """Return additional widgets, shown below the figure."""
        return ()

    def _checks(self) -> tuple[Any, ...]:
        """Return the widgets of the questions, by default all of them in order."""
        return tuple(box.view for box in self.boxes.values() if box.question.in_app)

    def _more(self) -> tuple[Any, ...]:
        """Return additional widgets, shown after the questions."""
        return ()

    def _panel(self) -> Any:
        """Return the controls, in the order common to all labs."""
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
        self.afresh_button = parts.button("Start afresh")
        self.message = ipywidgets.HTML("")
        self.save_button.on_click(lambda _: self._keep(by_hand=True))
        self.restore_button.on_click(lambda _: self._restore_clicked())
        self.afresh_button.on_click(lambda _: self._start_afresh())
        buttons = ipywidgets.HBox(
            [self.save_button, self.restore_button, self.afresh_button], layout={"flex_flow": "row wrap"}
        )
        self.where = ipywidgets.HTML("")
        return ipywidgets.VBox([parts.heading("Keep your work"), self.where, buttons, self.message])

    # --- what happens --------------------------------------------------------------

    def _named(self, student: str) -> None:
        """Ask the questions of another student, as long as nothing is answered."""
        if self._quiet or self.touched:
            return
        self._pose(student)

    def _pose(self, student: str) -> None:
        self._draw(student)
        self._write_student()
        pose(self.field, self.prediction)
        if list(self.boxes) != list(self.questions):  # which questions are asked is drawn as well
            self.boxes = self._question_boxes()
        for name, question in self.questions.items():
            self.boxes[name].pose(question)
        for name, design in self.designs.items():
            self.design_boxes[name].pose(design)
        self._open(self.locked)

    def _write_student(self) -> None:
        self._quiet = True
        try:
            self.student_field.value = self.student
        finally:
            self._quiet = False

    @property
    def touched(self) -> bool:
        """Whether the prediction is locked or anything was answered."""
        return self.locked or any(box.tries for box in self.boxes.values())

    def lock(self) -> None:
        """Lock the prediction, compare it, and enable the sliders."""
        try:
            self._predicted = self.prediction.read(self.field.value)
        except AnswerError as error:
            self.comparison.value = parts.live_note("note", f"{error} A guess is enough.")
            return
        self.started = self.started or now()
        self._open(True)
        self._set(self.scenario)
        self._keep()

    def predict(self, given: object) -> None:
        """Enter a prediction and lock it, as the button does; for scripts.

        Raises
        ------
        ValueError
            If ``given`` is not a possible answer.
        """
        if not self.prediction.accepts(given):
            listed = ", ".join(map(repr, self.prediction.listed()))
            raise ValueError(f"predict(): {given!r} is no answer. Give {'one of ' + listed if listed else 'a number'}")
        self.field.value = self.prediction.shown(given)
        self.lock()

    def _open(self, locked: bool) -> None:
        """Switch between the states before and after the prediction is locked."""
        self.locked = locked
        self.field.disabled = self.lock_button.disabled = locked
        for control in self.controls.values():
            control.widget.disabled = not locked
        for box in self.boxes.values():
            box.enable(locked or not box.question.in_app)
        for design in self.design_boxes.values():
            design.enable(locked)
        self._prompt.value = f"<p>{html.escape(self.prediction.text)}</p>"
        self.hint.value = "" if locked else "<p>Picture and sliders open when your prediction is locked.</p>"
        self.comparison.value = parts.live_note("note", self.prediction.compared(self._predicted)) if locked else ""
        self._tell_wrap_up()

    def _tell_wrap_up(self) -> None:
        self._tell_student()
        left = [box.question for box in self.boxes.values() if not box.answered]
        if self.locked and not left:
            self.wrap.show()
        elif not (self.wrap.open and self.locked):
            questions = sum(question.in_app for question in left)
            self.wrap.close(self.locked, questions, len(left) - questions)

    def _tell_student(self) -> None:
        touched = self.touched
        self.student_field.disabled = self.student_button.disabled = touched
        if self.student:
            reported = f"The numbers below are those of {self.student}."
        else:
            reported = "With a name or an id the questions get numbers of your own; without, they are the printed ones."
        if touched:
            reported += " Start afresh, under Keep your work, to change the name."
        self.student_message.value = f"<p>{html.escape(reported)}</p>"

    def _answered(self) -> None:
        self.started = self.started or now()
        self._tell_wrap_up()
        self._keep()

    def _set(self, values: Mapping[str, Any]) -> None:
        """Set several controls with one redraw."""
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
            self.progress.keep_soon(self._keep)

    def _redraw(self) -> None:
        """Compute, draw and summarise; before the prediction, show only the axes."""
        if not self.locked:
            if self._scene.guess is not None:
                self._scene.guess.hide()
            self.view, self.png = None, self._live.blank_png()
            self.picture.value = image_tag(self.png, self._scene.blank, *self.size)
            self.summary.value = ""
            return
        try:
            self.view = self._scene.update(**self._arguments())
        except UnknownNameError as error:
            self.picture.value = (
                f'<div style="opacity:.25">{image_tag(self.png, f"No picture: {error}", *self.size)}</div>'
            )
            self.summary.value = parts.live_note("note", f"{error} Choose another one.")
            return
        self._mark_prediction()
        self.png = self._live.png()
        self.picture.value = image_tag(self.png, self.alt, *self.size)
        self.summary.value = parts.live_region(self.view.summary)

    def _mark_prediction(self) -> None:
        """Draw the prediction into the figure while the figure shows what was predicted, and what was measured here."""
        guess, here = self._scene.guess, self._scene.here
        if here is not None:
            measured = self._measured_at()
            if measured is None:
                here.hide()
            else:
                here.show(measured)
        if guess is None:
            return
        place = self._guessed(self._predicted)
        if place and all(self.value(name) == self.scenario[name] for name in self.predicts):
            guess.show(*place)
        else:
            guess.hide()

    def value(self, name: str) -> Any:
        """Return the value of one control."""
        return self.controls[name].value

    @property
    def alt(self) -> str:
        """Alternative text of the current figure."""
        if self.view is None:
            return str(self._scene.blank)
        marks = ((self._scene.guess, "Your prediction"), (self._scene.here, "Your measurement"))
        marked = [f"{name} is marked." for mark, name in marks if mark is not None and mark.visible]
        return " ".join([self.view.alt, *marked])

    # --- showing -------------------------------------------------------------------

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        # On Colab only the widget is offered: which of several forms it shows is not documented.
        bundle = {"text/plain": f"{self.title}\n{static.INVITATION}", **static.widget_view(self.root)}
        if not on_colab():
            bundle["text/html"] = static.lab_page(self)
            bundle["image/png"] = base64.b64encode(self.png).decode("ascii")
        return bundle

    def show(self) -> None:
        """Display the lab below the cell, in its current state."""
        self._resume()
        self._display(self._repr_mimebundle_())
        # Where outputs may run scripts this names the sliders; print takes the text instead.
        self._display({"text/html": SCRIPT, "text/markdown": static.lab_text(self)})

    def ask(self, name: str) -> None:
        """Display one question of the page below the cell."""
        if name not in self.boxes:
            raise ValueError(f"ask(): no question {name!r}. Known: {', '.join(self.boxes)}")
        box = self.boxes[name]
        frame = ipywidgets.VBox([parts.style_sheet(), box.view])
        frame.add_class("mlsys-lab")
        bundle = static.widget_view(frame)
        if not on_colab():
            bundle["text/html"], bundle["text/markdown"] = static.question_page(box.question)
        self._display(bundle)

    def hand_in(self) -> None:
        """Display the button that writes the file to hand in."""
        bundle = static.widget_view(self.handing.view)
        if not on_colab():
            bundle["text/html"], bundle["text/markdown"] = static.hand_in_pages()
        self._display(bundle)

    def wrap_up(self) -> None:
        """Display the wrap-up below the cell: closed until the questions and claims of the lab are answered."""
        bundle = static.widget_view(self.wrap.view)
        if not on_colab():
            bundle["text/html"], bundle["text/markdown"] = static.wrap_up_pages(self)
        self._display(bundle)

    @staticmethod
    def _display(bundle: dict[str, Any]) -> None:
        from IPython.display import display

        display(bundle, raw=True)
