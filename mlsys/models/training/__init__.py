"""Parallel training of language models: time, memory and communication of a step, and schedules of pipelines."""

from mlsys.models.training.memory import Recipe, layer_activations, recipe
from mlsys.models.training.result import TrainingStep
from mlsys.models.training.schedule import (
    Slot,
    Task,
    Timeline,
    live_micro_batches,
    pipeline_time,
    simulate_schedule,
    task_order,
)
from mlsys.models.training.stages import stage_layers
from mlsys.models.training.step import training_step

__all__ = [
    "Recipe",
    "Slot",
    "Task",
    "Timeline",
    "TrainingStep",
    "layer_activations",
    "live_micro_batches",
    "pipeline_time",
    "recipe",
    "simulate_schedule",
    "stage_layers",
    "task_order",
    "training_step",
]
