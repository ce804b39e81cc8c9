"""Headers of GGUF and safetensors files: bytes by type, against sums by hand, and what contradicts a configuration."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from mlsys.api.flops import flops
from mlsys.errors import ArgumentError
from mlsys.workloads import load
from mlsys.workloads.transformer_config import load_decoder, read_config

HIDDEN, INNER, LAYERS, VOCABULARY, SHARED = 256, 512, 2, 300, 128
LLAMA: dict[str, Any] = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": HIDDEN, "intermediate_size": INNER,
    "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": VOCABULARY,
    "torch_dtype": "float16",
}  # fmt: skip
Q4_K, Q6_K, F32 = 12, 14, 0
BLOCKS = {Q4_K: (256, 144), Q6_K: (256, 210), F32: (1, 4)}
MATRICES = {
    "attn_q": (HIDDEN, HIDDEN), "attn_k": (HIDDEN, SHARED), "attn_v": (HIDDEN, SHARED), "attn_output": (HIDDEN, HIDDEN),
    "ffn_gate": (HIDDEN, INNER), "ffn_up": (HIDDEN, INNER), "ffn_down": (INNER, HIDDEN),
}  # fmt: skip


def text(value: str) -> bytes:
    """Return text as GGUF writes it."""
    return struct.pack("<Q", len(value)) + value.encode()


def tensors_of(down: int = Q6_K) -> dict[str, tuple[tuple[int, ...], int]]:
    """Return shapes, inputs first, and types of a small file like those that llama.cpp calls Q4_K_M."""
    tensors: dict[str, tuple[tuple[int, ...], int]] = {"token_embd.weight": ((HIDDEN, VOCABULARY), Q6_K)}
    for layer in range(LAYERS):
        for name, shape in MATRICES.items():
            tensors[f"blk.{layer}.{name}.weight"] = shape, down if name in ("ffn_down", "attn_v") else Q4_K
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{layer}.{name}.weight"] = (HIDDEN,), F32
    return tensors | {"output_norm.weight": ((HIDDEN,), F32)}


def gguf(path: Path, tensors: dict[str, tuple[tuple[int, ...], int]], **changed: Any) -> Path:
    """Write the header of a GGUF file."""
    numbers = {
        "block_count": LAYERS, "embedding_length": HIDDEN, "feed_forward_length": INNER, "context_length": 2048,
        "attention.head_count": 4, "attention.head_count_kv": 2,
    } | changed  # fmt: skip
    fields = [text("general.architecture") + struct.pack("<I", 8) + text("llama")]
    fields += [text(f"llama.{name}") + struct.pack("<II", 4, number) for name, number in numbers.items()]
    words = b"".join(text(f"word {index}") for index in range(VOCABULARY))
    fields.append(text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, VOCABULARY) + words)
    fields.append(text("tokenizer.ggml.scores") + struct.pack("<IIQ", 9, 6, 2000) + bytes(8000))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields))
    places = (
        text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, 0)
        for name, (shape, kind) in tensors.items()
    )
    path.write_bytes(head + b"".join(fields) + b"".join(places))
    return path


def by_hand(tensors: dict[str, tuple[tuple[int, ...], int]]) -> int:
    """Return the bytes of all tensors."""
    total = 0
    for shape, kind in tensors.values():
        block, size = BLOCKS[kind]
        elements = 1
        for side in shape:
            elements *= side
        total += elements // block * size
    return total


def test_a_gguf_file_is_counted_tensor_by_tensor(tmp_path: Path) -> None:
    tensors = tensors_of()
    path = gguf(tmp_path / "model.gguf", tensors)
    decoder = load_decoder(path)
    assert decoder.tied and decoder.vocabulary == VOCABULARY
    assert decoder.parameters() == read_config(LLAMA | {"tie_word_embeddings": True}).parameters()
    assert decoder.weight_bytes().magnitude == by_hand(tensors)
    record = flops(path, phase="decode", sequence=100).record()
    assert record["weight_bytes"] == record["bytes"]["weights"] == by_hand(tensors)
    assert "q4_k" in record["weight_format"] and record["precision"] == "fp16"
    (down,) = {op.weights.magnitude for op in load(path, phase="decode") if op.name == "feed-forward down"}
    assert down == HIDDEN * INNER / 256 * 210
    with_head = gguf(tmp_path / "head.gguf", tensors | {"output.weight": ((HIDDEN, VOCABULARY), Q6_K)})
    assert not load_decoder(with_head).tied


def test_what_contradicts_or_is_cut_off_is_named(tmp_path: Path) -> None:
    tensors = tensors_of()
    with pytest.raises(ArgumentError, match="'blk.0.ffn_gate.weight' has 512 × 256 weights.*different models"):
        load_decoder(gguf(tmp_path / "a.gguf", tensors, feed_forward_length=1024))
    with pytest.raises(ArgumentError, match="no tensor is of layer 2, and `num_hidden_layers` is 3"):
        load_decoder(gguf(tmp_path / "b.gguf", tensors, block_count=3))
    with pytest.raises(ArgumentError, match="of a layer beyond the 1 of `num_hidden_layers`"):
        load_decoder(gguf(tmp_path / "c.gguf", tensors, block_count=1))
    whole = gguf(tmp_path / "d.gguf", tensors).read_bytes()
    for cut in (0, 3, 10, 40, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.gguf").write_bytes(whole[:cut])
        with pytest.raises(ArgumentError, match="ends within its header|no GGUF file"):
            load_decoder(tmp_path / "cut.gguf")
    nested = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 9, 1)
    (tmp_path / "nested.gguf").write_bytes(nested)
    with pytest.raises(ArgumentError, match="an array of arrays"):
        load_decoder(tmp_path / "nested.gguf")
    (tmp_path / "old.gguf").write_bytes(b"GGUF" + struct.pack("<I", 1))
    with pytest.raises(ArgumentError, match="GGUF version 1 is not known here"):
        load_decoder(tmp_path / "old.gguf")


def checkpoint(folder: Path, config: dict[str, Any], parts: int = 1, **changed: torch.Tensor) -> Path:
    """Write a checkpoint of the small Llama as transformers names its tensors; return its file or its index."""
    (folder / "config.json").write_text(json.dumps(config))
    sizes = {"self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (SHARED, HIDDEN),
             "self_attn.v_proj": (SHARED, HIDDEN), "self_attn.o_proj": (HIDDEN, HIDDEN),
             "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN), "mlp.down_proj": (HIDDEN, INNER),
             "input_layernorm": (HIDDEN,), "post_attention_layernorm": (HIDDEN,)}  # fmt: skip
    tensors = {f"model.layers.{layer}.{name}.weight": torch.zeros(shape, dtype=torch.float16)
               for layer in range(LAYERS) for name, shape in sizes.items()}  # fmt: skip
    tensors |= {name: torch.zeros(VOCABULARY, HIDDEN, dtype=torch.float16)
                for name in ("model.embed_tokens.weight", "lm_head.weight")}  # fmt: skip
    tensors |= {"model.norm.weight": torch.zeros(HIDDEN, dtype=torch.float16), **changed}
    if parts == 1:
        save_file(tensors, folder / "model.safetensors")
        return folder / "model.safetensors"
    places = {}
    for part in range(parts):
        names = list(tensors)[part::parts]
        save_file({name: tensors[name] for name in names}, folder / f"part-{part}.safetensors")
        places |= dict.fromkeys(names, f"part-{part}.safetensors")
    total = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": places}))
    return index


def test_a_plain_checkpoint_is_what_its_configuration_says(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, LLAMA, parts=3)
    decoder = load_decoder(path)
    assert decoder.quantization is None and decoder == load_decoder(tmp_path)
    assert load(path, sequence=8).data == load(tmp_path, sequence=8).data
    (tmp_path / "part-1.safetensors").unlink()
    assert load_decoder(path).weight_bytes().magnitude == 2 * decoder.parameters().magnitude  # `total_size`
    index = json.loads(path.read_text())
    path.write_text(json.dumps({"weight_map": index["weight_map"]}))
    with pytest.raises(ArgumentError, match="'part-1.safetensors' is not there, and the index states no `total_size`"):
        load_decoder(path)


def test_a_mixed_checkpoint_is_counted_as_stored(tmp_path: Path) -> None:
    """The classifier in 32 bits and one matrix in FP8: what no `quantization_config` says."""
    head = torch.zeros(VOCABULARY, HIDDEN)
    eight = torch.zeros(HIDDEN, INNER, dtype=torch.float8_e4m3fn)
    path = checkpoint(tmp_path, LLAMA, **{"lm_head.weight": head, "model.layers.1.mlp.down_proj.weight": eight})
    decoder = load_decoder(path)
    extra = 2 * VOCABULARY * HIDDEN - HIDDEN * INNER
    assert decoder.weight_bytes().magnitude == 2 * decoder.parameters().magnitude + extra
    downs = [op.weights.magnitude for op in load(path, phase="decode") if op.name == "feed-forward down"]
    assert downs == [2 * HIDDEN * INNER, HIDDEN * INNER]


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="weight' has 300 × 256 weights.*`vocab_size` and width"):
        load_decoder(checkpoint(tmp_path, LLAMA | {"vocab_size": 320}))
    path = checkpoint(tmp_path, LLAMA)
    content = path.read_bytes()
    path.write_bytes(content[:-100])
    with pytest.raises(ArgumentError, match="it is not whole"):
        load_decoder(path)
    for broken in (b"", b"\x05", content[:50], b"\x04" + bytes(7) + b"null"):
        path.write_bytes(broken)
        with pytest.raises(ArgumentError, match="no safetensors file|has no tensors"):
            load_decoder(path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(ArgumentError, match="there is no config.json beside it"):
        load_decoder(path)
