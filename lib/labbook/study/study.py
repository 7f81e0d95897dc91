"""A study: one paper's replication, from its folder of data to records and verdicts."""

import time
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

from labbook import paths
from labbook.checks import did_you_mean
from labbook.claims import claims
from labbook.errors import InputError
from labbook.study import provenance
from labbook.study.attempt import Attempt
from labbook.study.experiment import Experiment
from labbook.study.fingerprint import Fingerprint, fingerprint
from labbook.study.judging import check_grids, judge
from labbook.study.record import Records
from labbook.study.run import PointsFailed, Run
from labbook.study.session import Session

__all__ = ["PointsFailed", "Study"]


class Study:
    """The study of data/papers/NAME/. `environment` is a file under environments/, from the checkout's
    root. `bring_up(lab_yml, environment)` makes a lab: `labbook.lab.Lab` unless given."""

    def __init__(self, name: str, environment="environments/local.yml", *, bring_up=None):
        self.name, self.environment = name, Path(environment)
        self.folder = paths.papers(name)
        if not self.folder.is_dir():
            raise _no_study(name, self.folder)
        self.claims_given = claims.load(name)
        self.run = Run(self)
        self.experiments = {}
        make = bring_up or _bring_up
        self.session = Session(lambda: make(self.folder / "lab.yml", self._environment_file()))

    def experiment(self, name: str, setup=None, vary=None, repeats=1, *,
                   leave_out=None) -> Experiment:
        """A named grid of points: every combination of `setup` (a change means a restart) with
        every one of `vary`, `repeats` times, but for those of which `leave_out(point)` is true.
        InputError for invalid names and values."""
        self.experiments[name] = Experiment(self, name, setup, vary, repeats, leave_out)
        return self.experiments[name]

    def attempt(self, point) -> Attempt:
        """A context for measuring one point; see Attempt."""
        return Attempt(self, point)

    def complete(self) -> None:
        """Take the lab down; raise when a point failed (PointsFailed, which and why) or is still
        to be measured (Stopped when the time was up or only a plan was asked for)."""
        self.close()
        check_grids(self, all_declared=True)
        if not self.run.published:
            self.run.check_complete()
            self.run.write_grids()
        self.run.progress.complete()

    def judge(self, claim_id: str):
        """The Verdict on a claim of claims.yml, from the experiment that its entry names; also
        stored in build/claims/NAME.json. InputError when there is no such claim or experiment."""
        return self._judged([self._claim(claim_id)])[0]

    def verdicts(self, section: str):
        """The Verdicts on all claims of a section of claims.yml, shown as one table; also stored
        in build/claims/NAME.json. InputError when no claim is of that section."""
        from labbook.claims.verdict import Verdicts

        chosen = claims.of_section(self.claims_given, section, claims.path(self.name))
        return Verdicts(section, self._judged(chosen))

    def _judged(self, chosen: list[dict]) -> list:
        found = [judge(self, claim) for claim in chosen]
        claims.store(self.name, *(asdict(one) | {"judged": time.time()} for one in found))
        return found

    def _claim(self, claim_id):
        known = {claim["id"]: claim for claim in self.claims_given}
        if claim_id not in known:
            raise InputError(f"no such claim{did_you_mean(claim_id, known)}",
                             file=claims.path(self.name), key=claim_id, allowed=list(known))
        return known[claim_id]

    def claims(self):
        """Board of this study's claims, each with its latest verdict."""
        from labbook.claims.verdict import Board

        return Board(claims.board(self.name))

    def conditions(self, *experiments) -> dict:
        """Conditions under which points of these (or all) experiments were measured."""
        from labbook.study.results import conditions

        return conditions(self, experiments or tuple(self.experiments.values()))

    def lab_up(self):
        """The study's lab; brought up on first use, taken down by `close()`."""
        return self.session.up()

    def close(self) -> None:
        self.session.down()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def records(self, experiment: str) -> Records:
        return Records(paths.records_dir() / self.place / self.name / experiment)

    @cached_property
    def place(self) -> str:
        """Id of the machine or hosts measured on; records of two places are never mixed."""
        return provenance.place(self._environment_file())

    @cached_property
    def veil(self):
        """Removes addresses and users of hosts from data for a record."""
        return provenance.veil(self._environment_file())

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Of the code and the versions that this study would measure with now."""
        return fingerprint(self.name)

    def _environment_file(self) -> Path:
        path = paths.checkout() / self.environment
        if not path.is_file():
            known = sorted(f"environments/{p.name}" for p in path.parent.glob("*.yml"))
            raise InputError("no such environment", file=self.environment, allowed=known)
        return path


def _no_study(name: str, folder: Path) -> InputError:
    known = sorted(p.name for p in folder.parent.glob("*") if p.is_dir())
    if paths.notebook(name).is_file():
        return InputError(f"the notebook of this study is there, its folder {folder} is not",
                          key=name, allowed=known)
    return InputError(f"no such study{did_you_mean(name, known)}", key=name, allowed=known)


def _bring_up(lab_yml: Path, environment: Path):
    from labbook.lab import Environment, Lab, LabDescription

    return Lab.up(LabDescription.load(lab_yml), Environment.load(environment))
