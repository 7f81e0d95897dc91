"""A drawn figure as a page shows it: SVG panels that stand side by side or, on a phone, stacked."""

import base64
import html
import io
import math
from dataclasses import dataclass

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Panel:
    svg: bytes
    alt: str
    width: float    # inches


@dataclass(frozen=True)
class Picture:
    """Panels with alternative texts and one caption; notebooks and the book show it as HTML."""

    panels: tuple[Panel, ...]
    caption: str = ""

    def _repr_html_(self) -> str:
        images = "".join(_image(panel) for panel in self.panels)
        caption = f"<figcaption>{html.escape(self.caption)}</figcaption>" if self.caption else ""
        return (f'<figure class="labbook-figure"><div style="display:flex;flex-wrap:wrap;gap:1rem">'
                f"{images}</div>{caption}</figure>")

    def __repr__(self) -> str:
        return "\n".join(panel.alt for panel in self.panels)


NOT_MEASURED = Picture((), "Not measured in this profile.")


def panel(figure: Figure, alt: str) -> Panel:
    """The figure as SVG. Not through pyplot: nothing is left open, no backend is asked for."""
    written = io.BytesIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    return Panel(written.getvalue(), alt, figure.get_figwidth())


def _image(panel: Panel) -> str:
    data = base64.b64encode(panel.svg).decode()
    style = f"flex:1 1 16rem;min-width:0;width:100%;max-width:{math.ceil(panel.width * 110)}px"
    alt = html.escape(panel.alt, quote=True)
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{alt}" style="{style}">'
