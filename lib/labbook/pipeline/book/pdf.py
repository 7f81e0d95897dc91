"""The whole book as one PDF: sphinx writes one long page, and Chromium prints it."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from labbook import paths
from labbook.errors import LabbookError, LabError
from labbook.pipeline.book import build as book
from labbook.pipeline.book import stage
from labbook.pipeline.executing import pages

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-pdf-header-footer")
SECONDS = 600       # at most; a book of 130 pages takes 20
_LINK = re.compile(r'(<a\b[^>]*?) href="([^"]*)"')
_ID = re.compile(r'\bid="([^"]+)"')


def build() -> Path:
    """Write build/labbook.pdf and return it. LabError without Chromium, LabbookError if either
    step fails."""
    browser = program()
    with book.alone():
        made = book.sphinx(stage.stage(), "singlepage", "--builder", "custom", "--custom-builder", "singlehtml")
        page = made / "singlehtml" / "whole.html"       # links to _static are from here, whatever the root page is
        page.write_text(within((page.parent / "book" / "index.html").read_text()))
        target = paths.build_dir() / "labbook.pdf"
        _print(browser, page, target)
    return target


def program() -> str:
    """The path of Chromium; LabError without it."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if not found:
        raise LabError("a PDF is printed by Chromium, which is not installed",
                       remedy="Type: sudo apt-get install chromium")
    return found


def within(html: str) -> str:
    """The long page with links from page to page turned into links inside it; other links to files of
    the book, which a PDF cannot follow, lead nowhere."""
    ids = set(_ID.findall(html))
    return _LINK.sub(lambda found: found[1] + _target(found[2], ids), html)


def _target(address: str, ids: set) -> str:
    if re.match(r"#|[a-z]+:", address):
        return f' href="{address}"'
    path, _, anchor = address.partition("#")
    if anchor in ids:
        return f' href="#{anchor}"'
    name = re.sub(r"^(\.\./)+", "", path).removesuffix(".html")
    for document in (name, f"book/{name}"):
        if path.endswith(".html") and f"document-{document}" in ids:
            return f' href="#document-{document}"'
    return ""


def _print(browser: str, page: Path, target: Path) -> None:
    log = paths.build_dir() / "logs" / "pdf.log"
    with tempfile.TemporaryDirectory(prefix="labbook-pdf-", ignore_cleanup_errors=True) as profile, open(log, "w") as file:
        out = Path(profile) / "book.pdf"
        command = [browser, *FLAGS, f"--user-data-dir={profile}", f"--print-to-pdf={out}", page.as_uri()]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            raise LabbookError(f"Chromium did not print the book within {SECONDS} s (log: {log})") from error
        if done.returncode or not out.is_file():
            raise LabbookError(f"Chromium could not print the book (log: {log})\n{book.tail(log.read_text())}")
        pages.write_atomically(target, out.read_bytes())
