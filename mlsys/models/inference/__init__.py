"""Inference of language models over many chips: memory, prefill and decode, largest batch and sequence."""

from mlsys.models.inference.formats import Formats, formats_on
from mlsys.models.inference.limits import Limits
from mlsys.models.inference.memory import MemoryModel, MemoryParts
from mlsys.models.inference.money import Money
from mlsys.models.inference.pareto import Choice, pareto_front
from mlsys.models.inference.phases import InferenceModel, PhaseTime
from mlsys.models.inference.placed import Placed, Rates
from mlsys.models.inference.plan import Draft, InferenceRequest, Tokens
from mlsys.models.inference.result import Sizing
from mlsys.models.inference.search import Found, Search
from mlsys.models.inference.shard import Shard, shard_of
from mlsys.models.inference.sizing import size_model
from mlsys.models.inference.speculative import SpeculativeStep, accepted_tokens, speculative_step

__all__ = [
    "Choice",
    "Draft",
    "Formats",
    "Found",
    "InferenceModel",
    "InferenceRequest",
    "Limits",
    "MemoryModel",
    "MemoryParts",
    "Money",
    "PhaseTime",
    "Placed",
    "Rates",
    "Search",
    "Shard",
    "Sizing",
    "SpeculativeStep",
    "Tokens",
    "accepted_tokens",
    "formats_on",
    "pareto_front",
    "shard_of",
    "size_model",
    "speculative_step",
]
