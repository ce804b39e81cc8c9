"""Content-addressed cache of results, keyed by the problem and the source code of the search."""

import functools
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mlsys.files import write_text
from mlsys.frozen import FrozenDict
from mlsys.inputs import read_json
from mlsys.mapping.iteration import IterationSpace
from mlsys.mapping.loopnest import LoopNest, TileLevel
from mlsys.planner.mapper.hierarchy import Best

_HERE: dict[str, Best] = {}
_CODE = ("mapping", "models/dataflow", "planner/mapper")


def cache_folder() -> Path:
    """Return the folder of the on-disk cache: ``mlsys/mapper`` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mlsys" / "mapper"


@functools.cache
def _code() -> str:
    """Return a digest of the source code that computes mappings, which is part of every key."""
    package = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for folder in _CODE:
        for path in sorted((package / folder).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def key_of(space: IterationSpace, capacities: Sequence[int], memories: Sequence[str], objective: str) -> str:
    """Return the key of a search: everything that its answer depends on, without names of layers.

    Examples
    --------
    >>> from mlsys.mapping import gemm_space
    >>> space, same = gemm_space(4, 4, 4), gemm_space(4, 4, 4, name="another name")
    >>> key_of(space, (64,), ("L1",), "traffic") == key_of(same, (64,), ("L1",), "traffic")
    True
    """
    operands = [[[axis.dims, axis.stride] for axis in operand.axes] for operand in space.operands]
    question = [list(space.sizes.items()), operands, list(capacities), list(memories), objective, _code()]
    return hashlib.sha256(json.dumps(question).encode()).hexdigest()


def lookup(key: str, disk: bool, holds: Callable[[Best], bool]) -> Best | None:
    """Return a proven result from this process or, if requested, from disk.

    A result from disk is used only if its checksum is correct and ``holds`` confirms that the mapping has the stated
    cost; otherwise it is computed again.
    """
    if key not in _HERE and disk:
        try:
            best = _from_json(key, read_json(cache_folder() / f"{key}.json"))
            if not holds(best):
                return None
        except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
            return None
        _HERE[key] = best
    return _HERE.get(key)


def store(key: str, best: Best, disk: bool) -> None:
    """Store a proven result; results of stopped searches are not stored.

    A folder that cannot be written causes a warning, not an error.
    """
    if not best.proven:
        return
    _HERE[key] = best
    if not disk:
        return
    try:
        write_text(cache_folder() / f"{key}.json", json.dumps(_to_json(key, best)), folders=True)
    except OSError as error:
        warnings.warn(
            f"mapper: the result is not stored: {error}. Give another cache folder, e.g. XDG_CACHE_HOME=/tmp",
            RuntimeWarning,
            stacklevel=2,
        )


def clear() -> None:
    """Clear the results of this process; files are kept."""
    _HERE.clear()


def _to_json(key: str, best: Best) -> dict[str, Any]:
    assert best.nest is not None
    levels = [[level.memory, dict(level.tile), level.order, level.keeps] for level in best.nest.levels]
    counts = {"bounded": best.bounded, "tried": best.tried, "covered": best.covered}
    data = {"value": best.value, "words": best.words, "levels": levels, **counts}
    return {**data, "checksum": _checksum(key, data)}


def _checksum(key: str, data: dict[str, Any]) -> str:
    """Return a digest of a result and of its problem."""
    return hashlib.sha256(json.dumps([key, data], sort_keys=True).encode()).hexdigest()


def _from_json(key: str, data: dict[str, Any]) -> Best:
    if data.pop("checksum") != _checksum(key, data):
        raise ValueError("the file is damaged, or is for another problem")
    levels = tuple(
        TileLevel(m, FrozenDict(tile), tuple(order), tuple(keeps)) for m, tile, order, keeps in data["levels"]
    )
    value = float(data["value"])
    return Best(
        value, tuple(data["words"]), LoopNest(levels), data["bounded"], data["tried"], data["covered"], True, value
    )
