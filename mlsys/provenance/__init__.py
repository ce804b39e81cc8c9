"""Where a number comes from: facts with a pedigree and the steps that join them.

A :class:`Fact` is a leaf: somebody published a value and we can say who, when
and what it means. A :class:`Step` is a node: an operator or a formula applied
to operands. Quantities carry one of the two, so a result can always be asked
which facts it leans on and by which sum it was reached.

Facts are handed out by :func:`read`, which recorders and what-ifs hear of.
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
