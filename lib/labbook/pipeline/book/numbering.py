"""Numbers of a page's figures and tables, in the order in which a reader meets them.

A figure or table that is glued into the text is met there, not where it was made. Each gets an id, `figure-3`
or `table-3`, to which its number is a link. Tables of verdicts have none: their claims have names.
"""

import re
from itertools import count

from labbook.pipeline.sources import notebooks

_GLUED_BLOCK = re.compile(r"^`{3,}\{glue(?::[a-z]+)?\} *(\S+)$", re.MULTILINE)
_FIGURE = re.compile(r'<figure class="labbook-figure">.*?</figure>', re.DOTALL)
_TABLE = re.compile(r'(?:<summary>Table of (?P<rows>\d+) rows: [^<]*</summary>)?<div class="labbook-scroll"[^>]*aria-label="(?P<label>[^"]*)">'
                    r'<table class="labbook-table(?: numbers)?">(?P<caption><caption>)?')


class Numbers:
    """The counters of one page."""

    def __init__(self):
        self._figures, self._tables = count(1), count(1)

    def number(self, output: dict) -> None:
        """Number the figures and tables of an output, in place."""
        data = output.get("data", {})
        if "text/html" in data:
            text = data["text/html"]
            text = "".join(text) if isinstance(text, list) else text
            data["text/html"] = _TABLE.sub(self._table, _FIGURE.sub(self._figure, text))

    def _figure(self, found) -> str:
        text = found[0]
        if "<svg" not in text:          # nothing was drawn
            return text
        number = next(self._figures)
        link = f'<a class="lb-number" href="#figure-{number}">Figure {number}</a>'
        text = text.replace('<figure class="labbook-figure">', f'<figure class="labbook-figure" id="figure-{number}">', 1)
        if "<figcaption>" in text:
            return text.replace("<figcaption>", f"<figcaption>{link}: ", 1)
        return text.replace("</figure>", f"<figcaption>{link}</figcaption></figure>")

    def _table(self, found) -> str:
        number = next(self._tables)
        link = f'<a class="lb-number" href="#table-{number}">Table {number}</a>'
        text = found[0].replace('<table class="', f'<table id="table-{number}" class="', 1)
        if found["rows"]:
            text = text.replace(f"Table of {found['rows']} rows:", f"Table {number}, {found['rows']} rows:", 1)
        return f"{text}{link}: " if found["caption"] else f"{text}<caption>{link}: {found['label']}</caption>"


def number(cells: list[dict]) -> None:
    """Number the figures and tables of a page's cells, in place."""
    numbers, glued = Numbers(), {}
    for cell in cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            if name:
                glued[name] = output
    for cell in cells:
        if cell["cell_type"] == "markdown":
            for name in _GLUED_BLOCK.findall(notebooks.source(cell)):
                if name in glued:
                    numbers.number(glued.pop(name))
        elif "remove-cell" not in notebooks.tags(cell):
            for output in cell.get("outputs", []):
                if "scrapbook" not in output.get("metadata", {}):
                    numbers.number(output)
