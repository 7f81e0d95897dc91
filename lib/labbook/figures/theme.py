"""One look for every figure: colours that the colour-blind can tell apart, fonts, sizes."""

from contextlib import contextmanager

import matplotlib
import seaborn as sns

# Okabe and Ito's palette, in an order in which neighbours differ in lightness too.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
INK, FAINT, PAPER, WASH = "#24292f", "#6e7781", "#ffffff", "#f3f6f9"
PANEL_INCHES = (4.4, 3.5)   # a panel fills a phone; two stand side by side on a desk

_RC = {
    "font.family": ["DejaVu Sans", "Noto Sans CJK JP"],
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.edgecolor": "#c4ccd4",
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "grid.color": "#e4e9ee",
    "legend.fontsize": 9,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "labbook",    # the same data give the same file
    "svg.fonttype": "path",       # the reader's machine may not have the fonts
    "figure.facecolor": PAPER,
}


@contextmanager
def theme():
    """Figures drawn inside have the book's look; the caller's own settings come back after."""
    with matplotlib.rc_context():
        sns.set_theme(context="paper", style="whitegrid", palette=PALETTE)
        matplotlib.rcParams.update(_RC)
        yield


def styles(values) -> dict:
    """value -> (colour, marker), the same for the same values in every figure of a page."""
    ordered = sorted(set(values), key=str)
    return {value: (PALETTE[i % len(PALETTE)], MARKERS[i % len(MARKERS)])
            for i, value in enumerate(ordered)}
