"""A headless Chromium without a network, for tests of what an HTML report does where it is read."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parent / "assets" / "axe.min.js.gz"
AXE_SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
CHROMIUM = next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)
DRIVER = shutil.which("chromedriver") or shutil.which("chromium.chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
LOADED_S = 60.0
"""Seconds in which a report has to be drawn: a failure after that, never a pause."""


def required() -> None:
    """Skip the test, saying why, where there is no browser to run it in."""
    pytest.importorskip("selenium", reason="selenium is not installed: make setup")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromium-driver are not installed: make browser, as root on Debian or Ubuntu")


@contextmanager
def browser(width: int = 1280, height: int = 900) -> Iterator[Any]:
    """A driver of a new browser with a profile of its own."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(prefix="gpubench-browser-", ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        try:
            driver.set_script_timeout(LOADED_S)
            yield driver
        finally:
            driver.quit()


def show(driver: Any, page: Path) -> None:
    """Open a report from the disk and wait until it is drawn."""
    from selenium.webdriver.support.wait import WebDriverWait

    driver.get(page.as_uri())
    WebDriverWait(driver, LOADED_S, 0.05).until(
        lambda it: it.execute_script("return document.documentElement.dataset.ready !== undefined")
    )


def said(driver: Any) -> list[str]:
    """What the console has said since it was last asked: errors, refusals, warnings."""
    return [entry["message"] for entry in driver.get_log("browser")]


def media(driver: Any, medium: str = "", **features: str) -> None:
    """Have the page believe in a medium and in features such as prefers_color_scheme."""
    listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": medium, "features": listed})


def phone(driver: Any) -> None:
    """A screen of 360 by 740 CSS pixels, as a small phone has it."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    )


def violations(driver: Any, but: str | None = None) -> list[Mapping[str, Any]]:
    """What axe finds wrong with a page, `but` in what a selector names: WCAG 2.2 A and AA, and its best practices."""
    source = gzip.decompress(AXE.read_bytes())
    assert hashlib.sha256(source).hexdigest() == AXE_SHA256
    driver.execute_script(source.decode())
    found: list[Mapping[str, Any]] = driver.execute_async_script(
        """
        const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
        const short = ({ id, help, nodes }) => ({ rule: id, help, nodes: nodes.slice(0, 5).map((node) => node.html) });
        const where = { include: [["html"]], exclude: arguments[0] === null ? [] : [[arguments[0]]] };
        axe.run(where, { runOnly: tags, resultTypes: ["violations"] })
          .then((found) => arguments[1](found.violations.map(short)))
          .catch((error) => arguments[1]([{ rule: "axe itself", help: String(error), nodes: [] }]));
        """,
        but,
    )
    return found
