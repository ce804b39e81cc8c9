"""A headless Chromium that sees only this machine."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NoReturn

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, expect, sync_playwright

from bookplace import TEST_BOOK

HTML = TEST_BOOK.html
expect.set_options(timeout=600_000)  # ms: a busy machine is slow, which is no fault of a page
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


def unavailable(reason: str) -> NoReturn:
    """Skip, or fail where a browser is required."""
    if os.environ.get("CI") == "true" or os.environ.get("MLSYS_REQUIRE_BROWSER"):
        pytest.fail(f"{reason}, and a browser is required here")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return one browser for all tests of a worker."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        unavailable("no chromium on the PATH (tools/ensure_tools.sh says how to get one)")
    with sync_playwright() as playwright:
        try:
            launched = playwright.chromium.launch(executable_path=program, args=FLAGS)
        except Error as error:
            unavailable(f"{program} does not start: {error.message.splitlines()[0]}")
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def outside() -> list[str]:
    """Return the requests for other machines; they are noted and refused."""
    return []


@pytest.fixture(scope="module")
def context(browser: Browser, outside: list[str]) -> Iterator[BrowserContext]:
    """Return a fresh browser profile that cannot leave this machine."""
    profile = browser.new_context(viewport={"width": 1280, "height": 900})

    def refuse(route) -> None:
        outside.append(route.request.url)
        route.abort()

    profile.route(lambda url: not url.startswith(("http://127.0.0.1", "data:", "blob:")), refuse)
    yield profile
    profile.close()


class Quiet(SimpleHTTPRequestHandler):
    """A file server that does not log."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Return the address of the built book."""
    if not (HTML / "index.html").exists():
        pytest.fail("the tests' book is not built: run `python tools/book.py test` first")
    with served(HTML) as address:
        yield address


@contextmanager
def served(html: Path) -> Iterator[str]:
    """Serve a folder on this machine, and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(html)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="session")
def serve() -> Callable[[Path], AbstractContextManager[str]]:
    """Return what serves a folder while it is entered."""
    return served
