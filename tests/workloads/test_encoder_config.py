"""Encoders and encoder-decoders read without torch: parameters and products are those of the traced module."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mlsys.errors import ArgumentError
from mlsys.units import Q_
from mlsys.workloads import Workload, load
from mlsys.workloads.transformer_config.encoder_decoders import ENCODER_DECODERS
from mlsys.workloads.transformer_config.encoders import ENCODERS, encoder_entry

sys.path.append(str(Path(__file__).parent))
from small_configurations import small_encoder_decoder

TEXT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48, "vocab_size": 97,
        "max_position_embeddings": 66, "num_labels": 3, "pad_token_id": 0}  # fmt: skip
SMALL: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("bert", "camembert", "roberta", "xlm-roberta"), TEXT),
    "vit": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
            "image_size": 48, "patch_size": 16, "id2label": {"0": "a", "1": "b", "2": "c"},
            "label2id": {"a": 0, "b": 1, "c": 2}},
    **{kind: small_encoder_decoder(kind) for kind in ENCODER_DECODERS},
}  # fmt: skip
CLASSES = [
    (kind, f"{stem}{end}")
    for kind, (stem, ends, _) in ENCODERS.items()
    for end in (ends if kind in ("bert", "roberta", "t5", "vit", "whisper") else ends[:1])
]


@pytest.mark.parametrize(("kind", "named"), CLASSES)
def test_work_is_that_of_the_traced_module(kind: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    # In FP16, code of BART looks for infinities.
    config = SMALL[kind] | {"model_type": kind, "architectures": [named], "torch_dtype": "bfloat16"}
    if named.endswith("QuestionAnswering"):
        config |= {"num_labels": 2}  # the first and the last word of the answer
    path.write_text(json.dumps(config))
    sizes = {} if kind == "vit" else {"sequence": 16}
    ours = load(path, batch=2, **sizes)
    assert ours.source == "configuration" and ours.precision == "bf16"
    traced = Workload.from_hf_config(config, batch=2, precision="bf16", **sizes)
    assert ours.parameters == traced.parameters
    assert ours.product_flops == traced.product_flops
    assert ours.flops.magnitude == pytest.approx(traced.flops.magnitude, rel=0.08)
    assert ours.weight_bytes == traced.weight_bytes


# Parameters of the checkpoints, from their cards or from transformers' modules of full size.
PUBLISHED: dict[str, tuple[dict[str, Any], int]] = {
    "bert-base-uncased": ({"model_type": "bert", "architectures": ["BertModel"]}, 109_482_240),
    "roberta-base": (
        {"model_type": "roberta", "architectures": ["RobertaModel"], "vocab_size": 50265,
         "max_position_embeddings": 514, "type_vocab_size": 1},
        124_645_632,
    ),
    "vit-base-patch16-224": (
        {"model_type": "vit", "architectures": ["ViTForImageClassification"], "num_labels": 1000}, 86_567_656
    ),
    "t5-small": ({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}, 60_506_624),
    "flan-t5-xxl": (
        {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 4096, "d_ff": 10240,
         "num_layers": 24, "num_heads": 64, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
        11_135_332_352,  # with a classifier of its own, which transformers 5 ties when it builds the module anew
    ),
    "mt5-small": (
        {"model_type": "mt5", "architectures": ["MT5ForConditionalGeneration"], "tie_word_embeddings": False},
        300_176_768,
    ),
    "bart-large": ({"model_type": "bart", "architectures": ["BartModel"]}, 406_291_456),
    "mbart-large-50": (
        {"model_type": "mbart", "architectures": ["MBartForConditionalGeneration"], "vocab_size": 250054}, 610_879_488
    ),
    "m2m100_418M": ({"model_type": "m2m_100", "architectures": ["M2M100ForConditionalGeneration"]}, 483_905_536),
    "whisper-tiny": ({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"]}, 37_760_640),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name: str) -> None:
    config, parameters = PUBLISHED[name]
    entry = encoder_entry(config, name)
    assert entry is not None and entry.parameters == Q_(parameters, "param")


def test_torch_is_not_imported(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(PUBLISHED["flan-t5-xxl"][0]))
    code = (
        "import sys; from mlsys.cli import main; main(['flops', sys.argv[1], '--sequence', '64', '--json'], "
        "standalone_mode=False); assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["params"] == PUBLISHED["flan-t5-xxl"][1]


WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"model_type": "bert", "hidden_size": 100}, {}, "`hidden_size` is 100, no multiple of the 12 heads"),
    ({"model_type": "bert", "num_labels": -1, "architectures": ["BertForTokenClassification"]}, {}, "`num_labels`"),
    ({"model_type": "bert"}, {"sequence": 513}, "`sequence` must be at most 512"),
    ({"model_type": "roberta", "max_position_embeddings": 514}, {"sequence": 513}, "must be at most 512"),
    ({"model_type": "vit", "patch_size": 15}, {}, "`image_size` is 224, no multiple of the `patch_size` 15"),
    ({"model_type": "vit"}, {"image": 384}, "for images of side 224 takes no others"),
    ({"model_type": "t5", "feed_forward_proj": "gated-swish-gelu"}, {}, "`feed_forward_proj` is 'gated-swish-gelu'"),
    (
        {"model_type": "t5", "architectures": ["T5EncoderModel"]},
        {"phase": "decode"},
        "`phase` applies to models that generate tokens",
    ),
    ({"model_type": "bert"}, {"kv_format": "fp8"}, "`kv_format` is for models that generate tokens"),
    ({"model_type": "bart", "d_model": 100}, {}, "`d_model` is 100, no multiple of the 16"),
    ({"model_type": "pegasus"}, {"sequence": 1025}, "must be at most 1024"),
    ({"model_type": "marian", "decoder_vocab_size": 9}, {}, "both halves share one table"),
    ({"model_type": "whisper"}, {"sequence": 449}, "must be at most 448"),
    ({"model_type": "whisper", "d_model": 100}, {}, "`d_model` is 100, no multiple of the 6"),
]


@pytest.mark.parametrize(("config", "given", "message"), WRONG, ids=[message for _, _, message in WRONG])
def test_what_cannot_be_is_refused(config: dict[str, Any], given: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    with pytest.raises(ArgumentError) as caught:
        load(path, **given)
    assert message in str(caught.value) and "\n" not in str(caught.value)
