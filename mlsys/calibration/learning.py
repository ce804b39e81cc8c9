"""Learning from a few measurements of one machine: a linear mixed model with known variances.

Let y be the logarithms of measured over predicted time of the rows. Then ``y = J m + a + s + n + f + v + g + e``: J is
the sensitivity of each prediction to the logarithms of the model's parameters, which change by m; a is the machine's
own factor, s that of each kind of software, n that of each network, f that of networks in each number format, v that of
each version of a software with several versions, g that of networks of similar shape
(:mod:`mlsys.models.estimate.likeness`), and e the residual. Each has a zero-mean prior with a known variance: half a
prior's width for a parameter, a seventh to a half for factors. The widths, and the scatter of rows, are unknown for a
new machine: several values are tried, and averaged by the likelihood of the rows (:mod:`mlsys.calibration.averaging`).

C. R. Henderson, Biometrics 31(2), 1975, for the equations; J. A. Hoeting et al., Statistical Science 14(4), 1999, for
model averaging.
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
# Fraction of a variance added on the diagonal, so that equal shapes do not make the matrix singular.
LITTLE = 1e-3
# Step of a parameter, in logarithm, for numerical sensitivities.
STEP = 0.1
# Scatter of a row that is independent of all others, in logarithm of time; larger for single kernels, which no network
# averages: a library's choice for one shape says nothing about another.
SCATTER, OF_KERNELS = (0.1, 0.2), (0.1, 0.2, 0.3)
# Most kernels in the work of a single kernel, including its preparation: attention with a model's name is not a
# network.
MOST_OF_ONE = 2


@dataclass(frozen=True)
class _Widths:
    """Prior standard deviations of each kind of effect, in logarithm; parameters in units of their prior's width."""

    machine: float
    software: float
    network: float
    parameters: float


# Prior spread of networks in one number format relative to others: errors of the recorded peak, and of the compiler,
# differ between formats. With 0.1 and with 0.2 the errors are the same within 0.4 points.
OF_FORMATS = 0.15
# Prior spread of one version of a software relative to the others measured with it, since its kernels differ: zero, or
# this much. For energies always, by the root of the sum of two squares: the spread of times, and that of powers, since
# builds leave different parts of a board switched on. ResNet-8 at 4.4 and 4.5 inferences per second draws 47 and 78 mW
# on a Nucleo-L4R5ZI, both supplied with 3 V (MLPerf Tiny v1.0, STMicroelectronics', and v1.1, Krai's); 16 builds on
# three boards of MLPerf Tiny have this scatter about the mean of their board.
OF_VERSIONS, OF_POWERS = (0.0, 0.2), 0.17
OF_BUILDS = (math.hypot(max(OF_VERSIONS), OF_POWERS),)
# Prior spread of the common error of networks of similar shape under one software of a machine: zero, or this much.
# Energies also include what else a board draws, which does not depend on shape.
OF_SHAPES = (0.0, 0.3, 0.6)
# Three hypotheses: a machine like its class, one that differs, and one whose parts differ.
WIDTHS = (_Widths(0.2, 0.07, 0.07, 0.4), _Widths(0.4, 0.25, 0.15, 0.4), _Widths(0.4, 0.25, 0.15, 0.8))
# For single kernels also a machine identical to its class: there is almost nothing to learn, and errors depend on
# shape.
AS_ITS_KIND = _Widths(0.05, 0.02, 0.02, 0.1)


@dataclass(frozen=True)
class LearnedEffects:
    """Learned effects, as logarithms of factors.

    Attributes
    ----------
    moves
        Change of each parameter, in the order of :meth:`Parameters.names`.
    settings
        Of the time of each measured setting: the machine's own factor and the software's.
    networks
        Of the time of each measured network.
    formats
        Of the time in each measured number format of networks.
    versions
        Of each version of a setting with several versions, by setting and version.
    shapes
        Of networks by the shape of their products, for each setting.
    spread
        Expected error of a further row of the same settings, one standard deviation.
    """

    moves: Array
    settings: dict[str, float]
    networks: dict[str, float]
    formats: dict[str, float]
    versions: dict[tuple[str, str], float]
    shapes: dict[str, ShapeEffects]
    spread: float

    def parameters(self, base: Array) -> Array:
        """Return the machine's parameters: changed, and within the limits of their priors."""
        low, high = (
            np.array([getattr(PRIORS[name], end) for name in Parameters.names()]) for end in ("lowest", "highest")
        )
        moved = np.clip(base * np.exp(self.moves), np.minimum(low, base), np.maximum(high, base))
        return np.asarray(moved, dtype=np.float64)

    def summed_effects(self, cases: Sequence[Case]) -> Array:
        """Return the sum of the effects of settings, networks, formats, versions and shapes on log time."""
        added = np.array(
            [
                self.settings.get(case.setting, 0.0)
                + self.networks.get(case.network, 0.0)
                + self.formats.get(case.engine.computes_in, 0.0)
                + self.versions.get((case.setting, case.version), 0.0)
                for case in cases
            ]
        )
        for setting, effects in self.shapes.items():
            here = [index for index, case in enumerate(cases) if case.setting == setting]
            added[here] += effects.of([shape_of_products(cases[index].work) for index in here])
        return added

    def seconds(self, cases: Sequence[Case], before: Array, base: Array, plain: Array | None = None) -> Array:
        """Return the times of cases of this machine, given their predictions ``before``.

        Parameters
        ----------
        cases
            Cases of measured settings: nothing is learned about others.
        before
            Predicted without the rows, seconds.
        base
            Parameters of the predictions, one row each.
        plain
            Times at these parameters, if already known.
        """
        plain = case_times(cases, base) if plain is None else plain
        here = np.array([case.setting in self.settings for case in cases])
        moved = np.where(here[:, None], self.parameters(base), base)
        times: Array = before * np.where(
            here, case_times(cases, moved) / plain * np.exp(self.summed_effects(cases)), 1.0
        )
        return times


def _ratios(cases: Sequence[Case], moved: Array, base: Array) -> Array:
    """Return the ratio of each case's times at two sets of parameters."""
    times = case_times([*cases, *cases], np.concatenate([moved, base])).reshape(2, -1)
    return np.asarray(times[0] / times[1], dtype=np.float64)


def sensitivities(cases: Sequence[Case], base: Array) -> Array:
    """Return the sensitivities of log time to log parameters, shape (cases, parameters)."""
    count = base.shape[1]
    moved = np.tile(base, (1 + count, 1, 1))
    moved[range(1, 1 + count), :, range(count)] *= math.exp(-STEP)
    times = np.log(case_times([*cases] * (1 + count), moved.reshape(-1, count))).reshape(1 + count, -1)
    slopes: Array = (times[0] - times[1:]).T / STEP
    return slopes


def learn(cases: Sequence[Case], before: Array, base: Array) -> LearnedEffects:
    """Return the effects learned from measurements of one machine.

    Parameters
    ----------
    cases
        Cases of one machine.
    before
        Their predictions, seconds.
    base
        Parameters of the predictions, one row each.

    Notes
    -----
    Times are not power laws of the parameters: sensitivities are evaluated again after the parameters have changed.
    """
    y = np.log([case.seconds for case in cases]) - np.log(before)
    first = _learned(cases, y, sensitivities(cases, base))
    moved = first.parameters(base)
    follows = sensitivities(cases, moved)
    straight = (follows * np.log(moved / base)).sum(axis=1)
    return _learned(cases, y - np.log(_ratios(cases, moved, base)) + straight, follows)


@dataclass(frozen=True)
class Effects:
    """Possible effects on the rows: a design matrix with one column per effect, and prior widths.

    Attributes
    ----------
    design
        One row per case, one column per effect.
    widths
        Hypotheses to be averaged: the width of each effect.
    settings, networks, formats, versions
        Names of those that have effects.
    roots
        Square roots of the shape correlations of each setting.
    """

    design: Array
    widths: list[Array]
    settings: list[str]
    networks: list[str]
    formats: list[str]
    versions: list[tuple[str, str]]
    roots: dict[str, Array]


def effects_of(cases: Sequence[Case], follows: Array) -> Effects:
    """Return the possible effects on rows of one machine; ``follows`` are their parameter sensitivities."""

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
                [shape_width] * len(shapes),
            ]
        )
        for each in (WIDTHS if networks else (AS_ITS_KIND, *WIDTHS))
        for version in (of_versions if versions else (0.0,))
        for shape_width in (OF_SHAPES if timed else (0.0,))
    ]
    design = np.column_stack([follows, np.ones(len(cases)), *columns, *roots.values()])
    return Effects(design, widths, settings, networks, formats, versions, roots)


def _whole(case: Case) -> bool:
    """Return whether a row is of a network: it has a name, and more kernels than a single kernel's work."""
    return bool(case.network) and case.work.columns.shape[1] > MOST_OF_ONE


def _learned(cases: Sequence[Case], y: Array, follows: Array) -> LearnedEffects:
    effects = effects_of(cases, follows)
    design, widths, networks = effects.design, effects.widths, effects.networks
    scatters = SCATTER if networks else OF_KERNELS
    means, spread = averaged(design, y, widths, scatters)
    if not networks:  # a network's own factor appears in its own rows only
        means = means * shrinkage_weight(design, y, widths, scatters)
    groups = (effects.settings, networks, effects.formats, effects.versions)
    sizes = [follows.shape[1], 1, *(len(group) for group in groups)]
    moves, machine, *factors, local = (part.tolist() for part in np.split(means, np.cumsum(sizes)))
    return LearnedEffects(
        np.array(moves),
        {name: factor + machine[0] for name, factor in zip(effects.settings, factors[0], strict=True)},
        dict(zip(networks, factors[1], strict=True)),
        dict(zip(effects.formats, factors[2], strict=True)),
        dict(zip(effects.versions, factors[3], strict=True)),
        _shape_effects(cases, effects.roots, local),
        spread,
    )


def _root(shapes: Sequence[Shape], here: Sequence[bool]) -> Array:
    """Return columns whose Gram matrix is the shape correlation, for the rows of one setting."""
    own = np.flatnonzero(here).tolist()
    correlation = likeness([shapes[index] for index in own], [shapes[index] for index in own])
    root = np.zeros((len(shapes), len(own)))
    root[own] = np.linalg.cholesky(correlation + LITTLE * np.eye(len(own)))
    return root


def _shape_effects(cases: Sequence[Case], roots: dict[str, Array], effects: Sequence[float]) -> dict[str, ShapeEffects]:
    """Return the shape effects, from the effects of the columns of their roots."""
    by_setting, first = {}, 0
    for setting, root in roots.items():
        own = [index for index, case in enumerate(cases) if case.setting == setting]
        weights = np.linalg.solve(root[own].T, np.array(effects[first : first + len(own)]))
        shapes = tuple(shape_of_products(cases[index].work) for index in own)
        by_setting[setting] = ShapeEffects(shapes, tuple(weights.tolist()))
        first += len(own)
    return by_setting
