"""``SoftwareStack``: the software that runs a network, as a typed value."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mlsys.errors import ArgumentError, UnknownNameError
from mlsys.faults import short
from mlsys.hardware.device import Device
from mlsys.models.estimate.default_software import setting_of
from mlsys.models.estimate.library import fitted
from mlsys.workloads.operator import NETWORK

_WORK = (
    *("network", "transformer network", "transformer", "training", "call", "stream", "experts", "collective"),
    *("llm decode", "llm prefill", "llm generation", "llm serving", "attention", "decode attention", "batched gemm"),
    *("gemm", "gemm, matrix units", "gemm, vector units", "gelu", "layer norm", "softmax", "recurrent layer"),
    *("recurrent layer, matrix units", "recurrent layer, vector units", "convolution"),
    *("convolution, matrix units", "convolution, vector units"),
)
_VERSION = re.compile(r"\d+(\.\d+)*")
_VARIANT = re.compile(r"(u?int|fp|bf|w)\d+\S*|of|thread|first|small|vector|library|onnx|blocks")


@dataclass(frozen=True)
class SoftwareStack:
    """Software that runs a kind of work on a class of machines.

    Attributes
    ----------
    family
        Its name, such as ``"eager"``, ``"compiled"``, ``"llama.cpp"`` or ``"vLLM"``.
    version
        Such as ``"0.14"``; empty for any.
    variant
        Number format or mode, where the software has several, such as ``"fp8 blocks"``; empty for the default.
    work
        Kind of work, such as ``"network"``, ``"llm decode"`` or ``"gemm"``; empty for the kind of the analysed network.
    machine
        Class of machines: ``"GPU"``, ``"CPU"``, ``"NPU"``, ``"TPU"``, ``"SoC"`` or ``"MCU"``; empty for the class of
        the device.

    Examples
    --------
    >>> SoftwareStack("eager", work="network", machine="GPU") == SoftwareStack.parse("eager network on GPU")
    True
    >>> str(SoftwareStack("vLLM", "0.14", "fp8", "gemm", "GPU"))
    'vLLM 0.14 fp8 gemm on GPU'
    """

    family: str
    version: str = ""
    variant: str = ""
    work: str = ""
    machine: str = ""

    def __str__(self) -> str:
        words = " ".join(filter(None, (self.family, self.version, self.variant, self.work)))
        return f"{words} on {self.machine}" if self.machine else words

    @classmethod
    def parse(cls, text: str) -> SoftwareStack:
        """Return the software named by a text: family, version, variant, work and machine, in this order.

        Parameters
        ----------
        text
            Such as ``"eager network on GPU"``; it need not have measurements.

        Raises
        ------
        ArgumentError
            If it is not a text, or is empty.

        Examples
        --------
        >>> SoftwareStack.parse("vLLM 0.14 fp8 gemm on GPU")
        SoftwareStack(family='vLLM', version='0.14', variant='fp8', work='gemm', machine='GPU')
        """
        if not isinstance(text, str) or not text.strip():
            raise ArgumentError(
                "`software` must be a SoftwareStack or its name, such as SoftwareStack('eager') or "
                f"'eager network on GPU', got {short(text)}"
            )
        words, _, machine = text.strip().partition(" on ")
        work = max((each for each in _WORK if f" {words}".endswith(f" {each}")), key=len, default="")
        rest = words.removesuffix(work).split()
        if not rest:  # a family with the name of its work, such as "stream"
            return cls(words, machine=machine)
        end = next(
            (i for i, word in enumerate(rest) if i and (_VERSION.fullmatch(word) or _VARIANT.fullmatch(word))), None
        )
        family, more = rest[:end], rest[end:] if end is not None else []
        version = more.pop(0) if more and _is_version(more, 0) else ""
        return cls(" ".join(family), version, " ".join(more), work, machine)

    @classmethod
    def known(cls) -> tuple[SoftwareStack, ...]:
        """Return every software stack that was fitted to measurements.

        Examples
        --------
        >>> SoftwareStack.parse("eager network on GPU") in SoftwareStack.known()
        True
        """
        return tuple(map(cls.parse, fitted()))


def _is_version(words: list[str], index: int) -> bool:
    """Return whether a word is a version, not a number of threads."""
    return bool(_VERSION.fullmatch(words[index])) and words[index + 1 : index + 2] != ["thread"]


def software_of(
    device: Device, software: SoftwareStack | str | None, kind: str = NETWORK, precision: str = ""
) -> SoftwareStack:
    """Return the fitted software for a stack or its name, or the default for such work on a device.

    Parameters
    ----------
    device, kind, precision
        As for :func:`mlsys.models.estimate.default_software.setting_of`.
    software
        A stack, its name, or None. Work and machine default to those of the network and the device.

    Raises
    ------
    UnknownNameError
        If no such software was fitted; the message lists the software fitted for such work on such a device.
    ArgumentError
        If it is neither a stack nor a name.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> [str(software_of(Hardware.Cloud.A100, each)) for each in (None, "eager", SoftwareStack("torch.compile"))]
    ['compiled network on GPU', 'eager network on GPU', 'torch.compile network on GPU']
    """
    if software is None:
        return SoftwareStack.parse(setting_of(device, None, kind, precision))
    stack = software if isinstance(software, SoftwareStack) else SoftwareStack.parse(software)
    try:
        return SoftwareStack.parse(setting_of(device, str(stack), kind, precision))
    except UnknownNameError:
        if stack.work:
            raise
        try:
            return SoftwareStack.parse(setting_of(device, str(replace(stack, work=kind)), kind, precision))
        except UnknownNameError:
            pass
        raise
