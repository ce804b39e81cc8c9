"""Names that an argument may take, where the library and the command line offer the same.

One alias a choice: ``typing.get_args`` of it is the list that the door checks and that the command offers. What only
one room offers stands there.
"""

from typing import Literal

Phase = Literal["prefill", "decode"]
"""Of a decoder language model: reading the prompt, or making one token more."""
Stationary = Literal["ws", "os", "is"]
"""Which operand of a product stays in the array: weights, outputs or inputs."""
Convention = Literal["physical", "scalesim"]
"""Who counts the cycles of a systolic array."""
FoldOverlap = Literal["none", "load", "full"]
"""How the folds of a product follow each other in an array."""
Objective = Literal["traffic", "energy", "latency", "edp"]
"""What a mapping is the best of."""
Goal = Literal["latency", "efficiency", "balanced", "throughput"]
"""What a placement of a pipeline is the best of."""
Strategy = Literal["auto", "exact", "beam"]
"""How a placement is searched for."""
PackingStrategy = Literal["size", "breadth", "lifetime", "first-come", "best", "exact"]
"""How buffers are placed in one block: by a rule, by the best of the rules, or by a search that mostly proves it."""
Processor = Literal["cpu", "cuda"]
"""What PyTorch runs on."""
TimedFormat = Literal["fp32", "fp16", "bf16"]
"""Number format in which this machine is timed."""
