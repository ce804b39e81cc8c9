"""The library by itself: where the measurements are not installed, everything but their command works."""

import subprocess
import sys
from pathlib import Path

import pytest

# An import of the other distribution fails, and its entry points are not found.
ALONE = """
import importlib.metadata as metadata, sys
sys.modules["mlsys_evidence"] = None
found = metadata.entry_points
metadata.entry_points = lambda **named: [] if named.get("group", "").startswith("mlsys.") else found(**named)
"""


def alone(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", ALONE + code], capture_output=True, text=True, cwd=folder, check=False)


def command(*words: str) -> str:
    return f"from mlsys.cli import main\nmain({list(words)!r}, prog_name='mlsys')"


def test_every_module_is_imported(tmp_path: Path) -> None:
    code = """
import importlib, pkgutil, mlsys
skipped = ("mlsys.__main__", "mlsys.measure.backends", "mlsys.widgets")
for module in pkgutil.walk_packages(mlsys.__path__, "mlsys."):
    if not module.name.startswith(skipped):
        importlib.import_module(module.name)
print("all")
"""
    result = alone(code, tmp_path)
    assert result.stdout.strip() == "all", result.stderr


@pytest.mark.parametrize("words", [("analyze", "lenet5", "--device", "A100"), ("explain", "guide", "--within", "50")])
def test_commands_answer(words: tuple[str, ...], tmp_path: Path) -> None:
    result = alone(command(*words), tmp_path)
    assert result.returncode == 0, result.stderr


HEADS = "device,device_class,precision,batch,metric,value,unit,software,network,image,stack,processor,threads\n"
ROW = "Xeon_8480,CPU,fp32,1,latency,{},ms,PyTorch 2.6 eager,{},224,eager,cpu,56\n"
MEASURED = {"resnet18": 6.0, "resnet50": 14.0, "vgg11": 30.0, "mobilenet-v2": 9.0}


def test_measurements_calibrate(tmp_path: Path) -> None:
    """Rows in typed columns teach; rows in words are refused with what to do."""
    rows = "".join(ROW.format(value, name) for name, value in MEASURED.items())
    (tmp_path / "mine.csv").write_text(HEADS + rows, encoding="utf-8")
    result = alone(command("calibrate", "mine.csv"), tmp_path)
    assert result.returncode == 0 and "4 measurements of Xeon_8480" in result.stdout, result.stderr
    assert (tmp_path / "calibration.yaml").is_file()
    words = "device,device_class,workload,model,precision,seq_or_shape,metric,value,unit\n"
    row = "Xeon_8480,CPU,CNN inference on CPU,{},fp32,224x224 image,latency,{},ms\n"
    rows = "".join(row.format(name, value) for name, value in MEASURED.items())
    (tmp_path / "words.csv").write_text(words + rows, encoding="utf-8")
    result = alone(command("calibrate", "words.csv"), tmp_path)
    assert result.returncode == 1 and "line 2" in result.stderr and "pip install mlsys-evidence" in result.stderr


@pytest.mark.parametrize(
    "words", [("validate",), ("validate", "--blind-evaluation", "6"), ("validate", "--data", "mine.csv")]
)
def test_the_command_of_the_measurements_says_what_to_install(words: tuple[str, ...], tmp_path: Path) -> None:
    result = alone(command(*words), tmp_path)
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr.strip().splitlines() == [
        "Error: validate: needs a separate distribution, which is not installed. Type: pip install mlsys-evidence"
    ]
