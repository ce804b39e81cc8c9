"""A Sphinx extension that substitutes glued values in the alternative texts of figures.

``alt: "… in {glue:}`kernels` kernels"`` in the options of a cell is plain text for Sphinx; here it is replaced by the
value that the cells of the page glued in this build.
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
    """Return an alternative text with its values substituted.

    Raises
    ------
    KeyError
        If no value of that name was glued.

    Examples
    --------
    >>> filled("fused, {glue:}`kernels` kernels", {"kernels": "56"})
    'fused, 56 kernels'
    """
    return GLUE.sub(lambda match: values[match["name"]], text)


def fill(app: Any, doctree: nodes.document) -> None:
    """Substitute the values of a page in the alternative texts of its images."""
    images = [image for image in doctree.findall(nodes.image) if GLUE.search(image.get("alt", ""))]
    if not images:
        return
    # MyST-NB writes the glued values of a page, from the run or from its cache, before doctree-read.
    glued = Path(app.env.mystnb_config.output_folder) / f"{app.env.docname}.glue.json"
    outputs = json.loads(glued.read_text(encoding="utf-8")) if glued.exists() else {}
    values = {name: output["data"]["text/plain"].strip("'") for name, output in outputs.items()}
    for image in images:
        try:
            image["alt"] = filled(image["alt"], values)
        except KeyError as missing:
            logging.getLogger(__name__).warning("alternative text: no cell glues %s", missing, location=image)


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("doctree-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
