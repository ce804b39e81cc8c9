"""A network as a C header for the firmware, and the firmware on a simulated board.

``python -m mlsys.measure.firmware.build tiny-cnn network.h`` writes the header.
"""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mlsys.errors import ArgumentError
from mlsys.files import write_text
from mlsys.measure.errors import BackendMissingError
from mlsys.measure.networks.chains import net_of
from mlsys.measure.networks.int8 import QuantizedNet, quantized
from mlsys.unit_checks import checked_choice

BOARDS = {"mps2-an385": "Cortex-M3", "mps2-an386": "Cortex-M4", "mps2-an500": "Cortex-M7"}
"""Boards of Arm's MPS2 that QEMU simulates, and their cores."""
SHIFT = 5
"""Simulated time per instruction is 2^5 ns, for all instructions: QEMU counts instructions, not cycles."""
_TOOLS = {"arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi", "qemu-system-arm": "qemu-system-arm",
          "make": "make"}  # fmt: skip


def tools_missing() -> str:
    """Return the missing programs for building firmware, and how to install them; empty if there are none."""
    missing = [name for name in _TOOLS if shutil.which(name) is None]
    if not missing:
        return ""
    packages = " ".join(_TOOLS[name] for name in missing)
    return f"{', '.join(missing)} not found on the PATH. On Debian: apt-get install {packages}"


def network_header(net: QuantizedNet) -> str:
    """Return a C header that describes a network in integers.

    Parameters
    ----------
    net
        The network; all of its numbers are written to the header.
    """
    parts = [f'/* {net.net.name}, made by mlsys.measure.firmware.build; do not edit. */\n#include "nn.h"\n']
    entries = []
    for each in net.layers:
        layer = each.layer
        top, left, _, _ = layer.pads
        name = layer.name
        if each.weight is None:
            pointers = "NULL, NULL, NULL, NULL"
        else:
            assert each.bias is not None and each.multiplier is not None and each.shift is not None
            arrays = (
                ("int8_t", "weight", each.weight.ravel()), ("int32_t", "bias", each.bias),
                ("int32_t", "multiplier", each.multiplier), ("int8_t", "shift", 31 - each.shift),
            )  # fmt: skip
            parts += [f"static const {kind} {name}_{tag}[] = {{{_numbers(values)}}};" for kind, tag, values in arrays]
            pointers = ", ".join(f"{name}_{tag}" for _, tag, _ in arrays)
        sizes = (*layer.source, *layer.shape, *layer.kernel, *layer.stride, top, left)
        low = each.target.zero if layer.relu else -128
        numbers = ", ".join(map(str, (*sizes, each.source.zero, each.target.zero, low)))
        entries.append(f'    {{"{name}", {layer.kind.upper()}, {numbers}, {pointers}}},')
    largest = max(_size(layer.shape) for layer in net.net.layers)
    parts += [
        "static const layer_t network[] = {", *entries, "};",
        f'#define NETWORK_NAME "{net.net.name}"',
        f"#define INPUT_SIZE {_size(net.net.shape)}",
        f"#define OUTPUT_SIZE {_size(net.net.layers[-1].shape)}",
        f"#define OUTPUT_ZERO ({net.target.zero})",
        f"#define OUTPUT_SCALE_BILLIONTHS {round(net.target.scale * 1e9)}",
        f"#define LARGEST {largest}",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _size(shape: tuple[int, int, int]) -> int:
    return shape[0] * shape[1] * shape[2]


def _numbers(values: Iterable[int]) -> str:
    return ",".join(str(int(value)) for value in values)


def build(source: Path, out: Path, *, board: str = "mps2-an386", net: str = "tiny-cnn", debug: bool = False) -> Path:
    """Compile the firmware, and return the executable.

    Parameters
    ----------
    source
        The folder ``firmware`` of the project.
    out
        Build folder.
    board, net
        One of :data:`BOARDS`, and a built-in network.
    debug
        Whether to compile without optimisation.

    Raises
    ------
    BackendMissingError
        If a program is missing.
    ArgumentError
        If the board is unknown, or compilation fails.
    """
    reason = tools_missing()
    if reason:
        raise BackendMissingError(reason)
    checked_choice("build", "board", board, BOARDS)
    write_text(out / "network.h", network_header(quantized(net_of(net))), folders=True)
    command = ["make", "-C", str(source), f"BOARD={board}", f"NET={net}", f"OUT={out.absolute()}"]
    done = subprocess.run([*command, *(["DEBUG=1"] if debug else [])], capture_output=True, text=True)
    if done.returncode:
        raise ArgumentError(f"build(): compilation failed: {done.stderr.strip()[-500:]}")
    return out / "firmware.elf"


@contextmanager
def simulated(elf: Path, *, board: str = "mps2-an386", wait: float = 60.0) -> Iterator[str]:
    """Run the firmware in QEMU inside the context; yields its port, for pyserial.

    Parameters
    ----------
    elf, board
        Result of :func:`build`, and its board.
    wait
        Seconds to wait for QEMU to open its port.

    Raises
    ------
    BackendMissingError
        If QEMU is missing or does not start.
    """
    if shutil.which("qemu-system-arm") is None:
        raise BackendMissingError(tools_missing())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    process = subprocess.Popen(
        ["qemu-system-arm", "-M", board, "-kernel", str(elf), "-display", "none", "-monitor", "none", "-serial",
         f"tcp:127.0.0.1:{port},server=on,wait=on", "-icount", f"shift={SHIFT},align=off,sleep=off"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        _listening(process, port, wait)
        yield f"socket://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def _listening(process: subprocess.Popen[str], port: int, wait: float) -> None:
    """Wait until the port is open; reads the kernel's socket table, since QEMU accepts only one connection."""
    mark, end = f":{port:04X} 00000000:0000 0A", time.monotonic() + wait
    while time.monotonic() < end:
        if process.poll() is not None:
            stderr_text = process.stderr.read().strip() if process.stderr else ""
            raise BackendMissingError(f"qemu-system-arm ended at once: {stderr_text[-300:]}")
        if mark in Path("/proc/net/tcp").read_text():
            return
        time.sleep(0.02)
    raise BackendMissingError(f"qemu-system-arm did not open its port within {wait:g} s")


if __name__ == "__main__":
    write_text(Path(sys.argv[2]), network_header(quantized(net_of(sys.argv[1]))), folders=True)
