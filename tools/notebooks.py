"""Regenerate the readers' notebooks from their text sources, or check that they match.

The text (.md) is the source; the notebook (.ipynb) beside it is derived from it (tools/reader.py), with outputs.
`jupytext --sync` is never used: it trusts file times, and a fresh checkout has none.

    python tools/notebooks.py                     run every page and write what changed
    python tools/notebooks.py book/roofline.md    only this one
    python tools/notebooks.py --check             compare only
"""

import argparse
import base64
import io
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import nbformat
from PIL import Image

from mlsys.files import write_text
from pages import (
    ROOT,
    notebook_files,
    prepare_environment,
    read_notebook,
    read_page,
    run_page,
    without_tracebacks,
    workers,
)
from reader import reader_edition

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def without_noise(notebook: Any) -> Any:
    """Remove in place what changes from run to run without meaning."""
    notebook.metadata["kernelspec"] = dict(KERNEL)
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.metadata.pop("widgets", None)
    # Not paired for JupyterLab: a reader who runs a lab must not rewrite its text, nor be asked which file is newer.
    notebook.metadata.pop("jupytext", None)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _merged_streams(cell.outputs)
            for output in cell.outputs:
                # The view of a widget needs the kernel that made it; its picture or text stays.
                data = output.get("data", {})
                data.pop(WIDGET_VIEW, None)
                if "image/png" in data:
                    data["image/png"] = in_few_colours(data["image/png"])
    return without_tracebacks(notebook)


def in_few_colours(png: str) -> str:
    """Return a picture in base64 with at most 256 colours, a third of the bytes; what is no smaller stays.

    Books take vectors from a run of their own; these pictures are for readers of the notebook.

    Examples
    --------
    >>> buffer = io.BytesIO()
    >>> Image.radial_gradient("L").convert("RGB").save(buffer, "PNG")
    >>> large = base64.b64encode(buffer.getvalue()).decode("ascii")
    >>> small = in_few_colours(large)
    >>> len(small) < len(large), in_few_colours(small) == small
    (True, True)
    """
    picture = Image.open(io.BytesIO(base64.b64decode(png)))
    if picture.mode == "P":
        return png
    white = Image.new("RGB", picture.size, "white")
    white.paste(picture, mask=picture.getchannel("A") if "A" in picture.getbands() else None)
    buffer = io.BytesIO()
    white.quantize(256, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    small = base64.b64encode(buffer.getvalue()).decode("ascii")
    return small if len(small) < len(png) else png


def _merged_streams(outputs: Sequence[Any]) -> list[Any]:
    merged: list[Any] = []
    for output in outputs:
        if merged and output.output_type == "stream" == merged[-1].output_type and output.name == merged[-1].name:
            merged[-1].text += output.text
        else:
            merged.append(output)
    return merged


def regenerate(source: Path) -> bool:
    """Run one text notebook and write its .ipynb; return whether the file changed."""
    executed = run_page(read_page(source), source.parent)
    text = nbformat.writes(without_noise(reader_edition(executed, source))) + "\n"  # type: ignore[no-untyped-call]
    target = source.with_suffix(".ipynb")
    if target.exists() and target.read_text(encoding="utf-8") == text:
        return False
    write_text(target, text)
    return True


def disagreements(source: Path) -> Iterator[str]:
    """Yield each way in which a committed notebook differs from its page, or was not run."""
    target = source.with_suffix(".ipynb")
    if not target.exists():
        yield f"{target.name} is missing"
        return
    page, committed = read_page(source), read_notebook(target).cells
    outputs = {cell.id: cell.outputs for cell in committed if cell.cell_type == "code"}
    for cell in page.cells:
        if cell.cell_type == "code":
            cell.outputs = outputs.get(cell.id, [])
    try:
        written = reader_edition(page, source).cells
    except KeyError as missing:
        yield f"{target.name} lacks an output that a sentence quotes: {missing.args[0]}"
        return
    if len(written) != len(committed):
        yield f"{len(written)} cells from {source.name}, {len(committed)} in {target.name}"
    for number, (ours, theirs) in enumerate(zip(written, committed, strict=False), start=1):
        for part in ("cell_type", "source", "metadata"):
            if ours[part] != theirs[part]:
                yield f"cell {number} of {target.name}: its {part.replace('_', ' ')} is not the one in {source.name}"
        yield from (f"cell {number} of {target.name}: {fault}" for fault in _not_run(theirs))


def _not_run(cell: Any) -> Iterator[str]:
    if cell.cell_type != "code" or not cell.source.strip():
        return
    if cell.execution_count is None:
        yield "it was never run"
    if any(output.output_type == "error" for output in cell.outputs) and "raises-exception" not in cell.metadata.get(
        "tags", []
    ):
        yield "it holds an error"
    if any(output.output_type == "stream" and output.name == "stderr" for output in cell.outputs):
        yield "it holds a warning"


def check(sources: Sequence[Path]) -> int:
    """Print every difference; return the number of faulty notebooks."""
    faulty = 0
    for source in sources:
        messages = list(disagreements(source))
        faulty += bool(messages)
        for message in messages:
            print(f"{source.relative_to(ROOT)}: {message}", file=sys.stderr)
    verdict = f"{faulty} of {len(sources)} out of step; run `make notebooks`" if faulty else f"{len(sources)} in step"
    print(f"Notebooks: {verdict}")
    return faulty


def regenerate_all(sources: Sequence[Path]) -> int:
    """Run all notebooks, a few at a time; return the number that failed."""
    prepare_environment()
    failed = 0
    with ThreadPoolExecutor(workers()) as pool:
        started = {pool.submit(_timed, source): source for source in sources}
        for done, future in enumerate(as_completed(started), start=1):
            name = started[future].relative_to(ROOT)
            try:
                changed, seconds = future.result()
            except Exception as error:
                failed += 1
                print(f"[{done}/{len(sources)}] {name}: failed\n{error}", file=sys.stderr)
            else:
                news = "written" if changed else "unchanged"
                print(f"[{done}/{len(sources)}] {name}: {news} in {seconds:.1f} s", flush=True)
    return failed


def _timed(source: Path) -> tuple[bool, float]:
    start = time.perf_counter()
    return regenerate(source), time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> int:
    """Regenerate or check the notebooks; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("files", nargs="*", type=Path, help="text notebooks (all, when none is named)")
    options = parser.parse_args(arguments)
    sources = [path.resolve().with_suffix(".md") for path in options.files] or notebook_files()
    return 1 if (check if options.check else regenerate_all)(sources) else 0


if __name__ == "__main__":
    sys.exit(main())
