"""Transformers in plain torch: encoders, decoders, vision, detection."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from mlsys.workloads.torch_models.parts import SelfAttention, split_heads
from mlsys.workloads.torch_models.vision import ResNet

__all__ = ["BERT", "DETR", "GPT", "Llama", "VisionTransformer"]


class _Block(nn.Module):
    """Attention and a feed-forward layer; normalised before (GPT, ViT) or after (BERT) each."""

    def __init__(self, width: int, heads: int, causal: bool = False, before: bool = True, tanh: bool = False) -> None:
        super().__init__()
        self.attention, self.norm_1, self.norm_2 = (
            SelfAttention(width, heads, causal),
            nn.LayerNorm(width),
            nn.LayerNorm(width),
        )
        self.act = nn.GELU(approximate="tanh" if tanh else "none")
        self.up, self.down, self.before = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.before:
            x = x + self.attention(self.norm_1(x))
            return x + self.down(self.act(self.up(self.norm_2(x))))  # type: ignore[no-any-return]
        x = self.norm_1(x + self.attention(x))
        return self.norm_2(x + self.down(self.act(self.up(x))))  # type: ignore[no-any-return]


class GPT(nn.Module):
    """GPT-2 (Radford et al. 2019): learned positions, a classifier that shares the table of tokens."""

    def __init__(self, layers: int, width: int, heads: int, words: int = 50257, positions: int = 1024) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(_Block(width, heads, causal=True, tanh=True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores of every word after every one of (batch, tokens)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


class BERT(nn.Module):
    """BERT (Devlin et al. 2019): the encoder and the pooler, which looks at the first token."""

    def __init__(self, layers: int, width: int, heads: int, words: int = 30522) -> None:
        super().__init__()
        self.tokens, self.positions, self.types = (nn.Embedding(rows, width) for rows in (words, 512, 2))
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(_Block(width, heads, before=False) for _ in range(layers))
        self.pooler = nn.Linear(width, width)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (batch, tokens, width) and (batch, width)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.tokens(tokens) + self.positions(places) + self.types(torch.zeros_like(tokens)))
        for block in self.blocks:
            x = block(x)
        return x, self.pooler(x[:, 0]).tanh()


class VisionTransformer(nn.Module):
    """ViT (Dosovitskiy et al. 2021): patches, a class token, learned positions."""

    def __init__(self, layers: int, width: int, heads: int, patch: int, image: int = 224) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, width))
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(layers))
        self.norm, self.classifier = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the scores of (batch, 3, height, width) images."""
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.classifier(self.norm(x)[:, 0])  # type: ignore[no-any-return]


class _LlamaBlock(nn.Module):
    def __init__(self, width: int, heads: int, kv_heads: int, inner: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, head = heads, kv_heads, width // heads
        self.query, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, kv_heads * head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)
        self.norm_1, self.norm_2 = nn.RMSNorm(width), nn.RMSNorm(width)

    @staticmethod
    def _turned(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        """Return rotary positions (Su et al. 2021) applied to (batch, heads, tokens, head)."""
        first, second = x.chunk(2, -1)
        return x * cosine + torch.cat([-second, first], -1) * sine

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        given = self.norm_1(x)
        query = self._turned(split_heads(self.query(given), self.heads), cosine, sine)
        key = self._turned(split_heads(self.key(given), self.kv_heads), cosine, sine)
        value = split_heads(self.value(given), self.kv_heads)
        grouped = self.kv_heads != self.heads
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=grouped)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        given = self.norm_2(x)
        return x + self.down(functional.silu(self.gate(given)) * self.up(given))  # type: ignore[no-any-return]


class Llama(nn.Module):
    """LLaMA (Touvron et al. 2023) and its kin: RMS normalisation, rotary positions, SwiGLU, grouped heads."""

    def __init__(self, layers: int, width: int, heads: int, kv_heads: int, inner: int, words: int = 32000) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(words, width), width // heads
        self.blocks = nn.ModuleList(_LlamaBlock(width, heads, kv_heads, inner) for _ in range(layers))
        self.norm, self.classifier = nn.RMSNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the scores of every word after every one of (batch, tokens)."""
        x = self.tokens(tokens)
        rates = 10000.0 ** (-torch.arange(0, self.head, 2, device=x.device) / self.head)
        angles = torch.outer(torch.arange(tokens.shape[1], device=x.device), rates).repeat(1, 2).to(x.dtype)
        cosine, sine = angles.cos(), angles.sin()
        for block in self.blocks:
            x = block(x, cosine, sine)
        return self.classifier(self.norm(x))  # type: ignore[no-any-return]


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
        self, x: torch.Tensor, place: torch.Tensor, memory: torch.Tensor | None = None, at: torch.Tensor | None = None
    ) -> torch.Tensor:
        x = self.norms[0](x + self.itself(x + place, x + place, x))
        if self.across is not None and memory is not None and at is not None:
            x = self.norms[1](x + self.across(x + place, memory + at, memory))
        return self.norms[-1](x + self.down(self.up(x).relu()))  # type: ignore[no-any-return]


class DETR(nn.Module):
    """DETR (Carion et al., ECCV 2020) on ResNet-50: 6 + 6 layers of 256, 100 queries, 91 classes and none."""

    def __init__(self, width: int = 256, heads: int = 8, inner: int = 2048, queries: int = 100) -> None:
        super().__init__()
        backbone = ResNet(50)
        self.backbone = nn.Sequential(backbone.stem, backbone.stages)
        self.project = nn.Conv2d(backbone.channels, width, 1)
        self.encoder = nn.ModuleList(_DETRLayer(width, heads, inner, decodes=False) for _ in range(6))
        self.decoder = nn.ModuleList(_DETRLayer(width, heads, inner, decodes=True) for _ in range(6))
        self.queries, self.norm = nn.Embedding(queries, width), nn.LayerNorm(width)
        self.classes = nn.Linear(width, 92)
        self.boxes = nn.Sequential(
            *(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))
        )

    @staticmethod
    def _places(height: int, width: int, features: int, like: torch.Tensor) -> torch.Tensor:
        """Return the fixed sine positions of a picture, (1, height · width, features)."""
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
        asked = self.queries.weight[None].expand(image.shape[0], -1, -1)
        x = torch.zeros_like(asked)
        for layer in self.decoder:
            x = layer(x, asked, memory, places)
        x = self.norm(x)
        return self.classes(x), self.boxes(x).sigmoid()
