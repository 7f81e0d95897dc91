"""The page of a study as it is, made in a copy of the checkout with so little to measure that it takes
seconds: what its tests share."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import sparing
from checkout_copy import copy_checkout

from labbook.claims import claims, rules
from labbook.lab import Lab
from labbook.study.records.record import Records

VERDICTS = {rules.REPLICATED, rules.NOT_REPLICATED, rules.OPEN, rules.NOT_TESTABLE, rules.NOT_RUN}
SECONDS = 840       # at most: below the limit of a test, so that what the run printed is in the report


@dataclass(frozen=True)
class TinyPage:
    study: str
    checkout: Path

    @classmethod
    def of(cls, study: str, folder: Path) -> "TinyPage":
        """Of a copy of the checkout below `folder`; nothing is run yet."""
        return cls(study, copy_checkout(folder / "labbook"))

    def run(self, parameters: dict, *words: str, **variables: str) -> "TinyPage":
        """By `labbook run`, with so many more words and variables of the environment."""
        given = [word for name, value in parameters.items()
                 for word in ("-p", name, value if isinstance(value, str) else json.dumps(value))]
        environ = {**os.environ, "LABBOOK_ROOT": str(self.checkout),
                   "PYTHONSTARTUP": sparing.__file__, **variables}
        environ.pop("LABBOOK_RECORDS", None)
        done = subprocess.run([sys.executable, "-m", "labbook.cli", "run", self.study, *words, *given],
                              cwd=self.checkout, env=environ, stdin=subprocess.DEVNULL, text=True,
                              timeout=SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        return self

    def points(self, experiment: str) -> list[tuple[Records, str]]:
        """Records and key of each point of the experiment."""
        found = self.checkout.glob(f"data/records/*/{self.study}/{experiment}/[!.]*.parquet")
        return [(Records(path.parent), path.stem) for path in found if ".series." not in path.name]

    def recorded(self, experiment: str) -> list[dict]:
        """The parameters and metrics of each."""
        return [values_of(*point) for point in self.points(experiment)]

    def recorded_arms(self, experiment: str) -> list[dict]:
        """The same of each arm of each point of an experiment with paired arms."""
        return [{**meta["setup"], **meta["vary"], next(iter(meta["paired"])): arm["value"], **arm["summary"]}
                for records, key in self.points(experiment) for meta in [records.meta(key)] for arm in meta["arms"]]

    def assert_judged(self, monkeypatch) -> None:
        """Each claim has its verdict, and no lab is left."""
        monkeypatch.setenv("LABBOOK_ROOT", str(self.checkout))
        judged = {one["id"]: one["verdict"] for one in claims.verdicts(self.study)}
        assert list(judged) == [claim["id"] for claim in claims.load(self.study)]
        assert set(judged.values()) <= VERDICTS
        Lab.sweep()
        assert not [lab.id for lab in Lab.list() if lab.checkout == str(self.checkout)]


def values_of(records: Records, key: str) -> dict:
    """A point's parameters and metrics."""
    meta = records.meta(key)
    return {**meta["setup"], **meta["vary"], **meta["summary"]}
