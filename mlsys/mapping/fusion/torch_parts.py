"""Modules of torch that folding leaves behind; loaded when something is folded."""

import torch
from torch import nn

from mlsys.errors import ArgumentError


class TwoAxes(nn.Identity):
    """Remainder of a batch normalisation that was folded into a linear layer.

    Of (batch, length, features) a normalisation takes the second axis for its channels, a linear
    layer the last: only of (batch, features) they are the same.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return a tensor of two axes as it is."""
        if input.dim() != 2:
            raise ArgumentError(
                f"fold_batch_norm(): a normalisation folded into a linear layer was given {input.dim()} axes: "
                "it would normalise along the second, and the layer makes the last. Leave that part unfolded"
            )
        return input
