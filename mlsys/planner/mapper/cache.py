"""Results kept by content: the question, and the source of the code that answers it, are the key."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlsys.frozen import FrozenDict
from mlsys.mapping.iteration import IterationSpace
from mlsys.mapping.loopnest import LoopNest, TileLevel
from mlsys.planner.mapper.hierarchy import Best

__all__ = ["cache_folder", "clear", "key_of", "lookup", "store"]

_HERE: dict[str, Best] = {}
_CODE = ("mapping", "models/dataflow", "planner/mapper")


def cache_folder() -> Path:
    """Return the folder of the results on disk: ``mlsys/mapper`` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mlsys" / "mapper"


@functools.cache
def _code() -> str:
    """Return a digest of the source that computes mappings: other code, other keys."""
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
    >>> one, same = gemm_space(4, 4, 4), gemm_space(4, 4, 4, name="another name")
    >>> key_of(one, (64,), ("L1",), "traffic") == key_of(same, (64,), ("L1",), "traffic")
    True
    """
    operands = [[[axis.dims, axis.stride] for axis in operand.axes] for operand in space.operands]
    question = [list(space.sizes.items()), operands, list(capacities), list(memories), objective, _code()]
    return hashlib.sha256(json.dumps(question).encode()).hexdigest()


def lookup(key: str, disk: bool) -> Best | None:
    """Return a proven result from this process or, if asked, from disk; a damaged file counts as none."""
    if key not in _HERE and disk:
        try:
            _HERE[key] = _from_json(json.loads((cache_folder() / f"{key}.json").read_text(encoding="utf-8")))
        except (OSError, ValueError, LookupError, TypeError):
            return None
    return _HERE.get(key)


def store(key: str, best: Best, disk: bool) -> None:
    """Keep a proven result; what a stopped search found is not kept."""
    if not best.proven:
        return
    _HERE[key] = best
    if disk:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".part", delete=False, encoding="utf-8") as stream:
            json.dump(_to_json(best), stream)
        Path(stream.name).replace(folder / f"{key}.json")


def clear() -> None:
    """Forget the results of this process; files stay."""
    _HERE.clear()


def _to_json(best: Best) -> dict[str, Any]:
    assert best.nest is not None
    levels = [[level.memory, dict(level.tile), level.order, level.keeps] for level in best.nest.levels]
    counts = {"bounded": best.bounded, "tried": best.tried, "covered": best.covered}
    return {"value": best.value, "words": best.words, "levels": levels, **counts}


def _from_json(data: dict[str, Any]) -> Best:
    levels = tuple(
        TileLevel(m, FrozenDict(tile), tuple(order), tuple(keeps)) for m, tile, order, keeps in data["levels"]
    )
    return Best(
        data["value"], tuple(data["words"]), LoopNest(levels), data["bounded"], data["tried"], data["covered"], True
    )
