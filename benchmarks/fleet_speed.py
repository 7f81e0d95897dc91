"""How much sooner two and three machines of a fleet measure the same as one.

    .venv/bin/python benchmarks/fleet_speed.py [--rounds 6] [--repeats 6] [--turns 12000000] [--short]
        [--json data/benchmarks/measured/fleet.json]

Repeats of a tiny study, of two blocks and four points each, in labs of one host, which a loop of so many turns
keeps busy in each point: the time of `labbook run --fleet`, from its start to the page, on one machine, on two and
on three, and of `labbook run` without a fleet, in turns. The machines are namespaces of this one with an sshd, a
user and labs of their own, as those of tests/lab/test_fleet.py, so together they are no faster than its cores. The
book's page "Many machines" has the file that --json names here. Some 13 minutes. Root, or sudo.
"""

import statistics
import sys
import tempfile
from pathlib import Path

import shared
from rounds import this_machine, timed

from labbook.errors import LabError

sys.path.insert(0, str(shared.ROOT / "tests" / "lab"))

from fleet_machines import BOOK, Driver, install, lent, write_book, write_fleet  # noqa: E402 (of the tests' folder)
from foreign import foreign_hosts  # noqa: E402

NAMES = ("m1", "m2", "m3")
SIZES = (1, 2, 3, 0)        # numbers of machines; 0: no fleet


def main():
    args = _arguments()
    shared.check(packages=("sudo",))
    sizes = (1, 2) if args.short else SIZES
    seconds = {size: [] for size in sizes}
    with tempfile.TemporaryDirectory() as folder, foreign_hosts(NAMES[:max(sizes)], lent=lent()) as place:
        fleet = Fleet(place, Path(folder), args)
        for number in range(args.rounds):
            for size in turned(sizes, number):
                seconds[size].append(round(fleet.run(size), 2))
            shared.write(args.json, repeats=args.repeats, turns=args.turns, seconds=seconds, on=this_machine())
    show(seconds)


def turned(sizes: tuple, number: int) -> tuple:
    """Another one first in each round."""
    return sizes[number % len(sizes):] + sizes[:number % len(sizes)]


def show(seconds: dict) -> None:
    """Print the medians, and how many times as fast as one machine of a fleet (range of the rounds)."""
    print(f"{'machines':>10}{'seconds':>10}   times as fast as one")
    for size, found in seconds.items():
        print(f"{size or 'no fleet':>10}{statistics.median(found):>10.1f}   {shared.ratio(seconds[1], found)}")


def _arguments():
    parser = shared.parser(__doc__, rounds=6)
    parser.add_argument("--repeats", type=int, default=6, help="of the study; default: 6")
    parser.add_argument("--turns", type=int, default=12_000_000, help="of a point's loop; default: 12000000")
    args = parser.parse_args()
    if args.short:
        args.rounds, args.repeats, args.turns = 1, 1, 1000
    return args


class Fleet:
    """Machines, each with a checkout of the tiny study."""

    def __init__(self, place, folder: Path, args):
        self._place, self._folder, self._args, self._runs = place, folder, args, 0
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
        options = ("--fleet", str(path)) if count else ("--profile", "quick")
        seconds = timed(lambda: self._end(driver, driver.start(*options)))
        if count and len(driver.records()) != 4 * self._args.repeats:
            raise LabError(f"{len(driver.records())} records came home: {driver.output()}")
        return seconds

    def _book(self, root: Path) -> Path:
        write_book(root, self._args.repeats)
        (root / "turns").write_text(str(self._args.turns))
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
            raise LabError(f"`labbook run` ended with {code}: {driver.output()[-2000:]}")


if __name__ == "__main__":
    shared.run(main)
