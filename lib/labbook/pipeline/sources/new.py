"""`labbook new NAME`: the files of a study that runs at once, to be changed into a paper's own.

The files come from templates/; `${name}`, `${title}` and `${system}` are filled in. A notebook's
template has a line `%% KIND ID [tags=TAG,...]` before each cell.
"""

import fcntl
import json
import re
from contextlib import contextmanager, suppress
from keyword import iskeyword
from pathlib import Path
from string import Template

from labbook import paths
from labbook.atomic_files import open_lock, write_whole
from labbook.errors import InputError
from labbook.pipeline.sources import notebooks

TEMPLATES = Path(__file__).with_name("templates")
# Where each template's file goes, from the checkout's root.
PLACES = {
    "lab.yml": "data/papers/{name}/lab.yml",
    "claims.yml": "data/papers/{name}/claims.yml",
    "full.yml": "data/papers/{name}/full.yml",
    "paper.yml": "data/papers/{name}/paper.yml",
    "printed.csv": "data/papers/{name}/printed.csv",
    "package.py": "lib/labbook/papers/{name}/__init__.py",
    "experiments.py": "lib/labbook/papers/{name}/experiments.py",
    "test_experiments.py": "tests/unit/papers/{name}/test_experiments.py",
    "notebook": "notebooks/{name}.ipynb",
}
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
NAME_LENGTH = 40
NULL = "null"
_CELL = re.compile(r"^%% (markdown|code) ([\w-]+)(?: tags=(\S+))?\n", re.MULTILINE)
_KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
           "language_info": {"name": "python"}}


def new(name: str, system: str = NULL) -> list[Path]:
    """Write the files of a study `name` around `system` and enter it in _toc.yml; the paths written.

    InputError, with nothing written, for a name that cannot be or exists, and for a system that the
    template's workload cannot call. All are written, or after an error none.
    """
    check_system(system)
    _files(name, system)    # what is refused leaves no lock either
    with _alone():
        files = _files(name, system)
        _write(name, files)
    return list(files)


def _files(name, system) -> dict[Path, str]:
    """{path: content} of what is to be written, _toc.yml last. InputError where one is there."""
    check_name(name)
    root = paths.checkout()
    files = {root / place: text for place, text in texts(name, system).items()}
    for path in files:
        if path.exists():
            raise InputError("exists already", file=path)
    toc = root / "_toc.yml"
    return files | {toc: with_chapter(toc.read_text(), name, toc)}


@contextmanager
def _alone():
    """A block in which no other `labbook new` changes _toc.yml."""
    paths.build_dir().mkdir(exist_ok=True)
    with open_lock(paths.build_dir() / ".new.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(name, files) -> None:
    *parts, toc = files
    try:
        for path, text in files.items():
            write_whole(path, lambda file, text=text: file.write(text.encode()))
    except BaseException:
        if toc.read_text() != files[toc]:
            _remove(name, parts)
        raise


def _remove(name, files) -> None:
    for path in files:
        path.unlink(missing_ok=True)
        if path.parent.name == name:
            with suppress(OSError):     # it has other files, or is gone
                path.parent.rmdir()


def check_name(name: str) -> None:
    """InputError for a name that is no Python package of a study, or that any part of one has."""
    if not NAME.fullmatch(name) or len(name) > NAME_LENGTH or iskeyword(name):
        raise InputError(f"{name!r} cannot be a study's name", allowed="lower-case letters, digits "
                         f"and single _ between them, a letter first, {NAME_LENGTH} characters at most")
    there = [place for place, exists in notebooks.parts(name).items() if exists]
    if there or name in notebooks.in_book():
        raise InputError(f"study {name!r} exists: {', '.join(there) or '_toc.yml names it'}")


def check_system(name: str) -> None:
    """InputError for an unknown system, or one that the key-value clients cannot call by itself."""
    from labbook import systems

    if not _fits(name, systems.find(name)):
        fitting = [one for one in systems.names() if _fits(one, systems.find(one))]
        raise InputError(f"the template's clients cannot call {name!r} alone", key="--system",
                         allowed=fitting)


def _fits(name, kind) -> bool:
    from labbook import systems

    return name == NULL or not systems.over_several(kind) and hasattr(kind, "create_table")


def texts(name: str, system: str) -> dict[str, str]:
    """{place: content} of all files, from the checkout's root."""
    known = {"name": name, "system": system, "title": name.replace("_", " ").capitalize()}
    found = {place.format(name=name): Template((TEMPLATES / f"{file}.template").read_text()).substitute(known)
             for file, place in PLACES.items()}
    page = PLACES["notebook"].format(name=name)
    return found | {page: notebook(found[page])}


def notebook(text: str) -> str:
    """The JSON of a notebook from its template, as nbstripout leaves it."""
    parts = _CELL.split(text)[1:]
    cells = [_cell(*parts[at:at + 4]) for at in range(0, len(parts), 4)]
    return json.dumps({"cells": cells, "metadata": _KERNEL, "nbformat": 4, "nbformat_minor": 5},
                      indent=1, ensure_ascii=False) + "\n"


def _cell(kind, cell_id, tags, source) -> dict:
    cell = {"cell_type": kind, "id": cell_id, "metadata": {"tags": tags.split(",")} if tags else {},
            "source": source.strip("\n").splitlines(keepends=True)}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return {key: cell[key] for key in sorted(cell)}


def with_chapter(toc: str, name: str, file) -> str:
    """_toc.yml with a chapter for the study, after the last one of a study; the rest as it is."""
    lines = toc.splitlines()
    last = [number for number, line in enumerate(lines) if re.match(r"\s*- file: notebooks/", line)]
    if not last:
        raise InputError("no chapter is a notebook, so there is no place for another", file=file,
                         allowed="a line such as `- file: notebooks/cms_scalability`")
    indent = lines[last[-1]].partition("-")[0]
    lines.insert(last[-1] + 1, f"{indent}- file: notebooks/{name}")
    return "\n".join(lines) + "\n"
