"""Processor time of the commands of the README and of imports, cold: each in a fresh interpreter.

    python benchmarks/commands.py [--quick]

User and system seconds, children included, with machine code and bytecode already on disk; the median of five, of
``mlsys validate`` of three. Writes ``commands.json``.
"""

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import run  # the neighbour, which says what machine this is

from mlsys.files import write_text

HERE = Path(__file__).resolve().parent
MLSYS = [sys.executable, "-m", "mlsys"]
SPEC = "models: [resnet50, gpt2]\ndevices: [A100, H100, T4]\nbatches: [1, 8, 32]\nprecisions: [fp16]\n"
CODE = {
    "import mlsys": "import mlsys",
    "from mlsys import Hardware; one device": "from mlsys import Hardware; Hardware.Cloud.A100.memory_bw",
    "import mlsys.widgets": "import mlsys.widgets",
}
COMMANDS = {
    "validate": "validate",
    "systolic": "systolic 512 512 512 --array 128x128 --dataflow os",
    "mapper": "mapper resnet50:conv3_1b --device A100",
    "flops": "flops resnet50",
    "analyze": "analyze resnet50 --device A100 --batch 32",
    "compare": "compare resnet50 --devices A100,H100,T4 --batch 32",
    "sweep": "sweep {folder}/spec.yaml --out {folder}/swept",
    "tiles": "tiles resnet50 --device GenericKPU --onchip '8 MiB'",
    "memory": "memory mobilenet-v2 --fuse --device nRF52840",
    "explain guide": "explain guide --within 50 --energy 1.5",
    "edge layers": "edge layers small-cnn --batch 64",
    "edge arena": "edge arena ds-cnn --device STM32H7A3",
    "devices": "devices --kind GPU --sort ridge",
    "device": "device A100",
    "claims ledger": "claims ledger --json",
    "help": "--help",
}


def cpu_seconds(command: list[str], folder: str) -> float:
    """Return the processor time of a command, or raise where it does not end well."""
    shutil.rmtree(Path(folder) / "swept", ignore_errors=True)  # a sweep would go on where it was
    before = os.times()
    subprocess.run(command, check=True, cwd=HERE.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round; writes nothing")
    quick = parser.parse_args().quick
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # bytecode that is not kept would be made anew in every round
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_text(Path(folder) / "spec.yaml", SPEC)
        tasks = {name: [sys.executable, "-c", code] for name, code in CODE.items()}
        for name, text in COMMANDS.items():
            tasks[f"mlsys {name}"] = [*MLSYS, *shlex.split(text.format(folder=folder))]
        for name, command in tasks.items():
            rounds = 1 if quick else 3 if name == "mlsys validate" else 5
            cpu_seconds(command, folder)  # does not count: machine code and bytecode are kept on disk
            seconds[name] = statistics.median(cpu_seconds(command, folder) for _ in range(rounds))
            print(f"{name:<40} {seconds[name]:8.2f} s", flush=True)
    if not quick:
        result = {"date": time.strftime("%Y-%m-%d"), "machine": run.this_machine(), "cpu_seconds": seconds}
        write_text(HERE / "commands.json", json.dumps(run._rounded(result), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
