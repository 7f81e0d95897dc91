"""Figures and tables of the CMS study."""

import pandas as pd
from IPython.display import display

from labbook.figures import Table, name, plural, ratios, time_over_clients
from labbook.papers.cms_scalability.experiments import SERVER_OF


def curves(summary: pd.DataFrame, rows: list[int], durabilities: list[str]) -> None:
    """Show the mean times of a server's stores (`system`) over the clients: a figure for each durability and
    number of rows."""
    for durability in durabilities:
        for count in rows:
            of_both = summary[(summary["rows"] == count) & (summary["durability"] == durability)]
            display(time_over_clients(of_both, hue="system", note=f"{plural(count, 'row')}, {name(durability)}"))


def left_for(ceiling: pd.DataFrame, cores: int, shares: dict[str, float]) -> pd.DataFrame:
    """The clients' ceiling beside a server with so many `cores` of the paper: the large one uses its share of the
    clients' core (see experiments.limited)."""
    left = 1 - shares["large"] if SERVER_OF[cores] == "large" else 1.0
    return ceiling.assign(rate_per_s=ceiling["rate_per_s"] * left) if len(ceiling) else ceiling


def write_causes(summary: pd.DataFrame, *, few: int, many: int) -> Table:
    """Table of the effect of each cause on the time of a write: ratios of mean_ms, paired by repeat.

    `summary`: points of the experiment `writes` with one engine and one number of clients; `few` and
    `many`: numbers of rows that the clients share.
    """
    few, many = dict(rows=few), dict(rows=many)
    flushed, not_flushed = dict(durability="commit"), dict(durability="periodic")
    write, update, insert = (dict(op=op) for op in ("write", "update", "insert"))
    mysql, cassandra = dict(store="mysql"), dict(store="cassandra")
    return ratios(summary, "mean_ms", [
        ("MySQL, REPLACE against UPDATE (few rows, flushed)", write, update,
         mysql | few | flushed),
        ("MySQL, REPLACE against INSERT (few rows, flushed)", write, insert,
         mysql | few | flushed),
        ("MySQL, REPLACE against INSERT (many rows, not flushed)", write, insert,
         mysql | many | not_flushed),
        ("MySQL, few rows against many (flushed)", few, many, mysql | write | flushed),
        ("MySQL, few rows against many (not flushed)", few, many, mysql | write | not_flushed),
        ("MySQL, flushed against not (few rows)", flushed, not_flushed, mysql | write | few),
        ("Cassandra, flushed against not (few rows)", flushed, not_flushed,
         cassandra | write | few),
        ("MySQL against Cassandra (few rows, both flushed)", mysql, cassandra,
         write | few | flushed),
        ("MySQL against Cassandra (few rows, neither flushed)", mysql, cassandra,
         write | few | not_flushed),
        ("MySQL against Cassandra (many rows, neither flushed)", mysql, cassandra,
         write | many | not_flushed),
    ])
