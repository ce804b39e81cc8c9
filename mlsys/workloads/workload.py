"""Captured networks: operators with counts, weights, and coverage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from mlsys.errors import ArgumentError
from mlsys.frozen import FrozenDict
from mlsys.precision import element_size, precision_name
from mlsys.workloads.counted_operator import CountedOperator, counts_by_hand
from mlsys.workloads.masked import causal_attention
from mlsys.workloads.operator import PREFILL, Network, Operator
from mlsys.workloads.totals import AttentionCount, Held, TracedNetwork

if TYPE_CHECKING:
    from mlsys.units import Quantity
    from mlsys.workloads.graph import OperatorGraph
    from mlsys.workloads.zoo.decoder import Decoder


@dataclass(frozen=True, repr=False)
class Workload(TracedNetwork):
    """A captured network: a :class:`Network` with its weights and the coverage of its operators.

    It can be used wherever a network is accepted, including :func:`mlsys.models.roofline`.

    Attributes
    ----------
    operators
        Operators that move data, in execution order.
    held
        Contents of the whole module, each tensor once, used or not.
    views
        Nodes that only create views of memory, at no cost.
    source
        Tool that captured it: ``"torch's dispatcher"``, ``"torch.export"``, ``"torch.fx, because …"``, ``"ONNX"``,
        ``"configuration"``, ``"hand"``.
    recipe
        Source of the network, in words: a paper and table, a file, a factory.
    sizes
        The free sizes and their values; see :meth:`at`. For a network from :func:`mlsys.workloads.load` also those that
        are not free.
    notes
        Notes on the counts: which of several conventions was used, and assumptions.
    decoder
        Layers of a decoder language model that is defined in the catalogue or read from its configuration.
    left_out
        Number of layers equal to the second that are not among the operators; see :meth:`abridged`.
    default_format
        Whether the number format is only a default: :func:`mlsys.analyze` then uses its own default.

    Examples
    --------
    >>> from torch import nn, zeros
    >>> mlp = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64))
    >>> workload = Workload.from_torch(mlp, zeros(32, 128))
    >>> print(workload.flops, workload.product_flops, workload.parameters)
    3164160 FLOP 3145728 FLOP 49472 param
    """

    source: str = field(default="hand", kw_only=True)
    recipe: str = field(default="", kw_only=True, compare=False)
    sizes: FrozenDict[str, int] = field(default_factory=lambda: FrozenDict({}), kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True, compare=False)
    _masked: AttentionCount | None = field(default=None, kw_only=True, compare=False, repr=False)
    _again: Callable[[Mapping[str, int]], Workload] | None = field(
        default=None, kw_only=True, compare=False, repr=False
    )
    _wired: Callable[[tuple[Operator, ...]], OperatorGraph] | None = field(
        default=None, kw_only=True, compare=False, repr=False
    )
    _stored: Callable[[str], Workload] | None = field(default=None, kw_only=True, compare=False, repr=False)
    _kernels: Callable[[], Network] | None = field(default=None, kw_only=True, compare=False, repr=False)
    _apart: Callable[[], Network] | None = field(default=None, kw_only=True, compare=False, repr=False)
    _abridged: Workload | None = field(default=None, kw_only=True, compare=False, repr=False)
    _captured: Callable[[], Workload] | None = field(default=None, kw_only=True, compare=False, repr=False)
    left_out: int = field(default=0, kw_only=True, compare=False, repr=False)
    default_format: bool = field(default=False, kw_only=True, compare=False, repr=False)
    decoder: Decoder | None = field(default=None, kw_only=True, compare=False, repr=False)

    @classmethod
    def from_torch(
        cls,
        module: object,
        example_inputs: object,
        *,
        dynamic: Mapping[str, int | Mapping[str, int]] | None = None,
        name: str | None = None,
    ) -> Workload:
        """Capture a torch module; see :func:`mlsys.workloads.torch_import.from_torch`."""
        from mlsys.workloads.torch_import.build import from_torch

        return from_torch(module, example_inputs, dynamic=dynamic, name=name)

    @classmethod
    def from_hf_config(
        cls,
        config: object,
        *,
        batch: int = 1,
        sequence: int | None = None,
        image: int | None = None,
        precision: str = "fp32",
        dynamic: bool = False,
    ) -> Workload:
        """Build a transformers model from its configuration; see :func:`mlsys.workloads.hf.from_hf_config`."""
        from mlsys.workloads.hf import from_hf_config

        return from_hf_config(config, batch=batch, sequence=sequence, image=image, precision=precision, dynamic=dynamic)

    @classmethod
    def from_onnx(cls, model: object, *, sizes: Mapping[str, int] | None = None, name: str | None = None) -> Workload:
        """Read an ONNX model; see :func:`mlsys.workloads.onnx_import.from_onnx`."""
        from mlsys.workloads.onnx_import import from_onnx

        return from_onnx(model, sizes=sizes, name=name)

    @classmethod
    def from_network(cls, network: Network) -> Workload:
        """Return a network built by hand as a workload, with unchanged counts.

        The products an operator lowers to are its MACs; the rest of its work is element-wise. Its output size follows
        from its shape; an operator of a user-defined kind is assumed to read only.
        """
        operators = tuple(
            operator
            if isinstance(operator, CountedOperator)
            else CountedOperator(
                operator.name,
                operator.kind,
                operator.precision,
                operator.operations,
                operator.data,
                operator.shape,
                operator.weights,
                operator.parameters,
                counts=counts_by_hand(operator),
            )
            for operator in network
        )
        sizes = {name: float(element_size(name).m_as("byte")) for name in {each.precision for each in network}}
        stored = sum(each.parameters * sizes[each.precision] for each in network)
        parameters = network.parameters.m_as("param")
        return cls(network.name, operators, network.kind, held=Held(int(parameters), int(stored)))

    def to_network(self) -> Network:
        """Return the plain network: the same operators, each with all of its work.

        Examples
        --------
        >>> from mlsys.workloads import zoo
        >>> Workload.from_network(zoo.network("resnet50")).to_network() == zoo.network("resnet50")
        True
        """
        return Network(
            self.name,
            tuple(
                Operator(op.name, op.kind, op.precision, op.operations, op.data, op.shape, op.weights, op.parameters)
                for op in self.operators
            ),
            self.kind,
        )

    def at(self, **sizes: int) -> Workload:
        """Return the same network at other sizes, without capturing it again.

        Parameters
        ----------
        sizes
            New values of the free sizes, such as ``batch=32``; the others are kept.

        Raises
        ------
        UnknownNameError
            If a size is not free in this network.
        ArgumentError
            If a size is not a positive whole number, or was fixed by the capture.
        """
        if self._again is None:
            raise ArgumentError(
                f"at(): {self.name!r} has no free sizes. Capture it with dynamic={{'batch': 0}}, which frees axis 0"
            )
        return replace(self._again(sizes), kind=self.kind, default_format=self.default_format)

    def stored_as(self, precision: str) -> Workload:
        """Return the same network with values stored in another number format.

        Integers, such as token indices, and values that the code stores in a format of its own are unchanged.

        Raises
        ------
        ArgumentError
            If the operators were built by hand, in a fixed format.
        UnknownNameError
            If there is no such number format.

        Examples
        --------
        >>> from torch import nn, zeros
        >>> single = Workload.from_torch(nn.Linear(128, 256), zeros(32, 128))
        >>> print(single.data, single.stored_as("fp16").data)
        181248 B 90624 B
        """
        if self._stored is None:
            raise ArgumentError(
                f"stored_as(): the operators of {self.name!r} were built by hand, in their number format. "
                "Build them in another, or use a captured network"
            )
        stored = self._stored(precision_name(precision))
        return replace(
            stored,
            kind=self.kind,
            recipe=self.recipe,
            sizes=self.sizes,
            notes=self.notes,
            _masked=self._masked,
        )

    @property
    def active_parameters(self) -> Quantity:
        """Parameters used by one token: of the experts only those that it is routed to.

        Raises
        ------
        ArgumentError
            If the experts among the operators are unknown; see :attr:`decoder`.

        Examples
        --------
        >>> from mlsys.workloads import load
        >>> print(f"{load('mixtral-8x7b').active_parameters:,}")
        12,879,925,248 param
        """
        return self._as_decoder("active_parameters").active_parameters()

    @property
    def kv_cache_bytes_per_token(self) -> Quantity:
        """KV-cache bytes of one token in all layers.

        The cache is in the number format that the model specifies for it, or else in that of the network. Local layers
        drop tokens beyond their window: :attr:`kv_cache_bytes` is the total for many tokens.

        Raises
        ------
        ArgumentError
            If the network is not one of the decoders of :attr:`decoder`.
        """
        decoder = self._as_decoder("kv_cache_bytes_per_token")
        return decoder.kv_cache_per_token(decoder.cache_format or self.precision)

    @property
    def kv_cache_bytes(self) -> Quantity:
        """KV-cache bytes after the tokens of each of its sequences.

        Raises
        ------
        ArgumentError
            If the network is not one of the decoders of :attr:`decoder`.

        Examples
        --------
        >>> from mlsys.workloads import load
        >>> step = load("gpt-oss-120b", phase="decode", sequence=131_072, batch=2, precision="bf16")
        >>> print(step.kv_cache_bytes.to("GB"))
        9.6731136 GB
        """
        decoder = self._as_decoder("kv_cache_bytes")
        tokens, batch = self.sizes["sequence"], self.sizes.get("batch", 1)
        return decoder.kv_cache(tokens, batch=batch, precision=decoder.cache_format or self.precision)

    @property
    def state_bytes(self) -> Quantity:
        """Bytes of the states of fixed size that recurrent layers keep for its sequences, beside the cache.

        Raises
        ------
        ArgumentError
            If the network is not one of the decoders of :attr:`decoder`.
        """
        decoder = self._as_decoder("state_bytes")
        return decoder.state_bytes(self.sizes.get("batch", 1), precision=self.precision)

    def _as_decoder(self, what: str) -> Decoder:
        if self.decoder is None:
            raise ArgumentError(
                f"{what}: {self.name!r} is not known as a decoder language model by layers. Use one of the "
                "catalogue or a config.json, e.g. load('llama-3-8b')"
            )
        return self.decoder

    @property
    def has_graph(self) -> bool:
        """Whether it has an operator graph, as captured networks do."""
        return self._wired is not None

    @property
    def is_convertible(self) -> bool:
        """Whether :meth:`stored_as` can store it in another number format."""
        return self._stored is not None

    @property
    def is_unfused(self) -> bool:
        """Whether it lists operators that software would fuse into fewer kernels."""
        return self.has_graph or self._kernels is not None

    def captured(self) -> Workload:
        """Return the network with its graph; for one read from a configuration, as transformers' code runs it.

        Others are returned unchanged.
        """
        return self if self._captured is None or self.has_graph else self._captured()

    def written_kernels(self) -> Network:
        """Return a network that is defined by fused kernels in that form; otherwise itself."""
        return self if self._kernels is None else self._kernels()

    def written_operators(self) -> Network:
        """Return a network that is defined operator by operator in that form; otherwise itself.

        Examples
        --------
        >>> from mlsys.workloads import load
        >>> [len(each) for each in (load("bert-base"), load("bert-base").written_operators())]
        [142, 124]
        """
        return self if self._apart is None else self._apart()

    def abridged(self) -> Workload:
        """Return the network with three layers in place of many equal ones, if its recipe says which; otherwise itself.

        Examples
        --------
        >>> from mlsys.workloads import load
        >>> short = load("gpt2").abridged()
        >>> len(short), short.left_out, short.with_layers().operators == load("gpt2").operators
        (39, 9, True)
        """
        return self if self._abridged is None else self._abridged

    def with_layers(self) -> Workload:
        """Return the network including the layers left out, which equal the second except for their names."""
        if not self.left_out:
            return self
        second = [index for index, operator in enumerate(self._traced) if operator.path.startswith("layer 2 ")]
        copies = [
            replace(
                operator,
                **{key: getattr(operator, key).replace("layer 2 ", f"layer {layer} ") for key in ("name", "path")},
            )
            for layer in range(3, 3 + self.left_out)
            for operator in self._traced[second[0] : second[-1] + 1]
        ]
        end = second[-1] + 1
        return replace(self, operators=(*self.operators[:end], *copies, *self.operators[end:]), left_out=0)

    @cached_property
    def graph(self) -> OperatorGraph:
        """Producers and consumers of every tensor; built on first use.

        Raises
        ------
        ArgumentError
            If the network was built by hand from operators, without edges.

        Examples
        --------
        >>> from torch import nn, zeros
        >>> mlp = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64))
        >>> graph = Workload.from_torch(mlp, zeros(32, 128)).graph
        >>> [(value.name, value.producer, value.consumers) for value in graph.values if value.role == "made"]
        [('linear', 0, (1,)), ('relu', 1, (2,)), ('linear_1', 2, ())]
        """
        if self._wired is None:
            raise ArgumentError(
                f"graph: {self.name!r} was built by hand and has no edges between its operators. "
                "Use a captured network, e.g. Workload.from_torch(module, inputs).graph"
            )
        return self._wired(self.operators)

    @property
    def masked_attention(self) -> AttentionCount | None:
        """Products of masked attention, dense and as left by the mask; None without a mask.

        Examples
        --------
        >>> from mlsys.workloads import load
        >>> print(load("gpt2", sequence=4).masked_attention)
        masked attention is counted dense, every query with every key: 589,824 FLOP; the pairs left by its masks take 368,640 FLOP
        """  # noqa: E501
        if self._masked is None and self.kind == PREFILL:
            return causal_attention(self.operators)
        return self._masked

    def remarks(self) -> tuple[str, ...]:
        """Return :attr:`notes`, and how masked attention is counted, as sentences."""
        masked = self.masked_attention
        return self.notes if masked is None else (*self.notes, str(masked))

    def explain(self) -> str:
        """Return the work by kind, the weights, and what is not understood, as text."""
        lines = [
            f"{self.name}: {_short(self.flops)}, {_short(self.product_flops)} of it in products; "
            f"{_short(self.parameters)}",
            f"captured by {self.source}; {self.coverage:.1%} of {len(self.operators) + self.views} nodes understood",
            f"{'kind':<16} {'count':>6} {'products':>14} {'element-wise':>14} {'moved':>12}",
        ]
        lines += [
            f"{row.kind:<16} {row.count:>6} {_short(row.product_flops):>14} {_short(row.elementwise):>14} "
            f"{_short(row.data):>12}"
            for row in self.by_kind()
        ]
        lines += [f"note: {note}" for note in self.remarks()]
        lines += [f"no rule for {name.target} ({name.name}): counted as traffic only" for name in self.unknown]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<workload {self.name}: {len(self)} operators, {_short(self.flops)}, "
            f"{_short(self.parameters)}, {self.coverage:.1%} understood>"
        )


def _short(amount: Quantity) -> str:
    return f"{amount.to_compact():.4g}"
