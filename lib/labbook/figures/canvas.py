"""Drawing surface of all figures: theme, legends, and panels as SVG with alternative texts."""

import html
import io
import math
from contextlib import contextmanager
from dataclasses import dataclass, field

import matplotlib
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from labbook.figures.inline_svg import inline

# Okabe and Ito's palette, in an order in which neighbours differ in lightness too.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
INK, FAINT, PAPER, WASH = "#24292f", "#6e7781", "#ffffff", "#f3f6f9"
EDGE, GRID, SHADE = "#c4ccd4", "#e4e9ee", "#f3d9c9"
# What the page's style sheet calls them: --lb-fig-blue, ...
_NAMES = dict(zip((*PALETTE, INK, FAINT, PAPER, WASH, EDGE, GRID, SHADE),
                  ("blue", "vermilion", "green", "purple", "orange", "sky", "black",
                   "ink", "faint", "paper", "wash", "edge", "grid", "shade")))
COLOUR_NAMES = {colour.lower(): name for colour, name in _NAMES.items()}
PANEL_INCHES = (4.4, 3.5)   # a panel fills a phone; two stand side by side on a desk

_RC = {
    "font.family": ["DejaVu Sans"],      # comes with matplotlib
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.edgecolor": EDGE,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "grid.color": GRID,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "labbook",    # the same data give the same file
    "svg.fonttype": "none",       # text that can be read, searched and copied
    "figure.facecolor": PAPER,
}


@contextmanager
def theme():
    """Apply the book's matplotlib settings inside the block; restore the caller's after it."""
    with matplotlib.rc_context():
        sns.set_theme(context="paper", style="whitegrid", palette=PALETTE)
        matplotlib.rcParams.update(_RC)
        yield


def styles(values) -> dict:
    """value -> (colour, marker); equal sets of values have equal styles in every figure of a page."""
    ordered = sorted(set(values), key=str)
    return {value: (PALETTE[i % len(PALETTE)], MARKERS[(i + i // len(PALETTE)) % len(MARKERS)])
            for i, value in enumerate(ordered)}     # after each round of colours with other markers


@dataclass(frozen=True)
class Panel:
    """`width`: inches. `titles`: {id of a group of marks: what each says on hover}."""

    svg: bytes
    alt: str
    width: float
    titles: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """Panels with alternative texts and one caption, shown as HTML by notebooks and the book."""

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
    """Render the figure as SVG, without pyplot, so that no figure stays open and no backend is needed."""
    written = io.BytesIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    return Panel(written.getvalue(), alt, figure.get_figwidth(), _titles(figure))


def entitle(marks, texts) -> None:
    """Give each mark of a collection that is drawn on axes what it says on hover."""
    marks.set_gid(f"marks-{len(_titles(marks.figure)) + 1}")
    _titles(marks.figure)[marks.get_gid()] = list(texts)


def _titles(figure) -> dict:
    if not hasattr(figure, "labbook_titles"):
        figure.labbook_titles = {}
    return figure.labbook_titles


def _image(panel: Panel) -> str:
    style = f"flex:1 1 16rem;min-width:0;width:100%;height:auto;max-width:{math.ceil(panel.width * 110)}px"
    return inline(panel.svg, panel.alt, style, COLOUR_NAMES, panel.titles)


WIDEST = 46  # letters of a legend in one line


def entry(label: str, colour, marker) -> Line2D:
    return Line2D([], [], color=colour, marker=marker, linewidth=1.8, markersize=6,
                  markeredgecolor=PAPER, label=label)


def head(figure, title: str, handles) -> None:
    """Draw title and legend across the figure's whole width; long axis names may narrow the axes."""
    handles = list(handles)
    letters = [len(handle.get_label()) for handle in handles]
    columns = next((n for n in (len(handles), 2) if n * max(letters) <= WIDEST
                    or n == len(handles) and sum(letters) <= WIDEST), 1)
    figure.legend(handles=handles, title=title, alignment="left", loc="outside upper left",
                  title_fontproperties={"size": 11, "weight": "bold"}, ncols=columns,
                  handlelength=1.6, handletextpad=0.5, columnspacing=1.1)
