"""A decoder as its configuration describes it, every default resolved."""

from __future__ import annotations

from dataclasses import dataclass

from mlsys.workloads.zoo.decoder import Decoder
from mlsys.workloads.zoo.decoder_layer import DecoderLayer, WeightMatrix
from mlsys.workloads.zoo.source_encoder import SourceEncoder
from mlsys.workloads.zoo.stored_weights import StoredWeights


@dataclass(frozen=True)
class TransformerConfig(Decoder):
    """A transformer that generates tokens, resolved from a ``config.json`` as transformers resolves it.

    Attributes
    ----------
    name
        The class named under ``architectures``, or else ``model_type``.
    model_type
        That of the language model: of a nested configuration the inner one.
    hidden, vocabulary
        ``hidden_size`` and ``vocab_size``.
    layers
        One entry for each layer.
    tied
        Whether the classifier uses the table of tokens.
    positions
        Rows of a learned table of positions; 0 for rotary embeddings or ALiBi.
    learned
        Most tokens that learned positions allow; 0 for no such limit.
    context
        Tokens that the model is made for, the scaling of its positions included; 0 where it is not stated.
    outer_parameters
        Parameters of normalisations outside the layers.
    head, head_bias
        Whether the pass ends in scores of the vocabulary, and whether these have a bias.
    embedding_width
        Width of the table of tokens, where it is not ``hidden``.
    outer_matrices, per_layer_table
        As in :class:`~mlsys.workloads.zoo.decoder.Decoder`.
    dtype
        Number format of ``torch_dtype`` or ``dtype``, where it is stated.
    quantization
        How weights are stored, where ``quantization_config`` is there.
    cache_format
        Number format of the cache, where the configuration states one.
    assumed
        What is absent and was assumed, in words: fields of size, which take transformers' defaults.
    encoder
        As in :class:`~mlsys.workloads.zoo.decoder.Decoder`.
    left_out
        Parts of the configuration that are not in this decoder, such as ``"vision_config"``.

    Examples
    --------
    >>> from mlsys.workloads.transformer_config import read_config
    >>> mistral = read_config({"model_type": "mistral", "architectures": ["MistralForCausalLM"]})
    >>> print(f"{mistral.parameters():,}", mistral.layers[0].attention_kind, mistral.layers[0].window)
    7,241,732,096 param grouped 4096
    """

    name: str
    model_type: str
    hidden: int
    vocabulary: int
    layers: tuple[DecoderLayer, ...]
    tied: bool = False
    positions: int = 0
    learned: int = 0
    context: int = 0
    outer_parameters: int = 0
    head: bool = True
    head_bias: bool = False
    embedding_width: int = 0
    outer_matrices: tuple[WeightMatrix, ...] = ()
    per_layer_table: tuple[int, ...] = ()
    dtype: str | None = None
    quantization: StoredWeights | None = None
    cache_format: str | None = None
    assumed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    encoder: SourceEncoder | None = None

    @property
    def layer_list(self) -> tuple[DecoderLayer, ...]:
        """The layers."""
        return self.layers
