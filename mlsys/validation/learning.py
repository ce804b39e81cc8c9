"""What a few measurements of one machine say beyond what is known of its like: a linear model with known variances.

Let y be the logarithms of measured over predicted time of the rows. Then ``y = J m + a + s + n + f + b + g + e``: J
says how each prediction follows the logarithms of the model's parameters, which move by m; a is the machine's own
factor, s that of each kind of software, n that of each network, f that of networks in each number format, b that of
energies of each build, g what networks of like shape are off alike (:mod:`mlsys.models.calibrated.likeness`), e what is
left.
Each of them is drawn towards none by a variance that is known beforehand: half a prior's width for a parameter, a
seventh to a half for factors. How wide they are, and how far rows scatter, is not known of a machine that nobody has
seen: a few answers are worked out, and averaged by how likely each makes the rows. A row far off counts less, as
under Student's t distribution with four degrees of freedom. What is learned of kernels is asked for each row by the
others, and counts in full where it tells such rows nearer than no lesson does.

C. R. Henderson, Biometrics 31(2), 1975, for the equations; J. A. Hoeting et al., Statistical Science 14(4), 1999,
for the average over models.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlsys.models.calibrated import Parameters, Stack, calibrated_times
from mlsys.models.calibrated.likeness import Shape, ShapeEffects, likeness, shape_of_products
from mlsys.validation.cases import Case
from mlsys.validation.fit import PRIORS

Array = NDArray[np.float64]
TAILS, ROUNDS = 4.0, 6
# Shapes that are the same are told apart by this part of a variance, or no number could say which is which.
LITTLE = 1e-3
# A parameter is moved by so much, in logarithm, to see what follows it.
STEP = 0.1
# What a row can be off by that no other row tells, in logarithm of time; single kernels, which no network averages,
# by more: which one a library takes for a shape is told by no other shape.
SCATTER, OF_KERNELS = (0.1, 0.2), (0.1, 0.2, 0.3)


# Kernels that a single one's work has at most, what leads to it counted: attention that names its model is no network.
MOST_OF_ONE = 2

# What is learned counts in full where it tells rows that it was not learned from this much nearer than no lesson does.
# Else it counts as its odds against none are, of errors to this power: ten rows are some four opinions, as shapes
# alike are off alike. Fewest rows to ask, and how often many are asked.
CLEARLY, OPINIONS, FEWEST_ASKED, MOST_ASKED = 0.9, 4.0, 6, 20


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
# How far the energies of one build of a software may lie from those of others: who builds it leaves more or less of a
# board switched on. ResNet-8 at 4.4 and 4.5 inferences a second draws 47 and 78 mW on a Nucleo-L4R5ZI, both supplied
# with 3 V (MLPerf Tiny v1.0, STMicroelectronics', and v1.1, Krai's). Times learn nothing from it.
OF_BUILDS = 0.2
# How far the times of networks of like shape may be off alike under one software of a machine: not at all, or by so
# much. Energies are off by what a board draws beside, which no shape tells.
OF_SHAPES = (0.0, 0.3, 0.6)
# A machine that is much like its kind, one that is not, and one whose parts are not.
WIDTHS = (_Widths(0.2, 0.07, 0.07, 0.4), _Widths(0.4, 0.25, 0.15, 0.4), _Widths(0.4, 0.25, 0.15, 0.8))


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
    builds
        Of the energy of each build of a software.
    shapes
        Of networks by the shape of their products, of each setting.
    spread
        How far a further row of the same settings is expected to be off, one standard deviation.
    """

    moves: Array
    settings: dict[str, float]
    networks: dict[str, float]
    formats: dict[str, float]
    builds: dict[str, float]
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
        """Return what settings, networks, formats, builds and shapes of cases add to the logarithm of their time."""
        added = np.array(
            [
                self.settings.get(case.setting, 0.0)
                + self.networks.get(case.network, 0.0)
                + self.formats.get(case.engine.computes_in, 0.0)
                + self.builds.get(_build(case), 0.0)
                for case in cases
            ]
        )
        for setting, told in self.shapes.items():
            here = [index for index, case in enumerate(cases) if case.setting == setting]
            added[here] += told.of([shape_of_products(cases[index].work) for index in here])
        return added

    def seconds(self, cases: Sequence[Case], before: Array, base: Array) -> Array:
        """Return the times of cases of this machine, where ``before`` is what was predicted of them.

        Parameters
        ----------
        cases
            Of settings that were measured: of others nothing is learned.
        before
            Predicted without the rows, seconds.
        base
            Parameters that the prediction follows, one row each.
        """
        here = np.array([case.setting in self.settings for case in cases])
        moved = np.where(here[:, None], self.parameters(base), base)
        times: Array = before * np.where(here, _ratios(cases, moved, base) * np.exp(self.added(cases)), 1.0)
        return times


def case_times(cases: Sequence[Case], parameters: Array) -> Array:
    """Return the time of each case at parameters of its own, seconds."""
    stack = Stack.of([(case.engine, case.work, case.stays) for case in cases])
    seconds: Array = np.maximum(calibrated_times(stack, parameters), [case.at_least for case in cases])
    return seconds


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


def _learned(cases: Sequence[Case], y: Array, follows: Array) -> Learned:
    settings = list(dict.fromkeys(case.setting for case in cases))
    whole = any(case.work.columns.shape[1] > MOST_OF_ONE for case in cases)
    networks = list(dict.fromkeys(case.network for case in cases if case.network)) if whole else []
    columns = [np.ones(len(y)), *(np.array([case.setting == name for case in cases], dtype=float) for name in settings)]
    columns += [np.array([case.network == name for case in cases], dtype=float) for name in networks]
    used = [case.engine.computes_in for case in cases]
    formats = list(dict.fromkeys(used)) if networks else []
    columns += [np.array([name == each for each in used], dtype=float) for name in formats]
    builds = list(dict.fromkeys(_build(case) for case in cases if _build(case)))
    columns += [np.array([_build(case) == name for case in cases], dtype=float) for name in builds]
    timed = bool(networks) and not any(case.power for case in cases)
    shapes = [shape_of_products(case.work) for case in cases] if timed else []
    roots = {name: _root(shapes, [case.setting == name for case in cases]) for name in settings if timed}
    design = np.column_stack([follows, *columns, *roots.values()])
    prior = np.log([PRIORS[name].factor for name in Parameters.names()])
    widths = [
        (
            np.concatenate(
                [
                    each.parameters * prior,
                    [each.machine],
                    [each.software] * len(settings),
                    [each.network] * len(networks),
                    [OF_FORMATS] * len(formats),
                    [OF_BUILDS] * len(builds),
                    [alike] * len(shapes),
                ]
            ),
            each.network if networks else 0.0,
        )
        for each in WIDTHS
        for alike in (OF_SHAPES if timed else (0.0,))
    ]
    scatters = SCATTER if networks else OF_KERNELS
    means, variance = _averaged(design, y, widths, scatters)
    if not networks:  # a network's own factor is told by its own rows alone
        means = means * _heard(design, y, widths, scatters)
    ends = np.cumsum([follows.shape[1], 1, len(settings), len(networks), len(formats), len(builds)])
    moves, machine, *factors, local = (part.tolist() for part in np.split(means, ends))
    return Learned(
        np.array(moves),
        {name: factor + machine[0] for name, factor in zip(settings, factors[0], strict=True)},
        dict(zip(networks, factors[1], strict=True)),
        dict(zip(formats, factors[2], strict=True)),
        dict(zip(builds, factors[3], strict=True)),
        _shape_effects(shapes, cases, roots, local),
        math.sqrt(variance),
    )


def _build(case: Case) -> str:
    """Return what an energy was built with; empty for a time."""
    return case.version if case.power else ""


def _root(shapes: Sequence[Shape], here: Sequence[bool]) -> Array:
    """Return columns whose squares sum to how alike the errors of shapes are, of those of one setting."""
    own = np.flatnonzero(here).tolist()
    alike = likeness([shapes[index] for index in own], [shapes[index] for index in own])
    root = np.zeros((len(shapes), len(own)))
    root[own] = np.linalg.cholesky(alike + LITTLE * np.eye(len(own)))
    return root


def _shape_effects(
    shapes: Sequence[Shape], cases: Sequence[Case], roots: dict[str, Array], effects: Sequence[float]
) -> dict[str, ShapeEffects]:
    """Return what shapes tell, from the effects of the columns that their roots were."""
    told, first = {}, 0
    for setting, root in roots.items():
        own = [index for index, case in enumerate(cases) if case.setting == setting]
        weights = np.linalg.solve(root[own].T, np.array(effects[first : first + len(own)]))
        told[setting] = ShapeEffects(tuple(shapes[index] for index in own), tuple(weights.tolist()))
        first += len(own)
    return told


def _averaged(
    design: Array, y: Array, widths: Sequence[tuple[Array, float]], scatters: Sequence[float]
) -> tuple[Array, float]:
    """Return the effects, and the variance of a further row, over all widths and scatters as likely as they are."""
    effects, networks = (np.array(part).repeat(len(scatters), axis=0) for part in zip(*widths, strict=True))
    scatter = np.tile(scatters, len(widths))
    answers, likely, open_ = _solved(design, y, effects, scatter)
    part = np.exp(likely - likely.max())
    part /= part.sum()
    return part @ answers, float(part @ (scatter**2 + open_ + networks**2))


def _heard(design: Array, y: Array, widths: Sequence[tuple[Array, float]], scatters: Sequence[float]) -> float:
    """Return which part of what is learned counts, 0 to 1: each row is told from the others, or from none.

    Of many rows a part of them is told at a time.

    A library's choice for one shape says nothing of the next, and rows that scatter so lead astray.
    """
    if len(y) < FEWEST_ASKED:
        return 1.0
    told = np.empty(len(y))
    for part in range(min(len(y), MOST_ASKED)):
        left = np.arange(len(y)) % MOST_ASKED == part
        told[left] = design[left] @ _averaged(design[~left], y[~left], widths, scatters)[0]
    unlearned, learned = float(np.abs(y).sum()), float(np.abs(y - told).sum())
    if learned <= CLEARLY * unlearned:
        return 1.0
    return float(1 / (1 + (learned / unlearned) ** OPINIONS))


def _solved(design: Array, y: Array, widths: Array, scatters: Array) -> tuple[Array, Array, Array]:
    """Return the effects, the logarithm of how likely the rows are, and the mean variance that effects leave open.

    Of each of some answers side by side: ``widths`` is of shape (answers, effects), ``scatters`` (answers,).
    """
    between = (design * widths[:, None] ** 2) @ design.T
    noise = np.repeat(scatters[:, None] ** 2, len(y), axis=1)
    rows = np.arange(len(y))
    for turn in range(ROUNDS + 1):
        whole = between.copy()
        whole[:, rows, rows] += noise
        heard = np.linalg.solve(whole, np.broadcast_to(y[:, None], (len(scatters), len(y), 1)))[..., 0]
        squares = (noise * heard) ** 2 / scatters[:, None] ** 2
        if turn < ROUNDS:
            noise = scatters[:, None] ** 2 * (TAILS + squares) / (TAILS + 1)
    # Laplace's approximation: how likely the rows are at the effects, the effects, and the width of the peak.
    tails = ((TAILS + 1) / 2 * np.log1p(squares / TAILS)).sum(axis=1)
    peak = np.linalg.slogdet(whole)[1] - np.log(noise).sum(axis=1)
    drawn = ((between @ heard[..., None])[..., 0] * heard).sum(axis=1)
    left = between - between @ np.linalg.solve(whole, between)
    evidence = -tails - len(y) * np.log(scatters) - 0.5 * drawn - 0.5 * peak
    return widths**2 * (heard @ design), evidence, np.diagonal(left, axis1=1, axis2=2).mean(axis=1)
