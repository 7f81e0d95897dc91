"""A benchmark's rounds: kept after each one, so that a run goes on where the last one ended.

build/benchmarks/NAME.json, and data/benchmarks/NAME.json once published (every.py), have
{"rows": {row: {"machine", "date", "versions", "asked", "rounds": [[labbook's, the other's], ...], "load"}
or {"absent": why}}}. The former has "count", too: how many rounds a row is to have. data/benchmarks/rows.yml says
what each row is. Rounds of another machine, other versions or other arguments are not gone on with.
"""

import json
import os
import statistics
import time
from datetime import date
from pathlib import Path

import shared
import yaml

from labbook import atomic_files, paths
from labbook.errors import InputError
from labbook.study.publication import machine_kind
from labbook.study.records import provenance

SHOWN = 34


class Rounds:
    """`args`: the parsed arguments, of which `rounds`, `short` and `json` are used. `versions`: of the others, by name.

    With --short nothing is kept but in the file that --json names. `sizes`: what else of the arguments
    changes a round's figures.
    """

    def __init__(self, benchmark: str, args, versions: dict | None = None, **sizes):
        self.benchmark, self.count = benchmark, args.rounds
        self._file = args.json or (None if args.short else folder() / f"{benchmark}.json")
        self._of = {"machine": this_machine(), "versions": versions or {}, "asked": sizes}
        self._rows = {} if args.short else _read(self._file)
        self._known = described(benchmark)
        first = next(iter(self._rows.values()), {})
        if first and any(row.get(key, value) != value for row in self._rows.values()
                         for key, value in self._of.items()):
            self._rows = {}
        self.head = False

    def left(self, row: str):
        """The numbers of the rounds that are still to be measured, from 0. InputError for an unknown row."""
        self._check(row)
        yield from range(len(self.of(row)), self.count)

    def wanted(self, *rows: str) -> bool:
        """Whether a round of any of these is still to be measured."""
        return any(len(self.of(row)) < self.count for row in rows)

    def of(self, row: str) -> list:
        """The rounds that there are: [labbook's, the other's] each."""
        return self._rows.get(row, {}).get("rounds", [])

    def add(self, row: str, ours: float, other: float) -> None:
        """Keep a round; with the last one, print the row."""
        self._check(row)
        entry = self._rows.setdefault(row, {})
        if "rounds" not in entry:
            entry.clear()
            entry |= {**self._of, "date": str(date.today()), "rounds": [], "load": []}
        entry["rounds"].append([ours, other])
        entry["load"].append(round(os.getloadavg()[0], 2))
        self._write()

    def absent(self, row: str, why: str) -> None:
        """Say why a row cannot be measured here; what an earlier run measured is left."""
        self._check(row)
        if not self.of(row):
            self._rows[row] = {**self._of, "absent": why}
            self._write()

    def show(self, *rows: str) -> None:
        """Print these rows, as many as were measured, or why they were not."""
        if not self.head:
            print(f"{'':{SHOWN}}{'labbook':>11}{'other':>11}   ratio (range of {self.count} rounds)", flush=True)
            self.head = True
        for row in rows:
            what = f"{self._known[row]['what']} / {self._known[row]['other']}".replace("`", "")
            if pairs := self.of(row):
                ours, other = zip(*pairs)
                unit = self._known[row]["unit"]
                print(f"{what:{SHOWN}}{_value(statistics.median(ours), unit):>11}"
                      f"{_value(statistics.median(other), unit):>11}   {shared.ratio(ours, other)}", flush=True)
            elif why := self._rows.get(row, {}).get("absent"):
                print(f"{what:{SHOWN}}   not measured: {why}", flush=True)

    def in_turns(self, row: str, ways) -> None:
        """Measure what is left of a row: `ways` are two functions that return a figure each, labbook's first;
        which of the two goes first changes with the round."""
        for number in self.left(row):
            found = {way: ways[way]() for way in (number % 2, 1 - number % 2)}
            self.add(row, found[0], found[1])
        self.show(row)

    def _check(self, row):
        if row not in self._known:
            raise InputError(f"no row {row!r} of {self.benchmark}", file=paths.checkout() / "data/benchmarks/rows.yml",
                             allowed=list(self._known))

    def _write(self):
        if self._file is None:
            return
        text = json.dumps({"count": self.count, "rows": self._rows}, indent=1) + "\n"
        atomic_files.write_whole(self._file, lambda file: file.write(text.encode()))
        shared.give_to_owner(self._file, self._file.parent)


def folder() -> Path:
    return paths.build_dir() / "benchmarks"


def described(benchmark: str) -> dict[str, dict]:
    """{row: what rows.yml says of it} of a benchmark."""
    listed = yaml.safe_load((Path(__file__).resolve().parents[1] / "data/benchmarks/rows.yml").read_text())
    return listed[benchmark]["rows"]


def this_machine() -> str:
    """Such as `AMD EPYC, 2 cores, Linux 6.18`."""
    return machine_kind.words(machine_kind.kind(provenance.machine()))


def timed(way) -> float:
    """Seconds that a function took."""
    began = time.monotonic()
    way()
    return time.monotonic() - began


def _read(file) -> dict:
    try:
        return json.loads(file.read_text())["rows"]
    except (OSError, ValueError, KeyError, AttributeError):
        return {}


def _value(number: float, unit: str) -> str:
    if unit == "s" and number < 0.1:
        return f"{number * 1000:.2f} ms"
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:.2f} {unit}"
