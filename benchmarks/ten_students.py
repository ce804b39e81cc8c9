"""Ten students work in a lab at once, each with a kernel on one server, and lose nothing.

A student is a client that does what a page in the browser does: it opens the notebook, speaks to the kernel over the
server's WebSocket, sets fields, presses buttons and moves controls, waits for each new picture, and reloads the page
on the way. In the end the values of all fields are those that were set last, no cell and no message was an error, and,
where work is kept in a file, the file holds it and a restarted kernel has it again.

    python benchmarks/ten_students.py                     # Jupyter server, a folder for each student
    python benchmarks/ten_students.py --server voila      # Voilà, one folder for all; pip install voila
"""

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import psutil
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 300.0
"""Seconds after which an answer counts as missing, however busy the machine is."""
AsyncHTTPClient.configure(None, max_clients=100, max_body_size=200_000_000)


@contextmanager
def server(kind: str, folder: Path) -> Iterator[str]:
    """Run a Jupyter server or Voilà on a folder, and give its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = ["--no-browser", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}"]
    if kind == "voila":
        command = ["voila", "--no-browser", "--Voila.ip=127.0.0.1", f"--port={port}", str(folder)]
    else:
        command = ["jupyter_server", *common, "--allow-root", "--IdentityProvider.token=", "--ServerApp.password=",
                   "--ServerApp.disable_check_xsrf=True", f"--ServerApp.root_dir={folder}"]  # fmt: skip
    environment = {
        **os.environ,
        "JUPYTER_RUNTIME_DIR": str(folder.parent / "runtime"),
        "MLSYS_LAB_STATE": "",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    log = folder.parent / "server.log"
    with log.open("wb") as out:
        running = subprocess.Popen(
            [sys.executable, "-m", *command], env=environment, stdout=out, stderr=out, cwd=folder
        )
    address = f"http://127.0.0.1:{port}"
    try:
        began = time.monotonic()
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if running.poll() is not None or time.monotonic() - began > PATIENCE:
                raise RuntimeError(f"{kind} did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.2)
        yield address
    finally:
        for process in [*psutil.Process(running.pid).children(recursive=True), running]:
            process.kill()
        running.wait()


@dataclass
class Student:
    """One student with a notebook, a kernel, and what was done so far."""

    name: str
    address: str
    notebook: str
    kind: str
    rng: random.Random
    kernel: str = ""
    states: dict[str, dict[str, Any]] = field(default_factory=dict)
    wanted: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    pictures: list[float] = field(default_factory=list)
    actions: int = 0

    # --- the wire ------------------------------------------------------------------

    async def get(self, path: str, method: str = "GET", body: Any = None) -> bytes:
        """Return what the server answers to a request."""
        content = None if body is None else json.dumps(body)
        request = HTTPRequest(f"{self.address}/{path}", method=method, body=content, request_timeout=PATIENCE,
                              connect_timeout=PATIENCE, allow_nonstandard_methods=True)  # fmt: skip
        return (await AsyncHTTPClient().fetch(request)).body

    async def connect(self) -> None:
        """Open the WebSocket of the kernel, as a page does when it is loaded."""
        place = f"{self.address.replace('http', 'ws', 1)}/api/kernels/{self.kernel}/channels"
        self.session = uuid.uuid4().hex
        self.socket = await websocket_connect(f"{place}?session_id={self.session}", connect_timeout=PATIENCE,
                                              max_message_size=200_000_000)  # fmt: skip

    async def send(self, channel: str, kind: str, content: dict[str, Any], **metadata: str) -> str:
        """Send a message to the kernel, and return its id."""
        ident = uuid.uuid4().hex
        header = {"msg_id": ident, "msg_type": kind, "username": "", "session": self.session, "version": "5.3"}
        message = {"header": header, "parent_header": {}, "metadata": metadata, "content": content, "channel": channel}
        await self.socket.write_message(json.dumps({**message, "buffers": []}))
        return ident

    async def until_idle(self, ident: str) -> list[dict[str, Any]]:
        """Read messages until the kernel is done with a message, and return all of them."""
        read = []
        while True:
            raw = await asyncio.wait_for(self.socket.read_message(), PATIENCE)
            if raw is None:
                raise ConnectionError("the server closed the WebSocket")
            message = json.loads(raw) if isinstance(raw, str) else unpacked(raw)
            self._take(message)
            read.append(message)
            of = message.get("parent_header", {}).get("msg_id")
            if of == ident and message["content"].get("execution_state") == "idle":
                return read

    def _take(self, message: dict[str, Any]) -> None:
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "error" or (kind == "execute_reply" and content.get("status") == "error"):
            self.errors.append(f"{content.get('ename')}: {content.get('evalue')}")
        elif kind == "stream" and content.get("name") == "stderr":
            self.errors.append(f"stderr: {content['text'][:300]}")
        elif kind == "comm_open" and content.get("target_name") == "jupyter.widget":
            self.states[content["comm_id"]] = content["data"].get("state", {})
        elif kind == "comm_msg" and content["data"].get("method") in ("update", "echo_update"):
            self.states.setdefault(content["comm_id"], {}).update(content["data"]["state"])

    async def tell(self, model: str, data: dict[str, Any]) -> None:
        """Send a message of a widget, and wait until the kernel has dealt with it."""
        before = self.picture
        began = time.perf_counter()
        await self.until_idle(await self.send("shell", "comm_msg", {"comm_id": model, "data": data}))
        self.actions += 1
        if self.picture != before:
            self.pictures.append(1e3 * (time.perf_counter() - began))

    # --- the page ------------------------------------------------------------------

    async def open(self) -> None:
        """Open the notebook and run all cells."""
        if self.kind == "voila":
            page = (await self.get(f"voila/render/{self.notebook}")).decode()
            found = re.search(r'"kernelId": *"([^"]+)"', page)
            if found is None:
                raise RuntimeError("the page of Voilà names no kernel")
            self.kernel = found[1]
            if "Traceback" in page:
                self.errors.append("a cell failed in the page of Voilà")
            await self.connect()
            await self.reread()
            return
        body = {"path": self.notebook, "type": "notebook", "name": "", "kernel": {"name": "python3"}}
        self.kernel = json.loads(await self.get("api/sessions", "POST", body))["kernel"]["id"]
        await self.connect()
        await self.run_cells()

    async def run_cells(self) -> None:
        """Run the code cells of the notebook."""
        content = json.loads(await self.get(f"api/contents/{self.notebook}?content=1"))["content"]
        for cell in content["cells"]:
            if cell["cell_type"] == "code":
                code = cell["source"]
                request = {"code": code, "silent": False, "store_history": True, "user_expressions": {},
                         "allow_stdin": False, "stop_on_error": True}  # fmt: skip
                await self.until_idle(await self.send("shell", "execute_request", request))

    async def reread(self) -> None:
        """Ask the kernel for the state of all widgets, as a page does that was loaded again."""
        self.states = {}
        control = uuid.uuid4().hex
        opening = {"comm_id": control, "target_name": "jupyter.widget.control", "data": {}}
        await self.until_idle(await self.send("shell", "comm_open", opening, version="1.0.0"))
        request = {"comm_id": control, "data": {"method": "request_states"}}
        for message in await self.until_idle(await self.send("shell", "comm_msg", request)):
            if message["header"]["msg_type"] == "comm_msg" and message["content"]["comm_id"] == control:
                states = message["content"]["data"].get("states", {})
                self.states = {model: each["state"] for model, each in states.items()}

    async def reload(self) -> None:
        """Close the page and open it again."""
        self.socket.close()
        await self.connect()
        await self.reread()

    def models(self, kind: str, described: str = "") -> list[str]:
        """Return the widgets of a kind, in the order in which they were made."""
        return [model for model, state in self.states.items()
                if state.get("_model_name") == kind and described in str(state.get("description", ""))]  # fmt: skip

    @property
    def picture(self) -> str:
        """The picture as the page shows it."""
        htmls = (
            str(state.get("value", "")) for state in self.states.values() if state.get("_model_name") == "HTMLModel"
        )
        return next((each for each in htmls if each.startswith("<img")), "")

    async def set(self, model: str, **values: Any) -> None:
        """Set values of a widget, and remember them."""
        self.wanted.setdefault(model, {}).update(values)
        self.states[model].update(values)
        await self.tell(model, {"method": "update", "state": values, "buffer_paths": []})

    async def press(self, label: str, nth: int = 0) -> None:
        """Press a button."""
        model = self.models("ButtonModel", label)[nth]
        await self.tell(model, {"method": "custom", "content": {"event": "click"}})

    # --- the work ------------------------------------------------------------------

    async def work(self, seconds: float, think: float) -> None:
        """Predict, explore, answer, design and reload for some time."""
        [naming] = self.models("TextModel", "Your name or id")
        await self.set(naming, value=self.name)
        await self.press("Use my numbers")
        fields = [*self.models("RadioButtonsModel", "Your prediction"), *self.models("TextModel", "Your prediction")]
        await self.answer(fields[0])
        await self.press("Lock in my prediction")
        if not any(self.name in str(state.get("value")) for state in self.states.values()):
            self.errors.append("the page does not state the name")
        end, reloaded = time.monotonic() + seconds, False
        while time.monotonic() < end:
            await asyncio.sleep(self.rng.uniform(0.2, 1.8) * think)
            await self.rng.choices([self.move, self.try_answer, self.design], [6, 3, 1])[0]()
            if not reloaded and time.monotonic() > end - seconds / 2:
                await self.reload()
                reloaded = True
        await self.reload()

    async def answer(self, model: str) -> None:
        """Give some answer in a field."""
        state = self.states[model]
        if "_options_labels" in state:
            await self.set(model, index=self.rng.randrange(len(state["_options_labels"])))
        else:
            await self.set(model, value=f"{self.rng.uniform(1, 90):.3g}")

    async def move(self) -> None:
        """Move a slider or choose from a list of the panel."""
        open_ = [model for model in (*self.models("SelectionSliderModel"), *self.models("DropdownModel"))
                 if not self.states[model].get("disabled") and not self._is_answer_list(model)]  # fmt: skip
        if open_:
            await self.answer(self.rng.choice(open_))

    async def try_answer(self) -> None:
        """Answer a question and have it checked."""
        buttons = self.models("ButtonModel", "Check my answer")
        fields = [*self.models("RadioButtonsModel", "Your answer"), *self.models("TextModel", "Your answer")]
        if fields:
            await self.answer(self.rng.choice(fields))
            await self.press("Check my answer", self.rng.randrange(len(buttons)))

    async def design(self) -> None:
        """Choose a design, have it scored, and write a reason."""
        for model in self.models("DropdownModel"):
            if self._is_answer_list(model):
                await self.set(model, index=self.rng.randrange(1, len(self.states[model]["_options_labels"])))
        for model in self.models("TextareaModel", "Your reason"):
            await self.set(model, value=f"{self.name} compared {self.rng.randint(2, 99)} of them.")
        if self.models("ButtonModel", "Score my design"):
            await self.press("Score my design")

    def _is_answer_list(self, model: str) -> bool:
        """Return whether a list belongs to a design or a claim, whose first entry is no answer."""
        return list(self.states[model].get("_options_labels", [""]))[:1] == ["choose"]

    def lost(self) -> list[str]:
        """Return what is not as it was set last."""
        return [f"{self.states.get(model, {}).get('description')}: {name} is {self.states.get(model, {}).get(name)!r}, "
                f"was set to {value!r}" for model, values in self.wanted.items() for name, value in values.items()
                if self.states.get(model, {}).get(name) != value]  # fmt: skip


def unpacked(raw: bytes) -> dict[str, Any]:
    """Return a message that came with buffers, without them."""
    count = int.from_bytes(raw[:4], "big")
    ends = [int.from_bytes(raw[4 * at : 4 * at + 4], "big") for at in range(1, count + 1)]
    return dict(json.loads(raw[ends[0] : ends[1] if count > 1 else None]))


async def restarted(student: Student, folder: Path) -> list[str]:
    """Restart the kernel, run the cells again, and return what did not come back."""
    kept = json.loads(next((folder / student.name).glob("*.state.json")).read_text("utf-8"))
    await student.get(f"api/kernels/{student.kernel}/restart", "POST", {})
    student.socket.close()
    await student.connect()
    student.states = {}
    await student.run_cells()
    [naming] = student.models("TextModel", "Your name or id")
    faults = [] if kept["student"] == student.name else [f"the file is that of {kept['student']!r}"]
    if student.states[naming]["value"] != student.name:
        faults.append("the name did not come back")
    reasons = {each["reason"] for each in kept["designs"].values()}
    shown = {student.states[model]["value"] for model in student.models("TextareaModel", "Your reason")}
    return faults + ([] if reasons == shown else [f"reasons {reasons} came back as {shown}"])


async def session(
    kind: str, address: str, folder: Path, notebooks: list[str], seconds: float, think: float
) -> list[Student]:
    """Let all students work at once."""
    students = [
        Student(f"student-{n:02}", address, name, kind, random.Random(n)) for n, name in enumerate(notebooks, 1)
    ]

    async def one(student: Student) -> None:
        try:
            await student.work(seconds, think)
            student.errors += student.lost()
            if kind == "jupyter":
                student.errors += await restarted(student, folder)
        except Exception as error:
            student.errors.append(f"{type(error).__name__}: {error}")

    await asyncio.gather(*(student.open() for student in students))
    print(f"all {len(students)} notebooks are open", flush=True)
    await asyncio.gather(*map(one, students))
    return students


def at_once(kind: str, count: int, labs: list[str], seconds: float, think: float = 2.0) -> list[Student]:
    """Return the students after they worked on one server for some time."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "labs"
        folder.mkdir()
        notebooks = []
        for number in range(1, count + 1):
            name = labs[(number - 1) % len(labs)]
            place = folder if kind == "voila" else folder / f"student-{number:02}"
            place.mkdir(exist_ok=True)
            copy = place / f"{name}.ipynb"
            if not copy.exists():
                shutil.copy(ROOT / "labs" / copy.name, copy)
                _without_outputs(copy)
            notebooks.append(str(copy.relative_to(folder)))
        with server(kind, folder) as address:
            students = asyncio.run(session(kind, address, folder, notebooks, seconds, think))
        log = (Path(home) / "server.log").read_text(errors="replace")
        failed = [line for line in log.splitlines() if re.search(r"Traceback|\[E ", line)]
        if failed:
            students[0].errors.append(f"the server's log: {failed[0]}")
        return students


def _without_outputs(path: Path) -> None:
    content = nbformat.read(path, as_version=4)
    for cell in content.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    nbformat.write(content, path)


def main() -> int:
    """Print a row for each student, and return whether anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=("jupyter", "voila"), default="jupyter")
    parser.add_argument("--students", type=int, default=10)
    parser.add_argument("--labs", nargs="*", default=["03-memory-wall"], help="labs, dealt out in turn")
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    students = at_once(given.server, given.students, given.labs, given.seconds)
    for student in students:
        shares = np.percentile(student.pictures, [50, 95]) if student.pictures else [float("nan")] * 2
        print(
            f"{student.name} {student.notebook:32} {student.actions:4} actions, {len(student.pictures):4} pictures, "
            f"p50 {shares[0]:5.0f} ms, p95 {shares[1]:5.0f} ms, {len(student.errors)} faults"
        )
        for fault in student.errors[:5]:
            print(f"    {fault}")
    print(f"load of the machine {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores")
    return int(any(student.errors for student in students))


if __name__ == "__main__":
    sys.exit(main())
