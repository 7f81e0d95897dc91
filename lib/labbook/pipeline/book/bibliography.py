"""The papers as BibTeX, from their paper.yml: what the book's pages cite."""

import re

from labbook import paths
from labbook.claims import paper_file
from labbook.pipeline.sources import notebooks

_SPECIAL = re.compile(r"([&%$#_])")


def papers() -> str:
    """BibTeX of all papers in the book; the key of each is its study."""
    return "\n".join(_entry(study) for study in notebooks.in_book() if (paths.papers(study) / "paper.yml").is_file())


def _entry(study) -> str:
    about = paper_file.load(paths.papers(study) / "paper.yml")
    title = about["title"] + (f" ({about['translation']})" if about.get("translation") else "")
    fields = {"author": " and ".join(map(_author, about.get("authors") or [])), "title": f"{{{_tex(title)}}}",
              "year": about.get("year"), "howpublished": _tex(about.get("affiliation") or ""),
              "note": f"Venue: {_tex(about['venue'])}" if about.get("venue") else None, "doi": about.get("doi"),
              "url": about.get("link")}
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items() if value)
    return f"@misc{{{study},\n{lines}}}\n"


def _author(author) -> str:
    """"Katsuno, Yasuharu": the last name first, so that BibTeX need not guess."""
    first, _, last = str(author.get("romanised") or author["name"]).rpartition(" ")
    return f"{last}, {first}" if first else last


def _tex(text) -> str:
    return _SPECIAL.sub(r"\\\1", str(text))
