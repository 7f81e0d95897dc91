"""The measurements of Keystone on a database cluster across a WAN.

The page declares each experiment and hands it to one of the functions here, which measures the
points that remain. A point holds everything that sets its result: the settings of the cloud (those
of KeystoneCloud), its warm-up (`warmup_...`), the WAN (`rtt_ms`, `rate_mbit`, `loss`), the load
(`scenario`, `concurrency`, `times`, `seconds_at_most`), and the `tool`. Two clouds that are called at the
same time are in pairs.py, their commits in commits.py and their faults in faults.py.
"""

import time
from functools import partial

import pandas as pd

from labbook.errors import InputError
from labbook.lab import LabDescription
from labbook.lab.link.shaping import Shape
from labbook.study.point import check_range, check_values
from labbook.systems.cluster import in_parallel
from labbook.systems.keystone.stack import KeystoneCloud
from labbook.systems.null.server import NullServer
from labbook.workloads.clients.cpu import ceilings_in, limited_by_clients
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keystone.rally import SCENARIOS as RALLY_SCENARIOS
from labbook.workloads.keystone.rally import rally
from labbook.workloads.keystone.users import SCENARIOS, keystone_users

LOAD = ("scenario", "concurrency", "times", "seconds_at_most")
WAN = ("rtt_ms", "rate_mbit", "loss")
SITES = ("a", "b")          # the two sites of lab.yml
CLOUDS = ("keystone_cloud", "beside")   # systems of lab.yml, by name or label: a cloud that is alone is the first
VERSIONS = ("mariadb", "galera", "haproxy", "keystone")
TOOLS = ("labbook", "rally")    # that make calls; this library's clients by default
ALLOWED = {"scenario": SCENARIOS, "warmup_scenario": SCENARIOS, "tool": TOOLS}
LEAST = {"concurrency": 1, "writes": 1, "times": 1, "value_bytes": 1, "think_s": 0, "warmup_concurrency": 1,
         "warmup_calls": 1}
PER_CALL = ("wan_", "replicated")     # counters whose increase is reported per call


def check(experiment) -> None:
    """InputError for a cloud or a link that cannot exist, and for calls that there are not, before a lab is brought
    up."""
    check_values(experiment.points(), ALLOWED)
    check_range(experiment.points(), LEAST)
    for point in (arm for paired in experiment.points() for arm in paired.arm_points):
        if point.params.get("tool") == "rally":
            check_values([point], {"scenario": RALLY_SCENARIOS})
        KeystoneCloud.checked(cloud_settings(point))
        Shape(**chosen(point, WAN))
        if "slice_s" in point.params and not 0 < point.slice_s <= point.calling_s:
            raise InputError(f"slices of {point.slice_s:g} s in {point.calling_s:g} s of calls",
                             key=f"{point.experiment}: slice_s", allowed="more than 0, calling_s at the most")


def host_sets(lab: LabDescription) -> list[list[str]]:
    """Names of the hosts of each cloud in lab.yml."""
    hosts = {system.get("label", system["name"]): list(system["hosts"]) for system in lab.systems}
    return [hosts[name] for name in CLOUDS]


def cloud_settings(point) -> dict:
    """The settings of KeystoneCloud among a point's parameters."""
    return chosen(point, KeystoneCloud.SETTINGS)


def measure_ceiling(study, experiment) -> None:
    """Measure the clients' highest rate, with a server that answers at once and stores nothing."""
    check_values(experiment.points(), ALLOWED)
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            null = attempt.setup(
                lambda lab: NullServer(lab.host("idle"), protocol=point.protocol).up())
            load = keystone_users(Crew.of(attempt.lab), null, **chosen(point, LOAD))
            attempt.record(load.rows, metrics=load.metrics, facts=null.facts())


def measure_calls(study, experiment, ceiling) -> None:
    """Measure the time of each point's calls over the WAN, the WAN's traffic and the database's work.

    `ceiling`: the experiment of measure_ceiling, measured before. InputError for a cloud or link that
    cannot exist.
    """
    check(experiment)
    hosts = host_sets(LabDescription.load(study.folder / "lab.yml"))[0]
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            cloud = attempt.setup(lambda lab: warm_cloud(lab, point, hosts))
            wan_rtt_ms = reset(attempt, cloud)
            read, loads = partial(counters, attempt.lab, cloud), []
            idle = increase(read, lambda: time.sleep(point.idle_seconds)) if (
                "idle_seconds" in point.params) else None
            during, seconds = increase(read, lambda: loads.append(make_calls(attempt, cloud)))
            load, = loads
            facts, calls = cloud.facts(), (load.rows["step"] == "").sum()
            net = {} if idle is None else net_per_call(during, idle[0], seconds / idle[1], calls)
            attempt.record(load.rows, facts=facts, metrics={
                **load.metrics, **versions(facts), "wan_rtt_ms": wan_rtt_ms,
                **({} if point.params.get("tool") == "rally" else per_call(during, calls) | net),
                "client_limited": float(limited(point, load.metrics, ceiling))})


def warm_cloud(lab, point, hosts) -> KeystoneCloud:
    """The point's cloud on these hosts, up, with all nodes synchronised and caches warmed over a WAN without
    delay."""
    lab.link(*SITES).shape()
    return warmed(lab, point, new_cloud(lab, point, hosts))


def new_cloud(lab, point, hosts) -> KeystoneCloud:
    """The point's cloud on these hosts, up, with all nodes synchronised."""
    return KeystoneCloud([lab.host(name) for name in hosts], **cloud_settings(point)).up()


def warmed(lab, point, cloud) -> KeystoneCloud:
    """The cloud with its caches warm."""
    keystone_users(Crew.of(lab), cloud, scenario=point.warmup_scenario,
                   concurrency=point.warmup_concurrency, times=point.warmup_calls,
                   seconds_at_most=point.warmup_seconds_at_most)
    return cloud


def reset(attempt, *clouds) -> float:
    """Restore the initial users and tokens of clouds, then shape the WAN for the point.

    Returns the WAN's measured round-trip time in ms.
    """
    link = attempt.lab.link(*SITES)
    link.shape()
    in_parallel(clouds, lambda cloud: cloud.reset())
    link.shape(**chosen(attempt.point, WAN))
    return attempt.check_links()[0]["measured_rtt_ms"]


def make_calls(attempt, cloud):
    """Make the point's calls with its `tool`."""
    tool = dict(zip(TOOLS, (keystone_users, rally)))[attempt.point.params.get("tool", TOOLS[0])]
    return tool(Crew.of(attempt.lab), cloud, **chosen(attempt.point, LOAD))


def counters(lab, cloud) -> pd.Series:
    """Cumulative counters: the WAN's bytes and packets in each direction, and those of the database."""
    ways = lab.link(*SITES).traffic()
    wan = {f"wan_{what}_to_{way[-1]}": count for way, counts in ways.items()
           for what, count in (counts or {}).items()}
    return pd.Series(wan | cloud.galera.counters(), dtype=float)


def increase(read, act) -> tuple[pd.Series, float]:
    """(by how much the counters that `read()` returns rise while `act()` runs, the seconds between the two readings,
    which themselves take time)."""
    before, began = read(), time.monotonic()
    act()
    return read() - before, time.monotonic() - began


def net_per_call(during: pd.Series, idle: pd.Series, times_as_long: float, calls: int) -> dict:
    """wan_net_bytes_per_call, wan_net_packets_per_call: what crosses the WAN both ways for a call beyond
    what an idle cluster sends in the time. `idle`: its counters' increase, in a time of which `during` took
    `times_as_long`. Empty where nobody counts."""
    net = during - idle * times_as_long
    return {f"wan_net_{what}_per_call": (net[f"wan_{what}_to_a"] + net[f"wan_{what}_to_b"]) / calls
            for what in ("bytes", "packets") if f"wan_{what}_to_a" in during}


def per_call(during: pd.Series, calls: int) -> dict:
    """Metrics from the counters' increase `during` a number of calls.

    Traffic, write-sets and statements are per call; failed certifications and seconds of flow control
    are totals.
    """
    metrics = {f"{name}_per_call": during[name] / calls for name in during.index
               if name.startswith(PER_CALL)}
    for what in ("bytes", "packets"):
        if f"wan_{what}_to_a" in during:
            both = during[f"wan_{what}_to_a"] + during[f"wan_{what}_to_b"]
            metrics[f"wan_{what}_per_call"] = both / calls
    return metrics | {"statements_per_call": during["questions"] / calls,
                      "cert_failures": during["cert_failures"],
                      "flow_paused_s": during["flow_control_paused_s"]}


def versions(facts: dict) -> dict:
    """Version of each server, as the server reports it."""
    return {"mariadb": facts["galera"]["version"], "galera": facts["galera"]["provider"],
            "haproxy": facts["haproxy"]["version"], "keystone": facts["keystone"]["version"]}


def limited(point, metrics: dict, ceiling) -> bool:
    """Whether the clients may have limited the point's rate."""
    measured = ceiling.summary()
    ceilings = ceilings_in(measured[measured["scenario"] == point.scenario])
    return limited_by_clients(metrics["issued_per_s"], ceilings,
                              metrics.get("clients_cpu_share", 0))     # Rally does not report it


def chosen(point, names) -> dict:
    """The parameters of these names that the point has."""
    return {name: point.params[name] for name in names if name in point.params}
