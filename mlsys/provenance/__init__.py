"""Provenance of numbers: published facts and the computations that combine them.

A :class:`Fact` is a leaf: a published value with its source, date and meaning. A
:class:`Step` is an inner node: an operator or a formula applied to operands. Every
quantity has one of the two as its origin, so that a result lists the facts it
depends on and the expression that computed it.

Facts are read by :func:`read`, which notifies recorders and applies what-ifs.
"""

from mlsys.provenance.extremes import extremes
from mlsys.provenance.origin import Fact, Origin, Step, origin_of, used_facts
from mlsys.provenance.reading import (
    Seen,
    active_whatifs,
    as_recorded,
    comparing,
    fact_magnitude,
    listen,
    perturbed,
    read,
    recording,
    remembered,
    unrecorded,
    whatifs_from_outside,
)
from mlsys.provenance.trace import label_of, origins_within, traced

__all__ = [
    "Fact",
    "Origin",
    "Seen",
    "Step",
    "active_whatifs",
    "as_recorded",
    "comparing",
    "extremes",
    "fact_magnitude",
    "label_of",
    "listen",
    "origin_of",
    "origins_within",
    "perturbed",
    "read",
    "recording",
    "remembered",
    "traced",
    "unrecorded",
    "used_facts",
    "whatifs_from_outside",
]
