"""The lab on dataflows. Every number in a question or an answer is counted here by the model."""

from mlsys.labs.design import Design
from mlsys.labs.draw import Draw
from mlsys.labs.questions import NOTHING, Choice, ChoiceQuestion, NumberQuestion, Question
from mlsys.labs.wrapup import Finding, WrapUp
from mlsys.mapping import DATAFLOWS, conv_space
from mlsys.models.dataflow import order_words
from mlsys.viz.views.dataflow import FLOWS, least, words_of
from mlsys.viz.views.view import percent, times

M, K, N, TILE = 32, 256, 512, 32
_WIDTH, _EDGE = 4096, 128  # one row against a square of this width, on an array of this edge


def prediction(draw: Draw) -> Question:
    """Return the prediction that opens the lab."""
    words = words_of(M, K, N, TILE)
    totals = ", ".join(f"{flow_name(flow).lower()} {words.total(flow):,}" for flow in FLOWS)
    again = words.parts["ws"][2] / words.parts["os"][2]
    right = least(words)
    return ChoiceQuestion(
        "prediction",
        f"A layer multiplies {M} rows of {K} inputs by {K} × {N} weights, in tiles of {TILE} × {TILE}. "
        "Which dataflow moves the fewest words?",
        f"Words moved: {totals}. A partial sum that has to leave before it is finished goes out and comes back, "
        f"here {times(again)} the words that finished sums take; that outweighs what the others save.",
        choices=tuple(Choice(flow_name(flow), right=flow == right) for flow in FLOWS),
    )


def scenario(draw: Draw) -> dict[str, object]:
    """Return the values of controls that show the predicted situation."""
    return {"m": M, "k": K, "n": N, "tile": TILE}


def asked(draw: Draw) -> tuple[Question, ...]:
    """Return the questions of the lab, then the claims of its page."""
    return (_batch_one(), _short_sum(), _reuse(), _larger_tile(), _thirty_six(), _perfect(), _kept_busy())


def designs(draw: Draw) -> tuple[Design, ...]:
    """Return the design tasks of the lab."""
    return ()


def wrap_up(draw: Draw) -> WrapUp:
    """Return the findings and lessons of the lab."""
    layer, token = words_of(M, K, N, TILE), words_of(1, _WIDTH, _WIDTH, _EDGE)
    totals = [token.total(flow) for flow in FLOWS]
    space = conv_space(1, 1, 16, 6, 6, 3, 3)
    kept, again = order_words(space, "krspq"), order_words(space, "pqkrs")
    listed = ", ".join(f"{flow_name(flow).lower()} {layer.total(flow):,}" for flow in FLOWS)
    return WrapUp(
        (
            Finding(
                f"The layer of your prediction moves, in words: {listed}. No tiles of that room do better than "
                f"{layer.best:,}; {layer.compulsory:,} must move once.",
                f"from mlsys.viz.views.dataflow import words_of\nwords_of({M}, {K}, {N}, {TILE}).total('os')",
            ),
            Finding(f"With one row the three differ by {percent(max(totals) / min(totals) - 1)}."),
            Finding(
                f"The order that keeps weights fetches them {times(again['weight'] / kept['weight'])} less "
                f"often and "
                f"moves {sum(kept.values()):,} words in all, against {sum(again.values()):,}.",
                "from mlsys.mapping import conv_space\nfrom mlsys.models.dataflow import order_words\n"
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


def _batch_one() -> Question:
    words = words_of(1, _WIDTH, _WIDTH, _EDGE)
    totals = [words.total(flow) for flow in FLOWS]
    spread, share = max(totals) / min(totals) - 1, _WIDTH**2 / max(totals)
    return ChoiceQuestion(
        "batch-one",
        f"Set M = 1, K = N = {_WIDTH:,} and a tile of {_EDGE}. How much does the choice of dataflow matter?",
        f"They differ by {percent(spread)}: at least {percent(share)} of the words are weights, and with one row "
        "each weight is used once. There is no reuse for a dataflow to take.",
        setting={"m": 1, "k": _WIDTH, "n": _WIDTH, "tile": _EDGE},
        choices=(
            Choice("Weight stationary moves least by far", "How often is each weight used when there is one "
                                                           "row? What is "
                   "gained by keeping it?", words.total("ws") < 0.8 * min(totals[1:])),
            Choice("Output stationary moves least by far", "Set it and compare the numbers above the bars.",
                   words.total("os") < 0.8 * totals[0]),
            Choice("Hardly at all", right=spread < 0.02),
        ),
    )  # fmt: skip


def _short_sum() -> Question:
    words = words_of(256, 32, 512, 32)
    totals = ", ".join(f"{flow_name(flow).lower()} {words.total(flow):,}" for flow in FLOWS)
    hints = {
        "ws": "Its weights are read once each. What streams past them, and how often?",
        "os": "",
        "is": "Its inputs are read once each. Are there more inputs or more outputs to stream?",
    }
    most = max(FLOWS, key=words.total)
    return ChoiceQuestion(
        "short-sum",
        "Set M = 256, K = 32, N = 512 and a tile of 32. Which dataflow moves most?",
        f"Now {totals}. When the whole sum fits into one tile no partial sum is interrupted, "
        "and keeping sums gains nothing; weights and inputs still do.",
        setting={"m": 256, "k": 32, "n": 512, "tile": 32},
        choices=tuple(Choice(flow_name(flow), hints[flow], flow == most) for flow in FLOWS),
    )


def _reuse() -> Question:
    rows, k, n = 64, 1024, 2048
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


def _larger_tile() -> Question:
    small, large = (words_of(1024, 1024, 1024, tile).total("os") for tile in (32, 64))
    return ChoiceQuestion(
        "larger-tile",
        "Set M = K = N = 1,024, output stationary, and take a tile of 64 instead of 32. What becomes of the words?",
        f"From {small:,} to {large:,} words, {times(small / large)} fewer for four times the room: "
        "words fall with the edge of the tile, which is the square root of its room.",
        setting={"m": 1024, "k": 1024, "n": 1024, "tile": 64, "flow": "os"},
        choices=(
            Choice("About a half", right=1.8 < small / large < 2.2),
            Choice("About a quarter, like the room", "The room grows fourfold. By how much grows the number of "
                                                     "products "
                   "that one loaded word takes part in?", 3.6 < small / large < 4.4),
            Choice("The same", "Set both tiles and read the number above the framed bar.", small == large),
        ),
    )  # fmt: skip


def _thirty_six() -> Question:
    space = conv_space(1, 1, 16, 6, 6, 3, 3)
    kept, again = order_words(space, "krspq"), order_words(space, "pqkrs")
    saving = again["weight"] / kept["weight"]
    return ChoiceQuestion(
        "thirty-six",
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


def _perfect() -> Question:
    token, layer = words_of(1, _WIDTH, _WIDTH, _EDGE), words_of(M, K, N, TILE)
    over = token.total("os") / token.compulsory
    return ChoiceQuestion(
        "perfect",
        "A text says: “No dataflow is perfect: whichever operand stays, the other two cost traffic, "
        "so for generating one token at a time the choice is a painful compromise.” What is wrong?",
        f"With one row output stationary moves {times(over)} what must move at all: there it is as good as perfect, "
        f"and so are the others. For the layer of {M} rows it moves {times(layer.total('os') / layer.compulsory)} "
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


def _kept_busy() -> Question:
    """Return the question about a correct statement."""
    short, long = (words_of(M, k, N, TILE) for k in (TILE, 32 * TILE))
    return ChoiceQuestion(
        "kept-busy",
        f"A text says: “With {M} rows and tiles of {TILE} × {TILE}, weight stationary and output stationary "
        f"move the "
        f"same number of words of inputs, however long the sum is; they part over the sums.” What is wrong?",
        f"Inputs: {short.parts['ws'][0]:,} and {short.parts['os'][0]:,} words for a sum of {TILE}, "
        f"{long.parts['ws'][0]:,} and {long.parts['os'][0]:,} for one of {32 * TILE:,}. Partial sums of the long one "
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
