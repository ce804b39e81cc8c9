"""Speculative decoding: tokens that a draft model proposes and the large model verifies in one step."""

from __future__ import annotations

from dataclasses import dataclass

from mlsys.models.inference.phases import InferenceModel
from mlsys.unit_checks import checked_count, checked_counts, checked_number, fraction

__all__ = ["SpeculativeStep", "accepted_tokens", "speculative_step"]


def accepted_tokens(acceptance: float, drafted: int) -> float:
    """Return the expected tokens that one verification yields.

    Parameters
    ----------
    acceptance
        Probability that a drafted token is accepted, 0 to 1, the same and independent for each.
    drafted
        Tokens drafted for one verification.

    Returns
    -------
    float
        ``(1 − acceptance**(drafted + 1)) / (1 − acceptance)``: the drafted tokens up to the first that is rejected,
        and the one that the large model gives in any case.

    Raises
    ------
    ArgumentError
        If the acceptance is out of range, or the number is not a whole one from 1.

    References
    ----------
    Y. Leviathan, M. Kalman, Y. Matias, Fast Inference from Transformers via Speculative Decoding, ICML 2023
    (arXiv:2211.17192), equation 1.

    Examples
    --------
    >>> round(accepted_tokens(0.8, 4), 4), accepted_tokens(0.0, 4), accepted_tokens(1.0, 4)
    (3.3616, 1.0, 5.0)
    """
    checked_number("accepted_tokens", "acceptance", acceptance, fraction(), {})
    count = checked_count("accepted_tokens", "drafted", drafted)
    return float(sum(acceptance**position for position in range(count + 1)))


@dataclass(frozen=True)
class SpeculativeStep:
    """A round of speculative decoding.

    Attributes
    ----------
    draft_seconds, verify_seconds
        Drafting all tokens one by one, and verifying them in one pass of the large model.
    tokens
        Expected tokens of a round, of each sequence.
    plain_seconds
        A step of the large model alone.
    """

    draft_seconds: float
    verify_seconds: float
    tokens: float
    plain_seconds: float

    @property
    def tpot_seconds(self) -> float:
        """Expected time between tokens."""
        return (self.draft_seconds + self.verify_seconds) / self.tokens

    @property
    def speedup(self) -> float:
        """How many times as fast as without drafts; below 1 where drafting costs more than it saves."""
        return self.plain_seconds / self.tpot_seconds


def speculative_step(
    model: InferenceModel, draft: InferenceModel, *, batch: int, context: int, drafted: int, acceptance: float
) -> SpeculativeStep:
    """Return the time of a round of speculative decoding.

    The draft model runs ``drafted`` steps, the large one a single pass over ``drafted + 1`` tokens of each sequence.
    In a small batch such a pass reads the weights once and takes little longer than a step; in a large one it computes
    as many products as the steps that it replaces.

    Parameters
    ----------
    model, draft
        The large model and the small one, each on its chips.
    batch, context
        Sequences, and tokens that each attends to.
    drafted, acceptance
        As for :func:`accepted_tokens`.

    Raises
    ------
    ArgumentError
        If a number is out of range.

    Examples
    --------
    >>> from mlsys.hardware import as_system
    >>> from mlsys.mapping.parallel import Layout
    >>> from mlsys.models.inference.formats import formats_on
    >>> from mlsys.workloads.zoo import language_model
    >>> chip = as_system("H100")
    >>> large, small = (
    ...     InferenceModel(chip, each, Layout(), formats_on(chip.device, each, None, None, None))
    ...     for each in map(language_model, ("llama-3-8b", "llama-3.2-1b"))
    ... )
    >>> rounds = [
    ...     speculative_step(large, small, batch=batch, context=1000, drafted=3, acceptance=0.8) for batch in (1, 256)
    ... ]
    >>> rounds[0].speedup > 1.5 > rounds[1].speedup
    True
    """
    batch, context, drafted = checked_counts("speculative_step", batch=batch, context=context, drafted=drafted)
    tokens = accepted_tokens(acceptance, drafted)
    return SpeculativeStep(
        drafted * draft.decode_step(batch, context).seconds,
        model.step(batch, drafted + 1, context + drafted).seconds,
        tokens,
        model.decode_step(batch, context).seconds,
    )
