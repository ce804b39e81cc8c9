"""Files of captured networks, by name of the recipe."""

import functools
import gzip
from importlib.resources import files
from typing import Any

from mlsys.precision import precision_name
from mlsys.workloads.captures.text import from_text
from mlsys.workloads.torch_import.assemble import Template

WIDE, NARROW = "fp32", "fp16"


def file_of(recipe: str, precision: str = WIDE) -> Any:
    """Return the file of a recipe's capture in one number format; it may not exist."""
    suffix = "" if precision == WIDE else f".{precision}"
    return files("mlsys.workloads.captures").joinpath("data", f"{recipe}{suffix}.json.gz")


@functools.lru_cache(maxsize=48)
def stored_template(recipe: str, precision: str = WIDE) -> Template:
    """Return a stored capture in a number format, with free sizes.

    Some code converts values to the format of its weights, at no cost if that is FP32: such networks are stored twice,
    as captured in FP32 and in FP16.

    Raises
    ------
    UnknownNameError
        If there is no such number format.
    """
    name = precision_name(precision)
    narrow = file_of(recipe, NARROW)
    file = narrow if name not in (WIDE, "tf32") and narrow.is_file() else file_of(recipe)
    template = from_text(gzip.decompress(file.read_bytes()).decode("utf-8"))
    return template.in_format(name)
