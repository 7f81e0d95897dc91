"""The five studies, each with as little to measure as a lab of its own allows, and which kills it gets.

Each time a study runs it has one repeat more than before, so that there is always a point to measure.
"""

from dataclasses import dataclass, field

PHASES = ("up", "systems", "fill", "load", "fault", "record", "down")


@dataclass(frozen=True)
class Study:
    """`grows`: the parameter with the repeats of `tiny`; `faults`: of points with a fault, to which the
    phases `in_fault` belong. `kills`: how many of a hundred, by phase. `once`: patterns of the names in
    the cache of what is filled once, which a kill during `fill` has to find missing."""

    tiny: dict
    kills: dict
    grows: str
    faults: str | None = None
    fault: dict = field(default_factory=dict)
    in_fault: tuple = ("fault",)
    once: tuple = ()

    def parameters(self, phase: str, repeats: int) -> dict:
        """For a run that is killed in this phase."""
        if phase in self.in_fault:
            return {**self.tiny, **self.fault, self.grows: 0, self.faults: repeats}
        return {**self.tiny, self.grows: repeats}


def _off(*names) -> dict:
    return {f"{name}.repeats": 0 for name in names}


FEW = {"load.requests": 50, "load.seconds_at_most": 0.2, "load.warmup_requests": 5}
ONE = {f"{group}.clients": [2] for group in ("clients", "nodes", "placed", "levels", "writes", "wiki")}
STUDIES = {
    "cms_scalability": Study(
        tiny={**FEW, **ONE, "warm.rounds": 1, "warm.clients": 2, "warm.requests": 20, "warm.seconds": 0.2,
              **_off("nodes", "writes", "warmth", "wiki")},
        grows="clients.repeats",
        kills={"up": 8, "systems": 5, "fill": 6, "load": 6, "record": 6, "down": 5}),
    "wan_keystone": Study(
        tiny={"cloud.users": 20, "cloud.projects": 3, "cloud.revocations": 10, "cloud.processes": 3,
              "load.concurrency": 2, "load.times": 10, "warmup.concurrency": 2, "warmup.calls": 4,
              "response.rtt_ms": [40], "response.scenario": ["create_user"],
              **_off("bandwidth", "windows", "cache", "tools", "kill", "cut")},
        grows="response.repeats", faults="cut.repeats",
        fault={"cut.rtt_ms": 40, "cut.weight": [1], "cut.before_seconds": 1.0, "cut.cut_seconds": 4.0,
               "cut.after_seconds": 1.0},
        once=("keystone-seed-*",),
        kills={"up": 4, "systems": 4, "fill": 2, "load": 3, "fault": 3, "record": 2, "down": 2}),
    "cassandra_elasticity": Study(
        tiny={"cassandra.data_mb": 16, "cassandra.ring_delay_ms": 2500, "cassandra.stream_mbit": 8,
              "joins.clients": 4, "joins.before_s": 0.5, "joins.after_s": 0.5, "ceiling.calling_s": 1.0,
              "seek.reading_s": 0.5, "size.data_mb": [16], "size.loads": ["read"],
              **_off("response", "disk")},
        grows="size.repeats", faults="dying.repeats",
        fault={"dying.again_within_s": 45.0, "dying.looking_s": 10.0},
        kills={"up": 4, "systems": 3, "fill": 3, "load": 3, "fault": 2, "record": 2, "down": 2}),
    "ceph_mds": Study(
        tiny={"rates.directories": [1], "rates.tools": ["own"], "clients.numbers": [1],
              "ceiling.directories": 1, "files": 128, **_off("cached", "crash", "recovery")},
        grows="rates.repeats", faults="crash.repeats",
        fault={"crash.spares": [False], "crash.ranks": [1], "crash.loads": ["idle"],
               "crash.directories": 4, "crash.files": 10,
               "crash.second_client_every": 0},
        in_fault=("fill", "fault"),
        kills={"up": 4, "systems": 2, "fill": 2, "load": 3, "fault": 3, "record": 1, "down": 2}),
    "cloud_platforms": Study(
        tiny={"releases": ["newer"], "functions.releases": ["newer"], "functions.function": ["quota"],
              "shapes.releases": ["newer"], **_off("boot", "shapes")},
        grows="functions.repeats", faults="functions.repeats",
        fault={"functions.function": ["reboot_several"]}, once=("openstack-*-" + 10 * "[0-9a-f]",),
        kills={"up": 2, "systems": 1, "fill": 1, "load": 1, "fault": 1, "record": 1, "down": 1}),
}
