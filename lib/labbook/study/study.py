"""A study: the replication of one paper, with its experiments, records and verdicts."""

import time
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

from labbook import paths
from labbook.checks import did_you_mean
from labbook.claims import claims
from labbook.errors import InputError
from labbook.study.attempt import Attempt
from labbook.study.experiment import Experiment
from labbook.study.explorer import shown
from labbook.study.judging import check_grids, judge
from labbook.study.parameters import given
from labbook.study.records import provenance
from labbook.study.records.code_files import CodeFiles
from labbook.study.records.fingerprint import Fingerprint, fingerprint
from labbook.study.records.record import Records
from labbook.study.run import PointsFailed, Run
from labbook.study.session import Session
from labbook.study.watcher import Watcher

__all__ = ["PointsFailed", "Study"]


class Study:
    """The study with data in data/papers/NAME/.

    environment: path of an environment file, relative to the checkout's root. bring_up: function of
    (lab.yml, environment file) that returns a running lab; by default `labbook.lab.Lab.up`.
    InputError for an unknown study, an invalid claims.yml, and in a notebook for parameters that it does
    not have or of a wrong type.
    """

    def __init__(self, name: str, environment="environments/local.yml", *, bring_up=None):
        self.name, self.environment = name, Path(environment)
        self.folder = paths.papers(name)
        if not self.folder.is_dir():
            raise _no_study(name, self.folder)
        given.check(name)
        shown.use(given.shell())
        self._watch(given.shell())
        self.claim_entries = claims.load(name)
        self.run = Run(self)
        self.experiments, self.published_parts = {}, {}
        make = bring_up or self._bring_up
        self.session = Session(lambda: make(self.folder / "lab.yml", self.environment_file()))
        self.watcher = Watcher()
        self._tried = False     # whether somebody had the lab in hand
        self._code_files = None     # as they were when the fingerprint was taken

    def _watch(self, shell) -> None:
        """Take the lab down after a cell that was interrupted, also between two points; one that is tried by hand
        stays."""
        def ended(result):
            if isinstance(result.error_in_exec, KeyboardInterrupt) and not self._tried:
                self.session.down()

        if hasattr(shell, "events"):
            shell.events.register("post_run_cell", ended)

    def __repr__(self):
        return shown.study(self)

    def _repr_html_(self) -> str:
        return shown.study_table(self)

    def experiment(self, name: str, setup=None, vary=None, repeats=1, *,
                   leave_out=None, paired=None, hosts=None, serves=None) -> Experiment:
        """Declare an Experiment: a grid of every combination of `setup` and `vary`, `repeats` times.

        setup: {parameter: values}; a change restarts the systems. vary: {parameter: values} that can
        change without a restart. leave_out: function of a point; where it returns true, the point is
        omitted. paired: {parameter: values} of one parameter whose values, the arms, are measured close
        together within each point. hosts: {value: names of the arm's hosts}, with which the arms are up
        at the same time where memory carries that. serves: of an experiment that no claim reads, a function
        of a point and of an entry of claims.yml: whether what decides that claim rests on the point; an ask
        measures no others. InputError for invalid names and values.
        """
        self.experiments[name] = Experiment(self, name, setup, vary, repeats, leave_out,
                                            paired=paired, hosts=hosts, serves=serves)
        return self.experiments[name]

    def attempt(self, point) -> Attempt:
        """A context for measuring one point; see Attempt. A lab that was tried by hand goes down first. InputError
        where the code that measures has changed since the study's fingerprint was taken."""
        made_by = self.fingerprint      # taken before the first point, so that an edit during it is noticed
        if self._code_files:
            self._code_files.check(made_by)
        if self._tried:
            self.close()
        return Attempt(self, point)

    def complete(self) -> None:
        """Take the lab down and check that every point has a valid record.

        PointsFailed, with points and reasons, when points failed. Stopped when the time limit passed, only a plan was
        requested, or a round of an ask is over. LabbookError when points were not measured for another reason.
        """
        self.close()
        check_grids(self, all_declared=True)
        if not self.run.published:
            self.run.check_complete()
            self.run.write_grids()
        self.run.progress.complete()

    def judge(self, claim_id: str):
        """The Verdict on a claim of claims.yml, judged by the experiment that its entry names.

        The verdict is also stored in build/claims/NAME.json. InputError for an unknown claim, or one
        whose experiment is not declared.
        """
        return self._judge_all([self._claim(claim_id)])[0]

    def verdicts(self, section: str):
        """The Verdicts on all claims of a section of claims.yml, which a page shows as one table.

        They are also stored in build/claims/NAME.json. InputError when no claim has the section.
        """
        from labbook.claims.verdict import Verdicts

        chosen = claims.of_section(self.claim_entries, section, claims.path(self.name))
        return Verdicts(section, self._judge_all(chosen))

    def _judge_all(self, chosen: list[dict]) -> list:
        judged = self._judged(chosen)
        self.store(map(asdict, judged))
        return judged

    def _judged(self, chosen: list[dict]) -> list:
        read = {}       # experiments' rows and conditions: each is read once
        return [judge(self, claim, read) for claim in chosen]

    def judged(self, ids) -> list:
        """The Verdicts on claims, which are not stored."""
        return self._judged([self._claim(one) for one in ids])

    def store(self, verdicts) -> None:
        """Store verdicts, as dicts, in build/claims/NAME.json."""
        claims.store(self.name, *(one | {"judged": time.time()} for one in verdicts))

    def _claim(self, claim_id):
        known = {claim["id"]: claim for claim in self.claim_entries}
        if claim_id not in known:
            raise InputError(f"no such claim{did_you_mean(claim_id, known)}",
                             file=claims.path(self.name), key=claim_id, allowed=list(known))
        return known[claim_id]

    def claims(self):
        """Board of this study's claims, each with its latest verdict."""
        from labbook.claims.verdict import Board

        return Board(claims.board(self.name))

    def conditions(self, *experiments) -> dict:
        """Conditions under which the points of these experiments, by default of all, were measured: a dict
        as described at labbook.study.records.conditions.combined. Of published points also `changes`, those of the
        code over which they were carried (see published.changes); absent if there are none."""
        from labbook.study import results

        chosen = experiments or tuple(self.experiments.values())
        changes = results.changes(self, chosen)
        return results.conditions(self, chosen) | ({"changes": changes} if changes else {})

    def lab_up(self):
        """The study's lab; brought up on first use, taken down by `close()`."""
        return self.session.up()

    def with_own_lab(self, experiment: str) -> str | None:
        """The experiment, if lab.yml has hosts or models of disks of it alone."""
        return experiment if experiment in self.experiments_apart else None

    @cached_property
    def experiments_apart(self) -> set[str]:
        """The experiments for which lab.yml has hosts or models of disks of their own."""
        from labbook.lab import LabDescription

        file = self.folder / "lab.yml"
        return LabDescription.load(file).apart if file.exists() else set()

    def _bring_up(self, lab_yml: Path, environment: Path):
        from labbook.lab import Environment, Lab, LabDescription

        return Lab.up(LabDescription.load(lab_yml).of(self.session.apart_for), Environment.load(environment))

    def lab(self):
        """A Lab to try things in by hand: run a command on a host, shape a link, call a workload. It is the one
        that `labbook up` keeps up, or else brought up here until `close()`. Nothing enters a record."""
        from labbook.lab import kept

        if (lab := kept.find(self.name)) is not None:
            return lab
        self._tried = True
        return self.lab_up()

    def system(self, name: str):
        """A system of lab.yml on that lab, by its label or name: a target for a workload. `up()` starts it,
        unless `labbook up` has. InputError for another name."""
        from labbook.study.explorer import trying

        return trying.system(self, name)

    def explore(self):
        """Choose an experiment, what is drawn over what, and see the figure and its rows: widgets in JupyterLab
        with ipywidgets, otherwise a table of what was measured."""
        from labbook.study.explorer import exploring

        return exploring.explore(self)

    def close(self) -> None:
        """Take the lab down, if there is one that this study brought up."""
        self._tried = False
        self.session.down()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def records(self, experiment: str) -> Records:
        """The records of an experiment on this machine, or on the environment's hosts."""
        return Records(paths.records_dir() / self.place / self.name / experiment)

    @cached_property
    def place(self) -> str:
        """Id of the machine or hosts that are measured on, or a fleet, which is a folder of the records."""
        return self.run.fleet or provenance.place(self.environment_file())

    @cached_property
    def redact(self):
        """A function that removes addresses and user names of hosts from data for a record."""
        return provenance.redactor(self.environment_file())

    @cached_property
    def published_verdicts(self) -> dict[str, dict]:
        """{claim's id: the published verdict that stands where a run measured nothing}."""
        from labbook.study.publication import published_verdicts

        sets = published_verdicts.by_machine(self.name)
        return published_verdicts.of_today(sets, self.name, self.fingerprint.code)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """Fingerprint of the current code and versions."""
        self._code_files = CodeFiles(self.name)
        return fingerprint(self.name)

    def environment_file(self) -> Path:
        """The path of the environment file; InputError if it is missing."""
        path = paths.checkout() / self.environment
        if not path.is_file():
            known = sorted(f"environments/{p.name}" for p in path.parent.glob("*.yml"))
            raise InputError("no such environment", file=self.environment, allowed=known)
        return path


def _no_study(name: str, folder: Path) -> InputError:
    known = sorted(p.name for p in folder.parent.glob("*") if p.is_dir())
    if paths.notebook(name).is_file():
        return InputError(f"this study has a notebook, but no folder {folder}",
                          key=name, allowed=known)
    return InputError(f"no such study{did_you_mean(name, known)}", key=name, allowed=known)
