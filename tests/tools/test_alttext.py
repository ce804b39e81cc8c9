"""Alternative texts take their numbers from claims: in the book, and in the edition for readers."""

import json
from types import SimpleNamespace

import pytest
from docutils import nodes
from docutils.utils import new_document

from alttext import fill, filled

ALT = "Bars: {glue:}`kernels` kernels instead of {glue:}`operators`."


def test_every_value_is_put_in() -> None:
    assert filled(ALT, {"kernels": "56", "operators": "174"}) == "Bars: 56 kernels instead of 174."
    with pytest.raises(KeyError, match="kernels"):
        filled(ALT, {})


def test_the_values_are_those_of_the_run_that_the_page_is_set_from(tmp_path, caplog) -> None:
    glued = {name: {"data": {"text/plain": value}} for name, value in {"kernels": "56", "operators": "174"}.items()}
    (tmp_path / "page.glue.json").write_text(json.dumps(glued))
    settings = SimpleNamespace(output_folder=str(tmp_path))
    app = SimpleNamespace(env=SimpleNamespace(mystnb_config=settings, docname="page"))
    document = new_document("page")
    document += nodes.image(uri="a.png", alt=ALT)
    document += nodes.image(uri="b.png", alt="No number.")
    fill(app, document)
    assert [image["alt"] for image in document.findall(nodes.image)] == [
        "Bars: 56 kernels instead of 174.", "No number."
    ]  # fmt: skip
