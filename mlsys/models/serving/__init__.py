"""Serving of language models: an event simulator of continuous batching, and static batching beside it."""

from mlsys.models.serving.answer import ServingResult
from mlsys.models.serving.copies import Copy, Service, copy_of, service_of
from mlsys.models.serving.objectives import Objectives
from mlsys.models.serving.requests import OutputLengths, Prefixes, Requests, offline_requests, poisson_requests
from mlsys.models.serving.settings import ServerSettings
from mlsys.models.serving.simulate import ServingRun, batch_means, simulate
from mlsys.models.serving.static import StaticRun, static_batching
from mlsys.models.serving.steps import TabulatedSteps
from mlsys.models.serving.traces import read_trace

__all__ = [
    "Copy",
    "Objectives",
    "OutputLengths",
    "Prefixes",
    "Requests",
    "ServerSettings",
    "Service",
    "ServingResult",
    "ServingRun",
    "StaticRun",
    "TabulatedSteps",
    "batch_means",
    "copy_of",
    "offline_requests",
    "poisson_requests",
    "read_trace",
    "service_of",
    "simulate",
    "static_batching",
]
