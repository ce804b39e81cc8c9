"""Training steps: the forward pass, and about twice its work backward.

Each product of the forward pass has two of the same size behind it, for the gradients of
its inputs and of its weights. With activation checkpointing the forward pass runs twice.
The optimiser and the exchange of gradients are taken as hidden behind the arithmetic.
"""

from __future__ import annotations

import re

from mlsys.models.calibrated.lowering import lowered
from mlsys.validation.cases.case import Case, Inexpressible
from mlsys.validation.cases.networks import built, settled, shape_of
from mlsys.validation.cases.reading import batch_of, number_format, seconds_each, twin_of
from mlsys.validation.rows import Row

__all__ = ["training"]

BACKWARD = 2.0
USUAL_LENGTH = 2048


def training(row: Row) -> Case:
    """Return the case of one training step of one machine among as many as the row has."""
    from mlsys.workloads import zoo

    if re.search("GNMT|Transformer-XL|SSD300|packed", row.model):
        raise Inexpressible(f"training of {row.model}: its layers, or the lengths it is fed, are not described")
    fmt = number_format(row.precision)
    twin, share = twin_of(row.device)
    engine = fmt.on(twin)
    if share < 1:
        engine = engine.share(share, share)
    passes = 1 + BACKWARD + ("activation ckpt True" in row.note)
    setting = f"{settled(row)} training on {twin.kind}"
    entry = zoo.resolve(re.sub(r" (phase|Ph)\s*\d.*| pre-training.*| training.*", "", row.model))
    if entry is None:
        raise Inexpressible(f"no network {row.model} in the catalogue")
    if "tokens" in row.unit or row.unit == "TFLOP/s":
        stated = re.search(r"seq (\d+)", row.seq_or_shape)
        if not stated and row.unit != "TFLOP/s":
            raise Inexpressible("length of the sequences not stated")
        # A rate of arithmetic hardly depends on the length, so long as products dominate.
        length = int(stated.group(1)) if stated else USUAL_LENGTH
        micro = re.match(r"micro (\d+)", row.batch)
        batch = int(micro.group(1)) if micro else 1
        network = zoo.language_model(entry.name).prefill(batch, length, "fp16", causal=True)
        work = lowered(network, fmt, passes)
        if row.unit == "TFLOP/s":
            # The rate counts the arithmetic that the model needs, not what is computed twice.
            seconds = work.flops / passes * (1 + BACKWARD) / (row.value * 1e12)
            return Case(row, "training", setting, twin.id, engine, work, seconds, True)
        seconds, inverse = seconds_each(row, batch * length)
        if not re.search("/(GPU|chip)", row.unit):
            seconds *= max(1, row.n_devices)
        return Case(row, "training", setting, twin.id, engine, work, seconds, inverse)
    batch = batch_of(row, 64)
    work = lowered(built(entry.name, batch=batch, **shape_of(row)), fmt, passes)
    seconds, inverse = seconds_each(row, batch * max(1, row.n_devices))
    return Case(row, "training", setting, twin.id, engine, work, seconds, inverse)
