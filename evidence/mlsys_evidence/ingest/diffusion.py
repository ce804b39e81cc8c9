"""Pictures made out of noise: so many looks of a network, each at the picture with its text, and often without."""

import re
from functools import partial

from mlsys.calibration.case import Case, Inexpressible
from mlsys.calibration.rows import Row
from mlsys.calibration.values import seconds_each
from mlsys_evidence.ingest.network_lookup import GUIDED, batched, built
from mlsys_evidence.ingest.networks import between_products, engine_as_run, multiplies_by_vectors, saving, settled
from mlsys_evidence.ingest.reading import batch_of, number_format, whole_number

# Transformers, and how many looks a step takes: FLUX.1 is told its guidance, films are looked at twice.
_TRANSFORMERS = (
    (r"FLUX\.1", "flux", 1),
    ("CogVideoX-2B", "cogvideox_2b", GUIDED),
    ("CogVideoX-5B", "cogvideox_5b", GUIDED),
)
_UNETS = ((r"SDXL", "sdxl_unet"), (r"SD 2\.", "sd_v2_unet"), (r"SD 1\.", "sd_v1_unet"))


def denoising(row: Row) -> Case:
    """Return the case of so many steps of a batch of pictures or films; what encodes and decodes them is left out.

    Raises
    ------
    Inexpressible
        If the network is not in the catalogue, or the steps or the batch are not stated.
    """
    shape: dict[str, int] = {}
    denoiser = next(((name, looks) for words, name, looks in _TRANSFORMERS if re.search(words, row.model)), None)
    side = re.search(r"(\d+)x\1", row.model)
    if denoiser is None and side:
        denoiser = next(((name, GUIDED) for words, name in _UNETS if re.search(words, row.model)), None)
        shape = {"image": int(side.group(1)) // 8}
    if denoiser is None:
        raise Inexpressible(f"no network of {row.model} in the catalogue that takes noise away")
    name, looks = denoiser
    steps = 1 if "denoising step" in row.workload else whole_number(r"(\d+) steps", row.workload, "steps of a picture")
    network = partial(built, name, batch=1, **shape)
    fmt, twin, kind, engine = engine_as_run(row, number_format(row.precision), network)
    software = "eager small units" if multiplies_by_vectors(row, engine, fmt.convolutions) else settled(row)
    setting = f"{software} network on {kind}"
    each = -(-batch_of(row) // max(1, row.n_devices))
    winograd = saving(row.software, engine) if kind == "GPU" else 1.0
    work = batched(name, fmt, looks * each, winograd, shape, between_products(row, setting)).times(steps)
    seconds, inverse = seconds_each(row)
    return Case(row, "diffusion", setting, twin, engine, work, seconds, inverse)


def look(row: Row) -> Case:
    """Return the case of one guided look of a U-Net at one picture.

    Raises
    ------
    Inexpressible
        If the network is none of Stability's, or the side of the picture is not stated.
    """
    side = re.search(r"(\d+)x\1", row.model)
    name = next((name for words, name in _UNETS if re.search(words, row.model)), None)
    if side is None or name is None:
        raise Inexpressible(f"no U-Net of {row.model} in the catalogue")
    shape = {"image": int(side.group(1)) // 8}
    network = partial(built, name, batch=1, **shape)
    fmt, twin, kind, engine = engine_as_run(row, number_format(row.precision), network)
    software = "eager small units" if multiplies_by_vectors(row, engine, fmt.convolutions) else settled(row)
    setting = f"{software} network on {kind}"
    winograd = saving(row.software, engine) if kind == "GPU" else 1.0
    work = batched(name, fmt, GUIDED, winograd, shape, between_products(row, setting))
    seconds, inverse = seconds_each(row)
    return Case(row, "diffusion", setting, twin, engine, work, seconds, inverse)
