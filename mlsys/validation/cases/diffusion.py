"""Pictures made out of noise: so many looks of a U-Net, each at the picture with its text and without."""

import re

from mlsys.validation.cases.built import GUIDED, batched
from mlsys.validation.cases.case import Case, Inexpressible
from mlsys.validation.cases.networks import between_products, engine_of, saving, settled
from mlsys.validation.cases.reading import number_format, seconds_each
from mlsys.validation.rows import Row


def look(row: Row) -> Case:
    """Return the case of one guided look of a U-Net at one picture.

    Raises
    ------
    Inexpressible
        If the network is none of Stability's, or the side of the picture is not stated.
    """
    side = re.search(r"(\d+)x\1", row.model)
    names = {r"SDXL": "sdxl_unet", r"SD 2\.": "sd_v2_unet", r"SD 1\.": "sd_v1_unet"}
    name = next((name for words, name in names.items() if re.search(words, row.model)), None)
    if side is None or name is None:
        raise Inexpressible(f"no U-Net of {row.model} in the catalogue")
    fmt = number_format(row.precision)
    twin, kind, engine = engine_of(row, fmt)
    setting = f"{settled(row)} network on {kind}"
    shape = {"image": int(side.group(1)) // 8}
    winograd = saving(row.software, engine) if kind == "GPU" else 1.0
    work = batched(name, fmt, GUIDED, winograd, shape, between_products(row, setting))
    seconds, inverse = seconds_each(row)
    return Case(row, "diffusion", setting, twin, engine, work, seconds, inverse)
