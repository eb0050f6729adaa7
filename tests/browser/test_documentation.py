"""The documentation's site in a real browser: it fits a phone, asks nobody else, can be searched and read aloud."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from sweephand.local.settings import CHECKOUT
from tests.browser.conftest import picture

PAGES = (
    "index",
    "guide/first-steps",
    "guide/not-run",
    "concepts/states",
    "concepts/clock-changes",
    "guide/schedules",
    "reference/api",
    "reference/operations/flow-keys",
)
LOOKS = {"wide-dark": (1280, "dark", PAGES[:3]), "phone-light": (390, "light", PAGES)}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Writes nothing."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the built site."""
    built = subprocess.run(["make", "--silent", "site"], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    folder = CHECKOUT / ".cache" / "site"
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize("look", LOOKS)
def test_pages_fit_and_can_be_heard(browser: Browser, site: str, look: str):
    width, scheme, pages = LOOKS[look]
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    serious, wide = {}, {}

    for name in pages:
        page.goto(f"{site}/{name}.html")
        picture(page, f"site-{name.replace('/', '-')}-{look}")
        found = Axe().run(page).response["violations"]
        serious[name] = [
            (each["id"], each["nodes"][0]["html"][:200]) for each in found if each["impact"] in {"serious", "critical"}
        ]
        wide[name] = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    page.close()

    assert {name: each for name, each in serious.items() if each} == {}
    assert {name: by for name, by in wide.items() if by > 0} == {}
    assert [url for url in asked if not url.startswith(site)] == []


def test_a_search_finds_the_page_of_a_reason(browser: Browser, site: str):
    page = browser.new_page()
    page.goto(f"{site}/index.html")

    page.get_by_placeholder("Search").fill("MAX_LATENESS")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="My job did not run").first.wait_for()

    page.close()
