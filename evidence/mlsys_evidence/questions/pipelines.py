"""Networks cut into stages on machines one after the other, through which a mini-batch goes in pieces."""

from __future__ import annotations

from dataclasses import dataclass

from mlsys_evidence.typed_rows import TypedRow


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
    def of(cls, row: TypedRow) -> Stages:
        """Return the stages that a row states.

        Examples
        --------
        >>> from mlsys_evidence.rows import shipped_rows
        >>> from mlsys_evidence.questions import typed
        >>> row = next(row for row in shipped_rows() if "pipeline of 4" in row.workload)
        >>> Stages.of(typed(row))
        Stages(stages=4, pieces=256, again=0.99609375)
        """
        if "pipeline_stages" not in row.numbers:
            return cls()
        pieces = int(row.get("micro_batches", 1))
        again = 1 - 1 / pieces if row.has("activations recomputed") else 0.0
        return cls(row.number("pipeline_stages"), pieces, again)

    @property
    def turns(self) -> float:
        """Micro-batches that a mini-batch takes as long as, were each to go through all of the network on one machine.

        The last of them reaches the last stage after a turn for each piece and for each stage save one, and each turn
        is a stage's part of the network.
        """
        return (self.pieces + self.stages - 1) / self.stages if self.stages else 1.0
