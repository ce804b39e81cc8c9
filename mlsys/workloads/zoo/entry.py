"""One entry of the catalogue: a network's name, its source and its recipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, get_args

from mlsys.choices import Phase
from mlsys.errors import ArgumentError
from mlsys.unit_checks import checked_choice, checked_count
from mlsys.units import Quantity
from mlsys.workloads.operator import Network
from mlsys.workloads.zoo.cnn_builder import CnnBuilder, Shape
from mlsys.workloads.zoo.decoder import Decoder
from mlsys.workloads.zoo.layer_builder import LayerBuilder

if TYPE_CHECKING:
    from mlsys.workloads.graph_builder import NetworkBuilder
    from mlsys.workloads.workload import Workload

SMALLEST_FREE = 32  # networks on images of this side or smaller end in a layer that fits one size


@lru_cache(maxsize=64)  # a comparison of fused and unfused loads the same network twice
def _loaded(name: str, batch: int, precision: str, sequence: int | None, image: int | None) -> Workload:
    from mlsys.workloads.resolve import load

    return load(name, batch=batch, precision=precision, sequence=sequence, image=image)


@dataclass(frozen=True)
class Entry:
    """A network of the catalogue.

    Attributes
    ----------
    name
        Name in the catalogue.
    title
        Name used in papers.
    family
        ``"picture"``, ``"text"``, ``"language"``, ``"speech and sensors"``, ``"recommender"``, ….
    source
        Paper and table, or repository and file, that the sizes are taken from.
    aliases
        Other spellings.
    image
        Default channels, height and width of its input, for a network on images.
    sequence
        Default number of tokens, for a network on text.
    model
        The model that generates tokens, if it is one: a decoder language model, or an encoder-decoder.
    note
        Deviations from the source, if any.
    code
        The recipe in :data:`mlsys.workloads.torch_models.RECIPES` that builds it in PyTorch, if there is one.
    longest
        Maximum number of tokens with learned positions; 0 for no limit.
    drawn
        Whether its recipe states the inputs of every layer, so that a graph and a PyTorch module follow from it.
    """

    name: str
    title: str
    family: str
    source: str
    aliases: tuple[str, ...] = ()
    image: Shape | None = None
    sequence: int | None = None
    draw: Callable[[CnnBuilder], None] | None = None
    write: Callable[[LayerBuilder, int, int], None] | None = None
    model: Decoder | None = None
    normalised: bool = True
    note: str = ""
    code: str | None = None
    longest: int = 0
    drawn: bool = False

    @property
    def free_image(self) -> bool:
        """Whether it accepts square images of another side."""
        return self.image is not None and self.image[1] == self.image[2] and self.image[1] > SMALLEST_FREE

    @property
    def has_graph(self) -> bool:
        """Whether its graph is known, from its recipe or its PyTorch code, so that it can also be run."""
        return self.drawn or self.code is not None

    @property
    def written(self) -> bool:
        """Whether it has an operator-by-operator recipe; the others are captured from PyTorch code."""
        return bool(self.draw or self.write or self.model)

    @cached_property
    def parameters(self) -> Quantity:
        """Trainable parameters, param: weights, biases, scales and shifts, without running statistics."""
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
        """Return the network; the arguments are those of :func:`mlsys.workloads.zoo.network`.

        ``image`` may be (height, width) for a network with a recipe. ``whole`` also counts the work of operators
        that are fused with matrix products.
        """
        batch = self._count("batch", batch)
        for name, value, fits, of in (
            ("image", image, self.image, "side of its input image"),
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
            net = CnnBuilder(batch, self._picture(image), precision, fused, self.normalised, whole)
            assert self.draw is not None
            self.draw(net)
            return Network(self.title, tuple(net.operators))
        assert self.write is not None
        builder = LayerBuilder(precision, fused, whole=whole)
        tokens = self._count("sequence", self.sequence if sequence is None else sequence) if self.sequence else 0
        self.write(builder, batch, tokens)
        return Network(self.title, tuple(builder.operators))

    def drawing(
        self,
        *,
        batch: int = 1,
        precision: str = "fp32",
        sequence: int | None = None,
        image: int | None = None,
        abridged: bool = False,
    ) -> NetworkBuilder:
        """Return the builder of its graph; ``abridged`` appends at most three of its repeated layers."""
        from mlsys.workloads.graph_builder import NetworkBuilder

        if self.draw is not None:
            net = NetworkBuilder(self.name, batch, self._picture(image), precision, self.normalised, abridged)
            self.draw(net)
            return net
        tokens = self._count("sequence", self.sequence if sequence is None else sequence)
        net = NetworkBuilder(self.name, batch, tokens, precision, abridged=abridged)
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
        """Return the network captured from its PyTorch code, unfused or reduced to its matrix products."""
        from mlsys.workloads.epilogue_fusion import fuse_epilogues

        work = _loaded(self.name, batch, precision, sequence, image)
        if not fused:
            return Network(self.title, work.operators)
        return Network(self.title, fuse_epilogues(work, whole=whole).operators)

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
        chosen = checked_choice("network", "phase", "prefill" if phase is None else phase, get_args(Phase))
        if model.encoder is not None and not model.encoder.fixed:
            model = model.reading(tokens)
            tokens = 1 if phase == "prefill" else tokens  # generation begins with one token of the decoder
        write = model.decode if chosen == "decode" else model.prefill
        return write(batch, tokens, precision, weight_format=weight_format, fused=fused, whole=whole)

    def _count(self, name: str, value: int | None) -> int:
        return checked_count("network", name, value)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.title}, {self.parameters.to_compact():.4g}; {self.source}>"
