"""Precomputed frames of a lab for all values of its main controls, stored as differences from the background."""

from __future__ import annotations

import base64
import io
import itertools
import math
from typing import TYPE_CHECKING, Any

import ipywidgets

if TYPE_CHECKING:
    from mlsys.widgets.lab import Lab

_NUMBERS = tuple(float(f"{10 ** (step / 12):.4g}") for step in range(-24, 61))
"""Numbers of which the place in the figure is stored, a twelfth of a decade apart."""


def frames_of(kind: type[Lab]) -> dict[str, Any]:
    """Return images, texts and controls of a lab, with the last control varying fastest.

    Each image is a layer over the empty one, transparent where they agree, which keeps it small.

    Examples
    --------
    >>> from mlsys.widgets import AmdahlLab
    >>> class Brief(AmdahlLab):
    ...     frames = {name: values[:2] for name, values in AmdahlLab.frames.items()}
    >>> frames = frames_of(Brief)
    >>> len(frames["pictures"]) == 2 ** len(frames["controls"])
    True
    """
    lab = kind()
    blank = _pixels(lab.png)
    given = lab.prediction.listed()
    lab.predict(given[0] if given else max(1.0, getattr(lab.prediction, "least", 0.0)))
    mark = _mark(lab)
    if lab._scene.guess is not None:  # the mark of the reader's own prediction is not of this picture
        lab._scene.guess.hide()
        lab._scene.guess = None
        lab._redraw()
    controls = []
    for name, values in lab.frames.items():
        control = lab.controls[name]
        labels = [control.label_of(value) for value in values]
        start = values.index(control.value) if control.value in values else 0  # as the locked prediction left it
        listed = not isinstance(control.widget, ipywidgets.SelectionSlider)  # what has no order is no slider
        controls.append({"name": control.widget.description, "labels": labels, "start": start, "list": listed})
    pictures, alts, summaries = [], [], []
    for values in itertools.product(*lab.frames.values()):
        lab._set({**lab.scenario, **dict(zip(lab.frames, values, strict=True))})
        if lab.view is None:
            raise ValueError(f"{kind.__name__}: no picture for {values}. Offer other frames")
        pictures.append(_layer(blank, _pixels(lab.png)))
        alts.append(lab.view.alt)
        summaries.append(lab.view.summary)
    return {
        "size": lab.size, "controls": controls, "pictures": pictures, "alts": alts, "summaries": summaries,
        "mark": mark,
    }  # fmt: skip


def _mark(lab: Lab) -> dict[str, Any] | None:
    """Return where each possible prediction lies in the figure, in parts of its width or height from the top left.

    Each place is the two ends of a range along the axis. A typed number lies between two of a table of numbers.
    """
    guess = lab._scene.guess
    if guess is None:
        return None
    given: list[Any] = list(lab.prediction.listed())
    numbers = not given
    if numbers:
        least, most = getattr(lab.prediction, "least", 0.0), getattr(lab.prediction, "most", math.inf)
        given = [each for each in _NUMBERS if least <= each <= most]
    axes = guess.ax.get_position()
    left, width, bottom, height = axes.x0, axes.width, axes.y0, axes.height
    places = []
    for each in given:
        ends = sorted(guess.fraction(end) for end in lab._guessed(each))
        ends = (
            [left + width * end for end in ends] if guess.along == "x" else [1 - bottom - height * end for end in ends]
        )
        places.append([round(end, 4) for end in sorted(ends)])
    low, high = guess.span
    if guess.along == "x":
        across = [1 - bottom - height * high, 1 - bottom - height * low]
        label, middle = 1 - bottom - height * guess.place, left + width / 2
    else:
        across = [left + width * low, left + width * high]
        label, middle = left + width * guess.place, 1 - bottom - height / 2
    at = [
        values.index(lab.scenario[name]) if name in lab.predicts and lab.scenario[name] in values else
        -1 if name in lab.predicts else None
        for name, values in lab.frames.items()
    ]  # fmt: skip
    return {
        "along": guess.along, "across": [round(end, 4) for end in across], "words": guess.label, "at": at,
        "label": round(label, 4), "middle": round(middle, 4),
        "numbers": given if numbers else None, "places": places,
    }  # fmt: skip


def _pixels(png: bytes) -> Any:
    import numpy as np
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def _layer(blank: Any, drawn: Any) -> str:
    """Return the difference from the empty image, as a WebP image in base64."""
    import numpy as np
    from PIL import Image

    differs = (blank != drawn).any(axis=2)
    layer = np.zeros((*differs.shape, 4), np.uint8)
    layer[differs, :3] = drawn[differs]
    layer[differs, 3] = 255
    file = io.BytesIO()
    Image.fromarray(layer).save(file, format="WEBP", lossless=True, quality=50, method=4)
    return base64.b64encode(file.getvalue()).decode("ascii")
