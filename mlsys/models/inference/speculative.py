"""Speculative decoding: tokens that a draft model proposes and the large model verifies in one step."""

from __future__ import annotations

from dataclasses import dataclass

from mlsys.choices import Phase
from mlsys.errors import ArgumentError
from mlsys.mapping.parallel import Layout
from mlsys.models.inference.arguments import option_name
from mlsys.models.inference.phases import InferenceModel, PhaseTime
from mlsys.models.inference.plan import Draft
from mlsys.unit_checks import checked_count, checked_counts, checked_number, fraction
from mlsys.workloads.zoo.decoder import Decoder

__all__ = ["SpeculativeStep", "accepted_tokens", "checked_draft", "draft_layout", "speculative_step"]

_MOST_DRAFTED = 64
# Tokens by which tables of one family differ, being padded; llama.cpp (common/speculative.cpp) allows as many.
_PADDED = 128


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
    draft, verify
        A step of the small model, and the pass of the large one that verifies all drafted tokens.
    plain
        A step of the large model alone.
    drafted
        Tokens drafted in a round.
    tokens
        Expected tokens of a round, of each sequence.
    """

    draft: PhaseTime
    verify: PhaseTime
    plain: PhaseTime
    drafted: int
    tokens: float

    @property
    def tpot(self) -> PhaseTime:
        """Expected time between tokens: a round over the tokens that it yields."""
        names = PhaseTime.__dataclass_fields__
        return PhaseTime(
            **{
                name: (self.drafted * getattr(self.draft, name) + getattr(self.verify, name)) / self.tokens
                for name in names
            }
        )

    @property
    def speedup(self) -> float:
        """How many times as fast as without drafts; below 1 where drafting costs more than it saves."""
        return self.plain.seconds / self.tpot.seconds


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

    References
    ----------
    Leviathan et al. 2023, as for :func:`accepted_tokens`; where verification takes as long as a step of the large
    model, the speedup is that of their theorem 3.8.

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
    return SpeculativeStep(
        draft.decode_step(batch, context),
        model.step(batch, drafted + 1, context + drafted),
        model.decode_step(batch, context),
        drafted,
        accepted_tokens(acceptance, drafted),
    )


def draft_layout(draft: Decoder, layout: Layout) -> Layout:
    """Return how a draft model lies on the chips of a large one: split by its tensor parallelism, or on each chip.

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> for name in ("llama-3.2-1b", "gpt2"):
    ...     print(draft_layout(language_model(name), Layout(tp=8)))
    tp 8
    one chip
    """
    split = Layout(tp=layout.tp, dp=layout.dp)
    return split if split.fits(draft) else Layout(dp=layout.dp)


def checked_draft(
    model: Decoder,
    draft: Decoder | None,
    tokens: int | None,
    acceptance: float | None,
    *,
    phase: Phase | None = None,
    option: str = "`{}`",
) -> Draft | None:
    """Return a draft with all arguments checked; None if none is given.

    Parameters
    ----------
    model, draft
        The large model and the small one.
    tokens, acceptance
        As of :class:`~mlsys.models.inference.plan.Draft`.
    phase
        The phase that is requested; None for both.
    option
        Form of an argument's name, for messages.

    Raises
    ------
    ArgumentError
        If only some of the three are given; if one is out of range; if the models have other vocabularies; if one keeps
        a state of fixed size or reads an encoder; or if nothing is decoded.
    """
    names = {"draft": draft, "draft_tokens": tokens, "acceptance": acceptance}
    missing = [option_name(option, name) for name, value in names.items() if value is None]
    if len(missing) == len(names):
        return None
    given = next(option_name(option, name) for name, value in names.items() if value is not None)
    if draft is None or tokens is None or acceptance is None:
        raise ArgumentError(
            f"{given} is one of three: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing. Give "
            "the draft model, the tokens that it drafts at a time, such as 4, and the share of them that the model "
            "accepts, such as 0.8"
        )
    tokens = checked_count("size", option_name(option, "draft_tokens"), tokens)
    if tokens > _MOST_DRAFTED:
        raise ArgumentError(f"{option_name(option, 'draft_tokens')} must be at most {_MOST_DRAFTED}, got {tokens}")
    acceptance = checked_number("size", option_name(option, "acceptance"), acceptance, fraction(), {})
    name = option_name(option, "draft")
    if phase == "prefill":
        raise ArgumentError(f"{name} plays no part in a prefill alone. Leave one of the two out")
    for each in (model, draft):
        if each.encoder is not None:
            raise ArgumentError(f"{name}: {each.name} has an encoder, which is not modelled here")
        if any(layer.recurrence is not None for layer in each.layer_list):
            raise ArgumentError(
                f"{name}: layers of {each.name} keep a state of fixed size, which a rejected token "
                "has changed already. Use a model whose layers all attend"
            )
    if abs(model.vocabulary - draft.vocabulary) > _PADDED:
        raise ArgumentError(
            f"{name}: {draft.name} has a vocabulary of {draft.vocabulary:,} tokens and {model.name} "
            f"of {model.vocabulary:,}, so that it cannot propose its tokens. Use a smaller model of the same family"
        )
    return Draft(draft, tokens, acceptance)
