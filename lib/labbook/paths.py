"""Paths of the checkout's folders, and of the user's cache and state."""

import os
import sys
from pathlib import Path

from labbook.errors import InputError

_SOURCE_TREE = Path(__file__).resolve().parents[2]


def checkout() -> Path:
    """The book's root folder: LABBOOK_ROOT if set, the working folder or its nearest parent that is a
    book, or the source tree. InputError when none of them is a book."""
    named = os.environ.get("LABBOOK_ROOT")
    if named:
        return Path(named).absolute()
    for folder in (here := Path.cwd(), *here.parents):
        if _is_book(folder):
            return folder
    if _is_book(_SOURCE_TREE):
        return _SOURCE_TREE
    raise InputError("the working folder is not in a checkout: change to one, or set LABBOOK_ROOT to its path")


def _is_book(folder: Path) -> bool:
    return (folder / "_toc.yml").exists() and (folder / "notebooks").is_dir()


def check_library() -> None:
    """InputError when the checkout contains a library, but Python loaded another one.

    A copied .venv, for example, still loads the library of the checkout it was created in. There is no
    check when LABBOOK_ROOT is set: the user then selected the checkout explicitly.
    """
    here, loaded = checkout(), Path(__file__).resolve().parent
    if os.environ.get("LABBOOK_ROOT"):
        return
    for root in (here, _of_command() or here):
        expected = root / "lib" / "labbook"
        if expected.is_dir() and expected.resolve() != loaded:
            raise InputError(f"this checkout contains the library, but {loaded} was loaded. Type "
                             f"{root}/lib/bootstrap.sh, then use {root}/.venv/bin/labbook", file=expected)


def _of_command() -> Path | None:
    """The checkout in whose .venv the command that runs is; None without one."""
    folder = Path(sys.argv[0] or ".").absolute().parent.parent
    return folder.parent if folder.name == ".venv" else None


def environment(name, what: str, option: str) -> Path:
    """A file that the user names from the working folder or the checkout. InputError with those in environments/.
    what: it is, in words; option: that names it."""
    for path in (Path(os.path.abspath(name)), checkout() / name):
        if path.is_file():
            return path
    there = sorted(str(path.relative_to(checkout())) for path in (checkout() / "environments").glob("*.yml"))
    raise InputError(f"no such {what}", file=name, key=option, allowed=there)


LOCAL = "environments/local.yml"       # where labs run by default: on this machine


def papers(name: str) -> Path:
    """Folder of a study's data: lab.yml, claims.yml, full.yml and others."""
    return checkout() / "data" / "papers" / name


def notebook(name: str) -> Path:
    return checkout() / "notebooks" / f"{name}.ipynb"


def records_dir() -> Path:
    """Folder of records measured on this machine or its hosts; LABBOOK_RECORDS overrides it."""
    return Path(os.environ.get("LABBOOK_RECORDS") or checkout() / "data" / "records").absolute()


def published_dir() -> Path:
    """Folder of published summaries, which are committed."""
    return checkout() / "data" / "published"


def build_dir() -> Path:
    """Folder of generated files: verdicts, executed notebooks, pages."""
    return checkout() / "build"


def cache_dir() -> Path:
    """Folder of files that can be downloaded or built again; LABBOOK_CACHE overrides it."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LABBOOK_CACHE") or Path(home) / "labbook").absolute()


def ssh_labs_dir() -> Path:
    """Folder with the state of labs on the user's hosts; writable without root, survives a reboot."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "labbook" / "labs"


def clouds_dir() -> Path:
    """Folder with the list of resources created on the user's clouds, next to `ssh_labs_dir`."""
    return ssh_labs_dir().with_name("clouds")
