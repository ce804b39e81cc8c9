"""A mapping that cannot be changed."""

import copy
import operator
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mlsys.frozen import FrozenDict


def test_it_is_a_mapping_in_the_order_given() -> None:
    levels = FrozenDict({"HBM": 1, "L2": 2})
    assert isinstance(levels, Mapping)
    assert list(levels.items()) == [("HBM", 1), ("L2", 2)]
    assert levels == {"L2": 2, "HBM": 1}
    assert (levels["L2"], levels.get("L1"), "HBM" in levels, len(levels)) == (2, None, True, 2)
    assert repr(levels) == "{'HBM': 1, 'L2': 2}"
    with pytest.raises(KeyError):
        levels["L1"]


CHANGES: dict[str, Callable[[Any], object]] = {
    "setitem": lambda d: operator.setitem(d, "HBM", 2),
    "delitem": lambda d: operator.delitem(d, "HBM"),
    "update": lambda d: d.update(HBM=2),
    "pop": lambda d: d.pop("HBM"),
    "clear": lambda d: d.clear(),
    "setdefault": lambda d: d.setdefault("L2", 2),
    "new attribute": lambda d: setattr(d, "extra", 1),
    "its slot": lambda d: setattr(d, "_items", {}),
    "inside its slot": lambda d: d._items.update(HBM=2),
    "or in place": lambda d: operator.ior(d, {"HBM": 2}),
    "delete slot": lambda d: delattr(d, "_items"),
}


@pytest.mark.parametrize("way", CHANGES)
def test_no_way_to_change_it(way: str) -> None:
    levels = FrozenDict({"HBM": 1})
    with pytest.raises((TypeError, AttributeError)):
        CHANGES[way](levels)
    assert dict(levels) == {"HBM": 1}


def test_it_does_not_follow_the_dict_it_was_made_from() -> None:
    origin = {"HBM": 1}
    levels = FrozenDict(origin)
    origin["HBM"] = 2
    assert levels["HBM"] == 1


def test_equal_ones_hash_alike_and_copies_are_equal() -> None:
    first, other = FrozenDict({"a": 1, "b": 2}), FrozenDict({"b": 2, "a": 1})
    assert hash(first) == hash(other)
    assert len({first, other}) == 1
    for twin in (copy.copy(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert twin == first
        assert type(twin) is FrozenDict
