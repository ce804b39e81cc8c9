"""The fitted parameters, by kind of software and class of machine."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path

from mlsys.by_line import EntriesByLine, WithAliases
from mlsys.frozen import FrozenDict
from mlsys.models.estimate.effects import effect_of
from mlsys.models.estimate.likeness import Shape
from mlsys.models.estimate.parameters import EXPECTED, Parameters
from mlsys.models.estimate.user_calibration import (
    CALIBRATION,
    calibrated,
    calibrated_device,
    calibrated_format,
    calibrated_network,
    calibrated_shape,
    calibrated_version,
    decimal,
)

__all__ = [
    "CALIBRATION",
    "calibrated",
    "calibrated_device",
    "fallback_stack",
    "fitted",
    "machines",
    "parameters_of",
    "plain_of",
    "scaled",
]

_PLACE = Path(__file__).parent / "parameters.yaml"
_MACHINES = Path(__file__).parent / "machines.yaml"
# Upper limit of an attained fraction of a peak; 1.05 allows for boost clocks.
_MOST = {"compute": 1.05, "vector": 1.05, "bandwidth": 1.0, "link": 1.0}
# Kinds of work that are the same, by two names: a network run forward.
_FORWARD = ("network", "transformer")
_PROMPT = " llm prefill"  # a forward pass over all tokens of a prompt
# Attention in one kernel for the newest instructions is alike, whoever wrote it: vLLM's is FlashAttention-3 on Hopper
# and NVIDIA's own, by FlashInfer, on Blackwell. Products in 8 bits leave the softmax beside them as it is.
_NEWEST_ATTENTION = re.compile(r"(cuDNN|FlashAttention-[3-9]|FlashInfer|FMHA|CUTLASS)\b.*?( decode)? attention on GPU")
_BEST_ATTENTION = "vLLM{} attention on GPU"
# Linear layers of eager PyTorch on a CPU call the same library as those of torch.compile, and share its parameters.
_FALLBACKS = {"eager transformer network on CPU": "torch.compile network on CPU"}
_FORMAT = re.compile(r"\b(?:int|fp|mxfp)\d+\b|\bw\d+a\d+\b")
_TIMES = ("launch", "hop", "energy")
_SHAPES = ("ramp", "splits", "chain")


@lru_cache(maxsize=1)
def fitted() -> Mapping[str, Parameters]:
    """Return the fitted parameters of every setting, such as ``"compiled network on GPU"``."""
    return WithAliases(EntriesByLine(_PLACE, lambda values: replace(EXPECTED, **values)), _FALLBACKS)


def parameters_of(
    setting: str,
    device: str = "",
    network: str = "",
    version: str = "",
    precision: str = "",
    shape: Shape | None = None,
) -> tuple[Parameters, str]:
    """Return the parameters of a setting, and the name of their origin.

    Where ``device``, the id of a twin, was measured in the setting, they are as that machine attains them;
    where the file that ``MLSYS_CALIBRATION`` names has it, they are its own, in ``precision`` and for networks whose
    products have such a ``shape`` (:func:`mlsys.models.estimate.user_calibration.shape_if_calibrated`). What
    measurements of the machine, of its family, of the ``network`` in other settings and of the ``version`` of the
    software say, is counted in as :func:`mlsys.models.estimate.effects.effect_of` has it.

    Where a setting was never fitted, those of the same software on another class of machine
    stand in; failing that, the physical expectations that every fit starts from.

    Examples
    --------
    >>> parameters_of("an abacus")[1]
    'physical expectations'
    """
    plain, whose = plain_of(setting, device)
    is_calibrated = bool(device) and calibrated(setting, device) is not None
    effect = effect_of(setting, device, network, machine=not is_calibrated, version=version)
    factor = effect.factor
    if is_calibrated:
        factor *= calibrated_network(device, network) * calibrated_format(device, precision)
        factor *= calibrated_version(setting, device, version) * calibrated_shape(setting, device, shape)
    return scaled(plain, factor, effect.starting), whose


def plain_of(setting: str, device: str = "") -> tuple[Parameters, str]:
    """Return the parameters of a setting on a machine, and their origin, without other effects."""
    parameters = calibrated(setting, device) if device else None
    if parameters is not None:
        return parameters, f"{setting}, measured on this machine"
    known = fitted()
    if _FALLBACKS.get(setting) in known:
        return known[_FALLBACKS[setting]], _FALLBACKS[setting]
    if setting in known:
        return scaled(known[setting], machines().get(setting, FrozenDict({})).get(device, 1.0)), setting
    other = fallback_stack(setting, known)
    if other:
        return known[other], other
    return Parameters(), "physical expectations"


@lru_cache(maxsize=1)
def machines() -> Mapping[str, FrozenDict[str, float]]:
    """Return the time factors of measured machines, by setting."""
    return EntriesByLine(_MACHINES, FrozenDict)


def scaled(parameters: Parameters, factor: float, starting: float | None = None) -> Parameters:
    """Return parameters scaled for a machine that takes ``factor`` times as long as its setting.

    Rates are divided and times multiplied by the factor (launches by ``starting``, if given). Fractions of a peak
    are capped at the attainable maximum, so that the estimate stays above its bound.

    Examples
    --------
    >>> slow = scaled(Parameters(), 2.0)
    >>> slow.compute, slow.launch, scaled(Parameters(), 0.5).bandwidth
    (0.4, 1e-05, 1.0)
    """
    if starting is not None:
        parameters = replace(parameters, launch=parameters.launch * starting / factor)
    if factor == 1.0:
        return parameters
    values = {}
    for name in Parameters.names():
        value = getattr(parameters, name)
        if name in _TIMES:
            values[name] = value * factor
        elif name in _SHAPES:
            values[name] = value
        else:
            values[name] = min(value / factor, max(value, _MOST.get(name, float("inf"))))
    return Parameters(**values)


def fallback_stack(setting: str, known: Iterable[str]) -> str:
    """Return the setting to use in place of one that was never fitted, or an empty string.

    The same software on another class of machine; failing that, any network run forward by the same
    software on the same class, as a prompt is, too; failing that, on the same class the same kind of work by the
    software whose name is most alike, so that a new version finds the last one; in the same number format where any is.
    For attention written for the newest instructions stands that of a server which takes the best of them.

    Examples
    --------
    >>> fallback_stack("vLLM 0.20 gemm on GPU", ("vLLM gemm on GPU", "SGLang gemm on GPU", "vLLM attention on GPU"))
    'vLLM gemm on GPU'
    >>> fallback_stack("XLA transformer on GPU", ("XLA network on GPU", "eager transformer on GPU"))
    'XLA network on GPU'
    >>> fallback_stack("RKNN llm prefill on NPU", ("RKNN network on NPU", "compiled llm prefill on NPU"))
    'RKNN network on NPU'
    >>> fallback_stack("cuDNN attention on GPU", ("cuBLAS fp8 attention on GPU", "Triton attention on GPU"))
    'Triton attention on GPU'
    >>> fallback_stack("cuDNN fp8 attention on GPU", ("SGLang fp8 attention on GPU", "vLLM attention on GPU"))
    'vLLM attention on GPU'
    """
    names = list(known)
    software, _, machine = setting.partition(" on ")
    for other in names:
        if other.partition(" on ")[0] == software:
            return other
    newest = _NEWEST_ATTENTION.fullmatch(setting)
    if newest and _BEST_ATTENTION.format(newest[2] or "") in names:
        return _BEST_ATTENTION.format(newest[2] or "")
    name, _, kind = software.rpartition(" ")
    if kind in _FORWARD:
        for same in _FORWARD:
            if f"{name} {same} on {machine}" in names:
                return f"{name} {same} on {machine}"
    prompt = f"{software.removesuffix(_PROMPT)} network on {machine}"
    if software.endswith(_PROMPT) and prompt in names:
        return prompt
    candidates = [other for other in names if other.endswith(f" {kind} on {machine}")]
    stored = [other for other in candidates if _FORMAT.findall(other) == _FORMAT.findall(setting)]
    return max(stored or candidates, key=lambda other: SequenceMatcher(None, other, setting).ratio(), default="")


def differing(parameters: Parameters) -> dict[str, float]:
    """Return the parameters that differ from what is expected before any measurement, in three digits."""
    pairs = ((name, getattr(parameters, name)) for name in Parameters.names())
    return {name: value for name, value in pairs if decimal(value) != decimal(getattr(EXPECTED, name))}
