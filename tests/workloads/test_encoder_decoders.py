"""Encoder-decoders that generate tokens: parameters, products and cache are those of transformers' running modules."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mlsys import size
from mlsys.errors import ArgumentError
from mlsys.mapping.parallel import Layout
from mlsys.workloads import Workload, load
from mlsys.workloads.operator import Network
from mlsys.workloads.transformer_config import TransformerConfig, load_decoder
from mlsys.workloads.transformer_config.encoder_decoders import ENCODER_DECODERS, read_encoder_decoder

sys.path.append(str(Path(__file__).parent))
from small_configurations import small_encoder_decoder

SMALL = {kind: small_encoder_decoder(kind) for kind in ENCODER_DECODERS}
SMALL["apart"] = small_encoder_decoder("marian", shared=False)
BATCH, SOURCE = 2, 24
FLAN_T5_XXL = {
    "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 4096, "d_ff": 10240,
    "num_layers": 24, "num_heads": 64, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
}  # fmt: skip
WHISPER_LARGE = {
    "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "d_model": 1280,
    "encoder_layers": 32, "decoder_layers": 32, "encoder_attention_heads": 20, "decoder_attention_heads": 20,
    "encoder_ffn_dim": 5120, "decoder_ffn_dim": 5120, "num_mel_bins": 128, "vocab_size": 51866,
}  # fmt: skip


def small(kind: str) -> TransformerConfig:
    config = read_encoder_decoder(SMALL[kind] | {"model_type": "marian" if kind == "apart" else kind})
    assert config is not None
    return config if kind == "whisper" else config.reading(SOURCE)


def products(network: Network) -> float:
    return float(Workload.from_network(network).product_flops.magnitude)


@pytest.mark.parametrize("kind", SMALL)
def test_passes_and_cache_are_those_of_the_running_module(kind: str) -> None:
    """The encoder with the first token, then two steps of decoding, each counted by PyTorch as it runs."""
    import torch
    import transformers
    from torch.utils.flop_counter import FlopCounterMode

    model_type = "marian" if kind == "apart" else kind
    config = transformers.CONFIG_MAPPING[model_type](**SMALL[kind])
    config._attn_implementation = "eager"
    module = getattr(transformers, ENCODER_DECODERS[model_type].generates)(config).eval()
    ours = small(kind)
    assert ours.parameters().magnitude == sum(each.numel() for each in module.parameters())
    given = (
        {"input_features": torch.zeros(BATCH, 20, 2 * SOURCE)}
        if kind == "whisper"
        else {"input_ids": torch.ones(BATCH, SOURCE, dtype=torch.long)}
    )
    token, cache, ran = torch.zeros(BATCH, 1, dtype=torch.long), None, []
    for _ in range(3):
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            out = module(**given, decoder_input_ids=token, past_key_values=cache, use_cache=True)
        ran.append(counter.get_total_flops())
        cache, given = out.past_key_values, {"encoder_outputs": (out.encoder_last_hidden_state,)}
    assert [products(ours.prefill(BATCH, 1)), *(products(ours.decode(BATCH, tokens)) for tokens in (2, 3))] == ran
    parts = (cache.self_attention_cache, cache.cross_attention_cache)
    held = [sum(layer.keys.numel() + layer.values.numel() for layer in part.layers) for part in parts]
    assert ours.kv_cache(3, batch=BATCH, precision="fp16").m_as("byte") == 2 * sum(held)
    assert BATCH * ours.cross_elements() == held[1]


def written(folder: Path, config: dict[str, Any]) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


def test_flan_t5_xxl_is_sized(tmp_path: Path) -> None:
    """11,135,332,352 parameters by its card; the cache by hand, 24 layers of 64 heads of 64 in 16 bits."""
    answer = size(written(tmp_path, FLAN_T5_XXL), "A100", prompt=512, output=128, batch=8)
    assert answer.parameters == 11_135_332_352
    assert answer.kv_cache_bytes_per_token == 24 * 2 * 4096 * 2
    assert answer.cross_cache_bytes == 8 * 512 * 24 * 2 * 4096 * 2
    assert answer.kv_cache_bytes == answer.cross_cache_bytes + 8 * 128 * 24 * 2 * 4096 * 2
    # A step reads the decoder, without what makes keys and values of the prompt, the classifier and the cache.
    read = 2 * (24 * (6 * 4096**2 + 3 * 4096 * 10240) + 32128 * 4096) + answer.kv_cache_bytes
    bound = read / 2.039e12
    assert answer.tpot_seconds is not None and bound < answer.tpot_seconds < 2 * bound
    # The prompt's pass multiplies by the encoder and by the keys and values of cross-attention.
    flops = 2 * 512 * 24 * (4 * 4096**2 + 3 * 4096 * 10240 + 2 * 4096**2)
    assert answer.ttft_seconds is not None and flops / 312e12 < answer.ttft_seconds < 3 * flops / 312e12


def test_whisper_large_reads_its_audio_once(tmp_path: Path) -> None:
    path = written(tmp_path, WHISPER_LARGE)
    answer = size(path, "H100", prompt=4, output=100)
    assert answer.parameters == 1_543_490_560  # openai/whisper-large-v3
    assert answer.cross_cache_bytes == 1500 * 32 * 2 * 1280 * 2
    assert answer.largest_sequence == 448
    longer = size(path, "H100", prompt=4, output=200)
    assert longer.ttft_seconds == answer.ttft_seconds and longer.cross_cache_bytes == answer.cross_cache_bytes


@pytest.mark.parametrize("kind", ["bart", "t5", "whisper"])
def test_phases_are_counted_as_the_passes_of_the_model(kind: str, tmp_path: Path) -> None:
    named = ENCODER_DECODERS[kind].generates
    path = written(tmp_path, SMALL[kind] | {"model_type": kind, "architectures": [named]})
    model = load_decoder(path, encoders=True)
    model = model if kind == "whisper" else model.reading(SOURCE)
    begins = SOURCE if kind == "whisper" else 1
    prefill, step = (load(path, batch=BATCH, sequence=SOURCE, phase=phase) for phase in ("prefill", "decode"))
    assert prefill.product_flops.magnitude == products(model.prefill(BATCH, begins))
    assert step.product_flops.magnitude == products(model.decode(BATCH, SOURCE))
    for work in (prefill, step):
        assert work.parameters == model.parameters() and work.weight_bytes.magnitude == 4 * model.parameters().magnitude
        assert work.kv_cache_bytes == model.kv_cache(SOURCE, batch=BATCH, precision="fp32")
    narrow = load(path, sequence=SOURCE, phase="decode", kv_format="int8", weight_format="int8")
    assert narrow.kv_cache_bytes.magnitude * 4 * BATCH == step.kv_cache_bytes.magnitude
    assert narrow.weight_bytes.magnitude * 4 == step.weight_bytes.magnitude


def test_each_half_of_bart_has_positions_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path, {"model_type": "bart"})
    assert size(path, prompt=1000, output=600).kv_cache_bytes == (1000 + 600) * 12 * 2 * 1024 * 2
    with pytest.raises(ArgumentError, match="learned positions for 1024 tokens, got prompts and answers of 1025"):
        size(path, prompt=1025, output=1)


def test_tensor_parallelism_divides_both_halves(tmp_path: Path) -> None:
    path = written(tmp_path, FLAN_T5_XXL)
    one, four = (size(path, "DGX_H100", prompt=512, output=64, tp=tp, pp=1, ep=1) for tp in (1, 4))
    assert four.per_chip.weights == pytest.approx(one.per_chip.weights / 4, rel=1e-3)
    assert four.per_chip.kv_cache == one.per_chip.kv_cache / 4
    assert one.phase_time is not None and four.phase_time is not None
    assert four.phase_time.exchanging > one.phase_time.exchanging == 0


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, FLAN_T5_XXL)
    with pytest.raises(ArgumentError, match="has an encoder. Leave it at 1"):
        size(path, "DGX_H100", layout=Layout(pp=2))
    with pytest.raises(ArgumentError, match="has an encoder, and a decoder language model is needed here"):
        load_decoder(path)
    with pytest.raises(ArgumentError, match="say how many tokens its encoder reads"):
        load_decoder(path, encoders=True).decode()
    with pytest.raises(ArgumentError, match="always reads 24 tokens, got 25"):
        small("whisper").reading(25)
    with pytest.raises(ArgumentError, match="T5ForConditionalGeneration generates tokens"):
        size(written(tmp_path, FLAN_T5_XXL | {"architectures": ["T5EncoderModel"]}))
    with pytest.raises(ArgumentError, match="`quantization_config` of t5 is not known here"):
        size(written(tmp_path, FLAN_T5_XXL | {"quantization_config": {"quant_method": "gptq"}}))
