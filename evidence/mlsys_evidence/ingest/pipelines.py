"""Networks cut into stages on machines one after the other, through which a mini-batch goes in pieces."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlsys.calibration.rows import Row


@dataclass(frozen=True)
class Stages:
    """A pipeline as GPipe has it (Huang et al. 2019, arXiv:1811.06965): stages of equal work, forward and back.

    Attributes
    ----------
    stages
        Machines, each with a part of the network; 0 where a row states no pipeline.
    pieces
        Micro-batches of a mini-batch.
    again
        Part of the forward passes that is computed again for the gradients: of all micro-batches save the last one,
        which torchgpipe keeps (``checkpoint="except_last"``, its default).
    """

    stages: int = 0
    pieces: int = 1
    again: float = 0.0

    @classmethod
    def of(cls, row: Row) -> Stages:
        """Return the stages that a row states.

        Examples
        --------
        >>> from mlsys_evidence.rows import shipped_rows
        >>> row = next(row for row in shipped_rows() if "pipeline of 4" in row.workload)
        >>> Stages.of(row)
        Stages(stages=4, pieces=256, again=0.99609375)
        """
        stages = re.search(r"pipeline of (\d+)", row.workload)
        if stages is None:
            return cls()
        stated = re.search(r"(\d+) micro-batches", row.note)
        pieces = int(stated.group(1)) if stated else 1
        again = 1 - 1 / pieces if "activations recomputed" in row.workload else 0.0
        return cls(int(stages.group(1)), pieces, again)

    @property
    def turns(self) -> float:
        """Micro-batches that a mini-batch takes as long as, were each to go through all of the network on one machine.

        The last of them reaches the last stage after a turn for each piece and for each stage save one, and each turn
        is a stage's part of the network.
        """
        return (self.pieces + self.stages - 1) / self.stages if self.stages else 1.0
