"""Every architecture that is read: parameters, products and cache of one pass equal those of transformers' module."""

import random
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

from mlsys.workloads.transformer_config import read_config
from mlsys.workloads.transformer_config.architectures import ARCHITECTURES
from mlsys.workloads.transformer_config.hybrids import HYBRIDS
from mlsys.workloads.transformer_config.latent import LATENT

sys.path.append(str(Path(__file__).parent))
from small_configurations import small

transformers.utils.logging.set_verbosity_error()
CLASSES = {
    **transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, "mistral4": "Mistral4ForCausalLM"
}  # fmt: skip
FLAGS = (
    "attention_bias", "mlp_bias", "use_bias", "bias", "qkv_bias", "use_qkv_bias", "qk_layernorm", "use_qk_norm",
    "parallel_attn", "use_parallel_residual", "enable_bias", "do_layer_norm_before", "layer_norm_elementwise_affine",
)  # fmt: skip
BATCH, TOKENS = 2, 12
# Dense layers alone reach these; a recurrence's own products are those of one implementation of many.
DENSE = ("aten.mm", "aten.addmm")
BATCHED = {  # batched products in torch; Llama 4's module takes every token to every expert
    "gemma3n_text": ("streams predicted",),
    "recurrent_gemma": ("recurrence input_gate", "recurrence recurrent_gate"),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), ("index scores",)),
    "llama4_text": ("experts gate and up", "experts down"),
}
# States are attributes of the module, or of a cache of its own; the module of the first GPT keeps nothing.
KEPT_ELSEWHERE = ("recurrent_gemma", "minimax", "openai-gpt")


def drawn(kind: str) -> dict[str, Any]:
    """Return sizes that are drawn anew for each kind, and alike in every run."""
    draw = random.Random(zlib.crc32(kind.encode()))
    most = 1 if kind in LATENT else 2  # latent attention has keys for all heads
    return {
        "layers": 4, "heads": draw.choice([2, 4]), "share": draw.choice([1, most]), "head_dim": draw.choice([8, 16]),
        "inner": draw.choice([24, 40]), "tied": draw.random() < 0.5, "window": 64, "first": 1, "latent": 12,
        "bare": False, "flags": set(draw.sample(FLAGS, 5)), "unset": False,
    }  # fmt: skip


def counted(module: Any) -> tuple[dict[str, int], Any]:
    """Return the products of one pass by operation, FLOP, and the cache that it leaves."""
    counter = FlopCounterMode(display=False)
    with counter:
        output = module(torch.zeros(BATCH, TOKENS, dtype=torch.long), use_cache=True)
    by_name: dict[str, int] = {}
    for operation, flops in counter.get_flop_counts()["Global"].items():
        name = "aten.convolution" if "conv" in str(operation) else str(operation)
        by_name[name] = by_name.get(name, 0) + flops
    return by_name, output.get("past_key_values", output.get("cache_params"))


@pytest.mark.parametrize("kind", sorted(ARCHITECTURES))
def test_one_pass_is_that_of_transformers(kind: str) -> None:
    config = small(kind, drawn(kind))
    theirs = transformers.CONFIG_MAPPING[kind](**config)
    theirs._attn_implementation, theirs._experts_implementation = "eager", "eager"
    module = getattr(transformers, CLASSES[kind])._from_config(theirs).eval()
    ours = read_config(config | {"model_type": kind, "architectures": [CLASSES[kind]]})
    flops, cache = counted(module)

    assert ours.parameters().magnitude == sum(weight.numel() for weight in module.parameters())

    network = ours.prefill(BATCH, TOKENS, "fp32", whole=True)
    products = [(op.kind, op.name, op.product_flops.magnitude) for op in network]
    attention = sum(each for which, _, each in products if which == "attention")
    convolved = sum(each for which, _, each in products if which == "conv2d")
    batched = sum(each for _, name, each in products if name in BATCHED.get(kind, ()))
    dense = sum(each for _, _, each in products) - attention - convolved - batched
    assert sum(flops.get(name, 0) for name in DENSE) == dense
    # Transformers pads both ends of a causal convolution and drops what comes out beyond the last token.
    kernel = max((layer.recurrence.kernel for layer in ours.layers if layer.recurrence is not None), default=1)
    assert flops.get("aten.convolution", 0) == convolved * (TOKENS + kernel - 1) / TOKENS
    if kind not in HYBRIDS and kind not in ("kimi_linear", "llama4_text"):
        assert sum(flops.values()) == sum(each for _, _, each in products)

    assert network.parameters == ours.parameters()
    if kind in KEPT_ELSEWHERE:
        return
    layers = getattr(cache, "layers", ())
    pairs = [layer for layer in layers if getattr(layer, "keys", None) is not None]
    kept = sum(layer.keys.numel() + layer.values.numel() for layer in pairs)
    if not any(layer.latent for layer in ours.layers):  # transformers caches heads, not the latent
        assert kept == ours.kv_cache(TOKENS, batch=BATCH, precision="int8").magnitude
    states = {name: 0 for name in ("conv_states", "recurrent_states")}
    for layer in layers:
        for name in states:
            tensors = getattr(layer, name, None) or {}
            states[name] += sum(each.numel() for each in tensors.values() if each is not None)
    columns = ours.state_bytes(BATCH, precision="int8", state_precision="int8").magnitude
    assert sum(states.values()) == columns
