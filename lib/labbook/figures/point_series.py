"""One point through time: its operations, and what each host of the lab did meanwhile."""

import html
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from labbook import paths
from labbook.figures.canvas import PALETTE, PANEL_INCHES, Picture, head, panel, theme
from labbook.figures.tables import Table
from labbook.lab.series.watch import MACHINE
from labbook.study.explorer.shown import STYLES

DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))    # of hosts beyond the palette
BINS = 120          # of operations, at most; none shorter than LEAST_BIN_S
LEAST_BIN_S = 0.1
EPOCH_S = 1e9       # a start above this is no time since a load's start
ROUTER = "router-"
# Title, unit of the axis, columns that are added up, and by what that is divided.
OF_HOSTS = (("processor", "cores", ("cpu_cores",), 1),
            ("waiting for a processor", "share of time", ("pressure_cpu",), 1),
            ("waiting for a disk", "share of time", ("pressure_io",), 1), ("memory", "MB", ("memory_bytes",), 1e6),
            ("disk", "MB a second", ("read_bytes_per_s", "written_bytes_per_s"), 1e6),
            ("network, both ways", "MB a second", ("rx_bytes_per_s_", "tx_bytes_per_s_"), 1e6))
OF_MACHINE = (("user_cores", "user"), ("system_cores", "system"), ("iowait_cores", "idle, waits for a disk"),
              ("steal_cores", "stolen by other machines"))
CONTROL = "_ctl0"   # the interface by which labbook reaches a local host


@dataclass(frozen=True)
class PointView:
    """A point's title, a Table of its hosts and a Picture; shown as HTML in a notebook, as the table in text."""

    title: str
    table: Table
    picture: Picture

    def _repr_html_(self) -> str:
        return f"<h2>{html.escape(self.title)}</h2>{self.picture._repr_html_()}{self.table._repr_html_()}"

    def __repr__(self) -> str:
        return f"{self.title}\n\n{self.table!r}"


def point_view(meta: dict, hosts: pd.DataFrame, rows: pd.DataFrame) -> PointView:
    """Of a record: its metadata, its series `hosts` and its raw rows."""
    began = meta["provenance"]["during"]["started"]
    hosts = hosts.assign(at_s=hosts.at_s - began, host=hosts.host.astype(str))
    names = [name for name in dict.fromkeys(hosts.host) if name != MACHINE and not name.startswith(ROUTER)]
    styles = {name: (PALETTE[i % len(PALETTE)], DASHES[i // len(PALETTE) % len(DASHES)])
              for i, name in enumerate(names)}
    ends = ended_at(meta, rows)
    limits = (hosts.at_s - hosts.seconds).min(), hosts.at_s.max()
    with theme():
        panels = [] if ends is None else [_operations(ends - began, _ok(rows), limits)]
        for title, unit, columns, scale in OF_HOSTS:
            lines = {name: _sum(hosts[hosts.host == name], columns) for name in names}
            lines = {name: (edges, values / scale) for name, (edges, values) in lines.items() if len(values)}
            if lines:
                panels.append(_lines(title, unit, lines, styles, limits))
        if (hosts.host == MACHINE).any():
            panels.append(_machine(hosts[hosts.host == MACHINE], limits))
    caption = ("Time since the point began, once a second. The first part of it may be the set-up. "
               "Processor: of a host, its own; of the machine, all that ran on it.")
    return PointView(meta["label"], _table(hosts, [*names, *[MACHINE] * bool((hosts.host == MACHINE).any())]),
                     Picture(tuple(panels), caption))


def page(view: PointView, style: str | None = None) -> str:
    """A page of its own, which needs no other file. style: a style sheet; by default the book's, if it is there."""
    if style is None:
        sheet = paths.checkout() / STYLES
        style = sheet.read_text(encoding="utf-8") if sheet.is_file() else ""
    title = html.escape(view.title)
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            "<style>body { font-family: sans-serif; margin: 1.5rem auto; max-width: 70rem; padding: 0 1rem }\n"
            f"{style}</style></head><body><main>"
            f"{view._repr_html_().replace('<h2>', '<h1>', 1).replace('</h2>', '</h1>', 1)}"
            "</main></body></html>\n")


def ended_at(meta: dict, rows: pd.DataFrame):
    """Seconds since the epoch at which each operation ended; None for rows without times.

    Rows say when an operation began since its load did. Of the starts that the record has, a slice's is the last
    one after which it could end before the next slice began; without any it ended with the point.
    """
    if not {"started_s", "seconds"} <= set(rows) or not len(rows):
        return None
    began = rows.started_s.astype(float)
    ended = began + rows.seconds.astype(float).fillna(0.0)
    if began.min() > EPOCH_S:
        return ended
    groups = [name for name in (*meta.get("paired", ()), "slice") if name in rows] if meta.get("paired") else []
    parts = [part.index for _, part in rows.groupby(groups, sort=False, observed=True)] if groups else [rows.index]
    until, starts, out = meta["provenance"]["during"]["ended"], sorted(meta.get("load_starts", ())), ended.copy()
    for index in reversed(parts):
        took = ended[index].max()
        start = max((one for one in starts if one + took <= until + 0.5), default=until - took)
        out[index] = start + ended[index]
        until = start
    return out


def _ok(rows) -> np.ndarray:
    return rows["ok"].to_numpy(dtype=bool) if "ok" in rows else np.ones(len(rows), bool)


def _sum(rows, columns):
    """The edges of the intervals and the sum of columns in each, of columns given by name or by how the names of
    interfaces' columns begin; NaN in intervals in which none has a value, nothing where none ever has."""
    named = [name for name in rows for one in columns
             if name == one or one.endswith("_") and name.startswith(one) and not name.endswith(CONTROL)]
    found = rows[named].sum(axis=1, min_count=1) if named else pd.Series(dtype=float)
    if found.isna().all():
        found = found.iloc[:0]
    return _edges(rows.loc[found.index]), found.to_numpy(dtype=float)


def _edges(rows) -> np.ndarray:
    """The begin of the first interval, and the end of each."""
    return np.concatenate([(rows.at_s - rows.seconds)[:1], rows.at_s])


def _axes(limits, unit):
    figure = Figure(figsize=PANEL_INCHES, layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlim=limits, xlabel="time, s", ylabel=unit)
    axes.tick_params(length=0)
    axes.grid(axis="x", visible=False)
    return figure, axes


def _lines(title, unit, lines, styles, limits):
    figure, axes = _axes(limits, unit)
    for name, (edges, values) in lines.items():
        colour, dash = styles[name]
        axes.stairs(values, edges, baseline=None, color=colour, linestyle=dash, linewidth=1.4)
    axes.set_ylim(0, 1.08 * max(np.nanmax(values) for _, values in lines.values()) or 1)
    head(figure, title,
         [Line2D([], [], color=styles[name][0], linestyle=styles[name][1], label=name) for name in lines])
    summary = "; ".join(f"{name} at most {np.nanmax(values):.3g}" for name, (_, values) in lines.items())
    return panel(figure, f"{title}, {unit}, over time: {summary}.")


def _operations(ends, ok, limits):
    figure, axes = _axes(limits, "operations a second")
    width = max(LEAST_BIN_S, (limits[1] - limits[0]) / BINS)
    edges = np.arange(limits[0], max(limits[1], ends.max()) + width, width)
    for good, colour in ((True, PALETTE[0]), (False, PALETTE[1])):
        if (ok == good).any():
            counts = np.histogram(ends[ok == good], edges)[0] / width
            axes.stairs(counts, edges, color=colour, fill=True, alpha=0.3, linewidth=0)
            axes.stairs(counts, edges, color=colour, linewidth=1.4)
    axes.set_ylim(bottom=0)
    head(figure, "operations", [Line2D([], [], color=PALETTE[0], label="that came out")]
         + [Line2D([], [], color=PALETTE[1], label="that failed")] * bool((~ok).any()))
    return panel(figure, f"Operations a second over time: {int(ok.sum())} came out, {int((~ok).sum())} failed.")


def _machine(rows, limits):
    figure, axes = _axes(limits, "cores")
    kinds = [(name, label, PALETTE[i]) for i, (name, label) in enumerate(OF_MACHINE)
             if name in rows and rows[name].notna().any()]
    below = np.zeros(len(rows))
    for name, _, colour in kinds:
        above = below + rows[name].fillna(0).to_numpy()
        axes.stairs(above, _edges(rows), baseline=below, color=colour, fill=True, alpha=0.7, linewidth=0)
        below = above
    axes.set_ylim(bottom=0)
    head(figure, "the whole machine", [Line2D([], [], color=colour, label=label) for _, label, colour in kinds])
    summary = ", ".join(f"{label} {_mean(rows, name):.2f}" for name, label, _ in kinds)
    return panel(figure, f"Cores of the machine by what they did, over time; on average {summary}.")


def _mean(rows, column) -> float:
    return float((rows[column] * rows.seconds).sum() / rows.seconds[rows[column].notna()].sum())


def _table(hosts, names) -> Table:
    columns = ("Host", "Cores, mean", "Cores, most", "In system", "Waits for CPU", "Waits for disk", "Memory, most MB",
               "Read MB", "Written MB", "Received MB", "Sent MB")
    return Table(columns, tuple(_cells(name, hosts[hosts.host == name]) for name in names),
                 "What each host did while the point was measured.", "hosts of the point")


def _cells(name, rows) -> tuple[str, ...]:
    def cell(column, text, work):
        return text.format(work(column)) if column in rows and rows[column].notna().any() else ""

    def total(columns):
        edges, values = _sum(rows, columns)
        return f"{np.nansum(values * np.diff(edges)) / 1e6:.1f}" if len(values) else ""

    cpu = _mean(rows, "cpu_cores") if "cpu_cores" in rows and rows.cpu_cores.notna().any() else 0
    return (name, cell("cpu_cores", "{:.3f}", lambda one: _mean(rows, one)),
            cell("cpu_cores", "{:.2f}", lambda one: rows[one].max()),
            cell("system_cores", "{:.0%}", lambda one: _mean(rows, one) / cpu) if cpu else "",
            *(cell(f"pressure_{what}", "{:.1%}", lambda one: _mean(rows, one)) for what in ("cpu", "io")),
            cell("memory_bytes", "{:.0f}", lambda one: rows[one].max() / 1e6),
            *(total([one])
              for one in ("read_bytes_per_s", "written_bytes_per_s", "rx_bytes_per_s_", "tx_bytes_per_s_")))
