"""Report a study's progress: as JSON lines for the pipeline, a line on a terminal, or a bar below a cell."""

import html
import json
import os
import sys
import time
from pathlib import Path

from labbook import paths
from labbook.atomic_files import disk_errors
from labbook.claims import claims
from labbook.claims.decisions import DECIDED, NOT_TESTABLE
from labbook.errors import LabbookError
from labbook.study.parameters import given

WIDTH = 100


def interactive() -> bool:
    """Whether to show progress: on a terminal, or in a notebook that the pipeline does not run."""
    if os.environ.get("LABBOOK_PROGRESS"):
        return False
    return "ipykernel" in sys.modules or sys.stderr.isatty()


class Progress:
    """Counts finished points over the study's experiments and reports every change."""

    def __init__(self, study: str):
        self.study = study
        self.counts = {}        # experiment -> [done, total]
        self._at_first = {}     # experiment -> done when it was declared
        self._before = self._decided = None     # the same of the last run, and the claims decided: for a line
        self.failed = 0
        self._tried, self._spent = 0, 0.0
        self._interactive = interactive()
        self._bar = self._bar_of = None     # a notebook's display, and the experiment below whose cell it is

    def plan(self, experiment: str, todo: list, total: int, seconds: float | None, guessed: bool = False) -> None:
        """`seconds`: estimate for `todo` from earlier records; None if unknown. guessed: these are of points with other
        parameters."""
        self.counts[experiment] = [total - len(todo), total]
        self._at_first.setdefault(experiment, total - len(todo))
        self._report("plan", experiment, seconds=seconds, guessed=guessed, points=[p.label for p in todo])

    def hand_out(self, experiment: str, found: dict) -> None:
        """Report what of an experiment a fleet may measure; see labbook.study.fleet.to_hand_out."""
        self._report("hand_out", experiment, hand_out=found)

    def arms(self, experiment: str, text: str) -> None:
        """Report how the paired arms of an experiment will be up."""
        self._report("arms", experiment, arms=text)

    def start(self, point) -> None:
        self._report("start", point.experiment, point)
        self._show(point)

    def done(self, point, seconds: float, new: bool, set_up_s: float = 0.0) -> None:
        """`seconds`: duration of the attempt, set_up_s of its set-up; `new`: the point was not counted before."""
        self.counts.setdefault(point.experiment, [0, 1])[0] += new
        self._count(seconds)
        self._report("done", point.experiment, point, seconds=seconds, set_up_s=set_up_s, new=new)
        self._show(point)

    def fail(self, point, seconds: float, message: str) -> None:
        self.failed += 1
        self._count(seconds)
        self._report("failed", point.experiment, point, seconds=seconds, message=message)
        if self._interactive:
            print(f"\r{point.label} failed: {message}".ljust(WIDTH), file=sys.stderr)
        elif self.failed == 1 and not os.environ.get("LABBOOK_PROGRESS"):
            print(f"{point.label} failed: {message}", file=sys.stderr, flush=True)

    def warn(self, message: str) -> None:
        """Report what the user should know beside the page, such as a damaged record."""
        self._report("warning", message=message)

    def survey(self, found: dict) -> None:
        """Report where the asked claims stand; see labbook.study.ask.survey."""
        self._report("survey", found=found)

    def pause(self, experiment: str) -> None:
        self._report("paused", experiment)

    def complete(self) -> None:
        self._report("complete")
        if self._interactive and self._tried and self._bar is None:
            print(file=sys.stderr)

    def _count(self, seconds):
        self._tried += 1
        self._spent += seconds

    def _report(self, event, experiment=None, point=None, **more):
        path = os.environ.get("LABBOOK_PROGRESS")
        if not path:
            return
        line = {"event": event, "study": self.study, "time": time.time()}
        if experiment is not None:
            done, total = self.counts.get(experiment, (None, None))
            line |= {"experiment": experiment, "done": done, "total": total}
        if point is not None:
            line |= {"point": point.label, "key": point.key}
        # one write a line: processes share the file
        with disk_errors(Path(path)), open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line | more) + "\n")

    def _show(self, point):
        if not self._interactive:
            return
        counts = {**self._of_last_run(), **self.counts}
        done, total = (sum(count[i] for count in counts.values()) for i in (0, 1))
        left = self._claims_decided()
        if self._tried:
            minutes = self._spent / self._tried * max(total - done, 0) / 60
            left += f", about {minutes:.0f} min left" if minutes >= 1 else ", under a minute left"
        line = f"{done}/{total}{left}  {point.label}"[:WIDTH]
        if hasattr(given.shell(), "kernel"):
            self._draw(point.experiment, done, total, line)
            return
        print(f"\r{line:<{WIDTH}}", end="", file=sys.stderr, flush=True)

    def _draw(self, experiment, done, total, line):
        """A bar with the line beside it, below the cell that measures this experiment."""
        from IPython.display import display

        data = {"text/plain": line, "text/html": f'<progress max="{total}" value="{done}" aria-label="points measured">'
                f"</progress> {html.escape(line)}"}
        if self._bar is None or self._bar_of != experiment:
            self._bar, self._bar_of = display(data, raw=True, display_id=True), experiment
        else:
            self._bar.update(data, raw=True)

    def _of_last_run(self) -> dict:
        """{experiment: [done, total]} of the last run by the pipeline, so that what is declared later counts
        from the start; {} where an experiment has another total now. Nothing is done where fewer points of an experiment
        were valid when it was declared: what they depend on has changed."""
        if self._before is None:
            try:
                found = json.loads((paths.build_dir() / "totals" / f"{self.study}.json").read_text())["experiments"]
                self._before = {name: [one["done"] or 0, one["total"] or 0] for name, one in found.items()}
            except (OSError, ValueError, KeyError, TypeError, LabbookError):
                self._before = {}
        differs = any(self._before.get(name, count)[1] != count[1] for name, count in self.counts.items())
        if differs:
            return {}
        again = any(done < self._before.get(name, [0])[0] for name, done in self._at_first.items())
        return {name: [0 if again else done, total] for name, (done, total) in self._before.items()}

    def _claims_decided(self) -> str:
        """How many claims are decided, by the stored verdicts; empty before there are any."""
        if self._decided is None:
            verdicts = [one["verdict"] for one in claims.verdicts(self.study) if one["verdict"] != NOT_TESTABLE]
            decided = sum(verdict in DECIDED for verdict in verdicts)
            self._decided = f", {decided} of {len(verdicts)} claims decided" if verdicts else ""
        return self._decided
