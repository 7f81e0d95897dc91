"""The whole book as one PDF: sphinx writes one long page, and Chromium prints it."""

import re
import shutil
import subprocess
import sys
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
_DOCUMENT = re.compile(r'<span id="document-([^"]+)"></span>')
_LINK = re.compile(r'(<a\b[^>]*?) href="([^"]*)"')
_ID = re.compile(r'(?<=\s)id="([^"]+)"')
_USE = re.compile(r'((?<=\s)id="|<use\b[^>]*? href="#|url\(#)([^")]+)')     # where a figure's and a page's ids stand


def build() -> Path:
    """Write build/labbook.pdf, of the pages that the book was built from last, and return it. LabError without
    Chromium, LabbookError if either step fails."""
    browser = program()
    with book.alone():
        made = book.sphinx(stage.folder(), "singlepage", "--builder", "custom", "--custom-builder", "singlehtml")
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
    """The long page with links from page to page turned into links inside it; other links to files of the book, which
    a PDF cannot follow, lead nowhere. An id that several of the pages have becomes each page's own, and links stay
    in their page."""
    before, *marked = _DOCUMENT.split(html)
    parts = {"": before} | dict(zip(marked[::2], marked[1::2]))
    ids = {name: set(_ID.findall(text)) | {f"document-{name}"} for name, text in parts.items()}
    owners = {}
    for name in parts:
        for one in ids[name]:
            owners.setdefault(one, []).append(name)
    return "".join(_Part(name, owners).moved(f'<span id="document-{name}"></span>' * bool(name) + text)
                   for name, text in parts.items())


class _Part:
    """A page in the long page. owners: {id: names of the pages that have it}."""

    def __init__(self, name: str, owners: dict):
        self._name, self._owners = name, owners

    def moved(self, text: str) -> str:
        text = _LINK.sub(lambda found: found[1] + self._target(found[2]), text)
        return _USE.sub(lambda found: found[1] + self._own(found[2]), text)

    def _own(self, one: str, page: str | None = None) -> str:
        """What an id is called that a page has, or if it has none such, the first page that has."""
        known = self._owners.get(one, [""])
        page = self._name if page is None else page
        return f"{page.replace('/', '-')}-{one}" if page in known[1:] else one

    def _target(self, address: str) -> str:
        if re.match(r"[a-z]+:", address):
            return f' href="{address}"'
        path, _, anchor = address.partition("#")
        page = self._page(path)
        if not path or anchor in self._owners:
            return f' href="#{self._own(anchor, page)}"'
        return f' href="#document-{page}"' if page else ""

    def _page(self, path: str) -> str | None:
        """The page that a path leads to; None if there is none such in the long page."""
        name = re.sub(r"^(\.\./)+", "", path).removesuffix(".html")
        return next((page for page in (name, f"book/{name}")
                     if path.endswith(".html") and f"document-{page}" in self._owners), None)


def _print(browser: str, page: Path, target: Path) -> None:
    log = paths.build_dir() / "logs" / "pdf.log"
    print(f"labbook: printing it as a PDF (log: {log})", file=sys.stderr, flush=True)
    with (tempfile.TemporaryDirectory(prefix="labbook-pdf-", ignore_cleanup_errors=True) as profile,
          open(log, "w") as file):
        out = Path(profile) / "book.pdf"
        command = [browser, *FLAGS, f"--user-data-dir={profile}", f"--print-to-pdf={out}", page.as_uri()]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                  timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            raise LabbookError(f"Chromium did not print the book within {SECONDS} s (log: {log})") from error
        if done.returncode or not out.is_file():
            raise LabbookError(f"Chromium could not print the book (log: {log})\n{book.tail(log.read_text())}")
        pages.write_atomically(target, out.read_bytes())
