"""What measured networks tell of others by their shapes is what a Gaussian process says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mlsys import Hardware
from mlsys.calibration import averaging, learning
from mlsys.hardware import view
from mlsys.models.analysis import analyze
from mlsys.models.estimate import Parameters, snapshot
from mlsys.models.estimate.library import parameters_of
from mlsys.models.estimate.likeness import LENGTH_SCALE, ShapeEffects, likeness, shape_of_products
from mlsys.models.estimate.running import as_counted, kernels_run, usual_running
from mlsys.models.estimate.user_calibration import CALIBRATION, save_calibration
from mlsys.workloads.zoo import network


def test_shapes_tell_others_what_scikit_learn_says(monkeypatch: pytest.MonkeyPatch) -> None:
    gaussian = pytest.importorskip("sklearn.gaussian_process")
    monkeypatch.setattr(averaging, "TAILS", 1e9)  # Student's t with no tails is normal
    draws = np.random.default_rng(11)
    shapes = [tuple(row) for row in draws.uniform(2, 14, (8, 3)).tolist()]
    others, y, width, scatter = draws.uniform(2, 14, (5, 3)), draws.normal(0, 0.3, 8), 0.4, 0.1
    root = learning._root(shapes, [True] * 8)
    (effects,), *_ = averaging._solved(root, y, np.full((1, 8), width), np.array([scatter]))
    monkeypatch.setattr(learning, "shape_of_products", lambda work: work)
    cases = [type("Case", (), {"setting": "one", "work": shape})() for shape in shapes]
    result = learning._shape_effects(cases, {"one": root}, effects.tolist())["one"]
    kernel = width**2 * gaussian.kernels.Matern(length_scale=LENGTH_SCALE, nu=0.5)
    process = gaussian.GaussianProcessRegressor(kernel, alpha=scatter**2 + learning.LITTLE * width**2, optimizer=None)
    assert result.of([tuple(row) for row in others.tolist()]) == pytest.approx(
        process.fit(np.array(shapes), y).predict(others)
    )


def test_each_software_has_its_own() -> None:
    root = learning._root([(1.0, 2.0, 3.0)] * 3, [True, False, True])
    assert (root @ root.T)[0] == pytest.approx([1, 0, 1], abs=2e-3)


def test_likeness_falls_with_distance_and_is_a_correlation() -> None:
    shapes = [(float(rows), 6.0, 8.0) for rows in range(0, 20, 2)]
    matrix = likeness(shapes, shapes)
    assert (np.diff(matrix[0]) < 0).all() and matrix == pytest.approx(matrix.T)
    assert np.linalg.eigvalsh(matrix).min() > 0 and np.diag(matrix) == pytest.approx(1)


def test_an_analysis_takes_what_is_told_of_its_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that says 1.5 times at the shape of one network says less of another, and nothing of other machines."""
    twin, setting = Hardware["RaspberryPi5"], "ncnn network on CPU"
    one = network("resnet50", precision="fp32")
    running = usual_running(setting, twin, snapshot(view(twin, "fp32")))
    shape = shape_of_products(kernels_run(as_counted(one, running), running).work)
    slow = Parameters(compute=0.4, vector=0.3, bandwidth=0.4)  # far from what no machine exceeds
    for name, shapes in (("none", {}), ("one", {setting: ShapeEffects((shape,), (float(np.log(1.5)),))})):
        save_calibration(tmp_path / name, twin.id, {setting: slow}, 3, {}, {}, {}, shapes, 0.1)

    def answer(file: str, name: str) -> float:
        monkeypatch.setenv(CALIBRATION, str(tmp_path / file))
        counted = network(name, precision="fp32")
        return float(analyze(twin, counted, software=setting, precision="fp32").estimate.m_as("s"))

    assert answer("one", "resnet50") == pytest.approx(1.5 * answer("none", "resnet50"), rel=5e-3)
    assert 1.02 < answer("one", "bert-base") / answer("none", "bert-base") < 1.48


@pytest.mark.parametrize("line", ["[1, 2, 3]", "[1, 2, 3, .nan]", "[a, 2, 3, 4]", "5"])
def test_a_shape_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(f'device: L4\nsettings: {{}}\nshapes: {{"one": [{line}]}}\n')
    monkeypatch.setenv(CALIBRATION, str(path))
    with pytest.raises(ValueError, match="not a calibration file of mlsys"):
        parameters_of("one", "L4")
