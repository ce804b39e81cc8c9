"""Parallel layouts: over how many chips a model is split by tensor, pipeline, expert, data and context parallelism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mlsys.errors import ArgumentError
from mlsys.unit_checks import checked_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mlsys.workloads.zoo.decoder import Decoder
    from mlsys.workloads.zoo.decoder_layer import DecoderLayer

__all__ = ["Chips", "Layout", "layouts"]


class Chips(Protocol):
    """A system of chips, as far as a layout reads it."""

    @property
    def name(self) -> str:
        """Name of the system."""

    @property
    def chips(self) -> int:
        """Number of chips."""


@dataclass(frozen=True)
class Layout:
    """How one copy of a model is split over chips.

    The chips form a grid of ``tp`` × ``pp`` × ``dp`` × ``cp``. Expert parallelism adds no chips: ``ep`` of the
    ``tp`` × ``dp`` × ``cp`` chips of a pipeline stage share the experts of its layers, as in Megatron-LM, vLLM and
    TensorRT-LLM.

    Attributes
    ----------
    tp
        Tensor parallelism: chips that share every layer, by heads and by columns.
    pp
        Pipeline parallelism: stages of consecutive layers.
    ep
        Expert parallelism: groups of chips among which the experts of a layer are divided.
    dp
        Data parallelism: chips, or groups of them, that hold the same weights and process different sequences.
    cp
        Context parallelism: chips that share the tokens of a sequence.

    Raises
    ------
    ArgumentError
        If a size is not a whole number from 1, or the chips of a stage do not divide into ``ep`` groups.

    Examples
    --------
    >>> Layout(tp=8, pp=2).chips
    16
    >>> print(Layout(tp=8, ep=8, dp=2), "·", Layout())
    tp 8, ep 8, dp 2 · one chip
    """

    tp: int = 1
    pp: int = 1
    ep: int = 1
    dp: int = 1
    cp: int = 1

    def __post_init__(self) -> None:
        for name in ("tp", "pp", "ep", "dp", "cp"):
            object.__setattr__(self, name, checked_count("Layout", name, getattr(self, name)))
        if self.stage_chips % self.ep:
            raise ArgumentError(
                f"Layout(): `ep` {self.ep} must divide the tp × dp × cp = {self.stage_chips} chips of a pipeline "
                f"stage, which share its experts. Write e.g. tp={self.ep}, ep={self.ep}"
            )

    @property
    def chips(self) -> int:
        """Number of chips."""
        return self.pp * self.stage_chips

    @property
    def stage_chips(self) -> int:
        """Number of chips of one pipeline stage."""
        return self.tp * self.dp * self.cp

    def __str__(self) -> str:
        parts = (f"{name} {getattr(self, name)}" for name in ("tp", "pp", "ep", "dp", "cp") if getattr(self, name) > 1)
        return ", ".join(parts) or "one chip"

    def check(self, model: Decoder, system: Chips | None = None) -> None:
        """Raise if a model cannot be split like this, or a system has fewer chips.

        Parameters
        ----------
        model
            A decoder, such as ``language_model("llama-3-70b")``.
        system
            Anything with ``name`` and ``chips``; None leaves the number of chips unchecked.

        Raises
        ------
        ArgumentError
            If the layout needs more chips than there are; if ``pp`` does not divide the layers; if ``tp`` does not
            divide the query heads or the width of the feed-forward block, or neither divides the key-value heads nor
            is a multiple of them; or if ``ep`` does not divide the experts, or there are none.

        Notes
        -----
        Where ``tp`` is a multiple of the key-value heads, each head is stored on ``tp / kv_heads`` chips. A latent
        of multi-head latent attention has no heads and is stored on all of them.

        Examples
        --------
        >>> from mlsys.workloads.zoo import language_model
        >>> Layout(tp=16).check(language_model("llama-3-70b"))
        >>> Layout(pp=5).fits(language_model("gpt2"))
        False
        """
        fault = next(self._faults(model, system), None)
        if fault is not None:
            raise ArgumentError(f"Layout({self}): {fault}")

    def fits(self, model: Decoder, system: Chips | None = None) -> bool:
        """Return whether a model can be split like this on a system; :meth:`check` says why not."""
        return next(self._faults(model, system), None) is None

    def _faults(self, model: Decoder, system: Chips | None) -> Iterator[str]:
        layers = model.layer_list
        if system is not None and self.chips > system.chips:
            yield (
                f"{self.chips} chips are needed, and {system.name} has {system.chips}. "
                "Choose smaller sizes, or more nodes"
            )
        if model.encoder is not None and self.pp > 1:
            yield f"`pp` divides the layers of decoders, and {model.name} has an encoder. Leave it at 1"
        if len(layers) % self.pp:
            yield (
                f"`pp` must divide the {len(layers)} layers of {model.name}. Possible: {_listed(divisors(len(layers)))}"
            )
        if self.tp > 1:
            possible = tensor_sizes(model, ep=self.ep)
            if self.tp not in possible:
                yield _tensor_fault(self, model, possible)
        if self.ep > 1:
            experts = {layer.experts for layer in layers if layer.experts}
            if not experts:
                yield f"`ep` is for models with experts, and {model.name} has none. Leave it at 1"
            for count in sorted(experts):
                if count % self.ep:
                    yield (
                        f"`ep` must divide the {count} experts of a layer of {model.name}. "
                        f"Possible: {_listed(divisors(count))}"
                    )


def layouts(
    model: Decoder,
    system: Chips,
    *,
    tp: int | None = None,
    pp: int | None = None,
    ep: int | None = None,
    dp: int | None = None,
) -> tuple[Layout, ...]:
    """Return the layouts of a model that a system has the chips for, by number of chips.

    Sizes that are not given vary: ``tp`` and ``pp`` over what divides the model, ``ep`` over what divides its experts,
    and ``dp`` over 1 and what ``ep`` spans beyond ``tp``, as only experts join copies into one.

    Parameters
    ----------
    model
        A decoder.
    system
        Anything with ``name`` and ``chips``.
    tp, pp, ep, dp
        Sizes that are fixed.

    Raises
    ------
    ArgumentError
        If a size is not a whole number from 1.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from mlsys.workloads.zoo import language_model
    >>> node = SimpleNamespace(name="a node of four", chips=4)
    >>> print(*layouts(language_model("llama-3-8b"), node), sep=" · ")
    one chip · tp 2 · pp 2 · tp 4 · tp 2, pp 2 · pp 4
    """
    for name, value in (("tp", tp), ("pp", pp), ("ep", ep), ("dp", dp)):
        if value is not None:
            checked_count("layouts", name, value)
    most = system.chips
    experts = {layer.experts for layer in model.layer_list if layer.experts}
    divided = [size for size in divisors(min(experts, default=1)) if all(count % size == 0 for count in experts)]
    found: set[Layout] = set()
    for stages in [pp] if pp else divisors(len(model.layer_list)):
        if stages > most:
            break
        for expert in [ep] if ep else divided:
            for tensor in [tp] if tp else tensor_sizes(model, ep=expert):
                copies = [dp] if dp else sorted({1, max(1, expert // tensor)})
                for data in copies:
                    if stages * tensor * data > most or (tensor * data) % expert:
                        continue
                    layout = Layout(tp=tensor, pp=stages, ep=expert, dp=data)
                    if layout.fits(model, system):
                        found.add(layout)
    return tuple(sorted(found, key=lambda layout: (layout.chips, layout.pp, layout.dp, layout.ep)))


def tensor_sizes(model: Decoder, *, ep: int = 1) -> tuple[int, ...]:
    """Return the degrees of tensor parallelism that divide a model.

    They divide its query heads and the widths of its feed-forward blocks, and are divisors or multiples of its
    key-value heads. With ``ep`` above 1 experts stay whole, so that their width need not be divided.

    Examples
    --------
    >>> from mlsys.workloads.zoo import language_model
    >>> tensor_sizes(language_model("llama-3-8b"))
    (1, 2, 4, 8, 16, 32)
    """
    kinds = dict.fromkeys((*model.layer_list, *(model.encoder.layers if model.encoder is not None else ())))
    most = min((layer.heads for layer in kinds if layer.attends), default=1)
    return tuple(size for size in divisors(most) if all(_obstacle(size, layer, ep) is None for layer in kinds))


def _obstacle(size: int, layer: DecoderLayer, ep: int) -> str | None:
    """Return what of a layer ``size`` chips cannot share, in words, or None."""
    if layer.attends:
        if layer.heads % size:
            return f"the {layer.heads} query heads"
        if not layer.latent and layer.kv_heads % size and size % layer.kv_heads:
            return f"the {layer.kv_heads} key-value heads, or be a multiple of them, for the layers"
    for width in (layer.shared_ffn, 0 if layer.experts and ep > 1 else layer.ffn):
        if width % size:
            return f"the width {width} of the feed-forward blocks"
    return None


def _tensor_fault(layout: Layout, model: Decoder, possible: tuple[int, ...]) -> str:
    encoder = model.encoder.layers if model.encoder is not None else ()
    found = (_obstacle(layout.tp, layer, layout.ep) for layer in dict.fromkeys((*model.layer_list, *encoder)))
    what = next((obstacle for obstacle in found if obstacle is not None), "the heads")
    return f"`tp` must divide {what} of {model.name}. Possible: {_listed(possible)}"


def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of a positive whole number in ascending order.

    Examples
    --------
    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [size for size in range(1, int(number**0.5) + 1) if number % size == 0]
    return tuple(sorted({*small, *(number // size for size in small)}))


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
