"""The built book; built here from whatever records there are when it is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

from labbook import paths

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def book() -> Path:
    """Folder of the built book. Building it takes no lab."""
    html = paths.build_dir() / "html"
    if not (html / "index.html").exists():
        done = subprocess.run([Path(sys.executable).with_name("labbook"), "book"],
                              cwd=paths.checkout(), capture_output=True, text=True, timeout=600)
        assert (html / "index.html").exists(), done.stdout + done.stderr
    return html


@pytest.fixture(scope="session")
def pages(book) -> list[Path]:
    """Every page of the book, without those that only send the reader on."""
    found = [page for page in sorted(book.rglob("*.html")) if "_static" not in page.parts]
    return [page for page in found if 'http-equiv="Refresh"' not in page.read_text()]


@pytest.fixture(scope="session")
def driver():
    from browser import browser

    with browser() as driver:
        yield driver
