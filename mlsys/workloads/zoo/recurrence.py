"""Token mixers with a state of fixed size: state-space layers, linear attention, gated recurrences, convolutions."""

from dataclasses import dataclass
from typing import NamedTuple

STATE_FORMAT = "fp32"
"""Number format in which transformers and the reference kernels keep the recurrent state."""

# FLOP for each element of the state and each token.
SCAN_OPERATIONS = {
    "mamba": 6,  # decay × state + step × B × x is 4, times C and summed is 2 (Gu & Dao 2023, arXiv:2312.00752, eq. 2)
    "mamba-2": 5,  # the step is scaled by head, so that one product less is taken (arXiv:2405.21060, section 6)
    "gated delta rule": 7,  # decay 1, what is stored under the key 2, correction added 2, read by the query 2
    "lightning attention": 5,  # decay 1, outer product of key and value added 2, read by the query 2
    "gated linear recurrence": 8,  # gates from two sigmoids' inputs, decay, scaled input, sum (arXiv:2402.19427, eq. 4)
    "short convolution": 0,
}


class Projection(NamedTuple):
    """A dense layer of a mixer, or one of ``blocks`` equal blocks on the diagonal of its matrix."""

    operator: str
    name: str
    inputs: int
    outputs: int
    bias: bool = False
    blocks: int = 1

    @property
    def elements(self) -> int:
        """Weights of all blocks."""
        return self.inputs * self.outputs * self.blocks


@dataclass(frozen=True)
class Recurrence:
    """A mixer that keeps the past of a sequence in a state of fixed size instead of a cache that grows.

    Attributes
    ----------
    kind
        One of ``SCAN_OPERATIONS``.
    into, gates, out
        Projections before the convolution, those that read its output, and those that end the mixer.
    channels, kernel
        Channels of the causal depthwise convolution and its length; a kernel of 0 for none.
    convolution_bias
        Whether the convolution has a bias.
    kept
        Columns of the convolution's input that are kept for the next token.
    state
        Elements of the recurrent state of one sequence.
    width
        Elements that the recurrence returns for each token.
    small
        Parameters that are neither matrices, nor their biases, nor the convolution.

    Examples
    --------
    >>> short = Recurrence("short convolution", (), (), (), channels=64, kernel=3, kept=3)
    >>> short.convolution_elements, short.convolution_parameters, short.state
    (192, 192, 0)
    """

    kind: str
    into: tuple[Projection, ...]
    gates: tuple[Projection, ...]
    out: tuple[Projection, ...]
    channels: int = 0
    kernel: int = 0
    convolution_bias: bool = False
    kept: int = 0
    state: int = 0
    width: int = 0
    small: int = 0

    @property
    def projections(self) -> tuple[Projection, ...]:
        """All dense layers in execution order."""
        return (*self.into, *self.gates, *self.out)

    @property
    def convolution_parameters(self) -> int:
        """Taps and biases of the convolution."""
        return self.channels * (self.kernel + self.convolution_bias) if self.kernel else 0

    @property
    def convolution_elements(self) -> int:
        """Elements of the convolution's input that are kept for each sequence."""
        return self.channels * self.kept

    @property
    def scan_operations(self) -> int:
        """FLOP of the recurrence for one token."""
        return SCAN_OPERATIONS[self.kind] * self.state


def short_convolution(hidden: int, kernel: int) -> Recurrence:
    """Return LFM2's gated short convolution (Liquid AI 2025, arXiv:2511.23404, section 2)."""
    return Recurrence(
        "short convolution",
        into=(Projection("convolution in", "conv.in_proj", hidden, 3 * hidden),),
        gates=(),
        out=(Projection("convolution out", "conv.out_proj", hidden, hidden),),
        channels=hidden, kernel=kernel, kept=kernel,
    )  # fmt: skip


def mamba(
    hidden: int, inner: int, state: int, rank: int, kernel: int, *, bias: bool, convolution_bias: bool, small: int = 0
) -> Recurrence:
    """Return a selective state-space mixer, Mamba (Gu & Dao 2023, arXiv:2312.00752, section 3.4).

    Parameters
    ----------
    hidden, inner
        Width of the residual stream, and of the mixer.
    state, rank
        Elements of the state of each channel, and width of the projection that gives the step sizes.
    kernel
        Length of the convolution.
    bias, convolution_bias
        Whether the outer projections and the convolution have biases.
    small
        Parameters of further normalisations.
    """
    return Recurrence(
        "mamba",
        into=(Projection("state-space in", "mamba.in_proj", hidden, 2 * inner, bias),),
        gates=(
            Projection("state-space gates", "mamba.x_proj", inner, rank + 2 * state),
            Projection("state-space step", "mamba.dt_proj", rank, inner, True),
        ),
        out=(Projection("state-space out", "mamba.out_proj", inner, hidden, bias),),
        channels=inner, kernel=kernel, convolution_bias=convolution_bias, kept=kernel, state=inner * state,
        width=inner, small=inner * state + inner + small,
    )  # fmt: skip


def mamba2(
    hidden: int, heads: int, head_dim: int, state: int, groups: int, kernel: int, *, bias: bool, out_bias: bool,
    convolution_bias: bool, normed: bool = True,
) -> Recurrence:  # fmt: skip
    """Return a state-space mixer with heads, Mamba-2 (Dao & Gu 2024, arXiv:2405.21060, section 7).

    Parameters
    ----------
    hidden
        Width of the residual stream.
    heads, head_dim, state, groups
        Heads, width of each, elements of the state of each channel, and groups of heads that share B and C.
    kernel
        Length of the convolution.
    bias, out_bias, convolution_bias
        Whether the projections and the convolution have biases.
    normed
        Whether a gated normalisation precedes the output projection.
    """
    inner = heads * head_dim
    channels = inner + 2 * groups * state
    return Recurrence(
        "mamba-2",
        into=(Projection("state-space in", "mamba.in_proj", hidden, inner + channels + heads, bias),),
        gates=(),
        out=(Projection("state-space out", "mamba.out_proj", inner, hidden, out_bias),),
        channels=channels, kernel=kernel, convolution_bias=convolution_bias, kept=kernel, state=inner * state,
        width=inner, small=3 * heads + inner * normed,
    )  # fmt: skip


def gated_delta_rule(
    hidden: int, key_heads: int, value_heads: int, key_dim: int, value_dim: int, kernel: int, *, separate: bool = False
) -> Recurrence:
    """Return a gated delta network (Yang et al. 2024, arXiv:2412.06464) as Qwen3-Next has it.

    Parameters
    ----------
    hidden
        Width of the residual stream.
    key_heads, value_heads, key_dim, value_dim
        Heads of keys and queries, heads of values, and the width of each.
    kernel
        Length of the convolution over queries, keys and values.
    separate
        Whether queries, keys and values, their gate, and the two rates have a projection each.
    """
    keys, values = key_heads * key_dim, value_heads * value_dim
    rates = (("in_proj_b", value_heads), ("in_proj_a", value_heads))
    wide = (
        (("in_proj_qkv", 2 * keys + values), ("in_proj_z", values), *rates)
        if separate
        else (("in_proj_qkvz", 2 * keys + 2 * values), ("in_proj_ba", 2 * value_heads))
    )
    return Recurrence(
        "gated delta rule",
        into=tuple(Projection(f"linear attention {name}", f"linear_attn.{name}", hidden, each) for name, each in wide),
        gates=(),
        out=(Projection("linear attention out", "linear_attn.out_proj", values, hidden),),
        channels=2 * keys + values, kernel=kernel, kept=kernel, state=value_heads * key_dim * value_dim,
        width=values, small=2 * value_heads + value_dim,
    )  # fmt: skip


def kimi_delta_attention(hidden: int, heads: int, head_dim: int, kernel: int) -> Recurrence:
    """Return the gated delta rule with a decay for each channel (Kimi Team 2025, arXiv:2510.26692, section 3)."""
    wide = heads * head_dim
    into = {"q_proj": wide, "k_proj": wide, "v_proj": wide, "f_a_proj": head_dim, "b_proj": heads, "g_a_proj": head_dim}

    def projection(part: str, inputs: int, outputs: int) -> Projection:
        return Projection(f"linear attention {part}", f"self_attn.{part}", inputs, outputs)

    return Recurrence(
        "gated delta rule",
        into=tuple(projection(part, hidden, outputs) for part, outputs in into.items()),
        gates=tuple(projection(part, head_dim, wide) for part in ("f_b_proj", "g_b_proj")),
        out=(Projection("linear attention out", "self_attn.o_proj", wide, hidden),),
        channels=3 * wide, kernel=kernel, kept=kernel, state=heads * head_dim * head_dim,
        width=wide, small=wide + heads + head_dim,
    )  # fmt: skip


def lightning_attention(hidden: int, heads: int, head_dim: int) -> Recurrence:
    """Return linear attention with a fixed decay for each head (MiniMax 2025, arXiv:2501.08313, section 2.2)."""
    wide = heads * head_dim
    return Recurrence(
        "lightning attention",
        into=(
            Projection("linear attention query, key, value", "self_attn.qkv_proj", hidden, 3 * wide),
            Projection("linear attention gate", "self_attn.output_gate", hidden, wide),
        ),
        gates=(),
        out=(Projection("linear attention out", "self_attn.out_proj", wide, hidden),),
        state=heads * head_dim * head_dim, width=wide, small=wide,
    )  # fmt: skip


def gated_linear_recurrence(hidden: int, width: int, blocks: int, kernel: int) -> Recurrence:
    """Return Griffin's recurrent block, with an RG-LRU (De et al. 2024, arXiv:2402.19427, section 2.4).

    Parameters
    ----------
    hidden, width
        Width of the residual stream and of the recurrence.
    blocks
        Blocks on the diagonal of the matrices of its two gates.
    kernel
        Length of the convolution.
    """
    each = width // blocks
    names = ("input_gate", "recurrent_gate")
    return Recurrence(
        "gated linear recurrence",
        into=(
            Projection("recurrence gate branch", "temporal_block.linear_y", hidden, width, True),
            Projection("recurrence in", "temporal_block.linear_x", hidden, width, True),
        ),
        gates=tuple(
            Projection(f"recurrence {name}", f"temporal_block.rg_lru.{name}", each, each, True, blocks)
            for name in names
        ),
        out=(Projection("recurrence out", "temporal_block.linear_out", width, hidden, True),),
        channels=width, kernel=kernel, convolution_bias=True, kept=kernel - 1, state=width, width=width, small=width,
    )  # fmt: skip
