"""The lab on dataflows. Every number in a question or an answer is counted here by the model."""

from functools import cache, partial

from mlsys.choices import Stationary
from mlsys.labs.design import Built, Design, Knob
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.mapping import DATAFLOWS, conv_space, dataflow, gemm_space
from mlsys.models.dataflow import movements, order_words
from mlsys.viz.views.dataflow import FLOWS, least, words_of
from mlsys.viz.views.view import percent, times

_SHORT = ((192, 24, 768, 24), (384, 48, 768, 48), (192, 48, 1536, 48), (384, 24, 1536, 24))  # M, K, N and tile
_REUSED = {"m": (24, 36, 48, 72, 96, 192), "k": (384, 768), "n": (1536, 3072)}
_Size = tuple[int, int, int]
_EDGES = (20, 28, 36, 44, 52, 60, 68, 76, 84, 92)


def layer_of(draw: Draw) -> tuple[int, int, int, int]:
    """Return M, K, N and the tile of the prediction."""
    m, k, n = draw.pick("m", (24, 48)), draw.pick("k", (384, 768)), draw.pick("n", (768, 1536))
    return m, k, n, draw.pick("tile", (24, 48))


def _token(draw: Draw) -> tuple[int, int]:
    """Return the width of a layer with one row, and the edge of its tile."""
    return draw.pick("width", (1536, 3072)), draw.pick("edge", (96, 192))


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    m, k, n, tile = layer_of(draw)
    words = words_of(m, k, n, tile)
    totals = ", ".join(f"{flow_name(flow).lower()} {words.total(flow):,}" for flow in FLOWS)
    again = words.parts["ws"][2] / words.parts["os"][2]
    right = least(words)
    return ChoiceQuestion(
        "prediction",
        f"A layer multiplies {m} rows of {k} inputs by {k} × {n:,} weights, in tiles of {tile} × {tile}. "
        "Which dataflow moves the fewest words?",
        f"Words moved: {totals}. A partial sum that has to leave before it is finished goes out and comes back, "
        f"here {times(again)} the words that finished sums take; that outweighs what the others save.",
        choices=tuple(Choice(flow_name(flow), right=flow == right) for flow in FLOWS),
    )


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    m, k, n, tile = layer_of(draw)
    return {"m": m, "k": k, "n": n, "tile": tile}


def questions(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    factories = (_batch_one, _short_sum, _reuse, _larger_tile, _kept_weights, _perfect, _kept_busy)
    return tuple(make(draw) for make in factories)


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design task: one array for two layers."""
    room = draw.pick("room", (2500, 4000, 5500, 7000))
    first = (draw.pick("first m", (300, 420, 540)), 700, 900)
    second = (draw.pick("second m", (420, 510, 570)), 90, 2200)
    flows = tuple((flow_name(flow), flow) for flow in FLOWS)
    return (
        Design(
            "two-layers",
            f"One array runs two layers in turn: the first with M = {first[0]}, K = {first[1]}, N = {first[2]}, the "
            f"second with M = {second[0]}, K = {second[1]}, N = {second[2]:,}. A tile of edge T takes T² + 2T words, "
            f"and {room:,} fit. Choose the tile, and what stays for each layer, so that both together move the fewest "
            "words.",
            (
                Knob("tile", "Edge of the tile", tuple((f"{edge}", edge) for edge in _EDGES)),
                Knob("first", "What stays for the first layer", flows),
                Knob("second", "What stays for the second layer", flows),
            ),
            partial(_moved, room, first, second),
        ),
    )


def _moved(room: int, one: _Size, two: _Size, tile: int, first: Stationary, second: Stationary) -> Built:
    words = _flow_words(*one, tile, first) + _flow_words(*two, tile, second)
    taken = tile**2 + 2 * tile
    fault = f"They take {taken:,} words, more than {room:,}." if taken > room else ""
    return Built(float(words), f"With tiles of {tile} the two layers move {words:,} words.", fault)


@cache
def _flow_words(m: int, k: int, n: int, tile: int, flow: Stationary) -> int:
    return sum(item.words for item in movements(gemm_space(m, n, k), dataflow(flow, tile)))


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    m, k, n, tile = layer_of(draw)
    width, edge = _token(draw)
    layer, token = words_of(m, k, n, tile), words_of(1, width, width, edge)
    totals = [token.total(flow) for flow in FLOWS]
    space = conv_space(1, 1, 16, 6, 6, 3, 3)
    kept, again = order_words(space, "krspq"), order_words(space, "pqkrs")
    listed = ", ".join(f"{flow_name(flow).lower()} {layer.total(flow):,}" for flow in FLOWS)
    return WrapUp(
        (
            Finding(
                f"The layer of your prediction moves, in words: {listed}. No tiles of that room do better than "
                f"{layer.best:,}; {layer.compulsory:,} must move once.",
                f"from mlsys.viz.views.dataflow import words_of\nwords_of({m}, {k}, {n}, {tile}).total('os')",
            ),
            Finding(f"With one row the three differ by {percent(max(totals) / min(totals) - 1)}."),
            Finding(
                f"The order that keeps weights fetches them {times(again['weight'] / kept['weight'])} less "
                f"often and "
                f"moves {sum(kept.values()):,} words in all, against {sum(again.values()):,}.",
                "from mlsys.mapping import conv_space\nfrom mlsys.models.dataflow import movements, order_words\n"
                "sum(order_words(conv_space(1, 1, 16, 6, 6, 3, 3), 'krspq').values())",
            ),
        ),
        (
            "Count all three operands; a saving in one is often paid by another.",
            "Partial sums cost twice, out and back, so long sums want to stay.",
            "Where a weight is used once, no dataflow helps: only a larger batch does.",
        ),
    )


def flow_name(flow: str) -> str:
    """Return the name of a dataflow as the lab writes it."""
    return DATAFLOWS[flow][0].capitalize()


def _batch_one(draw: Draw) -> Question:
    width, edge = _token(draw)
    words = words_of(1, width, width, edge)
    totals = [words.total(flow) for flow in FLOWS]
    spread, share = max(totals) / min(totals) - 1, width**2 / max(totals)
    return ChoiceQuestion(
        "batch-one",
        f"Set M = 1, K = N = {width:,} and a tile of {edge}. How much does the choice of dataflow matter?",
        f"They differ by {percent(spread)}: at least {percent(share)} of the words are weights, and with one row "
        "each weight is used once. There is no reuse for a dataflow to take.",
        setting={"m": 1, "k": width, "n": width, "tile": edge},
        choices=(
            Choice("Weight stationary moves least by far", "How often is each weight used when there is one "
                                                           "row? What is "
                   "gained by keeping it?", words.total("ws") < 0.8 * min(totals[1:])),
            Choice("Output stationary moves least by far", "Set it and compare the numbers above the bars.",
                   words.total("os") < 0.8 * totals[0]),
            Choice("Hardly at all", right=spread < 0.02),
        ),
    )  # fmt: skip


def _short_sum(draw: Draw) -> Question:
    m, k, n, tile = draw.pick("short-sum", _SHORT)
    words = words_of(m, k, n, tile)
    totals = ", ".join(f"{flow_name(flow).lower()} {words.total(flow):,}" for flow in FLOWS)
    hints = {
        "ws": "Its weights are read once each. What streams past them, and how often?",
        "os": "Its sums leave once each. What streams past them, and how often?",
        "is": "Its inputs are read once each. Are there more inputs or more outputs to stream?",
    }
    most = max(FLOWS, key=words.total)
    return ChoiceQuestion(
        "short-sum",
        f"Set M = {m}, K = {k}, N = {n:,} and a tile of {tile}. Which dataflow moves most?",
        f"Now {totals}. When the whole sum fits into one tile no partial sum is interrupted, "
        "and keeping sums gains nothing; weights and inputs still do.",
        setting={"m": m, "k": k, "n": n, "tile": tile},
        choices=tuple(Choice(flow_name(flow), hints[flow], flow == most) for flow in FLOWS),
    )


def _reuse(draw: Draw) -> Question:
    rows, k, n = (draw.pick(f"reuse {name}", sizes) for name, sizes in _REUSED.items())
    return NumberQuestion(
        "reuse",
        f"A product has M = {rows}, K = {k:,} and N = {n:,}. How many times is each weight used?",
        f"Each weight meets every row once, so it is used M = {rows} times, whatever K and N are.",
        setting={"m": rows, "k": k, "n": n},
        answer=float(rows),
        unit="times",
        tolerance=0.0,
        hint="Take one weight, in row k and column n. Which outputs need it?",
        slips=((k, "That many products make one output. How many of them use the same weight?"),
               (n, "That many columns there are, but a weight belongs to one of them."),
               (rows * k, "So many inputs there are. A weight meets those of one k.")),
    )  # fmt: skip


def _larger_tile(draw: Draw) -> Question:
    size, tile = draw.pick("larger", (768, 1536)), draw.pick("larger tile", (24, 48))
    small, large = (words_of(size, size, size, edge).total("os") for edge in (tile, 2 * tile))
    return ChoiceQuestion(
        "larger-tile",
        f"Set M = K = N = {size:,}, output stationary, and take a tile of {2 * tile} instead of {tile}. What becomes "
        "of the words?",
        f"From {small:,} to {large:,} words, {times(small / large)} fewer for four times the room: "
        "words fall with the edge of the tile, which is the square root of its room.",
        setting={"m": size, "k": size, "n": size, "tile": 2 * tile, "flow": "os"},
        choices=(
            Choice("About a half", right=1.8 < small / large < 2.2),
            Choice("About a quarter, like the room", "The room grows fourfold. By how much grows the number of "
                                                     "products "
                   "that one loaded word takes part in?", 3.6 < small / large < 4.4),
            Choice("The same", "Set both tiles and read the number above the framed bar.", small == large),
        ),
    )  # fmt: skip


def _kept_weights(draw: Draw) -> Question:
    space = conv_space(1, 1, 16, 6, 6, 3, 3)
    kept, again = order_words(space, "krspq"), order_words(space, "pqkrs")
    saving = again["weight"] / kept["weight"]
    return ChoiceQuestion(
        "kept-weights",
        f"A text says: “Keeping each weight until all outputs have used it fetches weights {times(saving)} less often, "
        f"so the order k, r, s, p, q moves {times(saving)} fewer words than p, q, k, r, s.” What is wrong?",
        f"Weights fall from {again['weight']:,} to {kept['weight']:,} words, but partial sums rise from "
        f"{again['output']:,} to {kept['output']:,}: all together {sum(kept.values()):,} against "
        f"{sum(again.values()):,}. The order that spares weights moves more.",
        in_app=False,
        choices=(
            Choice(NOTHING, "It counts the words of one operand. How many are there?",
                   sum(again.values()) > 30 * sum(kept.values())),
            Choice("It forgets the partial sums", right=sum(kept.values()) > sum(again.values())),
            Choice("It forgets the inputs", "Those move equally often in both "
                                            "orders.", kept["input"] != again["input"]),
        ),
    )  # fmt: skip


def _perfect(draw: Draw) -> Question:
    m, k, n, tile = layer_of(draw)
    width, edge = _token(draw)
    token, layer = words_of(1, width, width, edge), words_of(m, k, n, tile)
    over = token.total("os") / token.compulsory
    return ChoiceQuestion(
        "perfect",
        "A text says: “No dataflow is perfect: whichever operand stays, the other two cost traffic, "
        "so for generating one token at a time the choice is a painful compromise.” What is wrong?",
        f"With one row output stationary moves {times(over)} what must move at all: there it is as good as perfect, "
        f"and so are the others. For the layer of {m} rows it moves {times(layer.total('os') / layer.compulsory)} "
        "what must move. The sentence is right where there is reuse, and empty where there is none.",
        in_app=False,
        choices=(
            Choice("One row has no reuse, so nothing is compromised", right=over < 1.02),
            Choice("Weight stationary is perfect there, the others are "
                   "not", "Set one row and compare all three with the "
                   "dotted line.", token.total("os") > 1.1 * token.total("ws")),
            Choice(NOTHING, "How far above the dotted line are the bars when there is one row?", over > 1.5),
        ),
    )  # fmt: skip


def _kept_busy(draw: Draw) -> Question:
    """Return the question about a correct statement."""
    m, _, n, tile = layer_of(draw)
    short, long = (words_of(m, k, n, tile) for k in (tile, 32 * tile))
    return ChoiceQuestion(
        "kept-busy",
        f"A text says: “With {m} rows and tiles of {tile} × {tile}, weight stationary and output stationary "
        f"move the "
        f"same number of words of inputs, however long the sum is; they part over the sums.” What is wrong?",
        f"Inputs: {short.parts['ws'][0]:,} and {short.parts['os'][0]:,} words for a sum of {tile}, "
        f"{long.parts['ws'][0]:,} and {long.parts['os'][0]:,} for one of {32 * tile:,}. Partial sums of the long one "
        f"take {long.parts['ws'][2]:,} words where weights stay and {long.parts['os'][2]:,} where sums do.",
        in_app=False,
        choices=(
            Choice("Weight stationary reads inputs more often", "Inputs stream past tiles of weights in one "
                                                                "case and past "
                   "tiles of sums in the other. How many tiles lie side by side in either?",
                   short.parts["ws"][0] > short.parts["os"][0]),
            Choice("They move as many sums as well", "Where does a partial sum go when its tile of weights is left?",
                   long.parts["ws"][2] == long.parts["os"][2]),
            Choice(NOTHING, right=[w.parts["ws"][0] for w in (short, long)] == [w.parts["os"][0] for w in (short, long)]
                   and long.parts["ws"][2] > long.parts["os"][2]),
        ),
    )  # fmt: skip
