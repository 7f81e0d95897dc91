"""Tables of a page: the paper's printed numbers beside ours, and what differs in the set-up."""

import html
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from labbook.checks import load_yaml
from labbook.errors import InputError
from labbook.figures.repeats import over_repeats
from labbook.figures.words import between, name, number
from labbook.lab.quantities import size_text


@dataclass(frozen=True)
class Table:
    """Rows of text, shown as an HTML table that scrolls sideways in its own frame."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    label: str = "table"
    numbers: bool = True    # columns after the first hold numbers

    def _repr_html_(self) -> str:
        kind = "labbook-table numbers" if self.numbers else "labbook-table"
        head = "".join(f'<th scope="col">{html.escape(c)}</th>' for c in self.columns)
        body = "".join(_row(row, self.columns) for row in self.rows)
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        return (f'<div class="labbook-scroll" role="region" tabindex="0" '
                f'aria-label="{html.escape(self.label, quote=True)}">'
                f'<table class="{kind}">{caption}<thead><tr>{head}</tr></thead>'
                f"<tbody>{body}</tbody></table></div>")

    def __repr__(self) -> str:
        return pd.DataFrame(self.rows, columns=self.columns).to_string(index=False)


def _row(row, columns):
    """The column's name goes with each cell, so that a narrow page can stack the cells."""
    first, *rest = [html.escape(str(cell)) for cell in row]
    cells = "".join(f'<td data-label="{html.escape(column, quote=True)}">{cell}</td>'
                    for column, cell in zip(columns[1:], rest))
    return f'<tr><th scope="row">{first}</th>{cells}</tr>'


def paper_table(paper: pd.DataFrame, summary: pd.DataFrame, *, rows: str, columns: str,
                ours="mean_ms", unit="ms") -> Table:
    """The paper's numbers (`rows`, `columns`, `server`, `value`, in `unit`) beside our medians.

    `summary` holds the points that stand beside them, with a column `server` too; every setting of
    `rows` and `columns` in it becomes a cell: the median of the repeats and its interval. The last
    column is the ratio of the first value of `columns` to the second, which a change of machine
    disturbs least.
    """
    cells = {(p["server"], p[rows], p[columns]): (number(p["value"]), p["value"])
             for _, p in paper.iterrows()}
    cells |= {(p["server"], p[rows], p[columns]): (_cell(p), p["median"])
              for _, p in over_repeats(summary, ["server", rows, columns], ours).iterrows()}
    first, second = sorted(paper[columns].unique())
    places = [*dict.fromkeys(paper["server"]), *dict.fromkeys(summary["server"])]
    body = []
    for value in dict.fromkeys(paper[rows]):
        for place in places:
            (one, of), (other, than) = (cells.get((place, value, c), ("not measured", None))
                                        for c in (first, second))
            body.append((name(value), place, one, other,
                         number(of / than) if of and than else "–"))
    head = ("", "where", f"{name(first)}, {unit}", f"{name(second)}, {unit}",
            f"{name(first)} / {name(second)}")
    return Table(head, tuple(body), label="the paper's printed numbers beside ours",
                 caption="Paper: as printed. Here: median of the repeats and its interval.")


def _cell(point) -> str:
    spread = "" if point["n"] == 1 else f" ({between(point['low'], point['high'])})"
    return number(point["median"]) + spread + (" limited by the client" if point["limited"] else "")


def differences(paper_file: Path, description, **known) -> Table:
    """The paper's set-up beside ours, from the `setup` list of paper.yml.

    `ours` there may hold fields that are filled in, so that the table cannot say other than what
    was run: `{host[cores]}` and the other limits of a host of the LabDescription,
    `{system[version]}` and its other settings, and what is given as `known`.
    """
    known = _described(description) | known
    rows = []
    for i, entry in enumerate(load_yaml(paper_file)["setup"]):
        try:
            ours = entry["ours"].format(**known)
        except (KeyError, IndexError, AttributeError, ValueError) as error:
            raise InputError(f"cannot be filled in: {error!r}", file=paper_file,
                             key=f"setup.{i}.ours", allowed=sorted(known)) from None
        rows.append((entry["what"], entry["paper"], ours, entry["matters"]))
    return Table(("What", "In the paper", "Here", "Why it may matter"), tuple(rows),
                 label="the paper's set-up beside ours", numbers=False)


def _described(description) -> dict:
    """name -> limits of each host, sizes in words, and name -> settings of each system."""
    hosts = {host.name: {k: size_text(v) if k == "memory" else v for k, v in host.limits.items()}
             for host in description.hosts}
    return hosts | {s.get("label", s["name"]): s.get("settings", {}) for s in description.systems}


_CONDITIONS = {
    "cpu": "Processor", "cores": "Cores", "memory_gib": "Memory, GiB", "kernel": "Linux",
    "system": "System", "python": "Python", "environment": "Environment", "profile": "Profile",
    "commit": "Commit of the code", "from": "First measurement", "to": "Last measurement",
    "points": "Measurements", "stale": "of these, made by earlier code",
    "failed_first": "of these, came out when tried again",
    "cpu_pressure": "Most of a measurement's time in which something waited for a processor",
    "steal": "Most of a measurement's time taken by other virtual machines",
}


_MACHINE = ("cpu", "cores", "memory_gib", "kernel", "system")


def conditions(found: dict) -> Table:
    """What Study.conditions() found, in words."""
    rows = [(label, f"{found[key]:.0%}" if key in ("cpu_pressure", "steal") else str(found[key]))
            for key, label in _CONDITIONS.items() if key in found]
    if "hosts" not in found:
        return Table(("", "On this machine"), tuple(rows), label="conditions", numbers=False)
    driver = {_CONDITIONS[key] for key in (*_MACHINE, "cpu_pressure", "steal")}
    hosts = [(f"Host{'s' * (', ' in names)} {names}", _machine(one))
             for names, one in found["hosts"].items()]
    rest = [row for row in rows if row[0] not in driver]
    return Table(("", "On these hosts"), (*hosts, ("Driven from", _machine(found)), *rest),
                 label="conditions", numbers=False)


def _machine(one: dict) -> str:
    cores = "1 core" if one["cores"] == 1 else f"{one['cores']} cores"
    return (f"{one['cpu']}, {cores}, {one['memory_gib']} GiB of memory, Linux {one['kernel']}, "
            f"{one['system']}")
