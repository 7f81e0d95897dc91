"""The measurements of Keystone on a database cluster across a WAN.

The page declares each experiment and hands it to one of the functions here, which measures the
points that remain. A point holds everything that sets its result: the settings of the cloud (those
of KeystoneCloud), its warm-up (`warmup_...`), the WAN (`rtt_ms`, `rate_mbit`), the load
(`scenario`, `concurrency`, `times`, `seconds_at_most`), the `tool`, and the fault.
"""

import time

import pandas as pd

from labbook.lab.link.shaping import Shape
from labbook.systems.keystone.stack import KeystoneCloud
from labbook.systems.null.server import NullServer
from labbook.workloads.clients.cpu import client_limited
from labbook.workloads.clients.outage import outage, timeline
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keystone.rally import rally
from labbook.workloads.keystone.users import begin_users, keystone_users

LOAD = ("scenario", "concurrency", "times", "seconds_at_most")
STREAM = ("scenario", "concurrency", "seconds_at_most", "call_seconds")
WAN = ("rtt_ms", "rate_mbit")
SITES = ("a", "b")          # the two sites of lab.yml
VERSIONS = ("mariadb", "galera", "haproxy", "keystone")
PER_CALL = ("wan_", "replicated")     # counters whose increase is reported per call
USERS = "SELECT name FROM keystone.local_user"


def check(experiment) -> None:
    """InputError for a cloud or a link that cannot exist, before a lab is brought up."""
    for point in experiment.points():
        KeystoneCloud.checked(cloud_settings(point))
        Shape(**_chosen(point, WAN))


def cloud_settings(point) -> dict:
    """The settings of KeystoneCloud among a point's parameters."""
    return _chosen(point, KeystoneCloud.SETTINGS)


def measure_ceiling(study, experiment) -> None:
    """The rate that the clients reach against a server that answers at once and stores nothing."""
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            null = attempt.setup(
                lambda lab: NullServer(lab.host("idle"), protocol=point.protocol).up())
            load = keystone_users(Crew.of(attempt.lab), null, **_chosen(point, LOAD))
            attempt.record(load.rows, metrics=load.metrics, facts=null.facts())


def measure_calls(study, experiment, ceiling) -> None:
    """Time of the calls over the WAN of each point, with what crossed the WAN and what the database
    did meanwhile. `ceiling`: the experiment of measure_ceiling."""
    check(experiment)
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            cloud = attempt.setup(lambda lab: warm_cloud(lab, point))
            wan_rtt_ms = reset(attempt, cloud)
            before = counters(attempt.lab, cloud)
            load = make_calls(attempt, cloud)
            during = counters(attempt.lab, cloud) - before
            facts = cloud.facts()
            attempt.record(load.rows, facts=facts, metrics={
                **load.metrics, **versions(facts), "wan_rtt_ms": wan_rtt_ms,
                **per_call(during, (load.rows["step"] == "").sum()),
                "client_limited": float(limited(point, load.metrics, ceiling))})


def measure_faults(study, experiment, fault) -> None:
    """Calls that go on while `fault(attempt, cloud, now)` breaks something and mends it: their
    course in time, the outage, and the share of acknowledged users that all nodes have at the end.

    `fault` is kill_node or cut_wan; `now()` is the time in seconds since the calls began."""
    check(experiment)
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            cloud = attempt.setup(lambda lab: warm_cloud(lab, point))
            reset(attempt, cloud)
            stream = begin_users(Crew.of(attempt.lab), cloud, **_chosen(point, STREAM))
            time.sleep(point.before_seconds)
            events = fault(attempt, cloud, lambda: time.time() - stream.started)
            time.sleep(point.after_seconds)
            load = stream.end()
            attempt.record(load.rows, facts=cloud.facts(), metrics={
                **load.metrics, **events, **interruption(load.rows, events),
                **timeline(load.rows, point.bin_seconds), **acknowledged(cloud, load.rows)})


def warm_cloud(lab, point) -> KeystoneCloud:
    """The point's cloud, up, in step and warmed, over a WAN without delay."""
    lab.link(*SITES).shape()
    cloud = KeystoneCloud(list(lab.hosts.values()), **cloud_settings(point))
    keystone_users(Crew.of(lab), cloud.up(), scenario=point.warmup_scenario,
                   concurrency=point.warmup_concurrency, times=point.warmup_calls,
                   seconds_at_most=point.warmup_seconds_at_most)
    return cloud


def reset(attempt, cloud) -> float:
    """Restore the first users and revoked tokens over a WAN without delay, then shape the WAN as
    the point says. Returns its measured round trip in ms."""
    link = attempt.lab.link(*SITES)
    link.shape()
    cloud.reset()
    link.shape(**_chosen(attempt.point, WAN))
    return attempt.check_links()[0]["measured_rtt_ms"]


def make_calls(attempt, cloud):
    """The point's calls by the point's tool, by this library's clients where it names none."""
    tool = {"labbook": keystone_users, "rally": rally}[attempt.point.params.get("tool", "labbook")]
    return tool(Crew.of(attempt.lab), cloud, **_chosen(attempt.point, LOAD))


def counters(lab, cloud) -> pd.Series:
    """Bytes and packets that the WAN has carried each way, and the database's counters, so far."""
    ways = lab.link(*SITES).traffic()
    wan = {f"wan_{what}_to_{way[-1]}": count for way, counts in ways.items()
           for what, count in (counts or {}).items()}
    return pd.Series(wan | cloud.galera.counters(), dtype=float)


def per_call(during: pd.Series, calls: int) -> dict:
    """Metrics from the counters' increase during so many calls: traffic, write-sets and statements
    per call; failed certifications and seconds of flow control in all."""
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
    """Whether the clients may have set the rate that was measured at the point."""
    highest = ceiling.summary().groupby("scenario")["rate_per_s"].max()[point.scenario]
    return client_limited(metrics["rate_per_s"], highest,
                          metrics.get("clients_cpu_share", 0))     # Rally does not report it


def kill_node(attempt, cloud, now) -> dict:
    """Kill the point's database node, start it again, and wait until it is in step."""
    node = cloud.galera.node(attempt.point.victim)
    fault = now()
    node.process.kill()
    cloud.galera.synced([host.name for host in cloud.galera.hosts if host is not node.host])
    begin = now()
    rejoin = node.rejoin(by=attempt.point.rejoin)
    return {"fault_s": fault, "restarted_s": begin, "rejoined_s": now(),
            "rejoin_s": rejoin["seconds"], "came_by": rejoin["by"]}


def cut_wan(attempt, cloud, now) -> dict:
    """Cut the WAN for the point's `cut_seconds`, heal it, and wait until all nodes are in step."""
    link = attempt.lab.link(*SITES)
    fault = now()
    link.cut()
    time.sleep(max(0, fault + attempt.point.cut_seconds - now()))
    heal = now()
    link.heal()
    cloud.galera.synced()
    synced = now()
    return {"fault_s": fault, "healed_s": heal, "rejoined_s": synced, "rejoin_s": synced - heal}


def interruption(rows, events: dict) -> dict:
    """The outage after the fault, and `back_s`: from the WAN's return to the first success."""
    metrics = outage(rows, events["fault_s"])
    if "healed_s" in events:
        after = outage(rows, events["healed_s"])
        metrics |= {"back_s": after["first_success_s"]} if "first_success_s" in after else {}
    return metrics


def acknowledged(cloud, rows) -> dict:
    """How many users' creation was acknowledged, and the share of them that every node has."""
    made = set(rows["user"]) - {""}       # also of calls that failed later
    nodes = cloud.galera.query_each(USERS)
    everywhere = set.intersection(*({name for name, in users} for users in nodes.values()))
    return {"acknowledged": len(made), "kept": len(made & everywhere) / max(1, len(made))}


def _chosen(point, names) -> dict:
    return {name: point.params[name] for name in names if name in point.params}
