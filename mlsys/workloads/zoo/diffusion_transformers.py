"""Diffusion transformers for images and video: FLUX.1 and CogVideoX."""

from mlsys.workloads.zoo.layer_builder import LayerBuilder

# Width of both streams of FLUX.1, its heads of 128, its double- and single-stream blocks; tokens of an image of
# 1024 × 1024 pixels (16 × 16 each) and of its text: black-forest-labs/flux, src/flux/util.py and model.py.
FLUX_WIDTH, FLUX_HEADS, FLUX_DOUBLE, FLUX_SINGLE = 3072, 24, 19, 38
FLUX_PICTURE, FLUX_TEXT = 4096, 512
# Width of a 2 × 2 latent patch, of a T5 token, of CLIP's pooled text embedding, and of the time-step embedding.
LATENT, T5, CLIP, TIME = 64, 4096, 768, 256
# Layers and heads (of width 64) of the two sizes of CogVideoX: THUDM/CogVideo, the configurations with the weights.
COGVIDEOX = {"2b": (30, 30), "5b": (42, 48)}
# 49 frames of 480 × 720 are 13 latent frames of 60 × 90, in patches of 2 × 2; text tokens; time-step embedding width.
FILM, FILM_TEXT, FILM_TIME = 13 * 30 * 45, 226, 512


def _stream(builder: LayerBuilder, name: str, batch: int, tokens: int, width: int, inner: int) -> None:
    """Append the part of a block after attention that each stream has for itself: output and feed-forward layers."""
    rows = batch * tokens
    builder.dense(f"{name} output", rows, width, width)
    builder.add(f"{name} add", rows * width)
    builder.norm(f"{name} inner norm", rows, width)
    builder.dense(f"{name} up", rows, width, inner)
    builder.activation(f"{name} gelu", rows * inner, "gelu")
    builder.dense(f"{name} down", rows, inner, width)
    builder.add(f"{name} inner add", rows * width)


def _conditioning(builder: LayerBuilder, name: str, batch: int, width: int, out: int) -> None:
    """Append the two dense layers that embed a conditioning vector, such as the time step, for all blocks."""
    builder.dense(f"{name} a", batch, width, out)
    builder.activation(f"{name} silu", batch * out, "silu")
    builder.dense(f"{name} b", batch, out, out)


def flux(builder: LayerBuilder, batch: int) -> None:
    """Append one denoising step of FLUX.1 at 1024 × 1024; guidance is distilled, so one evaluation is enough."""
    width, heads, both = FLUX_WIDTH, FLUX_HEADS, FLUX_PICTURE + FLUX_TEXT
    streams = (("picture", FLUX_PICTURE, LATENT), ("text", FLUX_TEXT, T5))
    for name, tokens, inputs in streams:
        builder.dense(f"{name} in", batch * tokens, inputs, width)
    for name, inputs in (("time", TIME), ("guidance", TIME), ("summary", CLIP)):
        _conditioning(builder, name, batch, inputs, width)
    for _ in builder.repeated(FLUX_DOUBLE):
        for name, tokens, _inputs in streams:
            builder.dense(f"{name} modulation", batch, width, 6 * width)
            builder.norm(f"{name} norm", batch * tokens, width)
            builder.dense(f"{name} query, key, value", batch * tokens, width, 3 * width)
        builder.attention("attention", batch, heads, both, both, width // heads, rotary=True)
        for name, tokens, _inputs in streams:
            _stream(builder, name, batch, tokens, width, 4 * width)
    for _ in builder.repeated(FLUX_SINGLE):
        builder.dense("modulation", batch, width, 3 * width)
        builder.norm("norm", batch * both, width)
        builder.dense("query, key, value and up", batch * both, width, 7 * width)
        builder.attention("attention", batch, heads, both, both, width // heads, rotary=True)
        builder.activation("gelu", batch * both * 4 * width, "gelu")
        builder.dense("output and down", batch * both, 5 * width, width)
        builder.add("add", batch * both * width)
    builder.dense("last modulation", batch, width, 2 * width)
    builder.dense("out", batch * FLUX_PICTURE, width, LATENT)


def cogvideox(builder: LayerBuilder, batch: int, size: str) -> None:
    """Append one denoising step of CogVideoX, 49 frames of 480 × 720; guidance needs two, with and without text."""
    layers, heads = COGVIDEOX[size]
    width, both = 64 * heads, FILM + FILM_TEXT
    builder.dense("film in", batch * FILM, LATENT, width)
    builder.dense("text in", batch * FILM_TEXT, T5, width)
    _conditioning(builder, "time", batch, width, FILM_TIME)
    for _ in builder.repeated(layers):
        builder.dense("modulation", batch, FILM_TIME, 6 * width)
        builder.norm("norm", batch * both, width)
        builder.dense("query, key, value", batch * both, width, 3 * width)
        builder.attention("attention", batch, heads, both, both, 64, rotary=size == "5b")
        builder.dense("inner modulation", batch, FILM_TIME, 6 * width)
        _stream(builder, "both", batch, both, width, 4 * width)
    builder.dense("last modulation", batch, FILM_TIME, 2 * width)
    builder.dense("out", batch * FILM, width, LATENT)
