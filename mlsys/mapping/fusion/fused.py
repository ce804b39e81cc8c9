"""A network whose operators are fused kernels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from mlsys.errors import ArgumentError
from mlsys.mapping.fusion.kernel import fused_graph, kernel_of
from mlsys.mapping.fusion.match import FusionGroup, find_groups
from mlsys.mapping.fusion.pattern import LOOP_PATTERNS, PATTERNS, Pattern, PatternRegistry
from mlsys.units import Quantity, ureg
from mlsys.workloads.epilogue_fusion import fuse_epilogues
from mlsys.workloads.graph import OperatorGraph
from mlsys.workloads.operator import Network
from mlsys.workloads.workload import Workload

_BYTE, _FLOP = ureg.Unit("byte"), ureg.Unit("FLOP")


@dataclass(frozen=True)
class PatternTotal:
    """Savings of one pattern.

    Attributes
    ----------
    pattern
        Its name; ``"unfused"`` for the operators that stay on their own.
    groups, members
        Kernels of this pattern, and the operators in them.
    removed
        Tensors that are not written any more.
    before, after
        Bytes moved by the members one by one, and by the kernels.
    """

    pattern: str
    groups: int
    members: int
    removed: int
    before: Quantity
    after: Quantity

    @property
    def saved(self) -> Quantity:
        """Bytes that are not moved any more."""
        return ureg.Quantity(self.before.m_as("byte") - self.after.m_as("byte"), _BYTE)


@dataclass(frozen=True, repr=False)
class FusedWorkload(Workload):
    """A network whose operators are kernels, some of them fused; it goes wherever a network goes.

    Attributes
    ----------
    unfused
        The network as it was captured.
    groups
        For each kernel, the places of its operators in the unfused network.
    patterns
        What was looked for.
    """

    unfused: Workload = field(kw_only=True)
    groups: tuple[FusionGroup, ...] = field(kw_only=True)
    patterns: tuple[Pattern, ...] = field(kw_only=True)

    def at(self, **sizes: int) -> FusedWorkload:
        """Return the same network at other sizes, fused again; see :meth:`Workload.at`."""
        return fuse(self.unfused.at(**sizes), self.patterns)

    @cached_property
    def graph(self) -> OperatorGraph:
        """Which kernel makes which tensor and who reads it; what was swallowed is gone."""
        return fused_graph(self.unfused.graph, self.groups, self.operators)

    @property
    def kernels(self) -> int:
        """Number of kernels."""
        return len(self.operators)

    @property
    def removed(self) -> int:
        """Number of tensors that are no longer written."""
        return sum(len(group.swallowed) for group in self.groups)

    @property
    def saved(self) -> Quantity:
        """Bytes that are not moved any more."""
        return ureg.Quantity(self.unfused.data.m_as("byte") - self.data.m_as("byte"), _BYTE)

    @property
    def coverage(self) -> float:
        """Share of the captured nodes that are understood, 0 to 1."""
        return self.unfused.coverage

    def by_pattern(self) -> tuple[PatternTotal, ...]:
        """Return the savings of each pattern, most bytes first; unfused operators come last."""
        rows: dict[str, list[int]] = {}
        for group, kernel in zip(self.groups, self._traced, strict=True):
            row = rows.setdefault(group.pattern, [0, 0, 0, 0, 0])
            after = kernel.counts.read + kernel.counts.written
            values = (1, len(group.members), len(group.swallowed), after + group.saved, after)
            for index, value in enumerate(values):
                row[index] += value
        totals = [
            PatternTotal(
                name or "unfused", row[0], row[1], row[2], ureg.Quantity(row[3], _BYTE), ureg.Quantity(row[4], _BYTE)
            )
            for name, row in rows.items()
        ]
        return tuple(
            sorted(totals, key=lambda total: (total.pattern == "unfused", -total.saved.magnitude, total.pattern))
        )

    def explain(self) -> str:
        """Return what was fused and what that saves, as text."""
        before, after = self.unfused.data, self.data
        share = (after / before).m_as("") if before.magnitude else 1.0
        lines = [
            f"{self.name}: {len(self.unfused)} operators in {self.kernels} kernels",
            f"moved one by one {before.to_compact():.4g}, fused {after.to_compact():.4g} ({share:.1%}); "
            f"{self.removed} tensors are not written",
            f"work as before: {self.product_flops.to_compact():.4g} in products, "
            f"{self.elementwise_flops.to_compact():.4g} beside them",
            f"{'pattern':<16} {'kernels':>8} {'operators':>10} {'removed':>8} {'one by one':>12} {'fused':>10}",
        ]
        for row in self.by_pattern():
            moved = [f"{size.to_compact():.4g}" for size in (row.before, row.after)]
            lines.append(
                f"{row.pattern:<16} {row.groups:>8} {row.members:>10} {row.removed:>8} {moved[0]:>12} {moved[1]:>10}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<fused workload {self.name}: {len(self.unfused)} operators in {self.kernels} kernels, "
            f"{self.data.to_compact():.4g} instead of {self.unfused.data.to_compact():.4g}>"
        )


def fuse(workload: Workload, patterns: PatternRegistry | Iterable[Pattern | str] | None = None) -> FusedWorkload:
    """Return a captured network with its operators fused into kernels.

    Work stays to the last FLOP; bytes and kernels shrink. A kernel reads its inputs and
    weights once each and writes what others need; registers and the launch are not modelled.
    Reductions, pooling and operators that spread a tensor over a larger one end a chain of
    element-wise operators.

    Parameters
    ----------
    workload
        A captured network; one written by hand keeps no edges.
    patterns
        A registry, or patterns and names of registered ones; by default
        :data:`mlsys.mapping.fusion.PATTERNS`.

    Raises
    ------
    ArgumentError
        If the network has no graph or is fused already, or two patterns share a name.
    UnknownNameError
        If a name is not registered.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> fused = fuse(load("resnet50"))
    >>> len(fused.unfused), fused.kernels, fused.removed
    (174, 56, 118)
    >>> [(row.pattern, row.groups) for row in fused.by_pattern()]
    [('conv-bn-add-act', 16), ('conv-bn-act', 33), ('conv-bn', 4), ('unfused', 3)]
    """
    if isinstance(workload, FusedWorkload):
        raise ArgumentError(
            f"fuse(): {workload.name!r} is fused already. Write fuse(workload.unfused, patterns) to fuse it anew"
        )
    if not isinstance(workload, Workload):
        raise ArgumentError(
            f"fuse(): `workload` must be a captured Workload, got {type(workload).__name__}: only a captured "
            "network knows which operator reads what. Write e.g. fuse(Workload.from_torch(module, inputs))"
        )
    wanted = _patterns(patterns)
    graph = workload.graph
    groups = find_groups(graph, wanted)
    return FusedWorkload(
        workload.name,
        tuple(kernel_of(graph, group) for group in groups),
        workload.kind,
        held=workload.held,
        views=workload.views,
        source=workload.source,
        recipe=workload.recipe,
        sizes=workload.sizes,
        notes=workload.notes,
        _masked=workload._masked,
        left_out=workload.left_out,
        unfused=workload,
        groups=groups,
        patterns=wanted,
    )


def as_loops(workload: Network) -> Network:
    """Return a network as a compiler runs it that leaves products to a library: with one loop between two of them.

    One without a graph stays as it is, operator by operator.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> len(as_loops(load("resnet50")))
    105
    """
    if isinstance(workload, FusedWorkload) or not isinstance(workload, Workload) or not workload.has_graph:
        return workload
    return replace(fuse(workload.abridged(), LOOP_PATTERNS), views=workload.views).with_layers()


def as_kernels(workload: Workload) -> Network:
    """Return a network as the kernels that its time is estimated from, whichever way it came.

    They are products, convolutions, attention and look-ups, each with all that rides along. A captured network is
    brought to this form along its edges (:mod:`mlsys.workloads.epilogue_fusion`). One of the catalogue that is written
    down says itself what rides along; one made by hand, or fused already, is taken to be kernels.

    Examples
    --------
    >>> from mlsys.workloads import load
    >>> [len(as_kernels(load(name))) for name in ("resnet50", "resnext50_32x4d")]
    [54, 54]
    """
    if isinstance(workload, FusedWorkload):
        return workload
    if workload.has_graph:
        return replace(fuse_epilogues(fuse(workload.abridged())), views=workload.views).with_layers()
    return workload.written_kernels()


def _patterns(patterns: PatternRegistry | Iterable[Pattern | str] | None) -> tuple[Pattern, ...]:
    if patterns is None:
        return tuple(PATTERNS)
    if isinstance(patterns, (str, Pattern)):
        raise ArgumentError(f"fuse(): `patterns` must be several, got {patterns!r} alone. Write e.g. [{patterns!r}]")
    return tuple(PatternRegistry(PATTERNS[pattern] if isinstance(pattern, str) else pattern for pattern in patterns))
