"""Capture and store the graph of every network of the catalogue that has PyTorch code: ``make captures``."""

import gzip
import sys
from pathlib import Path

from mlsys.files import write_bytes
from mlsys.workloads.captures import as_text
from mlsys.workloads.captures.store import NARROW, WIDE, file_of
from mlsys.workloads.torch_models import RECIPES, template


def main(names: list[str]) -> None:
    """Write the files of the networks ``names``, by default of all."""
    for name in names or RECIPES:
        for precision in (WIDE, NARROW) if RECIPES[name].converts else (WIDE,):
            captured = template(name, precision)
            _write(Path(str(file_of(name, precision))), as_text(captured))
            print(name, precision, f"{len(captured.places)} nodes", flush=True)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(file, gzip.compress(text.encode("utf-8"), mtime=0))


if __name__ == "__main__":
    main(sys.argv[1:])
