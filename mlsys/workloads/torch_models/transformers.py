"""DETR in plain torch."""

import torch
from torch import nn
from torch.nn import functional

from mlsys.workloads.graph_builder import NetworkBuilder
from mlsys.workloads.torch_models.built import BuiltModule
from mlsys.workloads.torch_models.parts import split_heads
from mlsys.workloads.zoo.residual import resnet_stages


class _CrossAttention(nn.Module):
    """Attention whose positions are added to queries and keys in each layer, as DETR does it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        pairs = ((self.query, query), (self.key, key), (self.value, value))
        queries, keys, values = (split_heads(project(given), self.heads) for project, given in pairs)
        seen = functional.scaled_dot_product_attention(queries, keys, values)
        return self.out(seen.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class _DETRLayer(nn.Module):
    def __init__(self, width: int, heads: int, inner: int, decodes: bool) -> None:
        super().__init__()
        self.itself, self.across = _CrossAttention(width, heads), _CrossAttention(width, heads) if decodes else None
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if decodes else 2))

    def forward(
        self,
        x: torch.Tensor,
        position: torch.Tensor,
        memory: torch.Tensor | None = None,
        at: torch.Tensor | None = None,
    ) -> torch.Tensor:
        x = self.norms[0](x + self.itself(x + position, x + position, x))
        if self.across is not None and memory is not None and at is not None:
            x = self.norms[1](x + self.across(x + position, memory + at, memory))
        return self.norms[-1](x + self.down(self.up(x).relu()))  # type: ignore[no-any-return]


class DETR(nn.Module):
    """DETR (Carion et al., ECCV 2020) on ResNet-50: 6 + 6 layers of 256, 100 queries, 91 classes and none."""

    def __init__(self, width: int = 256, heads: int = 8, inner: int = 2048, queries: int = 100) -> None:
        super().__init__()
        stages = NetworkBuilder("resnet50", 1, (3, 800, 800), "fp32")
        resnet_stages(stages, 50)
        self.backbone, self.project = BuiltModule(stages), nn.Conv2d(stages.channels, width, 1)
        self.encoder = nn.ModuleList(_DETRLayer(width, heads, inner, decodes=False) for _ in range(6))
        self.decoder = nn.ModuleList(_DETRLayer(width, heads, inner, decodes=True) for _ in range(6))
        self.queries, self.norm = nn.Embedding(queries, width), nn.LayerNorm(width)
        self.classes = nn.Linear(width, 92)
        self.boxes = nn.Sequential(
            *(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))
        )

    @staticmethod
    def _places(height: int, width: int, features: int, like: torch.Tensor) -> torch.Tensor:
        """Return the fixed sinusoidal positions of an image, (1, height · width, features)."""
        rates = 10000.0 ** (-torch.arange(0, features // 2, 2, device=like.device) / (features // 2))
        down, across = (torch.outer(torch.arange(size, device=like.device), rates) for size in (height, width))
        down, across = (torch.cat([angles.sin(), angles.cos()], 1).to(like.dtype) for angles in (down, across))
        rows = down[:, None].expand(-1, width, -1)
        columns = across[None].expand(height, -1, -1)
        return torch.cat([rows, columns], 2).flatten(0, 1)[None]

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return classes and boxes of every query for (batch, 3, height, width) images."""
        features = self.project(self.backbone(image))
        places = self._places(features.shape[2], features.shape[3], features.shape[1], features)
        memory = features.flatten(2).transpose(1, 2)
        for layer in self.encoder:
            memory = layer(memory, places)
        queries = self.queries.weight[None].expand(image.shape[0], -1, -1)
        x = torch.zeros_like(queries)
        for layer in self.decoder:
            x = layer(x, queries, memory, places)
        x = self.norm(x)
        return self.classes(x), self.boxes(x).sigmoid()
