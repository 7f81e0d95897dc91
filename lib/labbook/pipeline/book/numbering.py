"""Numbers of a page's figures and tables, in the order in which a reader meets them.

A figure or table that is glued into the text is met there, not where it was made. Each gets an id, `figure-3`
or `table-3`, to which its number is a link. Tables of verdicts have none: their claims have names.

Text refers to one by a link to the id of the code cell that makes it, `[the figure below](#saved-figure)`, or to
the name by which it is glued. On the page that is a link to the first figure or table of it, with its number.
"""

import re
from itertools import count

from labbook.pipeline.book import glued
from labbook.pipeline.sources import notebooks

_FIGURE = re.compile(r'<figure class="labbook-figure">.*?</figure>', re.DOTALL)
_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\(#(?P<name>[\w-]+)\)")
_TABLE = re.compile(r'(?:<summary>Table of (?P<rows>\d+) rows: [^<]*</summary>)?'
                    r'<div class="labbook-scroll"[^>]*aria-label="(?P<label>[^"]*)">'
                    r'<table class="labbook-table(?: numbers)?">(?P<caption><caption>)?')


class Numbers:
    """The counters of one page."""

    def __init__(self, names=()):
        """names: what text may refer to, made or not."""
        self._names = set(names)
        self._figures, self._tables = count(1), count(1)
        self.places = {}        # {id of a cell or name of what is glued: ("figure-3", "Figure 3")}
        self._made = None       # the first of what is being numbered

    def number(self, output: dict, *names: str) -> None:
        """Number the figures and tables of an output, in place, which text may refer to by these names."""
        self._made = None
        self._number(output.get("data", {}))
        if self._made:
            for name in names:
                self.places.setdefault(name, self._made)

    def refer(self, text: str) -> str:
        """Markdown in which references are links with numbers; those to what was not made are their text alone."""
        return _LINK.sub(self._link, text)

    def _link(self, found) -> str:
        if found["name"] not in self.places:
            return found["text"] if found["name"] in self._names else found[0]
        place, label = self.places[found["name"]]
        return f'<a href="#{place}">{label}</a>'

    def _number(self, data: dict) -> None:
        if "text/html" in data:
            text = notebooks.joined(data["text/html"])
            data["text/html"] = _TABLE.sub(self._table, _FIGURE.sub(self._figure, text))

    def _figure(self, found) -> str:
        text = found[0]
        if "<svg" not in text:          # nothing was drawn
            return text
        number = next(self._figures)
        self._made = self._made or (f"figure-{number}", f"Figure {number}")
        link = f'<a class="lb-number" href="#figure-{number}">Figure {number}</a>'
        text = text.replace('<figure class="labbook-figure">',
                            f'<figure class="labbook-figure" id="figure-{number}">', 1)
        if "<figcaption>" in text:
            return text.replace("<figcaption>", f"<figcaption>{link}: ", 1)
        return text.replace("</figure>", f"<figcaption>{link}</figcaption></figure>")

    def _table(self, found) -> str:
        number = next(self._tables)
        self._made = self._made or (f"table-{number}", f"Table {number}")
        link = f'<a class="lb-number" href="#table-{number}">Table {number}</a>'
        text = found[0].replace('<table class="', f'<table id="table-{number}" class="', 1)
        if found["rows"]:
            text = text.replace(f"Table of {found['rows']} rows:", f"Table {number}, {found['rows']} rows:", 1)
        return f"{text}{link}: " if found["caption"] else f"{text}<caption>{link}: {found['label']}</caption>"


def number(cells: list[dict]) -> None:
    """Number the figures and tables of a page's cells, in place, and what their text refers to."""
    numbers, waiting = Numbers(cell.get("id") for cell in cells if cell["cell_type"] == "code"), glued.outputs(cells)
    for cell in cells:
        if cell["cell_type"] == "markdown":
            for name in glued.blocks(notebooks.source(cell)):
                if name in waiting:
                    output, made_in = waiting.pop(name)
                    numbers.number(output, made_in.get("id", name), name)
        elif "remove-cell" not in notebooks.tags(cell):
            for output in cell.get("outputs", []):
                if not glued.is_record(output):
                    numbers.number(output, cell.get("id", ""))
    for cell in cells:
        if cell["cell_type"] == "markdown":
            cell["source"] = numbers.refer(notebooks.source(cell))
