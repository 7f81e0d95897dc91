"""Where things lie: the checkout's folders, the user's cache and state."""

import os
from pathlib import Path

from labbook.errors import InputError

_SOURCE_TREE = Path(__file__).resolve().parents[2]


def checkout() -> Path:
    """The book's root: LABBOOK_ROOT, the nearest parent of the working folder, or the source tree."""
    named = os.environ.get("LABBOOK_ROOT")
    if named:
        return Path(named)
    for folder in (here := Path.cwd(), *here.parents):
        if _is_book(folder):
            return folder
    if _is_book(_SOURCE_TREE):
        return _SOURCE_TREE
    raise InputError("no book here: run from inside a checkout, or set LABBOOK_ROOT to one")


def _is_book(folder: Path) -> bool:
    return (folder / "_toc.yml").exists() and (folder / "notebooks").is_dir()


def check_library() -> None:
    """InputError when the checkout here has a library of its own and another one was loaded: a
    copied .venv still leads to the checkout that it was made in. LABBOOK_ROOT names a book on purpose."""
    here = checkout()
    own, loaded = here / "lib" / "labbook", Path(__file__).resolve().parent
    if not os.environ.get("LABBOOK_ROOT") and own.is_dir() and own.resolve() != loaded:
        raise InputError(f"this checkout has a library of its own, but {loaded} was loaded. Type "
                         f"{here}/lib/bootstrap.sh, then use {here}/.venv/bin/labbook", file=own)


def papers(name: str) -> Path:
    return checkout() / "data" / "papers" / name


def notebook(name: str) -> Path:
    return checkout() / "notebooks" / f"{name}.ipynb"


def records_dir() -> Path:
    return Path(os.environ.get("LABBOOK_RECORDS") or checkout() / "data" / "records")


def published_dir() -> Path:
    return checkout() / "data" / "published"


def build_dir() -> Path:
    return checkout() / "build"


def cache_dir() -> Path:
    """What may be fetched or made again: downloads, seeded data directories."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LABBOOK_CACHE") or Path(home) / "labbook")


def ssh_labs_dir() -> Path:
    """What is written down of labs on hosts of the user's own: needs no root, outlives a reboot."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "labbook" / "labs"


def clouds_dir() -> Path:
    """What is written down of things made on clouds of the user's own, beside `ssh_labs_dir`."""
    return ssh_labs_dir().with_name("clouds")
