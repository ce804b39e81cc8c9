"""Time from a change of a control to the new picture in the browser, for every control of every lab.

Each slider, list and check box of a lab takes 20 steps in JupyterLab in a headless Chromium. Printed are percentiles
of the time until the new picture is painted, and the processor time of the kernel for a step, which depends little on
what else the machine does. ``--out`` stores both with the load of the machine.
"""

import argparse
import json
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from playwright.sync_api import ElementHandle, Page, sync_playwright

from mlsys.files import write_text

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "browser")]

import test_labs as labs  # noqa: E402

from conftest import FLAGS  # noqa: E402

STEPS = 20
CONTROLS = ".mlsys-lab .noUi-handle, .mlsys-lab .mlsys-control select, .mlsys-lab .widget-checkbox input"
OF_THE_PICTURE = "node => !node.closest('.mlsys-design, .mlsys-check, .mlsys-predict')"
NAME = """node => (
  node.closest('.widget-checkbox')?.querySelector('label.widget-label-basic') ??
  node.closest('.widget-inline-hbox, .widget-checkbox, .mlsys-control')?.querySelector('.widget-label, label') ?? node
).textContent.trim()"""
STEP = """([control, step]) => new Promise((done) => {
  const picture = document.querySelector('.mlsys-picture');  // the image in it is a new one each time
  const began = performance.now();
  const late = setTimeout(() => { watcher.disconnect(); done(null); }, 20000);
  const watcher = new MutationObserver((_, watch) => {
    watch.disconnect(); clearTimeout(late);
    requestAnimationFrame(() => done(performance.now() - began));
  });
  watcher.observe(picture, { attributes: true, childList: true, subtree: true });
  if (control.tagName === 'SELECT') {
    const last = control.options.length - 1;
    control.selectedIndex = control.selectedIndex < last ? control.selectedIndex + 1 : 0;
    control.dispatchEvent(new Event('change', { bubbles: true }));
  } else if (control.type === 'checkbox') {
    control.click();
  } else {
    const [now, most] = ['now', 'max'].map((name) => Number(control.getAttribute(`aria-value${name}`)));
    control.mlsysBack = now >= most ? true : now <= 0 ? false : control.mlsysBack ?? false;
    const key = control.mlsysBack ? 'ArrowLeft' : 'ArrowRight';
    control.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  }
})"""


def controls(page: Page) -> list[tuple[str, ElementHandle]]:
    """Return the controls of the picture of an open lab, with their names."""
    handles = page.locator(CONTROLS).element_handles()
    return [(str(each.evaluate(NAME)), each) for each in handles if each.evaluate(OF_THE_PICTURE)]


def opened(page: Page) -> None:
    """Lock a prediction and wait for the picture."""
    labs.answer(page.locator(".mlsys-predict").first)
    page.locator(".mlsys-lock").first.click()
    page.wait_for_function(labs.IDLE)
    labs.settled(page, page.locator(".mlsys-picture img").first)


def kernel_seconds(server: int) -> float:
    """Return the processor time that the kernels of a server have taken so far."""
    times = [each.cpu_times() for each in psutil.Process(server).children(recursive=True)]
    return sum(each.user + each.system for each in times)


def measured(page: Page, server: int, steps: int) -> list[dict[str, Any]]:
    """Return for each control of a lab its name, the times of its steps, and the kernel's time for one of them, ms."""
    rows = []
    for name, control in controls(page):
        before, times, unchanged = kernel_seconds(server), [], 0
        for step in range(steps):
            took = page.evaluate(STEP, [control, step])
            if took is None:
                unchanged += 1
            else:
                times.append(float(took))
        page.wait_for_function(labs.IDLE)
        spent = 1e3 * (kernel_seconds(server) - before) / steps
        rows.append({"control": name, "ms": times, "unchanged": unchanged, "kernel_ms": spent})
    return rows


def main() -> None:
    """Print a row for every control, and one for all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labs", nargs="*", default=labs.LABS, help="such as 03-memory-wall; by default all")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path, help="JSON file of the percentiles")
    given = parser.parse_args()
    stored: list[dict[str, Any]] = []
    every: list[float] = []
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        folder = labs.folder.__wrapped__(_Factory(Path(home)))
        started = labs.jupyter.__wrapped__(folder)
        address = next(started)
        server = next(each.pid for each in psutil.Process().children() if "jupyterlab" in " ".join(each.cmdline()))
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        for name in given.labs:
            page = browser.new_page()
            page.set_default_timeout(labs.PATIENCE)
            page.goto(f"{address}/lab/tree/{name}.ipynb?reset")
            page.wait_for_function(labs.READY)
            page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
            page.locator(".mlsys-lock").first.wait_for()
            page.wait_for_function(labs.IDLE)
            opened(page)
            for row in measured(page, server, given.steps):
                every += row["ms"]
                stored.append({"lab": name, **row, **_percentiles(row.pop("ms"))})
                _say(f"{name} {row['control']}", stored[-1])
            page.evaluate(labs.CLOSE)
            page.close()
        if every:
            _say("all", {**_percentiles(every), "kernel_ms": float("nan"), "unchanged": 0})
        browser.close()
        next(started, None)
    if given.out is not None:
        when = datetime.now(UTC).isoformat(timespec="minutes")
        for row in stored:
            row.pop("ms", None)
        record = {"when": when, "load": [round(each, 1) for each in os.getloadavg()], "cores": os.cpu_count(),
                  "steps": given.steps, "rows": stored}  # fmt: skip
        write_text(given.out, json.dumps(record, indent=1) + "\n")


def _percentiles(times: list[float]) -> dict[str, float]:
    if not times:
        return {}
    return {f"p{share}": round(float(np.percentile(times, share)), 1) for share in (50, 95, 100)}


def _say(name: str, row: dict[str, Any]) -> None:
    if "p50" not in row:
        print(f"{name:62} no step moved the picture", flush=True)
        return
    still = f"  {row['unchanged']} steps left the picture as it was" if row["unchanged"] else ""
    print(f"{name:62} p50 {row['p50']:6.0f} ms  p95 {row['p95']:6.0f} ms  most {row['p100']:6.0f} ms  "
          f"kernel {row['kernel_ms']:5.0f} ms{still}", flush=True)  # fmt: skip


class _Factory:
    """Makes folders as pytest's does."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def mktemp(self, name: str) -> Path:
        """Return a new folder."""
        made = self.home / name
        made.mkdir()
        return made


if __name__ == "__main__":
    main()
