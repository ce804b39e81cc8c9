"""What a few measurements of one machine say beyond what is known of its like: a linear model with known variances.

Let y be the logarithms of measured over predicted time of the rows. Then ``y = J m + a + s + n + f + v + g + e``: J
says how each prediction follows the logarithms of the model's parameters, which move by m; a is the machine's own
factor, s that of each kind of software, n that of each network, f that of networks in each number format, v that of
each version of a software of which several were measured, g what networks of like shape are off alike
(:mod:`mlsys.models.estimate.likeness`), e what is left.
Each of them is drawn towards none by a variance that is known beforehand: half a prior's width for a parameter, a
seventh to a half for factors. How wide they are, and how far rows scatter, is not known of a machine that nobody has
seen: a few answers are worked out, and averaged by how likely each makes the rows
(:mod:`mlsys.calibration.averaging`).

C. R. Henderson, Biometrics 31(2), 1975, for the equations; J. A. Hoeting et al., Statistical Science 14(4), 1999,
for the average over models.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.calibration.averaging import averaged, shrinkage_weight
from mlsys.calibration.case import Case
from mlsys.calibration.priors import PRIORS
from mlsys.calibration.times import case_times
from mlsys.models.estimate import Parameters
from mlsys.models.estimate.likeness import Shape, ShapeEffects, likeness, shape_of_products

Array = NDArray[np.float64]
# Shapes that are the same are told apart by this part of a variance, or no number could say which is which.
LITTLE = 1e-3
# A parameter is moved by so much, in logarithm, to see what follows it.
STEP = 0.1
# What a row can be off by that no other row tells, in logarithm of time; single kernels, which no network averages,
# by more: which one a library takes for a shape is told by no other shape.
SCATTER, OF_KERNELS = (0.1, 0.2), (0.1, 0.2, 0.3)
# Kernels that a single one's work has at most, what leads to it counted: attention that names its model is no network.
MOST_OF_ONE = 2


@dataclass(frozen=True)
class _Widths:
    """How far each kind of effect may lie from none, one standard deviation of a logarithm; parameters in priors."""

    machine: float
    software: float
    network: float
    parameters: float


# How far a machine's networks in one number format may lie from those in others: what is told of its peak in each, and
# how well each is compiled, is not off alike. With 0.1 and with 0.2 the errors are the same within 0.4 points.
OF_FORMATS = 0.15
# How far one version of a software may lie from the others that were measured with it, which has other kernels: not at
# all, or by so much. Energies always do, by the root of the squares of two things: as far as times may, and as far as
# powers do, since who builds it leaves more or less of a board switched on. ResNet-8 at 4.4 and 4.5 inferences a second
# draws 47 and 78 mW on a Nucleo-L4R5ZI, both supplied with 3 V (MLPerf Tiny v1.0, STMicroelectronics', and v1.1,
# Krai's); 16 builds on three boards of MLPerf Tiny scatter so about the mean of their board.
OF_VERSIONS, OF_POWERS = (0.0, 0.2), 0.17
OF_BUILDS = (math.hypot(max(OF_VERSIONS), OF_POWERS),)
# How far the times of networks of like shape may be off alike under one software of a machine: not at all, or by so
# much. Energies are off by what a board draws beside, which no shape tells.
OF_SHAPES = (0.0, 0.3, 0.6)
# A machine that is much like its kind, one that is not, and one whose parts are not.
WIDTHS = (_Widths(0.2, 0.07, 0.07, 0.4), _Widths(0.4, 0.25, 0.15, 0.4), _Widths(0.4, 0.25, 0.15, 0.8))
# Of single kernels also one that is its kind: there is next to nothing to learn, and what rows are off by is the shape.
AS_ITS_KIND = _Widths(0.05, 0.02, 0.02, 0.1)


@dataclass(frozen=True)
class Learned:
    """What the rows say, as logarithms of factors.

    Attributes
    ----------
    moves
        Of each parameter, in the order of :meth:`Parameters.names`.
    settings
        Of the time of each setting that was measured: the machine's own factor and the software's.
    networks
        Of the time of each network that was measured.
    formats
        Of the time in each number format that networks were measured in.
    versions
        Of each version of a setting of which several were measured, by setting and version.
    shapes
        Of networks by the shape of their products, of each setting.
    spread
        How far a further row of the same settings is expected to be off, one standard deviation.
    """

    moves: Array
    settings: dict[str, float]
    networks: dict[str, float]
    formats: dict[str, float]
    versions: dict[tuple[str, str], float]
    shapes: dict[str, ShapeEffects]
    spread: float

    def parameters(self, base: Array) -> Array:
        """Return parameters as this machine attains them: moved, and inside the limits of their priors."""
        low, high = (
            np.array([getattr(PRIORS[name], end) for name in Parameters.names()]) for end in ("lowest", "highest")
        )
        moved = np.clip(base * np.exp(self.moves), np.minimum(low, base), np.maximum(high, base))
        return np.asarray(moved, dtype=np.float64)

    def added(self, cases: Sequence[Case]) -> Array:
        """Return what settings, networks, formats, versions and shapes of cases add to the logarithm of their time."""
        added = np.array(
            [
                self.settings.get(case.setting, 0.0)
                + self.networks.get(case.network, 0.0)
                + self.formats.get(case.engine.computes_in, 0.0)
                + self.versions.get((case.setting, case.version), 0.0)
                for case in cases
            ]
        )
        for setting, told in self.shapes.items():
            here = [index for index, case in enumerate(cases) if case.setting == setting]
            added[here] += told.of([shape_of_products(cases[index].work) for index in here])
        return added

    def seconds(self, cases: Sequence[Case], before: Array, base: Array, plain: Array | None = None) -> Array:
        """Return the times of cases of this machine, where ``before`` is what was predicted of them.

        Parameters
        ----------
        cases
            Of settings that were measured: of others nothing is learned.
        before
            Predicted without the rows, seconds.
        base
            Parameters that the prediction follows, one row each.
        plain
            Times at these, where they are known already.
        """
        plain = case_times(cases, base) if plain is None else plain
        here = np.array([case.setting in self.settings for case in cases])
        moved = np.where(here[:, None], self.parameters(base), base)
        times: Array = before * np.where(here, case_times(cases, moved) / plain * np.exp(self.added(cases)), 1.0)
        return times


def _ratios(cases: Sequence[Case], moved: Array, base: Array) -> Array:
    """Return each case's time at some parameters over that at others."""
    times = case_times([*cases, *cases], np.concatenate([moved, base])).reshape(2, -1)
    return np.asarray(times[0] / times[1], dtype=np.float64)


def sensitivities(cases: Sequence[Case], base: Array) -> Array:
    """Return how the logarithm of each case's time follows those of the parameters, shape (cases, parameters)."""
    count = base.shape[1]
    moved = np.tile(base, (1 + count, 1, 1))
    moved[range(1, 1 + count), :, range(count)] *= math.exp(-STEP)
    times = np.log(case_times([*cases] * (1 + count), moved.reshape(-1, count))).reshape(1 + count, -1)
    slopes: Array = (times[0] - times[1:]).T / STEP
    return slopes


def learn(cases: Sequence[Case], before: Array, base: Array) -> Learned:
    """Return what measurements of one machine say.

    Parameters
    ----------
    cases
        Of one machine.
    before
        Predicted of them, seconds.
    base
        Parameters that the prediction follows, one row each.

    Notes
    -----
    A time is no power law of its parameters: what follows them is asked again once they have moved.
    """
    y = np.log([case.seconds for case in cases]) - np.log(before)
    first = _learned(cases, y, sensitivities(cases, base))
    moved = first.parameters(base)
    follows = sensitivities(cases, moved)
    straight = (follows * np.log(moved / base)).sum(axis=1)
    return _learned(cases, y - np.log(_ratios(cases, moved, base)) + straight, follows)


@dataclass(frozen=True)
class Effects:
    """What rows may be off by: a column of each effect, and how wide each may be.

    Attributes
    ----------
    design
        A row of each case, a column of each effect.
    widths
        Answers to be averaged: the width of each effect.
    settings, networks, formats, versions
        Which have effects.
    roots
        Of how alike the shapes of each setting are.
    """

    design: Array
    widths: list[Array]
    settings: list[str]
    networks: list[str]
    formats: list[str]
    versions: list[tuple[str, str]]
    roots: dict[str, Array]


def effects_of(cases: Sequence[Case], follows: Array) -> Effects:
    """Return what rows of one machine may be off by, where ``follows`` says how they follow its parameters."""

    def those(names: Sequence[Hashable], own: Sequence[Hashable]) -> list[Array]:
        return [np.array([name == each for each in own], dtype=float) for name in names]

    in_settings, in_networks = [case.setting for case in cases], [case.network for case in cases]
    used, named = [case.engine.computes_in for case in cases], [(case.setting, case.version) for case in cases]
    settings = list(dict.fromkeys(in_settings))
    networks = list(dict.fromkeys(filter(None, in_networks))) if any(map(_whole, cases)) else []
    formats = list(dict.fromkeys(used)) if networks else []
    each_once = list(dict.fromkeys(named))
    versions = [name for name in each_once if sum(other[0] == name[0] for other in each_once) > 1]
    drawn = any(case.power for case in cases)
    timed = bool(networks) and not drawn
    of_versions = OF_BUILDS if drawn else OF_VERSIONS
    shapes = [shape_of_products(case.work) for case in cases] if timed else []
    roots = {name: _root(shapes, [name == each for each in in_settings]) for name in settings if timed}
    columns = [*those(settings, in_settings), *those(networks, in_networks)]
    columns += [*those(formats, used), *those(versions, named)]
    prior = np.log([PRIORS[name].factor for name in Parameters.names()])
    widths = [
        np.concatenate(
            [
                each.parameters * prior,
                [each.machine],
                [each.software] * len(settings),
                [each.network] * len(networks),
                [OF_FORMATS] * len(formats),
                [version] * len(versions),
                [alike] * len(shapes),
            ]
        )
        for each in (WIDTHS if networks else (AS_ITS_KIND, *WIDTHS))
        for version in (of_versions if versions else (0.0,))
        for alike in (OF_SHAPES if timed else (0.0,))
    ]
    design = np.column_stack([follows, np.ones(len(cases)), *columns, *roots.values()])
    return Effects(design, widths, settings, networks, formats, versions, roots)


def _whole(case: Case) -> bool:
    """Tell whether a row is of a network: it has a name, and more kernels than a single one's work."""
    return bool(case.network) and case.work.columns.shape[1] > MOST_OF_ONE


def _learned(cases: Sequence[Case], y: Array, follows: Array) -> Learned:
    effects = effects_of(cases, follows)
    design, widths, networks = effects.design, effects.widths, effects.networks
    scatters = SCATTER if networks else OF_KERNELS
    means, spread = averaged(design, y, widths, scatters)
    if not networks:  # a network's own factor is told by its own rows alone
        means = means * shrinkage_weight(design, y, widths, scatters)
    groups = (effects.settings, networks, effects.formats, effects.versions)
    sizes = [follows.shape[1], 1, *(len(group) for group in groups)]
    moves, machine, *factors, local = (part.tolist() for part in np.split(means, np.cumsum(sizes)))
    return Learned(
        np.array(moves),
        {name: factor + machine[0] for name, factor in zip(effects.settings, factors[0], strict=True)},
        dict(zip(networks, factors[1], strict=True)),
        dict(zip(effects.formats, factors[2], strict=True)),
        dict(zip(effects.versions, factors[3], strict=True)),
        _shape_effects(cases, effects.roots, local),
        spread,
    )


def _root(shapes: Sequence[Shape], here: Sequence[bool]) -> Array:
    """Return columns whose squares sum to how alike the errors of shapes are, of those of one setting."""
    own = np.flatnonzero(here).tolist()
    alike = likeness([shapes[index] for index in own], [shapes[index] for index in own])
    root = np.zeros((len(shapes), len(own)))
    root[own] = np.linalg.cholesky(alike + LITTLE * np.eye(len(own)))
    return root


def _shape_effects(cases: Sequence[Case], roots: dict[str, Array], effects: Sequence[float]) -> dict[str, ShapeEffects]:
    """Return what shapes tell, from the effects of the columns that their roots were."""
    told, first = {}, 0
    for setting, root in roots.items():
        own = [index for index, case in enumerate(cases) if case.setting == setting]
        weights = np.linalg.solve(root[own].T, np.array(effects[first : first + len(own)]))
        shapes = tuple(shape_of_products(cases[index].work) for index in own)
        told[setting] = ShapeEffects(shapes, tuple(weights.tolist()))
        first += len(own)
    return told
