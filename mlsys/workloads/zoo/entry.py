"""One entry of the catalogue: a network's name, its source, and how it is written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, get_args

from mlsys.choices import Phase
from mlsys.door import checked_choice, checked_count
from mlsys.errors import ArgumentError
from mlsys.units import Quantity
from mlsys.workloads.operator import Network
from mlsys.workloads.zoo.decoder import Decoder
from mlsys.workloads.zoo.picture import Picture, Shape
from mlsys.workloads.zoo.tape import Tape

if TYPE_CHECKING:
    from mlsys.workloads.drawn import DrawnTape
    from mlsys.workloads.workload import Workload

SMALLEST_FREE = 32  # networks of smaller pictures end in a layer that fits one size


@lru_cache(maxsize=64)  # whoever compares fused and unfused asks twice
def _loaded(name: str, batch: int, precision: str, sequence: int | None, image: int | None) -> Workload:
    from mlsys.workloads.resolve import load

    return load(name, batch=batch, precision=precision, sequence=sequence, image=image)


@dataclass(frozen=True)
class Entry:
    """A network of the catalogue.

    Attributes
    ----------
    name
        The name to ask for it by.
    title
        What papers call it.
    family
        ``"picture"``, ``"text"``, ``"language"``, ``"speech and sensors"``, ``"recommender"``, ….
    source
        Paper and table, or repository and file, that the shape is from.
    aliases
        Other spellings.
    image
        Channels, height and width of its input, for a network that sees a picture.
    sequence
        Tokens, for one that reads text, unless the caller says otherwise.
    model
        The shape of a decoder language model.
    note
        What is not exact, if anything.
    code
        The recipe in :data:`mlsys.workloads.torch_models.RECIPES` that makes it in PyTorch, if there is one.
    longest
        Most tokens, where positions are learned; 0 for no limit.
    drawn
        Whether its recipe says what reads what, so that the graph and a module in PyTorch follow from it too.
    """

    name: str
    title: str
    family: str
    source: str
    aliases: tuple[str, ...] = ()
    image: Shape | None = None
    sequence: int | None = None
    draw: Callable[[Picture], None] | None = None
    write: Callable[[Tape, int, int], None] | None = None
    model: Decoder | None = None
    normalised: bool = True
    note: str = ""
    code: str | None = None
    longest: int = 0
    drawn: bool = False

    @property
    def free_image(self) -> bool:
        """Whether it takes square pictures of another side."""
        return self.image is not None and self.image[1] == self.image[2] and self.image[1] > SMALLEST_FREE

    @property
    def has_graph(self) -> bool:
        """Whether it is known what reads what, by its recipe or by its PyTorch code: then it can be run, too."""
        return self.drawn or self.code is not None

    @property
    def written(self) -> bool:
        """Whether it is written down operator by operator; the others are known by their PyTorch code."""
        return bool(self.draw or self.write or self.model)

    @cached_property
    def parameters(self) -> Quantity:
        """Parameters, param: weights, biases, scales and shifts; no running averages."""
        return self.model.parameters() if self.model else self.build().parameters

    def build(
        self,
        *,
        batch: int = 1,
        precision: str = "fp32",
        sequence: int | None = None,
        image: int | tuple[int, int] | None = None,
        phase: Phase | None = None,
        weight_format: str | None = None,
        fused: bool = True,
        whole: bool = False,
    ) -> Network:
        """Return the network; :func:`mlsys.workloads.zoo.network` explains the arguments.

        ``image`` may be height and width, of a network that is written down. ``whole`` counts the work of what rides
        along with the products, which else is left out.
        """
        batch = self._count("batch", batch)
        for name, value, fits, of in (
            ("image", image, self.image, "side of its picture"),
            ("sequence", sequence, self.sequence, "number of tokens"),
            ("phase", phase, self.model, "phases of a language model"),
            ("weight_format", weight_format, self.model, "quantised weights of a language model"),
        ):
            if value is not None and not fits:
                raise ArgumentError(f"network(): `{name}` is the {of}, which {self.name!r} does not have. Leave it out")
        if self.model:
            return self._language(self.model, batch, precision, sequence, phase, weight_format, fused, whole)
        if not self.written:
            if isinstance(image, tuple):
                raise ArgumentError(f"network(): `image` must be one side of {self.name!r}, got {image}")
            return self._captured(batch, precision, sequence, image, fused, whole)
        if self.image:
            net = Picture(batch, self._picture(image), precision, fused, self.normalised, whole)
            assert self.draw is not None
            self.draw(net)
            return Network(self.title, tuple(net.operators))
        assert self.write is not None
        tape = Tape(precision, fused, whole=whole)
        tokens = self._count("sequence", self.sequence if sequence is None else sequence) if self.sequence else 0
        self.write(tape, batch, tokens)
        return Network(self.title, tuple(tape.operators))

    def drawing(
        self,
        *,
        batch: int = 1,
        precision: str = "fp32",
        sequence: int | None = None,
        image: int | None = None,
        abridged: bool = False,
    ) -> DrawnTape:
        """Return its graph, drawn by the same lines that count its products; abridged, of three layers at most."""
        from mlsys.workloads.drawn import DrawnTape

        if self.draw is not None:
            net = DrawnTape(self.name, batch, self._picture(image), precision, self.normalised, abridged)
            self.draw(net)
            return net
        tokens = self._count("sequence", self.sequence if sequence is None else sequence)
        net = DrawnTape(self.name, batch, tokens, precision, abridged=abridged)
        if self.model:
            self.model.write(net, batch, tokens)
        else:
            assert self.write is not None
            self.write(net, batch, tokens)
        return net

    def _picture(self, image: int | tuple[int, int] | None) -> Shape:
        assert self.image is not None
        channels, height, width = self.image
        if isinstance(image, tuple):
            height, width = (self._count("image", side) for side in image)
        elif image is not None:
            side = self._count("image", image)
            height, width = side, side * width // height
        return channels, height, width

    def _captured(
        self, batch: int, precision: str, sequence: int | None, image: int | None, fused: bool, whole: bool
    ) -> Network:
        """Return the network as its PyTorch code has it: operator by operator, or brought to its products."""
        from mlsys.workloads.carried import carried

        work = _loaded(self.name, batch, precision, sequence, image)
        if not fused:
            return Network(self.title, work.operators)
        return Network(self.title, carried(work, whole=whole).operators)

    def _language(
        self,
        model: Decoder,
        batch: int,
        precision: str,
        sequence: int | None,
        phase: Phase | None,
        weight_format: str | None,
        fused: bool,
        whole: bool,
    ) -> Network:
        tokens = self._count("sequence", self.sequence if sequence is None else sequence)
        asked = checked_choice("network", "phase", "prefill" if phase is None else phase, get_args(Phase))
        write = model.decode if asked == "decode" else model.prefill
        return write(batch, tokens, precision, weight_format=weight_format, fused=fused, whole=whole)

    def _count(self, name: str, value: int | None) -> int:
        return checked_count("network", name, value)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.title}, {self.parameters.to_compact():.4g}; {self.source}>"
