"""From a key on a slider to the changed picture, as the browser sees it, for every lab.

Each slider of a lab takes 20 steps in JupyterLab in a headless Chromium; times are printed as percentiles.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests" / "browser")]

import test_labs as labs  # noqa: E402

from conftest import FLAGS  # noqa: E402

STEPS = 20
STEP = """([handle, key]) => new Promise((done) => {
  const picture = document.querySelector('.mlsys-picture');  // the image in it is a new one each time
  const began = performance.now();
  const late = setTimeout(() => done(null), 3000);
  new MutationObserver((_, watch) => {
    watch.disconnect(); clearTimeout(late);
    requestAnimationFrame(() => done(performance.now() - began));
  }).observe(picture, { attributes: true, childList: true, subtree: true });
  handle.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
})"""


def latencies(page: Page) -> list[float]:
    """Return the time of each step of each slider that changed the picture, ms."""
    labs.answer(page.locator(".mlsys-predict").first)
    page.locator(".mlsys-lock").first.click()
    page.wait_for_function(labs.IDLE)
    labs.settled(page, page.locator(".mlsys-picture img").first)
    times = []
    for handle in page.locator(".mlsys-lab .noUi-handle").element_handles():
        for step in range(STEPS):
            key = "ArrowRight" if step % 4 < 2 else "ArrowLeft"
            if (took := page.evaluate(STEP, [handle, key])) is not None:
                times.append(float(took))
    return times


def main() -> None:
    """Print percentiles for every lab, and for all of them."""
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        folder = labs.folder.__wrapped__(_Factory(Path(home)))
        server = labs.jupyter.__wrapped__(folder)
        address = next(server)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        every: list[float] = []
        for name in labs.LABS:
            page = browser.new_page()
            page.set_default_timeout(labs.PATIENCE)
            page.goto(f"{address}/lab/tree/{name}.ipynb?reset")
            page.wait_for_function(labs.READY)
            page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
            page.locator(".mlsys-lock").first.wait_for()
            page.wait_for_function(labs.IDLE)
            times = latencies(page)
            every += times
            _say(name, times)
            page.close()
        _say("all", every)
        browser.close()
        next(server, None)


def _say(name: str, times: list[float]) -> None:
    if not times:
        print(f"{name:22} no slider moved the picture", flush=True)
        return
    p50, p95, most = (np.percentile(times, share) for share in (50, 95, 100))
    print(f"{name:22} {len(times):4} steps  p50 {p50:5.0f} ms  p95 {p95:5.0f} ms  most {most:5.0f} ms", flush=True)


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
