"""The built book. Where there is none it is built, from the published summaries, without a lab."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from labbook import paths

sys.path.insert(0, str(Path(__file__).parent))
OURS = {"build", ".git", ".venv"}    # of a checkout, and not of the book


@pytest.fixture(scope="session")
def book(tmp_path_factory) -> Path:
    """Folder of the built book: the checkout's own if there is one."""
    html = paths.build_dir() / "html"
    return html if (html / "index.html").exists() else _built(tmp_path_factory.mktemp("checkout"))


def _built(folder: Path) -> Path:
    """Build in a folder that has all of the checkout but its build, which stays as it was."""
    for part in paths.checkout().iterdir():
        if part.name not in OURS:
            (folder / part.name).symlink_to(part)
    published = any((paths.checkout() / "data" / "published").glob("*/*.parquet"))
    for command in (["run"], ["book"]) if published else (["book"],):
        done = subprocess.run([Path(sys.executable).with_name("labbook"), *command], cwd=folder,
                              env={**os.environ, "LABBOOK_ROOT": str(folder), "LABBOOK_PUBLISHED": "1"},
                              capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "html"


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
