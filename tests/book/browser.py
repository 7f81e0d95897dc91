"""A real browser that reports what a page did: what it asked for, what it complained of."""

import json
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from selenium import webdriver

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1")
HERE = {"file", "data", "blob", "about", "chrome"}
DESK, PHONE = (1280, 900), (375, 700)

PICTURES = """return [...document.images].map(i => ({
    src: i.src.slice(0, 80), alt: i.getAttribute('alt'),
    loaded: i.complete && i.naturalWidth > 0,
    shown: i.getClientRects().length > 0})).concat(
    [...document.querySelectorAll('.labbook-figure svg')].map(i => ({
    src: 'svg', alt: i.getAttribute('aria-label'), loaded: i.getBoundingClientRect().height > 40,
    shown: i.getClientRects().length > 0})))"""
OVERFLOW = """const page = document.documentElement;
    return {width: page.scrollWidth, room: page.clientWidth, wide: [...document.querySelectorAll('body *')]
        .filter(e => e.getBoundingClientRect().right > page.clientWidth + 1 && !e.closest(
            '.labbook-scroll, pre, .pst-scrollable-table-container, dialog, .bd-sidebar-primary, .bd-sidebar-secondary'))
        .slice(0, 5).map(e => e.tagName + '.' + e.className)}"""


@dataclass
class Visit:
    url: str
    title: str = ""
    complaints: list = field(default_factory=list)   # of the console
    abroad: list = field(default_factory=list)       # addresses asked for outside of this machine
    pictures: list = field(default_factory=list)
    overflow: dict = field(default_factory=dict)


@contextmanager
def browser():
    """Headless Chromium with a profile of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="labbook-browser-", ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
        try:
            yield driver
        finally:
            driver.quit()


def size(driver, width_height) -> None:
    """The page's own size: a window of Chromium cannot be as narrow as a phone."""
    width, height = width_height
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})


def open_page(driver, url: str, width_height=DESK) -> None:
    """Open an address afresh, and wait until it is drawn."""
    driver.get("about:blank")
    _drain(driver)
    size(driver, width_height)
    driver.get(url)
    driver.execute_async_script(
        "const done = arguments[0]; document.fonts.ready.then(() => requestAnimationFrame(() => done()))")


def visit(driver, url: str, width_height=DESK) -> Visit:
    """Open an address afresh and see what comes of it."""
    open_page(driver, url, width_height)
    complaints = [entry["message"] for entry in driver.get_log("browser")
                  if entry["level"] in ("SEVERE", "WARNING")]
    return Visit(url, driver.title, complaints, list(_abroad(driver)),
                 driver.execute_script(PICTURES), driver.execute_script(OVERFLOW))


def _drain(driver):
    driver.get_log("browser")
    driver.get_log("performance")


def _abroad(driver):
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            address = message["params"]["request"]["url"]
            if urlsplit(address).scheme not in HERE:
                yield address
