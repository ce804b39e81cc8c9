"""Which layers are on which stage of a pipeline."""

from __future__ import annotations

from mlsys.unit_checks import plain_arguments


@plain_arguments
def stage_layers(layers: int, stages: int, chunks: int = 1) -> tuple[int, ...]:
    """Return the number of layers on each stage, in order.

    Where the layers do not divide but two more would, embedding and classifier each take a layer's place, as in the
    runs of BLOOM and of Llama 3.1 405B: the first and the last stage have one layer less. Otherwise the stages differ
    by one layer, and the last ones have less.

    Examples
    --------
    >>> stage_layers(80, 8), stage_layers(126, 16)[:3], stage_layers(10, 4)
    ((10, 10, 10, 10, 10, 10, 10, 10), (7, 8, 8), (2, 3, 3, 2))
    """
    if stages > 1 and layers % (stages * chunks) and not (layers + 2) % (stages * chunks):
        each = (layers + 2) // stages
        counts = [each] * stages
        counts[0] -= 1
        counts[-1] -= 1
        return tuple(counts)
    each, more = divmod(layers, stages)
    return tuple(each + (index < more) for index in range(stages))


@plain_arguments
def enough_layers(layers: int, stages: int, chunks: int = 1) -> bool:
    """Return whether every chunk of every stage gets a layer; embedding and classifier may count as layers.

    Examples
    --------
    >>> enough_layers(32, 32), enough_layers(32, 34), enough_layers(32, 8, 8)
    (True, True, False)
    """
    return stages * chunks <= layers or (layers + 2) % (stages * chunks) == 0
