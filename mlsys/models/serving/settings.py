"""Settings of a language-model server: batch, token budget, cache blocks, preemption, replicas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from mlsys.choices import Preemption, Routing
from mlsys.errors import ArgumentError
from mlsys.unit_checks import checked_choice, checked_count, checked_number, fraction, nonnegative


@dataclass(frozen=True)
class ServerSettings:
    """Settings of each replica of a server.

    Attributes
    ----------
    max_batch
        Largest number of sequences that run at the same time.
    token_budget
        Most tokens of an iteration: one for each decoding sequence, and the rest for prompts.
    blocks, block_size
        Blocks of the key-value cache, and tokens of each; vLLM's default size is 16.
    chunked_prefill
        Whether prompts are cut into chunks that share iterations with decoding sequences (Sarathi-Serve). Without it,
        iterations process either whole prompts, which come first, or decoding sequences.
    preemption
        ``"recompute"``, ``"swap"`` or ``"reserve"``.
    swap_seconds
        Time to move one block to or from the host, s; for ``"swap"``.
    watermark
        Share of the blocks that admission leaves free, so that running sequences can grow.
    replicas, routing
        Number of equal replicas, and how requests are assigned to them.
    shared_prefix
        Tokens with which every prompt begins, such as a system prompt (prefix caching of vLLM and SGLang). Their full
        blocks are stored once on each replica, from the start, and shared by all requests: what a prompt has of them is
        attended to and not computed. At least the last token of a prompt is computed.

    Raises
    ------
    ArgumentError, UnknownNameError
        If a setting is invalid.

    Examples
    --------
    >>> ServerSettings(max_batch=64, blocks=4096).tokens
    65536
    """

    max_batch: int = 256
    token_budget: int = 2048
    blocks: int = 8192
    block_size: int = 16
    chunked_prefill: bool = True
    preemption: Preemption = "recompute"
    swap_seconds: float = 0.0
    watermark: float = 0.01
    replicas: int = 1
    routing: Routing = "round-robin"
    shared_prefix: int = 0

    def __post_init__(self) -> None:
        where = "ServerSettings"
        for name in ("max_batch", "token_budget", "blocks", "block_size", "replicas"):
            object.__setattr__(self, name, checked_count(where, name, getattr(self, name)))
        if self.shared_prefix != 0 or isinstance(self.shared_prefix, bool):
            object.__setattr__(self, "shared_prefix", checked_count(where, "shared_prefix", self.shared_prefix))
        checked_choice(where, "preemption", self.preemption, get_args(Preemption))
        checked_choice(where, "routing", self.routing, get_args(Routing))
        checked_number(where, "swap_seconds", self.swap_seconds, nonnegative(), {})
        checked_number(where, "watermark", self.watermark, fraction(below_one=True), {})
        if self.chunked_prefill and self.token_budget < self.max_batch:
            raise ArgumentError(
                f"{where}(): `token_budget` must be at least `max_batch`, {self.max_batch}: one token for each "
                f"sequence; got {self.token_budget}"
            )

    @property
    def tokens(self) -> int:
        """Tokens that the cache of a replica holds."""
        return self.blocks * self.block_size

    @property
    def shared_blocks(self) -> int:
        """Blocks that hold the shared prefix, full ones alone."""
        return self.shared_prefix // self.block_size

    @property
    def own_blocks(self) -> int:
        """Blocks of a replica beside those of the shared prefix."""
        return self.blocks - self.shared_blocks

    @property
    def reserve(self) -> int:
        """Blocks that admission leaves free."""
        return int(self.watermark * self.blocks) if self.preemption != "reserve" else 0
