"""A benchmark board on a serial line, real or simulated, with the commands of MLPerf Tiny's runner."""

import time
from typing import Any

from mlsys.formatting import significant
from mlsys.measure.backends.base import Array, Backend, flat
from mlsys.measure.errors import BackendMissingError, Unmeasured
from mlsys.measure.firmware.uart import Capture, samples_of
from mlsys.measure.log import Sample
from mlsys.measure.networks.int8 import QuantizedNet
from mlsys.measure.networks.subjects import Subject

_AT_ONCE = 32  # input bytes per command


class SerialDevice(Backend):
    """A board behind a serial port; it times itself with its own counter.

    Parameters
    ----------
    port
        Port name for pyserial: ``/dev/ttyACM0``, ``COM3``, ``socket://host:port`` for a simulated board.
    baud
        Baud rate of a real line.
    wait
        Seconds to wait for an answer.
    """

    name, package = "serial", "serial"
    formats = ("int8",)

    def __init__(self, port: str, baud: int = 115200, wait: float = 30.0) -> None:
        self._port, self._baud, self._wait = port, baud, wait
        self._line: Any = None
        self._profile = Capture()
        self._rates: dict[str, Any] | None = None
        self._layers: list[Sample] = []
        self.malformed: list[str] = []

    def setup(self, subject: Subject, threads: int) -> None:
        """Open the port on first use, check that the board runs this network, and send the input."""
        import serial

        if self._line is None:
            try:
                self._line = serial.serial_for_url(self._port, baudrate=self._baud, timeout=0.2)
            except (serial.SerialException, OSError, ValueError) as error:
                raise BackendMissingError(f"serial: the port {self._port} cannot be opened: {error}") from error
            self.command("name")
            self._profile = self.command("profile")
            runs = self._profile.facts.get("model")
            if runs != subject.name:
                self.close()
                raise BackendMissingError(f"serial: the board runs {runs!r}, but {subject.name!r} was requested")
            if not self._profile.clock:
                self.close()
                raise BackendMissingError("serial: the board does not report its clock (m-clock-[ticks per second])")
        chain = subject.chain
        assert isinstance(chain, QuantizedNet)
        data = chain.source.to_int(subject.batch).tobytes()
        self.command(f"db load {len(data)}")
        for index in range(0, len(data), _AT_ONCE):
            self.command(f"db {data[index : index + _AT_ONCE].hex()}")

    def command(self, text: str) -> Capture:
        """Send a command, and return the output until the board was ready again.

        Raises
        ------
        BackendMissingError
            If no answer comes in time, or the board reports an error.
        """
        import serial

        capture, end, rest = Capture(facts={"clock": self._profile.facts.get("clock", "")}), time.monotonic(), b""
        try:
            self._line.write(f"{text}%".encode())
            while not capture.ready:
                if time.monotonic() - end > self._wait:
                    raise BackendMissingError(
                        f"serial: {self._port} does not answer to {text.split()[0]!r} within {self._wait:g} s"
                    )
                more = self._line.read(max(1, self._line.in_waiting))
                if not more:
                    continue
                end = time.monotonic()
                *lines, rest = (rest + more).split(b"\n")
                for line in lines:
                    word = line.decode("ascii", errors="replace")
                    if text == "name" and word.strip() == "m-ready" and "name-dut" not in capture.facts:
                        continue  # output from before the command
                    capture.take(word)
        except (serial.SerialException, OSError) as error:
            raise BackendMissingError(f"serial: {self._port} was closed: {error}") from error
        if capture.complaints:
            raise BackendMissingError(f"serial: the board refuses {text.split()[0]!r}: {'; '.join(capture.complaints)}")
        return capture

    def run_inference(self) -> float:
        """Run one inference; returns the board's own time."""
        return self.run_many(0, 1, 0)[0].latency_ms / 1e3

    def run_many(self, run: int, iterations: int, warmup: int) -> list[Sample]:
        """Run many inferences with one command; the layers of the last such run are kept."""
        capture = self.command(f"trace {iterations} {warmup}")
        samples, self._layers = samples_of(capture, self._profile.clock, run)
        self.malformed = [f"line {line} after the command: {words}" for line, words in capture.faults]
        if len(samples) < iterations and not self.malformed:
            self.malformed = [f"{iterations - len(samples)} of {iterations} inferences did not arrive"]
        return samples

    def output(self) -> Array:
        """Return the output of the last inference."""
        return flat([float(cell) for cell in self.command("results").facts["results"].split(",")])

    def layer_samples(self) -> tuple[str, list[Sample]]:
        """Return how layers were timed, and their samples in the last run, including counters."""
        if not self._layers:
            raise Unmeasured("the board timed no layers")
        return (
            f"{self._profile.facts.get('counter', 'a counter')} of the board, before and after each layer",
            self._layers,
        )

    def rates(self) -> dict[str, Any]:
        """Return the rates of the board's core, measured by the board.

        Raises
        ------
        Unmeasured
            If it does not know the command.
        """
        try:
            capture = self.command("rates")
        except BackendMissingError as error:
            raise Unmeasured(str(error)) from error
        rates = capture.rates_per_second(self._profile.clock)
        if rates is None:
            raise Unmeasured("the board reported no rates")
        how = "the board's own loop of INT8 products, copies of 4 KiB, and calls of an empty layer"
        return {**{name: significant(value, 5) for name, value in rates.items()}, "how": how}

    def facts(self) -> dict[str, Any]:
        """Return board, clock, counter and build, as reported by the board."""
        facts: dict[str, Any] = self.environment()["backend"]
        return facts

    def environment(self) -> dict[str, Any]:
        """Return what the board reports of itself, for the log."""
        return self._profile.environment

    def memory(self) -> dict[str, float] | None:
        """Return the program's flash and RAM, kB, if the board reports them."""
        cells = self._profile.facts.get("memory", "").split(",")
        if len(cells) != 2 or not all(cell.isdigit() for cell in cells):
            return None
        return {"flash_kb": int(cells[0]) / 1e3, "ram_kb": int(cells[1]) / 1e3}

    def close(self) -> None:
        """Close the port."""
        if self._line is not None:
            self._line.close()
            self._line = None
