"""Real firmware, built by the real compiler, in a simulated board, over its serial line."""

import os
import socket
import threading
from pathlib import Path

import numpy as np
import pytest

from mlsys.measure import Log, attribute, doubts
from mlsys.measure.backends import BackendMissingError
from mlsys.measure.firmware.build import BOARDS, build, simulated, tools_missing
from mlsys.measure.firmware.serial import SerialDevice
from mlsys.measure.firmware.uart import samples_of
from mlsys.measure.log import parsed
from mlsys.measure.networks.chains import inputs_of, net_of
from mlsys.measure.networks.int8 import quantized, run_int8
from mlsys.measure.networks.subjects import subject_of
from mlsys.measure.protocol import measure_backend

SOURCE = Path(__file__).resolve().parents[2] / "firmware"
NET = "tiny-cnn"
WHY = tools_missing()
pytest.importorskip("serial")
if WHY and not os.environ.get("CI"):
    pytest.skip(WHY, allow_module_level=True)


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert not WHY, WHY
    return build(SOURCE, tmp_path_factory.mktemp("firmware"), net=NET)


@pytest.fixture(scope="module")
def measured(elf: Path):
    """Measure by the whole protocol, and ask the board a few things more while it runs."""
    replies = {}
    with simulated(elf) as port:
        board = SerialDevice(port)
        log = measure_backend(board, subject_of(NET, "int8"))
        board.setup(subject_of(NET, "int8"), 1)
        replies["infer"] = board.command("infer 2 1")
        replies["print"] = board.command("db print")
        ticks = samples_of(board.command("trace 2 0"), board._profile.clock)[0][1].counters["since_start"]
        replies["wrapped"] = board.command(f"trace 6 0 {2**32 - int(2.5 * ticks)}")
        for name, words in (("bogus", "Unknown command"), ("infer 0", "above 0"), ("db load 3", "has 128 bytes")):
            with pytest.raises(BackendMissingError, match=words) as result:
                board.command(name)
            replies[name] = str(result.value)
        with pytest.raises(BackendMissingError, match="the board runs 'tiny-cnn', but 'ds-cnn' was requested"):
            board.close()
            SerialDevice(port, wait=5).setup(subject_of("ds-cnn", "int8"), 1)
    return log, replies


def test_a_hundred_runs_three_times_with_every_layer(measured) -> None:
    log: Log = measured[0]
    assert [len(log.of_run(run)) for run in range(3)] == [100, 100, 100]
    assert list(log.layer_medians) == ["conv", "dw", "pw", "pool", "fc"]
    assert log.layer_medians["conv"] > log.layer_medians["fc"] > 0
    assert sum(log.layer_medians.values()) == pytest.approx(log.median, rel=1e-3)
    assert not log.malformed
    assert log.platform == "mps2-an386"
    assert log.energy["source"] is None and "INA226" in log.energy["reason"]
    assert all(sample.energy_mj is None for sample in log.samples)
    assert log.memory["flash_kb"] > net_of(NET).parameters / 1e3


def test_the_board_computes_what_the_reference_does_to_the_bit(measured) -> None:
    whole = quantized(net_of(NET))
    wanted = run_int8(whole, whole.source.to_int(inputs_of(whole.net)))[-1].ravel()
    result = measured[1]["infer"].facts
    assert [int(cell) for cell in result["raw"].split(",")] == wanted.tolist()
    assert np.allclose(measured[0].output, whole.target.to_real(wanted), atol=2e-6)


def test_the_input_arrives_byte_by_byte(measured) -> None:
    assert measured[1]["print"].facts == {"clock": "25000000"}  # a message without brackets, taken and left


def test_a_counter_that_turns_while_it_is_read(measured) -> None:
    capture = measured[1]["wrapped"]
    raw = [row.start for row in capture.rows if row.layer == "total"]
    assert sorted(raw) != raw, "the counter turned"
    samples, layers = samples_of(capture, capture.clock)
    since = [sample.counters["since_start"] for sample in samples]
    assert since == sorted(since) and len(samples) == 6 and len(layers) == 30
    assert max(s.latency_ms for s in samples) == pytest.approx(measured[0].median, rel=0.01)


def test_the_log_is_a_log_and_can_be_attributed(measured) -> None:
    log = measured[0]
    again = parsed("\n".join(log.lines()) + "\n")
    shares = attribute(again).shares
    assert abs(sum(shares.values()) - 100) < 1e-9
    assert not [text for text in doubts(again) if "debug" in text]


def test_a_debug_build_is_slower_and_says_so(elf: Path, measured, tmp_path: Path) -> None:
    slow = build(SOURCE, tmp_path, net=NET, debug=True)
    with simulated(slow) as port:
        log = measure_backend(SerialDevice(port), subject_of(NET, "int8"), runs=1)
    assert "debug build: the firmware is a debug build" in doubts(log)
    assert log.median > 1.5 * measured[0].median


def test_it_builds_for_the_other_cores_and_the_cycle_counter(tmp_path: Path) -> None:
    import subprocess

    for board in set(BOARDS) - {"mps2-an386"}:
        assert build(SOURCE, tmp_path / board, board=board, net=NET).is_file()
    out = tmp_path / "dwt"
    build(SOURCE, out, net=NET)
    (out / "firmware.elf").unlink()
    done = subprocess.run(["make", "-C", str(SOURCE), f"OUT={out}", f"NET={NET}", "COUNTER=dwt"], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_port_that_does_not_answer() -> None:
    """A door that opens and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        heard = []
        thread = threading.Thread(target=lambda: heard.append(server.accept()[0]))
        thread.start()
        board = SerialDevice(f"socket://127.0.0.1:{server.getsockname()[1]}", wait=0.3)
        with pytest.raises(BackendMissingError, match="does not answer to 'name' within 0.3 s"):
            board.setup(subject_of(NET, "int8"), 1)
        board.close()
        thread.join()
        heard[0].close()
    with pytest.raises(BackendMissingError, match="cannot be opened"):
        SerialDevice("/dev/no-such-port").setup(subject_of(NET, "int8"), 1)
