"""The measurements of Keystone on a database cluster across a WAN.

The page declares each experiment and hands it to one of the functions here, which measures the
points that remain. A point holds everything that sets its result: the settings of the cloud (those
of KeystoneCloud), its warm-up (`warmup_...`), the WAN (`rtt_ms`, `rate_mbit`), the load
(`scenario`, `concurrency`, `times`, `seconds_at_most`), the `tool`, and the fault. Two clouds that are called
at the same time are in pairs.py.
"""

import time

import pandas as pd

from labbook.lab.link.shaping import Shape
from labbook.systems.keystone.stack import KeystoneCloud
from labbook.systems.null.server import NullServer
from labbook.workloads.clients.cpu import ceilings_in, limited_by_clients
from labbook.workloads.clients.outage import outage, timeline
from labbook.workloads.crew.crew import Crew
from labbook.workloads.histories import calls as histories
from labbook.workloads.keystone.history import last_lists
from labbook.workloads.keystone.rally import rally
from labbook.workloads.keystone.users import begin_users, keystone_users

LOAD = ("scenario", "concurrency", "times", "seconds_at_most")
STREAM = ("scenario", "concurrency", "seconds_at_most", "call_seconds")
WAN = ("rtt_ms", "rate_mbit")
SITES = ("a", "b")          # the two sites of lab.yml
FIRST = (*(f"db{number}" for number in range(1, 7)), "lb", "keystone")    # hosts of a cloud that is alone
VERSIONS = ("mariadb", "galera", "haproxy", "keystone")
PER_CALL = ("wan_", "replicated")     # counters whose increase is reported per call
USERS = "SELECT name FROM keystone.local_user"


def check(experiment) -> None:
    """InputError for a cloud or a link that cannot exist, before a lab is brought up."""
    for point in experiment.points():
        KeystoneCloud.checked(cloud_settings(point))
        Shape(**chosen(point, WAN))


def cloud_settings(point) -> dict:
    """The settings of KeystoneCloud among a point's parameters."""
    return chosen(point, KeystoneCloud.SETTINGS)


def measure_ceiling(study, experiment) -> None:
    """Measure the clients' highest rate, with a server that answers at once and stores nothing."""
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
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            cloud = attempt.setup(lambda lab: warm_cloud(lab, point))
            wan_rtt_ms = reset(attempt, cloud)
            idle = increase(attempt.lab, cloud, lambda: time.sleep(point.idle_seconds)) if (
                "idle_seconds" in point.params) else None
            before, began = counters(attempt.lab, cloud), time.monotonic()
            load = make_calls(attempt, cloud)
            during, seconds = counters(attempt.lab, cloud) - before, time.monotonic() - began
            facts, calls = cloud.facts(), (load.rows["step"] == "").sum()
            net = {} if idle is None else net_per_call(during, idle, seconds / point.idle_seconds, calls)
            attempt.record(load.rows, facts=facts, metrics={
                **load.metrics, **versions(facts), "wan_rtt_ms": wan_rtt_ms, **per_call(during, calls), **net,
                "client_limited": float(limited(point, load.metrics, ceiling))})


def measure_faults(study, experiment, fault) -> None:
    """Measure calls during a fault: their times, the outage, which acknowledged users remain, and the
    anomalies in the calls' history (histories.calls.metrics), which ends with each node's own list.

    `fault(attempt, cloud, now)` causes a fault, repairs it and returns events as metrics; it is
    kill_node, cut_wan, or by_name. `now()` is the time in seconds since the calls began.
    """
    check(experiment)
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            cloud = attempt.setup(lambda lab: warm_cloud(lab, point))
            reset(attempt, cloud)
            stream = begin_users(Crew.of(attempt.lab), cloud, **chosen(point, STREAM))
            time.sleep(point.before_seconds)
            events = fault(attempt, cloud, stream.since_start)
            time.sleep(point.after_seconds)
            load = stream.end()
            begun = stream.since_start()
            nodes = users_on_each(cloud)
            history = [*load.history, *last_lists(nodes, begun, stream.since_start())]
            attempt.record(load.rows, facts=cloud.facts(), series={"history": histories.frame(history)}, metrics={
                **load.metrics, **events, **interruption(load.rows, events),
                **timeline(load.rows, point.bin_seconds), **acknowledged(nodes, load.rows),
                **histories.metrics(history, load.slack_s)})


def warm_cloud(lab, point, hosts=FIRST) -> KeystoneCloud:
    """The point's cloud on these hosts, up, with all nodes synchronised and caches warmed over a WAN without
    delay."""
    lab.link(*SITES).shape()
    cloud = KeystoneCloud([lab.host(name) for name in hosts], **cloud_settings(point))
    keystone_users(Crew.of(lab), cloud.up(), scenario=point.warmup_scenario,
                   concurrency=point.warmup_concurrency, times=point.warmup_calls,
                   seconds_at_most=point.warmup_seconds_at_most)
    return cloud


def reset(attempt, *clouds) -> float:
    """Restore the initial users and tokens of clouds, then shape the WAN for the point.

    Returns the WAN's measured round-trip time in ms.
    """
    link = attempt.lab.link(*SITES)
    link.shape()
    for cloud in clouds:
        cloud.reset()
    link.shape(**chosen(attempt.point, WAN))
    return attempt.check_links()[0]["measured_rtt_ms"]


def make_calls(attempt, cloud):
    """Make the point's calls with its `tool`; this library's clients by default."""
    tool = {"labbook": keystone_users, "rally": rally}[attempt.point.params.get("tool", "labbook")]
    return tool(Crew.of(attempt.lab), cloud, **chosen(attempt.point, LOAD))


def counters(lab, cloud) -> pd.Series:
    """Cumulative counters: the WAN's bytes and packets in each direction, and those of the database."""
    ways = lab.link(*SITES).traffic()
    wan = {f"wan_{what}_to_{way[-1]}": count for way, counts in ways.items()
           for what, count in (counts or {}).items()}
    return pd.Series(wan | cloud.galera.counters(), dtype=float)


def increase(lab, cloud, act) -> pd.Series:
    """By how much the counters rise while `act()` runs."""
    before = counters(lab, cloud)
    act()
    return counters(lab, cloud) - before


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


def kill_node(attempt, cloud, now) -> dict:
    """Kill the point's database node, restart it, and wait until it is synchronised.

    Returns event times in seconds, the rejoin's duration and its kind (`came_by`: IST or SST).
    """
    node = cloud.galera.node(attempt.point.victim)
    fault = now()
    node.process.kill()
    cloud.galera.synced([host.name for host in cloud.galera.hosts if host is not node.host])
    begin = now()
    rejoin = node.rejoin(by=attempt.point.rejoin)
    return {"fault_s": fault, "restarted_s": begin, "rejoined_s": now(),
            "rejoin_s": rejoin["seconds"], "came_by": rejoin["by"]}


def cut_wan(attempt, cloud, now) -> dict:
    """Cut the WAN for the point's `cut_seconds`, restore it, and wait until all nodes are synchronised.

    Returns event times in seconds, and the time from the WAN's return until then.
    """
    link = attempt.lab.link(*SITES)
    fault = now()
    link.cut()
    time.sleep(max(0, fault + attempt.point.cut_seconds - now()))
    heal = now()
    link.heal()
    cloud.galera.synced()
    synced = now()
    return {"fault_s": fault, "healed_s": heal, "rejoined_s": synced, "rejoin_s": synced - heal}


def by_name(attempt, cloud, now) -> dict:
    """The fault that the point names: "kill" or "cut"."""
    return {"kill": kill_node, "cut": cut_wan}[attempt.point.fault](attempt, cloud, now)


def interruption(rows, events: dict) -> dict:
    """Metrics of the outage after the fault; `back_s`: from the WAN's return to the first success, s."""
    metrics = outage(rows, events["fault_s"])
    if "healed_s" in events:
        after = outage(rows, events["healed_s"])
        metrics |= {"back_s": after["first_success_s"]} if "first_success_s" in after else {}
    return metrics


def users_on_each(cloud) -> dict:
    """{node: the set of all names of users that it has}."""
    return {node: {name for name, in users} for node, users in cloud.galera.query_each(USERS).items()}


def acknowledged(nodes: dict, rows) -> dict:
    """acknowledged: number of users whose creation was acknowledged; kept: the share that every node has."""
    made = set(rows["user"]) - {""}       # includes calls that failed after the creation
    everywhere = set.intersection(*nodes.values())
    return {"acknowledged": len(made), "kept": len(made & everywhere) / max(1, len(made))}


def chosen(point, names) -> dict:
    """The parameters of these names that the point has."""
    return {name: point.params[name] for name in names if name in point.params}
