"""Machines of a fleet that are none: a clock, and answers to the calls of a pool. Their records are sealed ones."""

import pandas as pd
import pyarrow as pa

from labbook.pipeline.fleet import on_machine
from labbook.study.records.record import Records


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Machine:
    """takes_s: a point. full_after: points, then its disk is full. broken: its records come damaged once."""

    def __init__(self, clock, folder, name, takes_s=10.0, full_after=None, broken=False, code="same"):
        self.clock, self.name, self.takes_s, self.full_after = clock, name, takes_s, full_after
        self.broken, self.code, self.up = broken, code, True
        self.failing = None     # (key of a point, why) of a point that fails
        self.folder, self.measured, self.job, self.began, self.cleaned = folder / name, [], None, 0.0, 0

    def who(self):
        return {"name": self.name, "id": f"id-{self.name}", "host": self.name, "pid": 1, "checkout": "/c"}

    def fails(self, key, why):
        """A point of it fails each time, with which its job ends."""
        self.failing = key, why

    def clean(self):
        self.cleaned += 1
        self.job = None
        return []

    def about(self, studies):
        return {"machine": {"id": f"id-{self.name}"}, "free_bytes": 1e12,
                "studies": {study: {"code": self.code, "versions": {}} for study in studies}}

    def start(self, job):
        if self.job is None or self.job["id"] != job["id"]:
            self.job, self.began = job, self.clock()
        return None

    def stop(self, id):
        self.job = self.job | {"stopped": True}

    def poll(self, id, have):
        if self.job is None or self.job["id"] != id:
            return {"state": on_machine.UNKNOWN, "records": [], "failures": [], "more": False}
        each = [(experiment, key) for experiment, keys in self.job["points"].items() for key in keys]
        done = each[:int((self.clock() - self.began) / self.takes_s)]
        error = None
        if self.full_after is not None and len(self.measured) + len(done) > self.full_after:
            done, error = done[:self.full_after], "the disk is full: a record could not be written"
        if self.job.get("stopped"):
            done, error = done[:len(have)], "stopped"
        failures = []
        if self.failing and self.failing[0] in [key for _, key in done]:
            (experiment, key), error = next(one for one in done if one[1] == self.failing[0]), self.failing[1]
            done = done[:done.index((experiment, key))]
            failures = [{"experiment": experiment, "key": key, "trace": "",
                         "failure": {"message": error.splitlines()[1]}}]
        records = [self._record(experiment, key) for experiment, key in done if key not in have]
        ended = error or len(done) == len(each)
        return {"state": on_machine.ENDED if ended else on_machine.RUNNING, "error": error, "records": records,
                "failures": failures, "more": False, "point": None, "done": len(done), "total": len(each), "left_s": 1.0,
                "note": None}

    def _record(self, experiment, key):
        self.measured.append(key)
        records = Records(self.folder / experiment)
        records.write(key, pa.Table.from_pandas(pd.DataFrame({"seconds": [1.0]})), {
            "key": key, "provenance": {"machine": {"id": f"id-{self.name}"}}}, {})
        files = records.files(key)
        if self.broken:
            files, self.broken = {name: content[:-9] for name, content in files.items()}, False
        return {"experiment": experiment, "key": key, "at": [len(self.measured)], "files": files}


class Engines:
    """In place of labbook.pipeline.fleet.engines.Engines."""

    def __init__(self, machines):
        self.machines = list(machines)

    def look(self):
        return {one.name: one.who() | {"engine": number} for number, one in enumerate(self.machines) if one.up}

    def call(self, engine, function, *arguments):
        return Call(self.machines[engine], function.__name__, arguments)


class Call:
    """It is answered at once, unless its machine is away."""

    def __init__(self, machine, name, arguments):
        self.machine, self.name, self.arguments = machine, name, arguments

    def ready(self):
        return self.machine.up

    def get(self, timeout=None):
        return getattr(self.machine, self.name)(*self.arguments)
