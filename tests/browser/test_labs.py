"""Each lab in JupyterLab, as a reader uses it: predict, lock in, move a slider, answer a question."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from pages import ROOT

pytestmark = pytest.mark.browser

LABS = sorted(path.stem for path in (ROOT / "labs").glob("[0-9]*.ipynb"))
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},  # every cell is in the page
}
PATIENCE = 600_000  # milliseconds until a thing that does not come counts as missing, however busy the machine is
READY = "() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.isReady === true"
OPEN = """async (path) => {
    const { commands, shell } = window.jupyterapp;
    const panel = await commands.execute("docmanager:open", { path, factory: "Notebook" });
    shell.activateById(panel.id);
    await panel.context.ready;
}"""
CLOSE = """async () => {
    for (const panel of [...window.jupyterapp.shell.widgets("main")]) {
        await panel.sessionContext?.shutdown();
        panel.dispose();
    }
}"""
IDLE = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the labs."""
    copied = tmp_path_factory.mktemp("jupyter") / "labs"
    return Path(shutil.copytree(ROOT / "labs", copied, ignore=shutil.ignore_patterns("*.state.json")))


@pytest.fixture(scope="module")
def jupyter(folder: Path) -> Iterator[str]:
    """Return the address of a JupyterLab on the copy of the labs."""
    home = folder.parent
    for name, values in SETTINGS.items():
        file = home / "settings" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    port = free_port()
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"),
        *("--IdentityProvider.token=", "--ServerApp.password=", "--LabApp.expose_app_in_browser=True"),
        f"--ServerApp.root_dir={folder}",
    ]
    environment = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
    }
    log = home / "jupyter.log"
    with log.open("wb") as out:
        server = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(f"{address}/api", server, log)
        yield address
    finally:
        for process in [*psutil.Process(server.pid).children(recursive=True), server]:
            process.kill()  # nothing of theirs is wanted, and a server that is to end waits for each kernel
        server.wait()


def wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers."""
    while server.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except OSError:
            time.sleep(0.25)
        else:
            return
    pytest.fail(f"JupyterLab did not start:\n{log.read_text(errors='replace')[-3000:]}")


@pytest.fixture(scope="module")
def desk(jupyter: str, context: BrowserContext) -> Iterator[Page]:
    """Return JupyterLab, in which each lab is opened: to load it takes longer than most labs."""
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{jupyter}/lab?reset")
    page.wait_for_function("() => window.jupyterapp !== undefined")
    page.evaluate("() => window.jupyterapp.restored.then(() => null)")
    yield page
    page.close()


@pytest.fixture(params=LABS)
def lab(request: pytest.FixtureRequest, folder: Path, desk: Page) -> Iterator[Page]:
    """Return a lab with all its cells run, and nothing kept of an earlier test."""
    for kept in folder.glob("*.state.json"):
        kept.unlink()
    desk.evaluate(OPEN, f"{request.param}.ipynb")
    desk.wait_for_function(READY)
    desk.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells').then(() => null)")
    desk.wait_for_function(IDLE)
    expect(desk.locator(".mlsys-lock").first).to_be_visible(timeout=PATIENCE)
    desk.wait_for_function(IDLE)  # cells below the lab may still compute
    yield desk
    desk.evaluate(CLOSE)


def answer(part) -> None:
    """Give some answer to a prediction or a question."""
    choices = part.locator("input[type=radio]")
    if choices.count():
        choices.first.check()
    elif part.locator("select").count():
        part.locator("select").first.select_option(index=1)
    else:
        field = part.locator("input[type=text], input[type=number]").first
        field.fill("2")
        field.press("Tab")


def settled(lab: Page, picture: Locator) -> str:
    """Return what the picture shows once it no longer changes by itself."""
    shown, since = "", 0
    while since < 3:
        lab.wait_for_function(IDLE)
        before, shown = shown, picture.get_attribute("src") or ""
        since = since + 1 if shown == before != "" else 0
        lab.wait_for_timeout(300)
    return shown


def first_control(lab: Page) -> tuple[Locator, bool]:
    """Return the handle of the first slider, or the first list of a lab without sliders, and whether it is a list."""
    expect(lab.locator(".mlsys-lab .mlsys-control").first).to_be_attached()
    sliders, lists = (lab.locator(f".mlsys-lab {kind}") for kind in (".noUi-handle", ".mlsys-control select"))
    return (sliders.first, False) if sliders.count() else (lists.first, True)


def move(control: Locator, listed: bool) -> None:
    """Move a slider by three steps, or choose another entry of a list."""
    if listed:
        chosen = control.evaluate("select => select.selectedIndex")
        control.select_option(index=1 if chosen == 0 else 0)
        return
    at_the_end = control.get_attribute("aria-valuenow") == control.get_attribute("aria-valuemax")
    control.focus()
    for _ in range(3):
        control.press("ArrowLeft" if at_the_end else "ArrowRight")


def is_closed(lab: Page, control: Locator, listed: bool, picture: Locator) -> None:
    """Run All has run every cell by now: the picture is empty, the wrap-up is closed, and no control moves it."""
    expect(lab.locator(".mlsys-lab .mlsys-summary").first).to_have_text("")
    expect(lab.locator(".mlsys-wrap-up")).to_contain_text("opens here when your prediction is locked")
    assert lab.locator(".mlsys-lab .noUi-target:not([disabled])").count() == 0
    if listed:
        expect(control).to_be_disabled()
        return
    before = settled(lab, picture)
    control.press("ArrowRight")
    assert settled(lab, picture) == before


def test_closed_until_predicted_then_explored_and_checked(lab: Page) -> None:
    control, listed = first_control(lab)
    picture = lab.locator(".mlsys-picture img").first
    summary = lab.locator(".mlsys-summary").first
    expect(picture).to_be_visible()
    is_closed(lab, control, listed, picture)
    assert (picture.get_attribute("alt") or "").strip()

    button = lab.locator(".mlsys-lock").first
    expect(button).to_have_text("Lock in my prediction")
    answer(lab.locator(".mlsys-predict").first)
    button.click()
    expect(button).to_be_disabled()

    opened = control if listed else lab.locator(".mlsys-lab .noUi-target").first
    expect(opened).not_to_have_attribute("disabled", re.compile(""))
    lab.wait_for_function(IDLE)  # the sliders open, at values of their own; a first run compiles its loops before
    before, result = settled(lab, picture), summary.inner_text()
    move(control, listed)
    expect(picture).not_to_have_attribute("src", before, timeout=PATIENCE)
    expect(summary).not_to_have_text(result, timeout=PATIENCE)

    question = lab.locator(".mlsys-check").first
    answer(question)
    question.get_by_role("button", name="Check my answer").click()
    expect(question.locator("[role=status]").first).to_contain_text(".")


KEYBOARD = "06-dataflow"  # its questions take radio buttons, sliders, a list and a number
ACTIVE = "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex"
CELLS = "() => window.jupyterapp.shell.currentWidget.content.widgets.map((cell) => cell.model.type)"
IN_LAB = "() => Boolean(document.activeElement.closest('.mlsys-lab'))"


def tab_to(lab: Page, wanted: str, most: int = 60) -> None:
    """Press Tab until the focus is on what a selector names."""
    for _ in range(most):
        if lab.evaluate("(wanted) => document.activeElement.matches(wanted)", wanted):
            return
        lab.keyboard.press("Tab")
    pytest.fail(f"Tab never reached {wanted}")


@pytest.mark.parametrize("lab", [KEYBOARD], indirect=True)
def test_keys_alone_lead_through_a_lab_which_survives_its_kernel(lab: Page) -> None:
    radios = lab.locator(".mlsys-predict input[type=radio]")
    radios.first.focus()
    at, cells = lab.evaluate(ACTIVE), lab.evaluate(CELLS)
    lab.keyboard.press("ArrowDown")
    assert lab.evaluate(ACTIVE) == at, "an arrow key moved the notebook"
    expect(radios.nth(1)).to_be_checked()

    tab_to(lab, ".mlsys-lock")
    lab.keyboard.press("Enter")
    expect(lab.locator(".mlsys-lock").first).to_be_disabled()
    expect(lab.locator(".mlsys-comparison").first).to_contain_text(".")
    lab.wait_for_function(IN_LAB)  # locking closes the button that had the focus
    assert lab.evaluate(ACTIVE) == at

    picture = lab.locator(".mlsys-picture img").first
    before = settled(lab, picture)
    tab_to(lab, ".noUi-handle")
    lab.keyboard.press("ArrowLeft")
    expect(picture).not_to_have_attribute("src", before, timeout=PATIENCE)

    tab_to(lab, ".mlsys-check input[type=text]", most=200)
    lab.keyboard.type("mb 64")  # m and b are commands of the notebook
    assert lab.evaluate(CELLS) == cells
    assert lab.evaluate(ACTIVE) == at
    expect(lab.locator(".mlsys-check input[type=text]").first).to_have_value("mb 64")
    lab.keyboard.press("Control+A")
    lab.keyboard.type("7")
    lab.keyboard.press("Enter")  # checks the answer, once, and the focus stays
    check = lab.locator(".mlsys-check", has=lab.locator("input[type=text]")).first
    expect(check.locator("[role=status]").first).to_contain_text("7 is too small", timeout=PATIENCE)
    assert lab.evaluate("() => document.activeElement.matches('.mlsys-check input[type=text]')")

    comes_back_after_a_restart(lab)


def comes_back_after_a_restart(lab: Page) -> None:
    """Restart the kernel: the lab says that it is dead, and when its cells have run again it knows what was locked."""
    lab.wait_for_function(IDLE)
    lab.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    expect(lab.locator(".mlsys-lab.jupyter-widgets-disconnected").first).to_be_visible(timeout=PATIENCE)
    result = "() => getComputedStyle(document.querySelector('.jupyter-widgets-disconnected'), '::before').content"
    assert "lost its kernel" in lab.evaluate(result)

    lab.wait_for_function(READY)
    lab.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    expect(lab.locator(".mlsys-lab.jupyter-widgets-disconnected")).to_have_count(0, timeout=PATIENCE)
    expect(lab.locator(".mlsys-lock").first).to_be_disabled(timeout=PATIENCE)  # the prediction is still locked
