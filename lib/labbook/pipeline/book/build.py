"""`labbook book`: stage, run jupyter-book, then update build/html; a failed build leaves it alone."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from labbook import paths
from labbook.atomic_files import open_lock
from labbook.errors import LabbookError
from labbook.pipeline.book import stage
from labbook.pipeline.executing import pages
from labbook.pipeline.sources import keys, notebooks

_TAIL_LINES = 25
# Of this interpreter; it ends with labbook, whose lock no longer holds then.
_JUPYTER_BOOK = ("from labbook.pipeline.executing.jupyter_kernel import die_with; die_with({}); "
                 "from jupyter_book.cli.main import main; main()")
_COPIED = ("html/_static/points", "html/_downloads")      # Sphinx copies all of them each time, and removes none


def build() -> Path:
    """Build the book from the executed notebooks and return its first page; LabbookError with the
    relevant lines of the log if the build fails."""
    with alone():
        staged = stage.stage()
        first_page, mark = paths.build_dir() / "html" / "index.html", paths.build_dir() / "book.sha256"
        digest = keys.tree_digest(staged)
        if first_page.is_file() and mark.is_file() and mark.read_text() == digest:
            return first_page
        out = sphinx(staged, "book")
        mark.unlink(missing_ok=True)
        mirror(out / "html", first_page.parent)
        pages.write_atomically(mark, digest)
        return first_page


@contextlib.contextmanager
def alone():
    """A block in which no other labbook builds this checkout's book; waits until one that does has ended,
    and says so."""
    paths.build_dir().mkdir(parents=True, exist_ok=True)
    with open_lock(paths.build_dir() / ".book.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("labbook: another labbook builds this book; waiting until it has ended", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sphinx(staged: Path, name: str, *builder: str) -> Path:
    """Run jupyter-book over the stage into build/NAME and return the folder of what it made, a folder a
    builder; LabbookError with the relevant lines of its log if it fails.

    Sphinx stores what it has read also where it warned of it, and would not warn again: only what a run
    without warnings left is built upon."""
    out, log = paths.build_dir() / name, paths.build_dir() / "logs" / f"{name}.log"
    whole, shape = out / "whole", _shape(staged)
    if out.is_dir() and not (whole.is_file() and whole.read_text() == shape):
        shutil.rmtree(out)
    whole.unlink(missing_ok=True)
    for copied in _COPIED:
        shutil.rmtree(out / "_build" / copied, ignore_errors=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"labbook: building {'the book' if not builder else 'one long page of the book'} (log: {log})",
          file=sys.stderr, flush=True)
    command = [sys.executable, "-c", _JUPYTER_BOOK.format(os.getpid()), "build", str(staged), "--path-output", str(out),
               "--warningiserror", "--keep-going", *builder]
    with open(log, "w") as file:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file,
                              stderr=subprocess.STDOUT, cwd=staged,
                              env={**os.environ, "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"})
    if done.returncode:
        raise LabbookError(f"the book could not be built (log: {log})\n"
                           f"{tail(log.read_text())}")
    whole.write_text(shape)
    return out / "_build"


def _shape(staged: Path) -> str:
    """Digest of what all pages show of each other: the chapters, in their order, and the title of each page. Sphinx
    writes only pages anew that have changed themselves, and removes none."""
    titles = [_first_heading(path) for path in sorted(staged.rglob("*")) if path.suffix in (".md", ".ipynb")]
    return hashlib.sha256(json.dumps([(staged / "_toc.yml").read_text(), titles]).encode()).hexdigest()


def _first_heading(page: Path) -> str:
    text = page.read_text()
    if page.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n".join(map(notebooks.source, cells))
    return next((line for line in text.splitlines() if line.startswith("# ")), page.name)


def failed_pages() -> list[str]:
    """Studies in the book whose page shows a failed run."""
    return [s for s in notebooks.in_book() if pages.note(s).get("state") == pages.FAILED]


def tail(log: str) -> str:
    """The warnings and errors of a log, or its last lines if there are none."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", log).splitlines()
    problems = [line for line in lines if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", line)]
    return "\n".join((problems or lines)[-_TAIL_LINES:])


def mirror(source: Path, target: Path) -> None:
    """Make `target` hold what `source` holds, copying only what differs by size or time."""
    for path in sorted(target.rglob("*"), reverse=True):
        original = source / path.relative_to(target)
        if path.is_dir() and not original.is_dir():
            shutil.rmtree(path)
        elif path.is_file() and not original.is_file():
            path.unlink()
    for original in sorted(source.rglob("*")):
        copy = target / original.relative_to(source)
        if original.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
        elif not _same(original, copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(original, copy)


def _same(a: Path, b: Path) -> bool:
    try:
        one, other = a.stat(), b.stat()
    except FileNotFoundError:
        return False
    return (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
