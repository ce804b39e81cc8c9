"""Requests for an inference: tokens of prompts and answers, sequences at once, and how they are counted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlsys.choices import Phase
from mlsys.errors import ArgumentError
from mlsys.unit_checks import checked_count
from mlsys.workloads.zoo.decoder import Decoder

MOST_TOKENS = 10_000_000
"""Most tokens of a sequence: a prompt is timed chunk by chunk."""
DEFAULT_SEQUENCE = 2048
"""Tokens of a sequence where nothing is said."""


@dataclass(frozen=True)
class Tokens:
    """Lengths of sequences.

    Attributes
    ----------
    prompt, output
        Tokens that a sequence begins with, and those that follow; ``output`` is 0 if only ``sequence`` is given.
    sequence
        Tokens of a whole sequence, for which memory is reserved.
    encoded
        Whether an encoder reads the prompt, so that the decoder begins with one token and caches the answer alone.
    """

    prompt: int
    output: int
    sequence: int
    encoded: bool = False

    @property
    def begins(self) -> int:
        """Tokens that the decoder begins with."""
        return 1 if self.encoded else self.prompt

    @property
    def cached(self) -> int:
        """Tokens of a sequence in the cache of the decoder's own attention."""
        return self.output if self.encoded and self.output else self.sequence

    @property
    def context(self) -> int:
        """Tokens that the middle one of the decoding steps attends to."""
        return self.sequence if not self.output else self.begins + self.output // 2

    def read_by(self, model: Decoder) -> Decoder:
        """Return the model, whose encoder, if it has one that reads the prompt, reads this one."""
        return model.reading(self.prompt) if self.encoded else model


def tokens_of(
    model: Decoder,
    sequence: int | None,
    prompt: int | None,
    output: int | None,
    option: str = "`{}`",
) -> Tokens:
    """Return the lengths of the sequences that a caller means.

    The prompt is what an encoder reads, if the model has one that reads text; Whisper's reads 30 s of audio, and the
    prompt is the decoder's. With ``prompt`` and ``output`` a sequence has as many tokens as both together; with
    ``sequence`` and one of them the other is the rest. With ``sequence`` alone, prompts and caches both have as many
    tokens.

    Raises
    ------
    ArgumentError
        If the lengths contradict each other, or learned positions of the model do not reach so far.

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> llama = language_model("llama-3-8b")
    >>> tokens_of(llama, None, 1000, 200), tokens_of(llama, 4096, None, None).context
    (Tokens(prompt=1000, output=200, sequence=1200, encoded=False), 4096)
    """
    given = {"sequence": sequence, "prompt": prompt, "output": output}
    counts = {name: checked_count("size", name, value) for name, value in given.items() if value is not None}
    longest = learned_positions(model)
    whole = counts.get("sequence")
    if "prompt" in counts and "output" in counts:
        both = counts["prompt"] + counts["output"]
        if whole is not None and whole != both:
            raise ArgumentError(
                f"{option.format('sequence')} {whole} is not {option.format('prompt')} {counts['prompt']} + "
                f"{option.format('output')} {counts['output']} = {both}. Leave one of them out"
            )
        tokens = Tokens(counts["prompt"], counts["output"], both)
    elif "prompt" in counts or "output" in counts:
        name, other = ("prompt", "output") if "prompt" in counts else ("output", "prompt")
        if whole is None:
            whole = counts[name] + (0 if name == "prompt" else DEFAULT_SEQUENCE)
        rest = whole - counts[name]
        if rest < (0 if name == "prompt" else 1):
            raise ArgumentError(
                f"{option.format(name)} {counts[name]} leaves {rest} of {option.format('sequence')} {whole} for "
                f"{option.format(other)}. Give a longer sequence"
            )
        tokens = Tokens(counts["prompt"], rest, whole) if name == "prompt" else Tokens(rest, counts["output"], whole)
    else:
        whole = whole or min(DEFAULT_SEQUENCE, longest or DEFAULT_SEQUENCE)
        tokens = Tokens(whole, 0, whole)
    if model.encoder is not None and not model.encoder.fixed:
        tokens = replace(tokens, encoded=True)
    read = max(tokens.prompt, tokens.cached) if tokens.encoded else tokens.sequence  # each half has its own positions
    if longest and read > longest:
        what = "prompts and answers" if tokens.encoded else "sequences"
        raise ArgumentError(
            f"{model.name} has learned positions for {longest} tokens, got {what} of {read}. Give at most {longest}"
        )
    if tokens.sequence > MOST_TOKENS:
        raise ArgumentError(
            f"size(): sequences of at most {MOST_TOKENS:,} tokens are sized, got {tokens.sequence:,}. Give fewer"
        )
    return tokens


def learned_positions(model: Decoder) -> int:
    """Return the most tokens that the learned positions of a model allow; 0 where it has none.

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> learned_positions(language_model("gpt2")), learned_positions(language_model("llama-3-8b"))
    (1024, 0)
    """
    return getattr(model, "learned", 0) or model.positions


@dataclass(frozen=True)
class Draft:
    """A small model that proposes tokens, which the large one verifies in one pass: speculative decoding.

    Attributes
    ----------
    model
        The small model; it runs on the chips of the large one.
    tokens
        Tokens drafted for one verification.
    acceptance
        Probability that a drafted token is accepted, the same and independent for each.
    """

    model: Decoder
    tokens: int
    acceptance: float


@dataclass(frozen=True)
class InferenceRequest:
    """Request for an inference.

    Attributes
    ----------
    tokens
        Lengths of sequences.
    batch
        Sequences that one copy of the model decodes at once.
    phase
        ``"prefill"`` or ``"decode"`` alone; None for both.
    replicas
        Copies of the model side by side.
    weight_format, kv_format, precision
        Formats of weights, cache and arithmetic; None for the usual ones.
    usable
        Part of each chip's memory that weights, cache and activations may fill.
    chunk
        Most tokens of a prompt in one pass.
    windows
        Whether local layers keep only their window of the cache.
    software
        Name of the software that is timed; None for the usual one.
    draft
        Model that drafts tokens; None for plain decoding.
    """

    tokens: Tokens
    batch: int = 1
    phase: Phase | None = None
    replicas: int = 1
    weight_format: str | None = None
    kv_format: str | None = None
    precision: str | None = None
    usable: float = 0.9
    chunk: int = 8192
    windows: bool = True
    software: str | None = None
    draft: Draft | None = None
