"""Choices that the library and the command line share, as ``Literal`` types.

``typing.get_args`` of a type gives the values that functions accept and that commands offer. Choices of a single
subpackage are defined there.
"""

from typing import Literal

Phase = Literal["prefill", "decode"]
"""Phase of inference of a decoder language model: processing the prompt, or generating one token."""
Stationary = Literal["ws", "os", "is"]
"""Operand that stays in a systolic array: weights, outputs or inputs."""
Convention = Literal["physical", "scalesim"]
"""Convention for counting the cycles of a systolic array."""
FoldOverlap = Literal["none", "load", "full"]
"""Overlap of consecutive folds of a product in a systolic array."""
Objective = Literal["traffic", "energy", "latency", "edp"]
"""Objective that a mapping minimises."""
Goal = Literal["latency", "efficiency", "balanced", "throughput"]
"""Goal that the placement of a pipeline is optimised for."""
Strategy = Literal["auto", "exact", "beam"]
"""Search strategy for a placement."""
PackingStrategy = Literal["size", "breadth", "lifetime", "first-come", "best", "exact"]
"""How buffers are placed in one block: by a rule, by the best of the rules, or by a search with a proof."""
Commitment = Literal["on-demand", "1-year", "3-year"]
"""Commitment of a rent: none, or a contract of one or of three years."""
Processor = Literal["cpu", "cuda"]
"""Device type that PyTorch runs on."""
TimedFormat = Literal["fp32", "fp16", "bf16"]
"""Number format of a measurement on this machine."""
PipelineSchedule = Literal["gpipe", "1f1b", "interleaved"]
"""Order of pipeline passes: all forward first, one forward and one backward in turn, or the latter over chunks."""
AttentionKernel = Literal["flash", "standard"]
"""Fused attention that never stores scores, or products and a softmax that do."""
Recompute = Literal["none", "selective", "full"]
"""What the backward pass computes again: nothing, attention scores, or whole layers from their inputs."""
Optimizer = Literal["adam", "adam-8bit", "momentum", "sgd"]
"""Update rule of training; all keep an FP32 master weight beside 16-bit weights."""
GradientFormat = Literal["fp32", "bf16"]
"""Number format in which gradients are kept and reduced."""
Overlap = Literal["none", "data", "all"]
"""Communication that runs beside computation: none, that of data parallelism, or that of all axes."""
Preemption = Literal["recompute", "swap", "reserve"]
"""What happens when no cache block is free: the latest sequence is computed again later, its blocks are swapped to
the host, or it cannot happen because admission reserves blocks for the whole output."""
Routing = Literal["round-robin", "least-loaded"]
"""How requests are assigned to replicas: in turn, or to the one with the fewest outstanding requests."""
Collective = Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv"]
"""Collective operation among chips; ``"send-recv"`` is one message."""
CollectiveAlgorithm = Literal[
    "ring",
    "tree",
    "recursive doubling",
    "recursive halving",
    "rabenseifner",
    "direct",
    "pairwise",
    "bruck",
    "hierarchical",
    "torus",
    "nvls",
]
"""Algorithm of a collective operation; which operations it serves is checked where it is used."""
CollectiveLibrary = Literal["nccl", "ideal"]
"""Whose times: NCCL's protocols as they run, or the closed forms alone."""
