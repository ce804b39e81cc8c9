"""The catalogue of networks: published shapes, counted exactly, without any framework.

Examples
--------
>>> from mlsys.workloads.zoo import network, networks
>>> "resnet50" in networks()
True
>>> print(f"{network('MobileNet-v2').macs.to('MMAC'):.1f}")
300.8 MMAC
"""

from mlsys.choices import Phase
from mlsys.errors import ArgumentError, UnknownNameError, did_you_mean
from mlsys.unit_checks import checked_choice
from mlsys.workloads.operator import Network
from mlsys.workloads.zoo.catalogue import CATALOGUE
from mlsys.workloads.zoo.entry import Entry
from mlsys.workloads.zoo.language import LanguageModel
from mlsys.workloads.zoo.layer_builder import ACTIVATION_OPERATIONS
from mlsys.workloads.zoo.names import resolve
from mlsys.workloads.zoo.recurrent import recurrent_layer
from mlsys.workloads.zoo.weight_formats import WEIGHT_FORMATS, weight_bits

__all__ = [
    "ACTIVATION_OPERATIONS",
    "WEIGHT_FORMATS",
    "Entry",
    "LanguageModel",
    "entry",
    "language_model",
    "network",
    "networks",
    "recurrent_layer",
    "resolve",
    "weight_bits",
]


def networks(family: str | None = None) -> tuple[str, ...]:
    """Return the names of the networks in the catalogue, or of those in one family.

    Raises
    ------
    UnknownNameError
        If there is no such family.

    Examples
    --------
    >>> len(networks()) > 100, networks("recommender")
    (True, ('dlrm', 'dlrm_dcnv2'))
    """
    if family is not None:
        checked_choice("networks", "family", family, sorted({known.family for known in CATALOGUE.values()}))
    return tuple(name for name, entry in CATALOGUE.items() if family in (None, entry.family))


def entry(name: str) -> Entry:
    """Return the catalogue entry of a network: its source, its parameters, its default input.

    Raises
    ------
    UnknownNameError
        If the catalogue has no such network.

    Examples
    --------
    >>> entry("BERT-Large").source
    'Devlin et al. 2019, NAACL, section 3'
    """
    resolved = resolve(str(name))
    if resolved is None:
        spellings = {spelling for item in CATALOGUE.values() for spelling in (item.name, item.title, *item.aliases)}
        raise UnknownNameError(
            f"no network {name!r} in the catalogue of {len(CATALOGUE)}; zoo.networks() lists them."
            f"{did_you_mean(str(name), spellings)}"
        )
    return resolved


def language_model(name: str) -> LanguageModel:
    """Return a decoder language model, whose ``prefill`` and ``decode`` return networks.

    Raises
    ------
    UnknownNameError
        If the catalogue has no such network.
    ArgumentError
        If the network is not a decoder language model.

    Examples
    --------
    >>> language_model("Llama 3 8B").kv_heads
    8
    """
    resolved = entry(name)
    if not isinstance(resolved.model, LanguageModel):
        raise ArgumentError(
            f"language_model(): `name` must be a decoder language model, got {resolved.name!r}, which is a "
            f"{resolved.family} network. Write e.g. network({resolved.name!r})"
        )
    return resolved.model


def network(
    name: str,
    *,
    batch: int = 1,
    precision: str = "fp32",
    image: int | None = None,
    sequence: int | None = None,
    phase: Phase | None = None,
    weight_format: str | None = None,
    fused: bool = True,
) -> Network:
    """Return a network of the catalogue as a list of operators with concrete shapes.

    Parameters
    ----------
    name
        Any usual spelling; see :func:`resolve`.
    batch
        Images, sequences or rows in a batch.
    precision
        Number format of weights and activations.
    image
        Side of the (square) input image in pixels; by default that of the entry.
    sequence
        Tokens of each sequence; for a decoding step, the tokens it attends to.
    phase
        ``"prefill"`` (the default) or ``"decode"``, for language models.
    weight_format
        Format in which a language model's weights are stored, such as ``"q4_0"``.
    fused
        Whether normalisations are folded into matrix products, and activations, additions and
        pooling are fused with them; False lists each as an operator of its own.

    Raises
    ------
    UnknownNameError
        If the network or a format is unknown.
    ArgumentError
        If an argument does not apply to this network, or its value is out of range.

    Examples
    --------
    >>> print(f"{network('resnet50', batch=32).macs.to('GMAC'):.1f}")
    130.9 GMAC
    >>> print(f"{network('llama-2-7b', phase='decode', sequence=1024, precision='fp16').data.to('GB'):.2f}")
    13.76 GB
    """
    return entry(name).build(
        batch=batch,
        precision=precision,
        image=image,
        sequence=sequence,
        phase=phase,
        weight_format=weight_format,
        fused=fused,
    )
