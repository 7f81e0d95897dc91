"""The notebooks of the book, in the order of its table of contents."""

import re
from pathlib import Path

from labbook import paths
from labbook.checks import did_you_mean, load_yaml
from labbook.errors import InputError
from labbook.study.parameters.notebook import read, source, tags

_NOTEBOOK = re.compile(r"^(?:\./)?notebooks/([^/]+?)(?:\.ipynb)?$")


def studies() -> list[str]:
    """Names of all notebooks: those of `_toc.yml` in its order, then the others by name."""
    found = {path.stem for path in (paths.checkout() / "notebooks").glob("[!.]*.ipynb")}
    listed = in_book()
    return [name for name in listed if name in found] + sorted(found - set(listed))


def in_book() -> list[str]:
    """Names of the studies that `_toc.yml` lists, whether their notebooks exist or not."""
    names = []
    for entry in toc_files(load_yaml(paths.checkout() / "_toc.yml")):
        match = _NOTEBOOK.match(entry)
        if match:
            names.append(match.group(1))
    return names


def toc_files(part):
    """Yield every file that a table of contents names, in order."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key in ("root", "file"):
                yield str(value)
            else:
                yield from toc_files(value)
    elif isinstance(part, list):
        for entry in part:
            yield from toc_files(entry)


def selected(names) -> list[str]:
    """The named studies in the book's order, all when none is named; InputError for others."""
    known = studies()
    wanted = [Path(name).stem if name.endswith(".ipynb") else name for name in names]
    for name in wanted:
        if name not in known:
            raise no_study(name, known)
    return [name for name in known if name in wanted or not wanted]


def parts(study: str) -> dict[str, bool]:
    """The three places of a study, from the checkout's root, and whether each is there."""
    root = paths.checkout()
    return {place: (root / place).exists() for place in (
        f"data/papers/{study}", f"notebooks/{study}.ipynb", f"lib/labbook/papers/{study}")}


def no_study(name: str, known) -> InputError:
    """The error for a study that is not among `known`: it says which parts of it are missing."""
    has = parts(name) if re.fullmatch(r"\w+", name) else {}
    if any(has.values()):
        there, missing = ([part for part in has if has[part] is wanted] for wanted in (True, False))
        return InputError(f"study {name!r} is incomplete: {' and '.join(there)} "
                          f"{'exist' if len(there) > 1 else 'exists'}, {' and '.join(missing)} "
                          f"{'are' if len(missing) > 1 else 'is'} missing")
    return InputError(f"no study {name!r}{did_you_mean(name, known)}", allowed=known)


def joined(text) -> str:
    """A text of a notebook's file, which is one string or a list of lines."""
    return text if isinstance(text, str) else "".join(text)


def title(notebook: dict) -> str | None:
    """The first heading of a notebook, as the book's contents show it."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            heading = re.search(r"^#\s+(.+?)\s*$", source(cell), re.MULTILINE)
            if heading:
                return heading.group(1)
    return None
