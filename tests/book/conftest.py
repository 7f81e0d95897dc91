"""The book of this checkout, built in this run from the published summaries, without a lab."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labbook import paths

sys.path.insert(0, str(Path(__file__).parent))
OURS = {"build", ".git", ".venv"}    # of a checkout, and not of the book
COPIED = {"notebooks"}              # a kernel works in this folder, and its parent is the checkout


@pytest.fixture(scope="session")
def checkout(tmp_path_factory, worker_id) -> Path:
    """A folder with all of the checkout, and a build of its own, in which the book has been built.

    The checkout's own build may be older than its files, so it is neither read nor written. All
    workers of a run share the folder: the first builds, the others wait.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "book-of-this-run"
    folder.mkdir(exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "build" / "html" / "index.html").exists():
            _build(folder)
    return folder


def _build(folder: Path) -> None:
    for part in paths.checkout().iterdir():
        if part.name in COPIED:
            shutil.copytree(part, folder / part.name, dirs_exist_ok=True)
        elif part.name not in OURS and not (folder / part.name).exists():
            (folder / part.name).symlink_to(part)
    published = any((paths.checkout() / "data" / "published").glob("*/*/*.parquet"))
    for command in (["run"], ["book"]) if published else (["book"],):
        done = subprocess.run([sys.executable, "-m", "labbook.cli", *command], cwd=folder,
                              env={**os.environ, "LABBOOK_ROOT": str(folder), "LABBOOK_PUBLISHED": "1"},
                              capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def book(checkout) -> Path:
    """Folder of the built book."""
    return checkout / "build" / "html"


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
