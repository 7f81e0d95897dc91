"""What stands over a panel: its title, and which line is what."""

from matplotlib.lines import Line2D

from labbook.figures.theme import PAPER

WIDEST = 46  # letters of a legend in one line


def entry(label: str, colour, marker) -> Line2D:
    return Line2D([], [], color=colour, marker=marker, linewidth=1.8, markersize=6,
                  markeredgecolor=PAPER, label=label)


def head(figure, title: str, handles) -> None:
    """Over the figure's whole width, since axes with long names may take less than half of it."""
    handles = list(handles)
    letters = [len(handle.get_label()) for handle in handles]
    columns = next((n for n in (len(handles), 2) if n * max(letters) <= WIDEST
                    or n == len(handles) and sum(letters) <= WIDEST), 1)
    figure.legend(handles=handles, title=title, alignment="left", loc="outside upper left",
                  title_fontproperties={"size": 11, "weight": "bold"}, ncols=columns,
                  handlelength=1.6, handletextpad=0.5, columnspacing=1.1)
