"""Alternative texts take their numbers from claims: in the book, and in the edition for readers."""

from __future__ import annotations

from types import SimpleNamespace

import nbformat
import pytest
from docutils import nodes
from docutils.utils import new_document

from alttext import fill, filled

ALT = "Bars: {glue:}`kernels` kernels instead of {glue:}`operators`."


def glue(**values: str) -> nbformat.NotebookNode:
    outputs = [
        nbformat.v4.new_output(
            "display_data",
            data={"application/papermill.record/text/plain": text},
            metadata={"scrapbook": {"name": name, "mime_prefix": "application/papermill.record/"}},
        )
        for name, text in values.items()
    ]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("claim()", outputs=outputs)])


def test_every_value_is_put_in() -> None:
    assert filled(ALT, {"kernels": "56", "operators": "174"}) == "Bars: 56 kernels instead of 174."
    with pytest.raises(KeyError, match="kernels"):
        filled(ALT, {})


def test_the_values_are_those_of_the_run_that_the_page_is_set_from(tmp_path, caplog) -> None:
    nbformat.write(glue(kernels="56", operators="174"), tmp_path / "page.ipynb")
    settings = SimpleNamespace(output_folder=str(tmp_path))
    app = SimpleNamespace(env=SimpleNamespace(mystnb_config=settings, docname="page"))
    document = new_document("page")
    document += nodes.image(uri="a.png", alt=ALT)
    document += nodes.image(uri="b.png", alt="No number.")
    fill(app, document)
    assert [image["alt"] for image in document.findall(nodes.image)] == [
        "Bars: 56 kernels instead of 174.", "No number."
    ]  # fmt: skip
