"""Sizes, number format and source of a network, as plain data and as text."""

from typing import Any

from mlsys.workloads.operator import Network
from mlsys.workloads.workload import Workload


def network_batch(network: Network) -> int | None:
    """Return the number of samples per pass: the batch, or None if the inputs have no batch axis.

    A pass of operators built by hand counts as one sample.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> network_batch(load("resnet50", batch=8))
    8
    """
    if not isinstance(network, Workload):
        return 1
    batch = network.sizes.get("batch")
    return None if batch is None else int(batch)


def sizes_used(network: Network) -> dict[str, Any]:
    """Return the sizes of a network, its number format, its source, and notes on how it was counted.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> sizes_used(load("resnet50"))["image"]
    224
    """
    of = network if isinstance(network, Workload) else Workload.from_network(network)
    sizes = dict(of.sizes)
    record = {name: sizes.pop(name, None) for name in ("batch", "sequence", "image")}
    masked = of.masked_attention
    counted = (
        {}
        if masked is None
        else {"masked_attention_flops": masked.dense, "masked_attention_flops_unmasked": masked.unmasked}
    )
    return {
        **record,
        **({"sizes": sizes} if sizes else {}),
        "precision": of.precision,
        "recipe": of.recipe or "operators built by hand",
        **counted,
        "notes": list(of.remarks()),
    }


def sizes_in_words(network: Network, notes: bool = True) -> str:
    """Return the sizes as one line of text, followed by one line per note unless these are printed elsewhere.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> print(sizes_in_words(load("lenet5", batch=2)).partition(";")[0])
    batch 2, fp32
    """
    used = sizes_used(network)
    sizes = dict(network.sizes) if isinstance(network, Workload) else {}
    words = [f"{name} {size}" for name, size in sizes.items()]
    first = f"{', '.join([*words, used['precision']])}; from {used['recipe']}"
    return "\n".join([first, *(f"note: {note}" for note in (used["notes"] if notes else ()))])
