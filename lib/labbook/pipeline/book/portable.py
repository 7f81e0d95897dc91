"""A page as a notebook that looks right without the book: on GitHub, in an editor, in JupyterLab elsewhere.

Such viewers know none of MyST's roles, and some take style sheets and inline SVG away. So what is glued is put
into the text, and each figure is an image that carries its own data. Pure: notebook in, notebook out.
"""

import base64
import re

from labbook.figures.inline_svg import SVG
from labbook.pipeline.book import glued, numbering
from labbook.pipeline.book.page_dress import NOT_MEASURED, cleaned
from labbook.pipeline.sources import notebooks

_SVG = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_ALT, _WIDTH = re.compile(r' aria-label="([^"]*)"'), re.compile(r"max-width: ?(\d+)px")
_ANCHOR = re.compile(r'<a (?:class="lb-number" )?href="#(?:figure|table)-\d+">([^<]*)</a>')


def portable(notebook: dict) -> dict:
    """An executed notebook, whose run succeeded, for any viewer."""
    notebook = cleaned(notebook, succeeded=True)
    cells = notebook["cells"]
    numbering.number(cells)
    made = {name: output for name, (output, _) in glued.outputs(cells).items()}

    def value(name, _itself):
        return glued.words(made[name]) if name in made else NOT_MEASURED

    def whole(name, itself):
        as_html = glued.data(made[name]).get("text/html") if name in made else None
        return _for_anyone(as_html) if as_html else value(name, itself)

    for cell in cells:
        if cell["cell_type"] == "markdown":
            cell["source"] = _ANCHOR.sub(r"\1", glued.replaced(notebooks.source(cell), value, whole))
        elif "outputs" in cell:
            cell["outputs"] = [_with_images(output) for output in cell["outputs"] if not glued.is_record(output)]
    return notebook


def _with_images(output: dict) -> dict:
    data = output.get("data", {})
    if "text/html" in data:
        data["text/html"] = _for_anyone(notebooks.joined(data["text/html"]))
    return output


def _for_anyone(text: str) -> str:
    return _ANCHOR.sub(r"\1", _SVG.sub(_image, text))


def _image(found) -> str:
    """The figure as an image. Its colours are those for a light page: an image does not see the page's."""
    drawn = found[0]
    alt, width = _ALT.search(drawn), _WIDTH.search(drawn)
    file = drawn.replace("<svg", f'<svg xmlns="{SVG}"', 1)
    attributes = {"alt": alt[1] if alt else "", **({"width": width[1]} if width else {}),
                  "src": "data:image/svg+xml;base64," + base64.b64encode(file.encode()).decode()}
    written = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    return f"<img {written}/>"
