"""The stage, build/stage: the book's sources, with executed notebooks in place of the committed ones.

Only files that differ are written, so that sphinx rereads only these.
"""

import json
import shutil
from pathlib import Path

from labbook import paths
from labbook.errors import InputError
from labbook.pipeline.book import (
    bibliography,
    board,
    compare_page,
    compared,
    disk_models,
    downloads,
    fleet_sizes,
    front,
    points,
    what_held,
)
from labbook.pipeline.book.opening import opening
from labbook.pipeline.book.page_dress import dressed
from labbook.pipeline.executing import pages
from labbook.pipeline.publishing import outcomes
from labbook.pipeline.running import status
from labbook.pipeline.sources import notebooks

GENERATED = "_generated"  # what pages of book/ include: board.md, cards.md, status.md, ...


def stage() -> Path:
    """Update build/stage from the checkout and the pages, and return it."""
    root = paths.checkout()
    wanted = {name: (root / name).read_bytes() for name in ("_config.yml", "_toc.yml")}
    for path in sorted((root / "book").rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            wanted[path.relative_to(root).as_posix()] = path.read_bytes()
    wanted |= _studies()
    _write(folder(), wanted)
    return folder()


def folder() -> Path:
    """Where the pages are that a book is built from."""
    return paths.build_dir() / "stage"


def _studies() -> dict:
    """{path: content} of the studies' pages, their downloads and the tables over all studies."""
    known, wanted, texts, rows = set(notebooks.studies()), {}, {}, {}
    for study in notebooks.in_book():
        if study not in known:
            raise InputError("no such notebook", file=paths.checkout() / "_toc.yml",
                             key=f"notebooks/{study}", allowed=sorted(known))
        note = pages.note(study)
        files = downloads.files(study, note)
        wanted |= {f"{downloads.FOLDER}/{study}/{name}": data for name, data in files.items()}
        point_files = points.files(study, note)
        wanted |= {f"{points.FOLDER}/{study}/{name}": data for name, data in point_files.items()}
        sets = front.sets_line(study) if note.get("published") else ""
        rows[study] = outcomes.of_study(study)
        ending = downloads.ending(study, note, files, points.links(study, point_files))
        page = dressed(_page(study, note), note, ending, sets, opening(study, rows[study]))
        texts[study] = json.dumps(page, ensure_ascii=False, indent=1)
        wanted[f"notebooks/{study}.ipynb"] = texts[study].encode()
        wanted |= _code(study)
    found = {study: of_study for study, of_study in rows.items() if of_study}
    tables = {"summary": front.summary(found), "cards": front.cards(found), "board": board.board(found, texts),
              "compare": compare_page.page(found), "disk_models": disk_models.page(),
              "disk_rounds": disk_models.measured(),
              "compared": compared.page(), "fleet_sizes": fleet_sizes.page(), "fleet_measured": fleet_sizes.measured(),
              "ran": board.ran(texts), "what_held": what_held.page(found),
              "status": board.status([r for r in status.write() if r["study"] in texts])}
    wanted["book/_assets/js/claims_index.js"] = board.search_index(found).encode()
    return wanted | {f"{GENERATED}/papers.bib": bibliography.papers().encode()} | {
        f"{GENERATED}/{name}.md": text.encode() for name, text in tables.items()}


def _code(study) -> dict:
    """{place: content} of the paper's own modules, to which its page links."""
    root = paths.checkout()
    return {path.relative_to(root).as_posix(): path.read_bytes()
            for path in sorted((root / "lib" / "labbook" / "papers" / study).glob("[!_]*.py"))}


def _page(study, note) -> dict:
    executed = pages.page(study)
    return notebooks.read(executed if note and executed.is_file() else paths.notebook(study))


def _write(folder: Path, wanted: dict) -> None:
    """Make a folder contain exactly these files; only those that differ are written."""
    for path in sorted(folder.rglob("*"), reverse=True):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif name not in wanted:
            path.unlink()
    for name, data in wanted.items():
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        if not path.is_file() or path.read_bytes() != data:
            pages.write_atomically(path, data)
