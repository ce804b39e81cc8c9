"""Sizes of a few well-known networks, counted from their published configuration."""

from __future__ import annotations

from mlsys._facts.make import Derived, fact

__all__ = ["DERIVED", "FACTS"]

FACTS = (
    fact(
        1_557_611_200,
        "param",
        name="GPT2_PARAMS",
        meaning="GPT-2 XL, the largest GPT-2: 48 layers, width 1600, 50,257 tokens, 1,024 positions; output weights"
        " shared with the input. OpenAI rounds it to 1.5 billion",
        source="openai-community/gpt2-xl, config.json on huggingface.co; counted:"
        " 48×(12×1600² + 13×1600) + (50257 + 1024 + 2)×1600",
        date="2019-11",
        uncertainty=0,
        confidence="derived",
    ),
    fact(
        175_000_000_000,
        "param",
        name="GPT3_PARAMS",
        meaning="GPT-3, as its authors round it",
        source="T. Brown et al., Language Models are Few-Shot Learners, arXiv:2005.14165, abstract",
        date="2020-05",
        confidence="verified",
    ),
    fact(
        6_738_415_616,
        "param",
        name="LLAMA_7B_PARAMS",
        meaning="LLaMA 7B: 32 layers, width 4096, feed-forward 11,008, 32,000 tokens, separate output weights",
        source="H. Touvron et al., LLaMA, arXiv:2302.13971, table 2 (6.7B); counted from the configuration:"
        " 32×(4×4096² + 3×4096×11008 + 2×4096) + 2×32000×4096 + 4096",
        date="2023-02",
        uncertainty=0,
        confidence="derived",
    ),
    fact(
        6_738_415_616,
        "param",
        name="LLAMA2_7B_PARAMS",
        meaning="Llama 2 7B; the shape is that of LLaMA 7B",
        source="H. Touvron et al., Llama 2, arXiv:2307.09288; counted from the configuration:"
        " 32×(4×4096² + 3×4096×11008 + 2×4096) + 2×32000×4096 + 4096",
        date="2023-07",
        uncertainty=0,
        confidence="derived",
    ),
    fact(
        109_482_240,
        "param",
        name="BERT_BASE_PARAMS",
        meaning="BERT base, uncased, encoder with pooler and without the pre-training heads: 12 layers, width 768,"
        " 30,522 tokens, 512 positions. Its authors round it to 110 million",
        source="google-bert/bert-base-uncased, config.json on huggingface.co (J. Devlin et al., arXiv:1810.04805);"
        " counted layer by layer",
        date="2018-10",
        uncertainty=0,
        confidence="derived",
    ),
    fact(
        25_557_032,
        "param",
        name="RESNET50_PARAMS",
        meaning="ResNet-50 v1.5 for 1000 classes; scales and shifts of the batch norms included, running means not",
        source="PyTorch, torchvision.models.ResNet50_Weights, num_params, pytorch.org/vision",
        date="2021",
        uncertainty=0,
        confidence="verified",
    ),
    fact(
        8_178_368_512,
        "FLOP",
        name="RESNET50_FLOPs",
        meaning="ResNet-50 v1.5, one 224×224 image forward, convolutions and the last layer: 2 × 4.089 billion MACs."
        " The customary 4.1 GFLOP, GFLOPS 4.09 in torchvision, counts MACs",
        source="PyTorch, torchvision.models.ResNet50_Weights, GFLOPS, pytorch.org/vision; counted layer by layer",
        date="2021",
        uncertainty=0,
        confidence="derived",
    ),
)

DERIVED: tuple[Derived, ...] = ()
