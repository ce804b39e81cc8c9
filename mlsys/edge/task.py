"""Training data and networks for edge experiments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import ArgumentError

if TYPE_CHECKING:
    import torch

_TEST_SHARE = 0.2
_MOST = 256


@dataclass(frozen=True)
class EdgeTask:
    """A classification task: images with labels, for training and testing.

    Attributes
    ----------
    train_x, train_y, test_x, test_y
        Inputs, with a first axis of samples, and classes as whole numbers.
    name
        Name used in the report.
    """

    train_x: torch.Tensor
    train_y: torch.Tensor
    test_x: torch.Tensor
    test_y: torch.Tensor
    name: str

    def __post_init__(self) -> None:
        import torch

        for part in ("train", "test"):
            x, y = getattr(self, f"{part}_x"), getattr(self, f"{part}_y")
            if not (isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)):
                raise ArgumentError(f"{self.name}: {part}_x and {part}_y must be tensors, got {type(x).__name__}")
            if not len(x) or y.shape != (len(x),) or y.is_floating_point():
                raise ArgumentError(
                    f"{self.name}: {part}_y must hold one class, a whole number, for each of the {len(x)} samples of "
                    f"{part}_x, got shape {tuple(y.shape)} of {y.dtype}"
                )
            if not bool(torch.isfinite(x).all()):
                raise ArgumentError(f"{self.name}: {part}_x has values that are not finite")


def digits(seed: int = 0, side: int = 28) -> EdgeTask:
    """Return scikit-learn's handwritten digits, enlarged to ``side`` pixels, with a fifth of them for testing.

    Parameters
    ----------
    seed
        Seed of the split, which is stratified by digit.
    side
        Height and width in pixels; the originals have 8.

    References
    ----------
    E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI repository, 1998 (1,797 test images).
    """
    import torch
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, classes = load_digits(return_X_y=True)
    small = torch.tensor(images.reshape(-1, 1, 8, 8) / 16, dtype=torch.float32)
    x = torch.nn.functional.interpolate(small, (side, side), mode="bilinear", align_corners=False)
    places = np.arange(len(classes))
    train, test = train_test_split(places, test_size=_TEST_SHARE, random_state=seed, stratify=classes)
    y = torch.tensor(classes, dtype=torch.int64)
    return EdgeTask(x[train], y[train], x[test], y[test], f"digits, {side} × {side}")


def load_task(source: str, seed: int = 0) -> EdgeTask:
    """Return the data named by a configuration.

    Parameters
    ----------
    source
        ``"digits"``, or ``package.module:loader``, a function that returns ``train_x, train_y, test_x, test_y``.
    seed
        Seed of the split of the digits.

    Raises
    ------
    ArgumentError
        If the loader does not exist, or returns something else.
    """
    if source == "digits":
        return digits(seed)
    if ":" not in source:
        raise ArgumentError(f"data: {source!r} is neither digits nor package.module:loader")
    from mlsys.workloads.factory import named_object

    task = named_object(source)
    try:
        made = task() if callable(task) else task
        train_x, train_y, test_x, test_y = made
    except Exception as error:  # a user's loader may raise anything
        raise ArgumentError(
            f"{source!r} must return train_x, train_y, test_x, test_y, but: {type(error).__name__}: {error}"
        ) from error
    return EdgeTask(train_x, train_y, test_x, test_y, source)


def fresh_network(name: str, seed: int = 0) -> torch.nn.Module:
    """Return the module named by a configuration, with seeded weights.

    Parameters
    ----------
    name
        A network of the catalogue with PyTorch code, or ``package.module:factory``.
    seed
        Seed of the weights.
    """
    import torch

    torch.manual_seed(seed)
    if ":" in name:
        from mlsys.workloads.factory import module_of

        given: torch.nn.Module = module_of(name, meta=False)[0].eval()
        return given
    from mlsys.workloads.torch_models import recipe

    made: torch.nn.Module = recipe(name).make(None).eval()
    return made


def train(
    module: torch.nn.Module,
    task: EdgeTask,
    *,
    epochs: int,
    batch: int = 64,
    learning_rate: float = 0.002,
    seed: int = 0,
    masks: dict[str, torch.Tensor] | None = None,
) -> None:
    """Train a module in place with Adam and cross entropy; the same seed gives the same weights on one machine.

    Parameters
    ----------
    module
        A classifier that returns a score for each class.
    task
        Training data.
    epochs, batch, learning_rate, seed
        Passes over the data, images of a step, step size, and the order of the images.
    masks
        By parameter name: where the mask is zero, the parameter stays zero.

    Raises
    ------
    ArgumentError
        If the scores are not finite after training: the learning rate is too high.
    """
    import torch

    chance = torch.Generator().manual_seed(seed)
    steps = torch.optim.Adam(module.parameters(), lr=learning_rate)
    kept = [(parameter, masks[name]) for name, parameter in module.named_parameters() if masks and name in masks]
    module.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(task.train_x), generator=chance).split(batch):  # type: ignore[no-untyped-call]
            steps.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(task.train_x[rows]), task.train_y[rows])
            loss.backward()  # type: ignore[no-untyped-call]
            steps.step()
            with torch.no_grad():
                for parameter, mask in kept:
                    parameter.mul_(mask)
        if not bool(torch.isfinite(loss)):
            raise ArgumentError(
                f"training: the loss is not finite at learning_rate {learning_rate}. Use a smaller one, e.g. 0.001"
            )
    module.eval()


def accuracy(module: torch.nn.Module, task: EdgeTask, dtype: torch.dtype | None = None) -> float:
    """Return the accuracy on the test samples, 0 to 1.

    Parameters
    ----------
    module
        A module in evaluation mode.
    task
        Task with the test samples.
    dtype
        Format that the inputs are converted to.
    """
    import torch

    right = 0
    with torch.no_grad():
        for x, y in _batches(task):
            right += int((module(x if dtype is None else x.to(dtype)).argmax(1) == y).sum())
    return right / len(task.test_y)


def _batches(task: EdgeTask) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    return iter(zip(task.test_x.split(_MOST), task.test_y.split(_MOST), strict=True))  # type: ignore[no-untyped-call]
