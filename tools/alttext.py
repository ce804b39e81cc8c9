"""Alternative texts take their numbers from claims: a Sphinx extension that puts them in.

``alt: "… in {glue:}`kernels` kernels"`` in the options of a cell is text for Sphinx; here it gets the value that the
cells of the page glued, as they were run for this build.
"""

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.util import logging

__all__ = ["filled", "setup"]

GLUE = re.compile(r"\{glue:\w*\}`(?P<name>[^`]+)`")


def filled(text: str, values: dict[str, str]) -> str:
    """Return an alternative text with its values put in.

    Raises
    ------
    KeyError
        If nothing of a name was glued.

    Examples
    --------
    >>> filled("fused, {glue:}`kernels` kernels", {"kernels": "56"})
    'fused, 56 kernels'
    """
    return GLUE.sub(lambda match: values[match["name"]], text)


def fill(app: Any, doctree: nodes.document) -> None:
    """Put the values of a page into the alternative texts of its pictures."""
    waiting = [image for image in doctree.findall(nodes.image) if GLUE.search(image.get("alt", ""))]
    if not waiting:
        return
    # MyST-NB writes down what the cells of a page glued, from the run or from its cache, before it hands on the page.
    glued = Path(app.env.mystnb_config.output_folder) / f"{app.env.docname}.glue.json"
    outputs = json.loads(glued.read_text(encoding="utf-8")) if glued.exists() else {}
    values = {name: output["data"]["text/plain"].strip("'") for name, output in outputs.items()}
    for image in waiting:
        try:
            image["alt"] = filled(image["alt"], values)
        except KeyError as missing:
            logging.getLogger(__name__).warning("alternative text: nothing claims %s", missing, location=image)


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("doctree-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
