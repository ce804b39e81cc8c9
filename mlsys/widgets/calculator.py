"""A calculator of the workbench: a formula, its fields, and the result in words."""

import ipywidgets

from mlsys.labs.workbench import FORMULAS
from mlsys.widgets.parts import button, live_note, on_enter, text

_LABEL = {"description_width": "initial"}


class Calculator:
    """One formula of ``mlsys.labs.workbench`` with a field for each of its values."""

    def __init__(self) -> None:
        self.choice = ipywidgets.Dropdown(
            options=[("choose", None), *((formula.label, name) for name, formula in FORMULAS.items())],
            description="Formula",
            style=_LABEL,
            layout={"width": "100%", "max_width": "30em"},
        )
        self.choice.add_class("mlsys-control")
        self.choice.observe(lambda _: self._ask(), names="value")
        most = max(len(formula.blanks) for formula in FORMULAS.values())
        self.fields = [
            ipywidgets.Text(continuous_update=False, description="Value", style=_LABEL, layout={"width": "22em"})
            for _ in range(most)
        ]
        self.button = button("Compute")
        self.button.add_class("mlsys-enter")
        self.button.on_click(lambda _: self.compute())
        for field in self.fields:
            on_enter(field, self.compute)
        self.result = ipywidgets.HTML("")
        self._fields = ipywidgets.VBox([])
        self.view = ipywidgets.VBox(
            [text('<p class="mlsys-group">Formulas</p>'), self.choice, self._fields, self.result]
        )
        self.view.add_class("mlsys-calculator")

    def _ask(self) -> None:
        self.result.value = ""
        if self.choice.value is None:
            self._fields.children = []
            return
        blanks = FORMULAS[self.choice.value].blanks
        for field, blank in zip(self.fields, blanks, strict=False):
            field.description, field.value = blank.label, f"{blank.value:g}"
        self._fields.children = [*self.fields[: len(blanks)], self.button]

    def compute(self) -> None:
        """Show the result of the formula, or what is wrong with a field."""
        if self.choice.value is None:
            return
        formula = FORMULAS[self.choice.value]
        try:
            message = formula.answer(*(field.value for field in self.fields[: len(formula.blanks)]))
        except (ValueError, OverflowError) as error:
            self.result.value = live_note("wrong", f"{error}.".replace("..", "."))
            return
        code = f" In Python: mlsys.formulas.{formula.function}." if formula.function else ""
        self.result.value = live_note("note", f"{message}{code}")
