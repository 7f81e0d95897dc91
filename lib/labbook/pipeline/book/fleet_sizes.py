"""How long studies take by the number of machines, on the book's page "Many machines": the full profiles from
data/benchmarks/simulated/fleet.json, which benchmarks/fleet_simulated.py writes, and a tiny study from
data/benchmarks/measured/fleet.json, which benchmarks/fleet_speed.py does."""

import json
import statistics

from labbook import paths
from labbook.pipeline.book.markup import escape, raw, row, table
from labbook.pipeline.fleet.simulated import Simulated

HEADS = ("machines", "time", "speed-up", "in use", "own")      # short: the table has to fit a phone
LIMIT = 0.8     # from here on machines wait for more than a fifth of their time


def measured() -> str:
    """Markdown: a table of the tiny study's time by the number of machines."""
    file = paths.checkout() / "data" / "benchmarks" / "measured" / "fleet.json"
    if not file.is_file():
        return "*Nothing was measured yet.*\n"
    found = json.loads(file.read_text())
    seconds = {int(size): rounds for size, rounds in found["seconds"].items()}
    rows = []
    for size, rounds in seconds.items():
        faster = [one / other for one, other in zip(seconds[1], rounds)]
        spread = "" if size == 1 else f" ({min(faster):.2f} to {max(faster):.2f})"
        rows.append((str(size or "no fleet"), f"{statistics.median(rounds):.0f} s",
                     f"{statistics.median(faster):.2f}{spread}"))
    return raw(_framed("Time of a tiny study by machines", HEADS[:3], rows)) + (
        f"\nMedians of {len(seconds[1])} rounds of {found['repeats']} repeats on {found['on']}; the speed-up is over "
        "one machine of a fleet, with its range.\n")


def read() -> dict[int, Simulated]:
    """{machines: how the simulated run went}; {} where nothing was simulated."""
    file = paths.checkout() / "data" / "benchmarks" / "simulated" / "fleet.json"
    if not file.is_file():
        return {}
    return {int(size): Simulated(**one) for size, one in json.loads(file.read_text())["sizes"].items()}


def page() -> str:
    """Markdown: a table, the figure, and what ends the gain."""
    found = read()
    if not found:
        return "*Nothing was simulated yet.*\n"
    return raw("\n".join([_table(found), figure(found)])) + "\n" + _words(found)


def _table(found) -> str:
    one = found[min(found)].seconds
    rows = [(str(size), _hours(each.seconds), f"{one / each.seconds:.1f}", f"{each.used(size):.0%}",
             f"{each.own_s / each.busy_s:.0%}") for size, each in found.items()]
    return _framed("Time of the full profiles by machines", HEADS, rows)


def _framed(label, heads, rows) -> str:
    return table(label, heads, "".join(row(heads, map(escape, texts)) for texts in rows), "numbers")


def _words(found) -> str:
    size, most = max(found.items())
    useful = max((n for n, each in found.items() if each.used(n) >= LIMIT), default=min(found))
    return (f"Two things end the gain. What each machine measures for itself, mostly the ceilings of clients, is "
            f"{most.own_s / most.busy_s:.0%} of what {size} machines measure. And the longest repeat takes "
            f"{_hours(most.longest_s)}, since a repeat is on one machine. Beyond {useful} machine{'s' * (useful > 1)}, "
            "they wait for more than a fifth of their time. More repeats keep more machines at work.\n")


def _hours(seconds: float) -> str:
    hours = seconds / 3600
    return f"{hours:.0f} h" if hours >= 10 else f"{hours:.1f} h"


def figure(found: dict[int, Simulated]) -> str:
    """HTML: time by the number of machines, both logarithmic, beside what it would be if no machine ever waited."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator

    from labbook.figures.canvas import PALETTE, Picture, entitle, entry, head, panel, theme

    sizes, hours = list(found), [each.seconds / 3600 for each in found.values()]
    with theme():
        drawn = Figure(figsize=(6.4, 3.8), layout="constrained")
        axes = drawn.subplots()
        axes.set(xscale="log", yscale="log", xlabel="machines", ylabel="hours until all is measured")
        axes.plot(sizes, [hours[0] / size for size in sizes], color=PALETTE[1], linestyle="--")
        axes.axhline(max(each.longest_s for each in found.values()) / 3600, color=PALETTE[2], linestyle=":")
        axes.plot(sizes, hours, color=PALETTE[0])
        marks = axes.scatter(sizes, hours, color=PALETTE[0], zorder=3)
        entitle(marks, [f"{size} machines: {hour:.1f} h" for size, hour in zip(sizes, hours)])
        for axis, ticks in ((axes.xaxis, sizes), (axes.yaxis, [1, 2, 5, 10, 20, 50, 100, 200])):
            axis.set_major_locator(FixedLocator(ticks))
            axis.set_major_formatter(lambda value, _: f"{value:g}")
            axis.set_minor_locator(NullLocator())
        head(drawn, "Full profiles of all studies", [
            entry("simulated", PALETTE[0], "o"), entry("if no machine ever waited", PALETTE[1], None),
            entry("the longest repeat", PALETTE[2], None)])
        alt = "Hours until all is measured, by machines: " + ", ".join(
            f"{size}: {hour:.1f} h" for size, hour in zip(sizes, hours))
        return Picture((panel(drawn, alt),), "")._repr_html_()
