"""How much sooner two and three machines of a fleet measure the same as one.

    .venv/bin/python benchmarks/fleet_speed.py [--rounds 6] [--repeats 6] [--turns 12000000] [--short] [--json FILE]

Repeats of a tiny study, of two blocks and four points each, in labs of one host, which a loop of so many turns
keeps busy in each point: the time of `labbook run --fleet`, from its start to the page, on one machine, on two and
on three, and of `labbook run` without a fleet. The machines are namespaces of this one with an sshd, a user and
labs of their own, as those of tests/lab/test_fleet.py, so together they are no faster than its cores. Root, or sudo.
"""

import sys
import tempfile
from pathlib import Path

import shared
from rounds import Rounds, timed

from labbook.errors import LabError

sys.path.insert(0, str(shared.ROOT / "tests" / "lab"))

from fleet_machines import BOOK, Driver, install, lent, write_book, write_fleet  # noqa: E402 (of the tests' folder)
from foreign import foreign_hosts  # noqa: E402

NAMES = ("m1", "m2", "m3")
ROWS = {"two": (2, 1), "three": (3, 1), "alone": (1, 0)}    # of how many machines, beside how many; 0: no fleet


def main():
    asked = _arguments()
    shared.check(packages=("sudo",))
    rounds = Rounds("fleet_speed", asked, repeats=asked.repeats, turns=asked.turns)
    names = NAMES[:2 if asked.short else 3]
    with tempfile.TemporaryDirectory() as folder, foreign_hosts(names, lent=lent()) as place:
        fleet, rows = Fleet(place, Path(folder), asked), dict(list(ROWS.items())[:1 if asked.short else None])
        sizes = list(dict.fromkeys(size for both in rows.values() for size in both))
        for number in rounds.left(list(rows)[-1]):
            seconds = {size: fleet.run(size) for size in turned(sizes, number)}
            for row, (ours, other) in rows.items():
                rounds.add(row, seconds[ours], seconds[other])
        rounds.show(*rows)


def turned(sizes: list, number: int) -> list:
    """Another one first in each round."""
    return sizes[number % len(sizes):] + sizes[:number % len(sizes)]


def _arguments():
    parser = shared.parser(__doc__, rounds=6)
    parser.add_argument("--repeats", type=int, default=6, help="of the study; default: 6")
    parser.add_argument("--turns", type=int, default=12_000_000, help="of a point's loop; default: 12000000")
    asked = parser.parse_args()
    if asked.short:
        asked.rounds, asked.repeats, asked.turns = 1, 1, 1000
    return asked


class Fleet:
    """Machines, each with a checkout of the tiny study."""

    def __init__(self, place, folder: Path, asked):
        self._place, self._folder, self._asked, self._runs = place, folder, asked, 0
        for name in place.names:
            install(place, name, self._book(folder / name))

    def run(self, count: int) -> float:
        """Seconds of a run on the first `count` machines, or without a fleet (0), of which nothing is there."""
        self._runs += 1
        root = self._book(self._folder / f"run{self._runs}")
        machines = self._place.names[:count]
        for name in machines:
            self._place.inside(name, f"rm -rf {BOOK}/data/records {BOOK}/build {BOOK}/measured.log")
        path = self._folder / f"fleet{count}.yml"
        driver = Driver(root, write_fleet(self._place, path, machines), f"fleet-{path.stem}")
        words = ("--fleet", str(path)) if count else ("--profile", "quick")
        seconds = timed(lambda: self._end(driver, driver.start(*words)))
        if count and len(driver.records()) != 4 * self._asked.repeats:
            raise LabError(f"{len(driver.records())} records came home: {driver.said()}")
        return seconds

    def _book(self, root: Path) -> Path:
        write_book(root, self._asked.repeats)
        (root / "turns").write_text(str(self._asked.turns))
        return root

    @staticmethod
    def _end(driver, process) -> None:
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait(shared.ENDING_S)
            raise
        if code:
            raise LabError(f"`labbook run` ended with {code}: {driver.said()[-2000:]}")


if __name__ == "__main__":
    shared.run(main)
