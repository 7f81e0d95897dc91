"""Stand-ins for a study, its experiments and its attempts, for the tests of papers' experiments."""

from contextlib import contextmanager
from types import SimpleNamespace

from labbook.study.paired import Slice, order
from labbook.study.point import Point


def point(name="response", repeat=1, paired=None, **params) -> Point:
    return Point(name, params, {}, repeat, 1, 1, 7, paired or {})


class StandIn:
    """A study whose attempts use `lab` and keep what was recorded. `hosts`: {arm: its hosts}."""

    def __init__(self, lab, folder=None, wan_rtt_ms=None, hosts=None, at_once=True):
        self.hosts, self.at_once, self.used_up = hosts, at_once, []
        self.lab, self.folder, self.recorded, self._wan_rtt_ms = lab, folder, [], wan_rtt_ms

    @contextmanager
    def attempt(self, point):
        yield SimpleNamespace(
            point=point, lab=self.lab, at_once=self.at_once, setup=self._set_up,
            check_links=lambda: [{"measured_rtt_ms": self._wan_rtt_ms}],
            slices=lambda rounds: [
                Slice(arm, number, point=point.of(arm), hosts=self.hosts[arm])
                for number, arm in order(point.arm_values, rounds, point.repeat)],
            record_slices=lambda slices, **more: self.recorded.append({"slices": slices, **more}),
            record=lambda rows=None, metrics=None, **more: self.recorded.append(
                {"rows": rows, "metrics": metrics, **more}))

    def _set_up(self, make, arm=None, used_up=False):
        self.used_up.append(used_up)
        return make(self.lab)

    @staticmethod
    def experiment(*points, summary=None):
        return SimpleNamespace(points=lambda: points, remaining=lambda: points,
                               summary=lambda: summary)
