"""The named dataflows: which operand stays in the array, as loop nests of one level or two."""

from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.frozen import FrozenDict
from mlsys.mapping.iteration import IterationSpace
from mlsys.mapping.loopnest import LoopNest, TileLevel
from mlsys.unit_checks import checked_count

# Short name, what stays, the loop of a matrix product that streams past it.
DATAFLOWS = FrozenDict(
    {
        "ws": ("weight stationary", "m"),
        "os": ("output stationary", "k"),
        "is": ("input stationary", "n"),
        "rs": ("row stationary", ""),
    }
)


def dataflow(name: str, tile: int) -> LoopNest:
    """Return a dataflow of a matrix product on an array of ``tile`` by ``tile`` words.

    The two loops of the stationary operand are tiled; the third loop streams one element at a time.

    Parameters
    ----------
    name
        ``"ws"`` keeps B (the weights), ``"os"`` keeps C, ``"is"`` keeps A.
    tile
        Edge of the stationary tile.

    Raises
    ------
    UnknownNameError
        If there is no such dataflow of a matrix product.
    ArgumentError
        If the tile is not a whole number of at least 1.

    Examples
    --------
    >>> dataflow("ws", 32).levels[0].order
    ('k', 'n', 'm')
    """
    edge = checked_count("dataflow", "tile", tile)
    wanted = name.lower() if isinstance(name, str) else str(name)
    known = [short for short, (_, streams) in DATAFLOWS.items() if streams]
    if wanted not in known:
        raise UnknownNameError(
            f"dataflow(): `name` must be one of {', '.join(known)}, got {name!r}.{did_you_mean(wanted, known)} "
            "Row stationary belongs to convolutions: row_stationary(space)"
        )
    streams = DATAFLOWS[wanted][1]
    outer = tuple(dim for dim in "knm" if dim != streams)
    sizes = {dim: edge for dim in outer} | {streams: 1}
    return LoopNest((TileLevel("array", FrozenDict(sizes), (*outer, streams)),))


def row_stationary(space: IterationSpace, columns: int) -> LoopNest:
    """Return the row-stationary dataflow of a convolution: a filter row stays, an input row slides by.

    Each processing element holds one filter row and makes one row of partial sums. Filter
    rows go down the array, output rows across it; input rows are shared along diagonals and
    partial sums are added along columns.

    Parameters
    ----------
    space
        A convolution.
    columns
        Output rows that the array holds at a time.

    References
    ----------
    Y.-H. Chen, J. Emer, V. Sze, Eyeriss: a spatial architecture for energy-efficient
    dataflow for convolutional neural networks, ISCA 2016, section V.

    Examples
    --------
    >>> from mlsys.mapping.iteration import conv_space
    >>> row_stationary(conv_space(1, 4, 8, 14, 14, 3, 3), columns=7).levels[0].instances
    21
    """
    lanes = checked_count("row_stationary", "columns", columns)
    if "r" not in space.sizes:
        raise UnknownNameError(
            f"row_stationary(): {space.name} has no filter rows; row stationary belongs to convolutions. "
            "Write e.g. dataflow('os', tile=32)"
        )
    sizes = space.sizes
    tile = {"g": 1, "b": 1, "k": 1, "c": 1, "p": 1, "q": sizes["q"], "r": 1, "s": sizes["s"]}
    unroll = {"r": sizes["r"], "p": min(lanes, sizes["p"])}
    return LoopNest((TileLevel("array", FrozenDict(tile), ("g", "b", "p", "k", "c"), (), FrozenDict(unroll)),))
