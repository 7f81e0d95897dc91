"""Kills labbook at random moments of the five studies' labs, and looks at what one command later is left.

    .venv/bin/python benchmarks/kills.py [--kills 100] [--helper-kills 20] [--studies ...] [--seed 1]
        [--out build/kills/kills.jsonl] [--for 50m]

Each kill is SIGKILL of a `labbook run` in a phase of its study: the lab comes up, its systems do, they
are filled, loaded, broken, a record is written, the lab goes down; or of the privileged helper while it
makes or unmakes a lab. The moment is drawn from the length that the phase had before. Then comes one
command, `labbook down` or the same run again for the time of one point, and then the machine is
compared with before: namespaces, mounts, loop devices, control groups, FUSE connections, libvirt's
domains, links, routes, rules of the firewall, processes, files. No point that was finished may be lost
or measured twice, also by the runs that come later; in the end each study runs to its end.

The kills that FILE has are not done again, so it can be stopped at any moment. Root, an idle machine
of two cores and 16 GB: about an hour.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests/lab")]

import machine_state
from killing import aim
from killing.book import Book
from killing.studies import PHASES, STUDIES

GUESS_S = {"up": 1.5, "systems": 8, "fill": 3, "load": 3, "fault": 4, "record": 0.03, "down": 0.6,
           "make": 0.8, "unmake": 0.5}
LEAST_S = 0.005     # what is shorter had nothing to do
TRIES = 5           # of a kill whose process had ended before
PAUSED = 3          # exit code of a run whose time is up
COMMANDS = ("down", "run")
HELPER_PHASES = ("make", "unmake")


def main() -> int:
    args = _arguments()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + args.seconds if args.seconds else float("inf")
    book = Book(args.folder)
    try:
        bench = Bench(book, args.out)
        owed = [one for one in plan(args) if not bench.has(one["id"])]
        if owed:
            bench.first_lab()
        for one in owed:
            if time.monotonic() > until:
                print("the time is up; run it again to go on")
                return PAUSED
            bench.do(one)
        for study in args.studies if args.kills and not args.short else ():
            bench.to_the_end(study)
        return bench.report()
    finally:
        book.close()


def _arguments():
    from labbook.pipeline.executing.progress import parse_duration

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--helper-kills", type=int, default=20)
    parser.add_argument("--studies", nargs="+", default=list(STUDIES), choices=STUDIES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/kills", help="of the scratch checkout")
    parser.add_argument("--out", type=Path, default=ROOT / "build/kills/kills.jsonl", metavar="FILE")
    parser.add_argument("--short", action="store_true", help="two kills of each, of one small study's lab")
    parser.add_argument("--for", dest="seconds", type=parse_duration, metavar="50m", help="stop between kills")
    args = parser.parse_args()
    if args.short:
        args.kills, args.helper_kills, args.studies = 2, 2, ["cms_scalability"]
    return args


def plan(args) -> list[dict]:
    """What is killed, where, and which command follows, in the order in which it is done.

    The same for each seed, whatever has been done of it. The draw is in rounds: each has a kill of every
    study and phase that is still owed one, in a random order. The helper's kills lie evenly between.
    """
    driver = {(study, phase): number for study in args.studies for phase, number in STUDIES[study].kills.items()
              if phase == "up" or not args.short}
    helper = {(study, phase): 2 for study in args.studies for phase in HELPER_PHASES}
    kills = _drawn("driver", driver, args.kills, args.seed) + _drawn(
        "helper", helper, args.helper_kills, args.seed)
    return [kill for _, kill in sorted(kills, key=lambda each: each[0])]


def _drawn(who, owed: dict, number: int, seed: int) -> list[tuple[float, dict]]:
    """(place among all kills from 0 to 1, kill) of `number` kills. `owed`: how many each study and phase gets
    before the draw begins anew."""
    chance = random.Random(f"{seed} {who}")
    first = {cell: chance.randrange(len(COMMANDS)) for cell in owed}
    cells, counted = [], Counter()
    while owed and len(cells) < number:
        for turn in range(max(owed.values())):
            cells += chance.sample(among := [cell for cell in owed if owed[cell] > turn], len(among))
    kills = []
    for place, cell in enumerate(cells[:number]):
        study, phase = cell
        command = COMMANDS[(first[cell] + counted[cell]) % len(COMMANDS)]
        kills.append(((place + 0.5) / number, {
            "id": f"{seed}-{who}-{study}-{phase}-{counted[cell]}", "who": who, "study": study, "phase": phase,
            "command": command}))
        counted[cell] += 1
    return kills


class Bench:
    """Does kills in a book, and notes each in the file `out`."""

    def __init__(self, book, out: Path):
        self.book, self.out = book, out
        self.done = _lines(out)
        self.finished = book.finished()
        self.lengths = {}       # (study, phase) -> seconds of each time that it was gone through
        for row in self.done:
            self._learn(row["study"], row.get("lasts", {}))

    def first_lab(self) -> None:
        """A lab up and down, unharmed: the first since boot routes the labs' addresses to nowhere, for good."""
        process = self.book.program("killing.lab_alone", "cms_scalability", str(self.book.log))
        if process.wait():
            raise SystemExit("a lab does not come up: `labbook doctor` says what is missing")

    def has(self, name: str) -> bool:
        """Whether it is done; a kill that hit nothing is not."""
        return any(row["id"] == name and row.get("hit") is not False for row in self.done)

    def do(self, one: dict) -> None:
        began = time.monotonic()
        if one["who"] == "driver" and one["phase"] != "up":
            self._prepare(one["study"])
        before = machine_state.snapshot(self.book.places, self.book.mark)
        shot = None
        for number in range(TRIES):
            shot = self._shoot(one, random.Random(f"{one['id']} {number}"))
            if shot and shot.hit:
                break
        self.finished |= self.book.finished()
        killed = time.monotonic()
        code, output = self._follow(one)
        follows_s = time.monotonic() - killed
        left = machine_state.left(before, self.book.places, self.book.mark)
        if one["command"] == "run":
            left += self.book.unfinished()
        self.book.remember()
        self._note({**one, "hit": bool(shot and shot.hit), "during": shot.during if shot else None,
                    "after_s": shot and round(shot.waited_s, 3), "follows_s": round(follows_s, 2), "code": code,
                    "good_code": code in ((0,) if one["command"] == "down" else (0, PAUSED)),
                    "left": left, **self._points(), "seconds": round(time.monotonic() - began, 1),
                    **({} if code in (0, PAUSED) else {"output": output[-2000:]})})

    def _prepare(self, study):
        """Measure once, unharmed, all that a killed run would have to measure before its own point."""
        name = f"prepare-{study}"
        if self.book.has(study):
            return
        began = time.monotonic()
        code, output = self.book.labbook(*self.book.run_command(study, "load", more=True))
        self.finished |= self.book.finished()
        if code != 0:
            raise SystemExit(f"{study} cannot be measured here, so it is not killed:\n{output[-2000:]}")
        self._note({"id": name, "study": study, "code": code, "good_code": True, "lasts": self._lasts(),
                    "seconds": round(time.monotonic() - began, 1)})
        self._learn(study, self._lasts())

    def _shoot(self, one, chance):
        book, phase = self.book, one["phase"]
        after_s = aim.moment(chance, self._length(one["study"], phase))
        if one["who"] == "driver":
            if phase == "fill":
                book.forget(one["study"])
            process = book.start(book.run_command(one["study"], phase, more=True), points=1)
            kill = lambda: aim.kill_driver(process)
        else:
            process = book.program("killing.lab_alone", one["study"], str(book.log))
            under_way = lambda: aim.phase_now(book.story()) == phase
            kill = lambda: aim.kill_helper(process, under_way)
        try:
            shot = aim.kill_in(process, book.story, phase, after_s, kill)
        finally:
            process.wait()
        lasts = self._lasts()
        if shot and shot.hit:
            lasts.pop(phase, None)      # its end was the kill
        self._learn(one["study"], lasts)
        one.setdefault("lasts", {}).update(lasts)
        return shot

    def _follow(self, one):
        """The one command. A run measures at most one more point."""
        if one["command"] == "down":
            return self.book.labbook("down")
        command = self.book.run_command(one["study"], one["phase"], more=False)
        if one["who"] == "helper" or one["phase"] in ("up", "systems", "fill", "fault"):
            command += ["--for", "1s"]    # to begin with; what is dear is not done again
        return self.book.labbook(*command, points=1)

    def _points(self) -> dict:
        """Points that were finished before and are now gone, or were begun again."""
        now = self.book.finished()
        lost = [key for key, digest in self.finished.items() if now.get(key) != digest]
        begun = [line["key"] for line in self.book.story() if line["edge"] == "point"]
        twice = [key for key in begun if key in self.finished] + self.book.superseded()
        self.finished |= now
        return {"points": len(now), "lost": lost, "twice": twice}

    def to_the_end(self, study):
        """The whole run that comes in the end measures what is left, each point once."""
        name = f"end-{study}"
        if self.has(name):
            return
        before = machine_state.snapshot(self.book.places, self.book.mark)
        began = time.monotonic()
        code, output = self.book.labbook(*self.book.run_command(study, "load", more=False))
        self._note({"id": name, "study": study, "code": code, "good_code": code == 0,
                    "left": machine_state.left(before, self.book.places, self.book.mark), **self._points(),
                    "seconds": round(time.monotonic() - began, 1), **({} if code == 0 else {"output": output[-2000:]})})

    def _length(self, study, phase) -> float:
        """The median of the phase's lengths so far, or of other studies' labs."""
        seen = self.lengths.get((study, phase)) or [
            one for (_, other), found in self.lengths.items() if other == phase for one in found]
        return statistics.median(seen) if seen else GUESS_S[phase]

    def _learn(self, study, lasts):
        for phase, found in lasts.items():
            self.lengths.setdefault((study, phase), []).extend(one for one in found if one > LEAST_S)

    def _lasts(self) -> dict:
        return {phase: [round(one, 3) for one in found] for phase, found in aim.lengths(self.book.story()).items()}

    def _note(self, row):
        self.done = [other for other in self.done if other["id"] != row["id"]] + [row]
        with open(self.out, "a") as file:
            file.write(json.dumps(row) + "\n")
        print(as_line(row), flush=True)

    def report(self) -> int:
        """Print the tables and figures; 1 when anything was left, lost or measured twice."""
        kills = [row for row in self.done if "who" in row]
        for who, phases in (("driver", PHASES), ("helper", HELPER_PHASES)):
            mine = [row for row in kills if row["who"] == who]
            print(f"{sum(row['hit'] for row in mine)} kills of the {who}: "
                  "study, phase aimed at, kills, phases that they hit")
            for study, phase in [(study, phase) for study in STUDIES for phase in phases]:
                aimed = [row for row in mine if (row["study"], row["phase"]) == (study, phase)]
                hits = Counter(row["during"] for row in aimed if row["hit"])
                if aimed:
                    print(f"  {study:24}{phase:10}{len(aimed):4}  "
                          + ", ".join(f"{name} {number}" for name, number in hits.most_common()))
        for name in ("left", "lost", "twice"):
            print(f"{name}: {sum(bool(row.get(name)) for row in self.done)} of {len(kills)}")
        if follows := [row["follows_s"] for row in kills if "follows_s" in row and row["command"] == "down"]:
            print(f"labbook down: median {statistics.median(follows)} s, at most {max(follows)} s")
        spent = sum(row["seconds"] for row in self.done if not row["id"].startswith("prepare-"))    # within a kill's
        print(f"{spent:.0f} s in all")
        return 1 if any(map(is_bad, self.done)) else 0


def is_bad(row) -> bool:
    return bool(row.get("left") or row.get("lost") or row.get("twice") or not row["good_code"]
                or row.get("hit") is False)


def as_line(row) -> str:
    what = " ".join(str(row[key]) for key in ("who", "study", "phase", "during", "after_s", "command", "code")
                    if key in row)
    bad = {key: row[key] for key in ("left", "lost", "twice", "output", "hit") if is_bad(row) and key in row}
    return f"{row['id'] if 'who' not in row else what}  {row['seconds']} s  {json.dumps(bad) if bad else 'good'}"


def _lines(path: Path) -> list[dict]:
    """The rows of a file, of each id the last one."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return list({row["id"]: row for row in rows}.values())


if __name__ == "__main__":
    sys.exit(main())
