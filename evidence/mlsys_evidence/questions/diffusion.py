"""Pictures made out of noise: so many looks of a network, each at the picture with its text, and often without."""

from functools import partial

from mlsys.calibration.case import Case
from mlsys.calibration.values import seconds_each
from mlsys_evidence.questions.network_lookup import batched, built
from mlsys_evidence.questions.networks import between_products, engine_as_run, multiplies_by_vectors, saving
from mlsys_evidence.typed_rows import TypedRow


def denoising(row: TypedRow) -> Case:
    """Return the case of so many steps of a batch of images or films; what encodes and decodes them is left out."""
    shape = {"image": row.number("image")} if "image" in row.numbers else {}
    network = partial(built, row.network, batch=1, **shape)
    fmt, twin, kind, engine = engine_as_run(row, row.format, network)
    software = "eager small units" if multiplies_by_vectors(row, engine, fmt.convolutions) else row.software
    setting = f"{software} network on {kind}"
    each = -(-row.samples() // max(1, row.row.n_devices))
    winograd = saving(row, engine) if kind == "GPU" else 1.0
    between = between_products(row, setting)
    work = batched(row.network, fmt, row.number("passes") * each, winograd, shape, between).times(row.number("steps"))
    seconds, inverse = seconds_each(row.row)
    return Case(row.row, "diffusion", setting, twin, engine, work, seconds, inverse)
