"""Writes down, while a study's page runs, in which phase it is. Runs in the notebook's kernel.

One JSON line at each beginning and end: {edge, phase, at_s, after}, `after` the phase before it; and
{edge: "point", key} when a point begins. Phases lie within one another: a point is `load` but for
the parts that have a name of their own.
"""

import functools
import importlib
import json
import os
import threading
import time

LOG, POINTS = "LABBOOK_KILLS_LOG", "LABBOOK_KILLS_POINTS"
# `up` makes the lab, `systems` starts servers in it.
PARTS = {
    "labbook.lab.lab:Lab.up": "up",
    "labbook.lab.lab:Lab.down": "down",
    "labbook.study.attempt:Attempt.setup": "systems",
    "labbook.study.records.record:Records.write": "record",
    "labbook.papers.cms_scalability.experiments:fill_and_warm": "fill",
    "labbook.systems.keystone.state:_fill": "fill",
    "labbook.papers.wan_keystone.faults:cut_wan": "fault",
    "labbook.papers.wan_keystone.faults:kill_node": "fault",
    "labbook.papers.cassandra_elasticity.donor:Donor.restore": "systems",
    "labbook.papers.cassandra_elasticity.donor:load_pairs": "fill",
    "labbook.papers.cassandra_elasticity.experiments:kill_joiner": "fault",
    "labbook.papers.ceph_mds.crash:CrashRun.make_trees": "fill",
    "labbook.papers.ceph_mds.crash:CrashRun.ask_clients": "fault",
    "labbook.papers.ceph_mds.experiments:kill_and_await": "fault",
    "labbook.systems.openstack.seed:_fill": "fill",
    "labbook.workloads.clouds.testbed:Testbed.rebooted": "fault",
}


class Story:
    """Writes the lines; `under`: the phases that have begun and not ended, the innermost last."""

    def __init__(self, path: str):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.under, self._last = [], ""

    def write(self, edge, **more):
        line = {"edge": edge, "at_s": time.time(), **more}
        os.write(self._file, (json.dumps(line) + "\n").encode())

    def begin(self, phase):
        self.under.append(phase)
        self.write("begin", phase=phase, after=self._last)
        self._last = phase

    def end(self, phase):
        self.under.remove(phase)
        self.write("end", phase=phase)
        self._last = phase
        if self.under:
            self.write("begin", phase=self.under[-1], after=phase)


def watch(study) -> None:
    """Write down this study's phases from here on; after POINTS points no other begins."""
    story, points = Story(os.environ[LOG]), [int(os.environ.get(POINTS) or 1_000_000)]
    for place, phase in PARTS.items():
        _wrap(place, lambda real, phase=phase: _as_phase(story, phase, real))
    _wrap("labbook.study.attempt:Attempt.__enter__", lambda real: _begins(story, real))
    _wrap("labbook.study.attempt:Attempt.__exit__", lambda real: _ends(story, study, points, real))


def _wrap(place, change):
    module, _, name = place.partition(":")
    owner = importlib.import_module(module)
    *outer, name = name.split(".")
    for one in outer:
        owner = getattr(owner, one)
    real = vars(owner)[name]
    if isinstance(real, classmethod):
        setattr(owner, name, classmethod(change(real.__func__)))
    else:
        setattr(owner, name, change(real))


def _as_phase(story, phase, real):
    @functools.wraps(real)
    def within(*given, **more):
        if threading.current_thread() is not threading.main_thread():
            return real(*given, **more)
        story.begin(phase)
        try:
            return real(*given, **more)
        finally:
            story.end(phase)
    return within


def _begins(story, real):
    def enter(attempt):
        story.write("point", key=attempt.point.key)
        story.begin("load")
        return real(attempt)
    return enter


def _ends(story, study, points, real):
    def leave(attempt, *error):
        try:
            return real(attempt, *error)
        finally:
            story.end("load")
            points[0] -= 1
            if points[0] <= 0:
                study.run.until = 0.0
    return leave
