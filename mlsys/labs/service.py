"""The lab on sizing a service. Every number in a question or an answer is computed here by the models."""

import math
from functools import partial

from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.models.serving.copies import LOAD, OUTPUT, PROMPT, TTFT, Copy, Service, copy_of, service_of
from mlsys.viz.views.service import BATCHES, MODELS, REGIONS, SYSTEMS
from mlsys.viz.views.view import number, percent, times

RATES = (9, 23, 26, 34, 43, 46)
"""Requests per second that the questions ask about."""
LIMITS = (21, 26, 35, 45, 55)
"""Limits on the time between tokens, ms, that the lab offers."""
REPLICAS = (1, 2, 3, 4, 6, 8, 12, 16)
CHIPS = (1, 2, 4, 8)
_FAST = ("DGX_A100", "DGX_H100")
_SMALL, _LARGE = ("llama-3-8b", "mixtral-8x7b"), "llama-3-70b"
_TASKS = (  # model, requests/s, ms between tokens; several choices come within a tenth of the best
    ("llama-3-8b", 9, 21), ("llama-3-8b", 23, 35), ("llama-3-8b", 34, 35),
    ("mixtral-8x7b", 23, 35), ("mixtral-8x7b", 46, 21),
    ("llama-3-70b", 9, 45), ("llama-3-70b", 9, 55), ("llama-3-70b", 23, 26),
)  # fmt: skip


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    model, system, batch = _small(draw), _system(draw), _batch(draw)
    one = copy_of(model, system, _split(model), batch)
    return NumberQuestion(
        "prediction",
        f"A prompt has {PROMPT:,} tokens, an answer {OUTPUT}. How many requests a second can one copy of "
        f"{MODELS[model]} answer on {_chips(_split(model))} of a server with {SYSTEMS[system]}, if it decodes up to "
        f"{batch} sequences at once?",
        f"A step for all {batch} takes {_ms(one.step)}, a prompt {_ms(one.prefill)}: "
        f"{number(batch)} / ({number(batch)} · {_ms(one.prefill)} + {OUTPUT} · {_ms(one.step)}) = "
        f"{number(one.requests)} requests a second.",
        answer=one.requests,
        unit="requests/s",
        tolerance=0.3,
    )


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    model = _small(draw)
    return _set(model, _system(draw), _split(model), REPLICAS[-1], _batch(draw), _rate(draw))


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    factories = (_weights, _fitting, _latency, _copies, _money, _grams, _cheap, _idle, _kilo, _split_more)
    return tuple(make(draw) for make in factories)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task: the cheapest service that keeps its objectives."""
    (model, rate, limit), region = draw.pick("task", _TASKS), _region(draw)
    return (
        Design(
            "service",
            f"{rate} requests for {MODELS[model]} arrive each second, with {PROMPT:,} tokens in and {OUTPUT} out. The "
            f"first token may take {1e3 * TTFT:g} ms, each further one {limit} ms, and at most {percent(LOAD)} of the "
            f"capacity may be used. The service stands in {region}. Choose servers, split, copies and batch limit so "
            "that a million tokens cost as little as possible, at the rents on record.",
            (
                Knob("system", "Chips of a server", tuple((name, key) for key, name in SYSTEMS.items())),
                Knob("tp", "Chips of one copy", tuple((str(chips), chips) for chips in CHIPS)),
                Knob("replicas", "Copies", tuple((str(copies), copies) for copies in REPLICAS)),
                Knob("batch", "Batch limit", tuple((str(batch), batch) for batch in BATCHES)),
            ),
            partial(_built, model, rate, limit, region),
        ),
    )


def _built(
    model: str, rate: float, limit: float, region: str, system: str, tp: int, replicas: int, batch: int
) -> Built:
    service = service_of(model, system, tp, replicas, batch, rate, limit, region)
    summary = (
        f"{_chips(service.chips)} cost {number(service.dollars)} USD and emit {number(service.grams)} g CO2e a million "
        f"tokens; a token takes {_ms(service.copy.step)}, and the load is {percent(service.load)}."
    )
    return Built(service.dollars, summary, service.fault)


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    model, system, batch, rate = _small(draw), _system(draw), _batch(draw), _rate(draw)
    tp, region = _split(model), _region(draw)
    one, needed = copy_of(model, system, tp, batch), _needed(model, system, tp, batch, rate)
    service = _served(draw)
    world = service_of(model, system, tp, needed, batch, rate)
    code = (
        "from mlsys.models.serving import service_of\n"
        f"service_of({model!r}, {system!r}, {tp}, {needed}, {batch}, {rate}).dollars"
    )
    return WrapUp(
        (
            Finding(
                f"One copy of {MODELS[model]} with a batch limit of {batch} answers {number(one.requests)} requests a "
                f"second, so {rate} requests a second need {needed} copies if no more than {percent(LOAD)} of the "
                "capacity is used.",
            ),
            Finding(
                f"A million tokens served cost {number(service.dollars)} USD at a load of {percent(service.load)}; "
                f"what the copies could serve when full would cost {number(service.dollars * service.load)} USD.",
                code,
            ),
            Finding(
                f"The same million tokens emit {number(world.grams)} g CO2e on the world's average grid and "
                f"{number(service.grams)} g in {region}, electricity alone.",
            ),
        ),
        (
            "Three limits decide the batch: memory, the time between tokens, and the requests that arrive. Find out "
            "which of them binds before you buy against another.",
            "Pay and count by tokens that are served within the objective, not by tokens that could be.",
            "A split over more chips shortens a step; copies serve more users. Split as little as the limits allow.",
            "Rents have dates and ranges: repeat the comparison with your own before you decide.",
        ),
    )


# --- what is drawn ------------------------------------------------------------------------


def _small(draw: Draw) -> str:
    return draw.pick("model", _SMALL)


def _system(draw: Draw) -> str:
    return draw.pick("system", _FAST)


def _batch(draw: Draw) -> int:
    return draw.pick("batch", (56, 88, 136))


def _rate(draw: Draw) -> int:
    return draw.pick("rate", RATES[1:])


def _region(draw: Draw) -> str:
    return draw.pick("region", REGIONS[1:])


def _split(model: str) -> int:
    return 1 if model == "llama-3-8b" else 2


def _chips(chips: int) -> str:
    return f"{chips} chip{'' if chips == 1 else 's'}"


def _ms(seconds: float) -> str:
    return f"{number(1e3 * seconds)} ms"


def _set(
    model: str, system: str, tp: int = 1, replicas: int = 1, batch: int = 32, rate: float = 9, limit: float = 45,
    region: str = "World",
) -> dict[str, object]:  # fmt: skip
    return {
        "model": model, "system": system, "tp": tp, "replicas": replicas, "batch": batch, "rate": rate,
        "limit": limit, "region": region,
    }  # fmt: skip


def _needed(model: str, system: str, tp: int, batch: int, rate: float) -> int:
    """Return the copies that keep the load within its limit."""
    return math.ceil(rate / (LOAD * copy_of(model, system, tp, batch).requests))


def _offered(needed: int) -> int:
    """Return the smallest offered number of copies that is enough."""
    return next((copies for copies in REPLICAS if copies >= needed), REPLICAS[-1])


def _served(draw: Draw) -> Service:
    model, system, batch, rate = _small(draw), _system(draw), _batch(draw), _rate(draw)
    tp = _split(model)
    needed = _needed(model, system, tp, batch, rate)
    return service_of(model, system, tp, needed, batch, rate, region=_region(draw))


# --- questions ----------------------------------------------------------------------------


def _weights(draw: Draw) -> Question:
    tp = draw.pick("weights", (4, 8))
    one, whole = (copy_of(_LARGE, "DGX_H100", chips, 8).weights / 1e9 for chips in (tp, 1))
    return NumberQuestion(
        "weights",
        f"{MODELS[_LARGE]} keeps its weights in 16 bits, and one copy is split over {tp} chips. How many gigabytes of "
        "weights does each chip hold?",
        f"{number(whole)} GB / {tp} = {number(one)} GB: two bytes for each parameter, divided by the split.",
        setting=_set(_LARGE, "DGX_H100", tp, REPLICAS[-1]),
        answer=one,
        unit="GB",
        tolerance=0.02,
        hint="Set the model and the split; the sentence below the picture says what a chip holds.",
        slips=((whole, "So much has the whole model."), (one / 2, "That would be weights of eight bits.")),
    )


def _fitting(draw: Draw) -> Question:
    tp = draw.pick("fitting", (4, 8))
    one = copy_of(_LARGE, "DGX_H100", tp, 8)
    alone = one.room / one.per_sequence
    return NumberQuestion(
        "fitting",
        f"Set {MODELS[_LARGE]} over {tp} chips of a server with {SYSTEMS['DGX_H100']}. How many sequences of "
        f"{PROMPT + OUTPUT:,} tokens fit into its memory at once?",
        f"{one.most}: a chip may fill {number(one.room / 1e9)} GB, the weights take {number(one.weights / 1e9)} GB, "
        f"and the rest holds keys and values of {number(one.per_sequence / 1e6)} MB for each sequence.",
        setting=_set(_LARGE, "DGX_H100", tp, REPLICAS[-1]),
        answer=float(one.most),
        unit="sequences",
        tolerance=0.02,
        hint="The dotted line in the left chart, and the sentence below it.",
        slips=((float(round(alone)), "That leaves no room for the weights."),),
    )


def _latency(draw: Draw) -> Question:
    system, limit = draw.pick("latency", _FAST), draw.pick("between", (21, 26, 35))
    within = [batch for batch in BATCHES if _fits(copy_of(_LARGE, system, 8, batch), batch, limit)]
    right = max(within, default=0)
    first = 1e3 * copy_of(_LARGE, system, 8, right or BATCHES[0]).step
    return ChoiceQuestion(
        "latency",
        f"Set {MODELS[_LARGE]} over 8 chips of a server with {SYSTEMS[system]}, and a limit of {limit} ms between "
        "tokens. Which is the largest batch limit of the slider that keeps it?",
        f"{right}, where a step takes {number(first)} ms. More sequences share one reading of the weights, but each "
        "brings its own keys and values.",
        setting=_set(_LARGE, system, 8, REPLICAS[-1], limit=limit),
        choices=tuple(
            Choice(str(batch), f"With {batch}, a step takes longer than the limit." if batch > right else
                   f"With {batch} the limit is kept, and by a larger batch as well.", batch == right)
            for batch in BATCHES
        ),
    )  # fmt: skip


def _fits(one: Copy, batch: int, limit: float) -> bool:
    return batch <= one.most and 1e3 * one.step <= limit


def _copies(draw: Draw) -> Question:
    model, system, batch, rate = _small(draw), _system(draw), _batch(draw), _rate(draw)
    tp = _split(model)
    one, needed = copy_of(model, system, tp, batch), _needed(model, system, tp, batch, rate)
    bare = math.ceil(rate / one.requests)
    slips = ((float(bare), "That many answer them all, but leave too little for busy minutes."),)
    return NumberQuestion(
        "copies",
        f"{rate} requests for {MODELS[model]} arrive each second. A copy takes {_chips(tp)} of a server with "
        f"{SYSTEMS[system]}, and its batch limit is {batch}. How many copies keep the load at {percent(LOAD)} or less?",
        f"One copy answers {number(one.requests)} requests a second; {rate} / ({LOAD:g} · "
        f"{number(one.requests)}) = {number(rate / (LOAD * one.requests))}, rounded up: {needed}.",
        setting=_set(model, system, tp, _offered(needed), batch, rate),
        answer=float(needed),
        unit="copies",
        tolerance=0.001,
        least=1.0,
        hint="Read what one copy answers. The load is the requests that arrive over those that all copies answer.",
        slips=slips if bare != needed else (),
    )


def _money(draw: Draw) -> Question:
    model, system, batch, rate = _small(draw), _system(draw), _batch(draw), _rate(draw)
    tp = _split(model)
    copies = _offered(_needed(model, system, tp, batch, rate))
    service = service_of(model, system, tp, copies, batch, rate)
    return NumberQuestion(
        "money",
        f"Take {copies} copies of {MODELS[model]}, {_chips(tp)} of {SYSTEMS[system]} each, batch limit {batch}, and "
        f"{rate} requests a second. What does a million tokens cost that is served, in USD?",
        f"{number(service.dollars)} USD: {_chips(service.chips)} are paid all day, and "
        f"{rate} · {OUTPUT} tokens are served each second.",
        setting=_set(model, system, tp, copies, batch, rate),
        answer=service.dollars,
        unit="USD",
        tolerance=0.03,
        hint="Set it and read the top of the picture; or divide the rent of an hour by the tokens of an hour.",
        slips=(
            (service.dollars * service.load, "That is the cost if the copies were full. What is served?"),
            (service.dollars / service.chips, "Every chip of every copy is rented."),
        ) if service.chips > 1 and service.load < 0.95 else (),
    )  # fmt: skip


def _grams(draw: Draw) -> Question:
    model, system, batch, rate, region = _small(draw), _system(draw), _batch(draw), _rate(draw), _region(draw)
    tp = _split(model)
    copies = _offered(_needed(model, system, tp, batch, rate))
    here, world = (service_of(model, system, tp, copies, batch, rate, region=grid) for grid in (region, "World"))
    return NumberQuestion(
        "grams",
        f"Move that service to {region}. How many grams of CO2e does a million tokens emit there, from electricity?",
        f"{number(here.grams)} g, against {number(world.grams)} g on the world's average grid: "
        f"{number(here.kilowatt_hours)} kWh each, at another carbon intensity.",
        setting=_set(model, system, tp, copies, batch, rate, region=region),
        answer=here.grams,
        unit="g",
        tolerance=0.03,
        hint="Set the region; the energy of a million tokens stays the same, its emissions do not.",
        slips=((world.grams, "That is the average of the world."),),
    )


def _cheap(draw: Draw) -> Question:
    rate = draw.pick("cheap", (23, 26, 34))
    cheap, fast = (_cheapest(_LARGE, system, rate) for system in ("Server_8x_A100_PCIe", "DGX_A100"))
    return ChoiceQuestion(
        "cheap",
        f"A text says: “A chip of the one server rents for less than half of a chip of the other, so {MODELS[_LARGE]} "
        f"costs less than half there, whatever is asked of it.” It compares {SYSTEMS['Server_8x_A100_PCIe']}, with "
        f"{SYSTEMS['DGX_A100']}, over 8 chips a copy, batch limit 32 and {rate} requests a second. What is wrong?",
        f"The cheaper chips need {cheap.chips} instead of {fast.chips} for the same requests, and a step takes "
        f"{_ms(cheap.copy.step)} instead of {_ms(fast.copy.step)}: the messages of the split go over PCIe. A million "
        f"tokens cost {number(cheap.dollars)} USD instead of {number(fast.dollars)}.",
        in_app=False,
        choices=(
            Choice("It leaves out how many chips the requests need", right=cheap.dollars > fast.dollars / 2),
            Choice("The rents are of different formats", "A rent knows nothing of formats. What else enters the cost "
                   "of a token?"),
            Choice(NOTHING, "Set both servers with enough copies for the requests.",
                   cheap.dollars <= fast.dollars / 2),
        ),
    )  # fmt: skip


def _cheapest(model: str, system: str, rate: float) -> Service:
    return service_of(model, system, 8, _needed(model, system, 8, 32, rate), 32, rate)


def _idle(draw: Draw) -> Question:
    model, system, batch = _small(draw), _system(draw), _batch(draw)
    tp, rate = _split(model), draw.pick("idle", (34, 46))
    copies = _needed(model, system, tp, batch, rate)
    full, half = (service_of(model, system, tp, copies, batch, each) for each in (rate, rate / 2))
    return ChoiceQuestion(
        "idle",
        f"A text says: “At night half of the {rate} requests a second arrive at our {copies} copies of "
        f"{MODELS[model]}. Since the rent stays, so does the cost of a million tokens.” What is wrong?",
        f"The same rent is divided by half as many tokens: {number(full.dollars)} USD become {number(half.dollars)}.",
        in_app=False,
        choices=(
            Choice("The cost of a token doubles", right=half.dollars > 1.9 * full.dollars),
            Choice("The cost of a token halves", "Which of the two halves, the rent or what is served for it?",
                   half.dollars < 0.6 * full.dollars),
            Choice(NOTHING, "Divide what an hour costs by what is served in it, by day and by night.",
                   half.dollars == full.dollars),
        ),
    )  # fmt: skip


def _kilo(draw: Draw) -> Question:
    service = _served(draw)
    region, intensity = _region(draw), service.grams / service.kilowatt_hours
    wrong = service.grams / 1000
    return ChoiceQuestion(
        "kilo",
        f"A text says: “A million tokens take {number(service.kilowatt_hours)} kWh, and the grid of {region} emits "
        f"{number(intensity)} g CO2e for a kilowatt-hour. That is {number(wrong)} g.” What is wrong?",
        f"{number(service.kilowatt_hours)} kWh · {number(intensity)} g/kWh = {number(service.grams)} g: it divided by "
        "1,000 once too often.",
        in_app=False,
        choices=(
            Choice("It is a factor of 1,000 too small", right=service.grams > 100 * wrong),
            Choice("A kilowatt-hour has to be converted to joules first", "Both numbers are for a kilowatt-hour. What "
                   "is their product?"),
            Choice(NOTHING, "Multiply the two numbers, with their units.", service.grams == wrong),
        ),
    )  # fmt: skip


def _split_more(draw: Draw) -> Question:
    """Return the question about a correct statement."""
    system, batch = draw.pick("split", _FAST), draw.pick("split batch", (56, 88))
    four, eight = (copy_of(_LARGE, system, tp, batch) for tp in (4, 8))
    faster, dearer = four.step / eight.step, 2 * four.requests / eight.requests
    return ChoiceQuestion(
        "split",
        f"A text says: “With a batch limit of {batch}, {MODELS[_LARGE]} on 8 instead of 4 chips with {SYSTEMS[system]} "
        "generates each token sooner, and a token costs more when both are full.” What is wrong?",
        f"A step goes from {_ms(four.step)} to {_ms(eight.step)}, {times(faster)} as fast, for twice the rent: a token "
        f"costs {times(dearer)} as much, because messages and fixed times do not shrink with the split.",
        in_app=False,
        choices=(
            Choice("Twice the chips cost the same for each token", "That needs twice the requests of a copy. Compare "
                   "what a copy answers.", dearer < 1.01),
            Choice("The split does not shorten a step", "Set both splits and compare the time between tokens.",
                   faster < 1.01),
            Choice(NOTHING, right=faster >= 1.01 and dearer >= 1.01),
        ),
    )  # fmt: skip
