"""Serving of language models: an event simulator of continuous batching, and static batching beside it."""

from mlsys.models.serving.requests import Requests, offline_requests, poisson_requests
from mlsys.models.serving.settings import ServerSettings
from mlsys.models.serving.simulate import ServingRun, simulate
from mlsys.models.serving.steps import TabulatedSteps

__all__ = [
    "Requests",
    "ServerSettings",
    "ServingRun",
    "TabulatedSteps",
    "offline_requests",
    "poisson_requests",
    "simulate",
]
