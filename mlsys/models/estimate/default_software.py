"""Default software of an estimate: the typical choice for the kind of workload on the kind of machine."""

import re

from mlsys.errors import UnknownNameError, did_you_mean
from mlsys.hardware.device import Device
from mlsys.models.estimate.library import calibrated_device, fitted
from mlsys.workloads.operator import DECODE, NETWORK, PREFILL

# Software by kind of workload; the first one that was fitted on such machines is the default.
_PROGRAMS = {
    NETWORK: ("compiled",),
    PREFILL: ("compiled", "llama.cpp", "early llama.cpp"),
    DECODE: ("compiled", "llama.cpp"),
}
# Programs for language models on CPUs, and the rows of measurements that they have.
_ON_PROCESSORS = {**_PROGRAMS, DECODE: ("llama.cpp",)}
# Machines with their own software, by id and architecture. Some accept 8-bit networks only, in whatever format the
# estimate is requested. Microcontrollers have their own kernels, with no substitute.
_MAKERS = (
    (r"^Hailo", "NPU", {NETWORK: "Hailo int8"}),
    (r"Edge TPU", "NPU", {NETWORK: "npu runtime int8"}),
    (r"^(RK1808|RV1109|RV1126|RK3399Pro)", "NPU", {NETWORK: "RKNN int8 first"}),
    (r"Hexagon", "NPU", {NETWORK: "AI Hub", DECODE: "npu runtime"}),
    (r"Cloud AI", "NPU", {NETWORK: "Cloud AI"}),
    (r"RKNN", "NPU", {NETWORK: "RKNN", PREFILL: "RKNN", DECODE: "npu runtime"}),
    (r"Apple Neural Engine", "NPU", {NETWORK: "npu runtime"}),
    (r"Habana", "NPU", {DECODE: "HPU graphs"}),
    (r"NeuronCore", "NPU", {PREFILL: "NeuronX", DECODE: "NeuronX"}),
    (r"Adreno|Arm (Mali|Immortalis)", "SoC", {NETWORK: "opencl"}),
    (r"CDNA", "GPU", {DECODE: "compiled ROCm"}),
    # Phones and boards: TensorFlow Lite, MNN and similar runtimes, not those of servers.
    (
        r"Arm Cortex-[AX]|\bKryo|Carmel|^Snapdragon8",
        "CPU",
        {NETWORK: "mobile runtime", PREFILL: "compiled network"},
    ),
    (r"Ethos-U", "NPU", {NETWORK: "microcontroller runtime"}),
    (r"", "MCU", {NETWORK: "microcontroller runtime"}),
)
# Kernels for microcontrollers use integers: floating point runs as compiled plain C.
_FLOATS_ON_MCU = "plain kernels on MCU"


def setting_of(device: Device, setting: str | None, kind: str = NETWORK, precision: str = "") -> str:
    """Return the full name of a setting, or the default setting if None is given.

    Parameters
    ----------
    device
        The device. If the file named by ``MLSYS_CALIBRATION`` holds measurements of such work on this device, the
        software that was measured is the default.
    setting
        A fitted setting. The kind of device may be omitted: "vLLM gemm" means "vLLM gemm on GPU" for a GPU.
    kind
        Kind of workload, as in :attr:`mlsys.workloads.Network.kind`.
    precision
        Number format; CPU runtimes have separate integer kernels.

    Raises
    ------
    UnknownNameError
        If the setting was never fitted.

    Examples
    --------
    >>> from mlsys import Hardware
    >>> setting_of(Hardware.Cloud.A100, None), setting_of(Hardware.Cloud.A100, None, "llm decode")
    ('compiled network on GPU', 'compiled llm decode on GPU')
    >>> setting_of(Hardware.Edge.Pi5, None, "llm decode"), setting_of(Hardware.Edge.Pi5, None, "llm prefill")
    ('llama.cpp llm decode on CPU', 'compiled network on CPU')
    >>> [setting_of(Hardware.Tiny.STM32L4R5, None, precision=each) for each in ("int8", "fp32")]
    ['microcontroller runtime on MCU', 'plain kernels on MCU']
    """
    machine = machine_kind(device)
    if setting is None:
        default = _default(device, machine, kind, precision)
        return _measured(device, default) or default
    if setting in fitted():
        return setting
    whole = f"{setting} on {machine}"
    if whole not in fitted():
        near = [name for name in fitted() if name.endswith(f"{kind} on {machine}")]
        raise UnknownNameError(
            f"setting {setting!r} was never fitted.{did_you_mean(setting, fitted())} "
            f"For such work on such a device: {', '.join(near) or 'none'}"
        )
    return whole


def machine_kind(device: Device) -> str:
    """Return the class of machines that a device is fitted with.

    A board that is recorded by its CPU cores belongs to the CPUs; other systems belong to the GPUs.
    """
    return "CPU" if device.kind == "SoC" and "Arm Cortex-A" in device.architecture else device.kind


def _default(device: Device, machine: str, kind: str, precision: str) -> str:
    names = f"{device.id} {device.architecture}"
    own = (software for pattern, of, software in _MAKERS if of == machine and re.search(pattern, names))
    makers = next(own, {})
    if machine == "MCU" and not precision.lower().startswith("int") and precision and _FLOATS_ON_MCU in fitted():
        return _FLOATS_ON_MCU
    narrow = f" {precision.lower()}" if precision.lower() in ("int8", "int16") else ""
    for work in (kind, NETWORK) if kind == PREFILL or machine == "MCU" else (kind,):  # a prompt is one forward pass
        programs = (makers[work],) if work in makers else (_ON_PROCESSORS if machine == "CPU" else _PROGRAMS)[work]
        words = (f"{narrow} {work}", f" {work}", "")
        wanted = (f"{program}{each} on {machine}" for program in programs for each in words)
        fitting = next((name for name in wanted if name in fitted()), "")
        if fitting:
            return fitting
    return f"compiled {kind} on {machine}"


def _measured(device: Device, default: str) -> str:
    """Return the software of the user's own measurements of such work on a device; the default if there are none.

    The first in alphabetical order, if there are several.
    """
    whose, settings = calibrated_device()
    if whose != device.id or default in settings:
        return ""
    machine = machine_kind(device)
    ends = (f" {kind} on {machine}" for kind in (DECODE, PREFILL, NETWORK, "runtime"))
    end = next(end for end in ends if default.endswith(end))
    candidates = (name for name in settings if name.endswith(end) and name in fitted())
    return min((name for name in candidates if not name.startswith("energy")), default="")
