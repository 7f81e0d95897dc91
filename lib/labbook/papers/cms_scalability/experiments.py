"""The measurements of Cassandra and MySQL under many clients.

The page declares each experiment and hands it to one of the functions here, which measures the
points that remain. A point holds everything that sets its result: the store (`store` of an `era`)
and its settings, the server (`cores`, and its share of a core), the warm-up (`warm_...`) and the
load (LOAD). The systems of each era, the hosts and their shares are those of lab.yml.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from labbook.claims.comparison import matches
from labbook.lab import LabDescription
from labbook.papers.cms_scalability import placement
from labbook.study.point import check_values
from labbook.systems import find
from labbook.systems.cassandra.ring import Ring, check_size
from labbook.systems.cluster import Fleet, start_together
from labbook.systems.null.server import NullServer
from labbook.systems.wiki.server import Wiki
from labbook.workloads.clients.cpu import ceilings_in, limited_by_clients
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keyvalue.contents import fill_and_warm, shared_pages
from labbook.workloads.keyvalue.load import check_load, in_turns, keyvalue

STORES = ("cassandra", "mysql")
SERVER_OF = {1: "small", 2: "large"}    # server by the point's `cores`
CLIENT = "client"
CEILING = "idle"                        # host of the server that shows the clients' ceiling
WARM = ("clients", "requests", "seconds", "within", "in_a_row")     # of fill_and_warm, as warm_...
TURN_SECONDS = 0.02                     # of each store, where one client's calls are compared
LEAST_MS = 0.001                        # of a server's own time
LOAD = ("op", "clients", "rows", "consistency", "requests", "value_bytes", "warmup_requests",
        "seconds_at_most")
# Experiments with many clients.
WITH_CEILING = ("clients", "nodes", "many", "stages", "placed", "levels", "repair", "writes", "flush", "wiki")
WRITTEN = dict.fromkeys(["update", "insert"], "write")  # the operation of the ceiling for another one
AS_SHIPPED = "as_shipped"               # durability: the store's default
ANY = "ANY"                             # a level for writes alone, which are warmed as at the others


class Place(NamedTuple):
    """Where and what servers are: their point, {host: its share of a core}, and `new(lab)`, which returns them
    up, with an empty table."""

    point: object
    shares: dict
    new: Callable


@dataclass(frozen=True)
class Layout:
    """The study's systems and hosts, from the `description` in lab.yml."""

    description: LabDescription

    @classmethod
    def of(cls, study) -> "Layout":
        return cls(LabDescription.load(study.folder / "lab.yml"))

    @property
    def shares(self) -> dict:
        """{host: its share of a core, or None without a limit}."""
        return {host.name: host.limits.get("quota") for host in self.description.hosts}

    @property
    def nodes(self) -> list[str]:
        """The hosts of Cassandra's nodes."""
        return self._of_role("node")

    @property
    def web(self) -> list[str]:
        """The hosts of web servers."""
        return self._of_role("web")

    def system(self, era: str, store: str) -> tuple[str, dict]:
        """Name and settings of an era's store; InputError for one that lab.yml does not have."""
        return self.description.system(f"{store}_{era}")

    def version(self, era: str, store: str) -> str:
        """The version in lab.yml; the era's name for a version that is Debian's."""
        return self.system(era, store)[1].get("version", era)

    def protocol(self, era: str, store: str) -> str:
        """The client protocol of an era's store."""
        name, settings = self.system(era, store)
        return find(name).speaks(**settings)

    def protocols(self, eras, versions=()) -> list[str]:
        """The protocols of the eras' stores, of these versions of Cassandra, and the wiki's."""
        of_versions = {find("cassandra").speaks(version=version) for version in versions}
        return sorted({self.protocol(era, store) for era in eras for store in STORES} | of_versions | {"http"})

    @property
    def spindles(self) -> dict:
        """{store: its small server with a modelled disk}."""
        return {store: [f"spindle{number}"] for store, number in zip(STORES, ("", 2))}

    @property
    def servers(self) -> dict:
        """{store: a server of each size, in the order of SERVER_OF}: for stores that are up at once."""
        return {store: [f"{size}{number}" for size in SERVER_OF.values()] for store, number in zip(STORES, ("", 2))}

    def _of_role(self, role):
        return [host.name for host in self.description.hosts if host.role == role]


def measure_ceiling(study, experiment) -> None:
    """Measure the clients' highest rates, with a server that answers at once and stores nothing."""
    check(experiment)
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            null = attempt.setup(lambda lab: new_null(lab.host(CEILING), point, point.protocol))
            load = make_calls(attempt.lab, point, null)
            attempt.record(load.rows, metrics=load.metrics, facts=null.facts())


def serves(ceiling, claim: dict) -> bool:
    """Whether points that a claim compares are held against this ceiling."""
    where = claim["rule"].get("where", {})
    wiki = claim["experiment"] == "wiki"
    return (claim["experiment"] in WITH_CEILING and wiki == (ceiling.protocol == "http")
            and matches(ceiling.clients, where.get("clients", {}))
            and ceiling.op == WRITTEN.get(where.get("op"), where.get("op", ceiling.op)))


def measure_ring(study, experiment, ceiling) -> None:
    """Measure Cassandra on the point's number of nodes."""
    testbed = Layout.of(study)
    check_rings(experiment, testbed.nodes)
    levels = sorted({point.consistency for point in experiment.points()} - {ANY}) or [None]
    _measure(study, experiment, ceiling, lambda lab, point: warm_ring(lab, point, testbed, levels))


def measure_wiki(study, experiment, ceiling) -> None:
    """Measure the point's number of web servers with its store.

    With several servers the metric `shared` is the share of pages saved through one server that the
    others showed at once.
    """
    testbed = Layout.of(study)
    check_stores(experiment, testbed)
    _measure(study, experiment, ceiling, lambda lab, point: wikis(lab, point, testbed),
             chosen=lambda point, servers: Fleet(servers[:point.wikis]),
             also=lambda attempt, fleet: {} if attempt.point.wikis == 1 else {
                 "shared": shared_pages(Crew.of(attempt.lab), fleet)})


def check(experiment) -> None:
    """InputError for an invalid load, before a lab is brought up."""
    for point in experiment.points():
        check_load(**{name: point.params[name] for name in LOAD})


def check_stores(experiment, testbed: Layout) -> None:
    """InputError for settings that a point's store does not allow, before a lab is brought up."""
    for point in (arm for paired in experiment.points() for arm in paired.arm_points):
        name, settings = store_of(point, testbed)
        find(name).checked(settings)


def check_rings(experiment, hosts: list[str]) -> None:
    """InputError for settings that the nodes of a point, or of one of its arms, do not allow; see check_ring."""
    for point in (arm for paired in experiment.points() for arm in paired.arm_points):
        check_ring(point, ring_settings(point), hosts)


def check_ring(point, settings: dict, hosts: list[str]) -> None:
    """InputError for a point with more `nodes` than there are hosts, or with settings that so many nodes do not
    allow, before a lab is brought up."""
    check_values([point], {"nodes": range(1, len(hosts) + 1)})
    settings = Ring.checked(settings)
    check_size(point.nodes, *(settings[name] for name in ("replication", "placement", "rows")))


def make_calls(lab, point, target, **other):
    """Make the point's calls to the target, or with `other` settings; returns their rows and metrics."""
    load = {name: point.params[name] for name in LOAD} | other
    return keyvalue(Crew.of(lab), target, seed=point.seed, **load)


def measure_server(lab, point, store, ceiling, shares: dict) -> tuple:
    """(load, metrics) of the point's calls to a store on its `shares` ({host: share of a core}). Clients connect
    and warm up while its hosts have no limits."""
    limit_all(lab, dict.fromkeys(shares))
    load = make_calls(lab, point, store, when_ready=lambda: limit_all(lab, shares),
                      **({"seconds_at_most": point.alone_seconds} if is_alone(point) else {}))
    limit = limited(point, store.protocol, load.metrics, ceiling)
    return load, {**load.metrics, "client_limited": float(limit)}


def is_alone(point) -> bool:
    """Whether a point's one client is measured without limits, too."""
    return point.clients == 1 and "alone_seconds" in point.params


def alone(lab, point, stores: list) -> list[dict]:
    """What each store takes for a call of one client, with all the time of its cores but the client's. Each is
    called for alone_seconds, in turns of TURN_SECONDS: a machine's speed may change within a second.

    alone_ms: median time of a call. client_ms: the client's own CPU for a call, on average. own_ms: the
    difference, so the time of a call outside the client; 1 µs at least.
    """
    shares = {store.host.name: store.host.limits["quota"] for store in stores}
    load = {name: point.params[name] for name in LOAD if name != "clients"} | {
        "seconds_at_most": point.alone_seconds * len(stores)}
    limit_all(lab, dict.fromkeys(shares))
    with ExitStack() as placed:
        for store in stores:
            placed.enter_context(placement.beside(store, lab.host(CLIENT)))
        loads = in_turns(Crew.of(lab), stores, turn_seconds=TURN_SECONDS, seed=point.seed, **load)
    limit_all(lab, shares)
    return [_own_time(load) for load in loads]


def _own_time(load) -> dict:
    alone_ms, client_ms = median_ms(load), load.metrics["clients_cpu_us_per_call"] / 1000
    return {"alone_ms": alone_ms, "client_ms": client_ms, "own_ms": max(alone_ms - client_ms, LEAST_MS)}


def limit_all(lab, shares: dict) -> None:
    """Give hosts their shares: {host: share of a core, or None without a limit}."""
    for host, share in shares.items():
        lab.limit(host, share)


def new_null(host, point, protocol: str) -> NullServer:
    """A server of this protocol, up, that only answers."""
    return NullServer(host, protocol=protocol, value_bytes=point.value_bytes).up()


def median_ms(load) -> float:
    """The median time of a load's successful calls."""
    return float(load.rows["seconds"][load.rows["ok"]].median() * 1000)


def _measure(study, experiment, ceiling, bring_up, chosen=None,
             also=lambda attempt, target: {}) -> None:
    """Measure each point's target.

    `bring_up(lab, point)` returns the target, or a list of a store and servers in front of it, of which
    `chosen(point, servers)` makes the point's target. `also(attempt, target)` returns further metrics.
    """
    check(experiment)
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            servers = attempt.setup(lambda lab: bring_up(lab, point))
            store, target = (servers[0], chosen(point, servers[1:])) if chosen else (servers, servers)
            load = make_calls(attempt.lab, point, target)
            limit = limited(point, target.protocol, load.metrics, ceiling)
            attempt.record(load.rows, facts=target.facts(), metrics={
                **load.metrics, **store.warmth.metrics, "client_limited": float(limit), **also(attempt, target)})


def limited(point, protocol: str, metrics: dict, ceiling) -> bool:
    """Whether the clients may have limited the point's rate.

    The large server also uses the clients' core, so its share is taken from what the clients have of
    their core, and from their ceiling. One client always takes a part of the time, which `alone`
    subtracts; so it is judged by its core alone.
    """
    large = SERVER_OF.get(point.params.get("cores")) == "large" or (
        str(point.params.get("servers", "")).startswith("large"))
    free = 1 - point.large_share if large else 1
    ceilings = [[rate * free for rate in of_hosts]
                for of_hosts in (ceiling_of(point, protocol, ceiling) if point.clients > 1 else [])]
    return limited_by_clients(metrics["issued_per_s"], ceilings, metrics["clients_cpu_share"] / free)


def ceiling_of(point, protocol: str, ceiling) -> list:
    """Rates of the point's clients with a server that only answers: a list of each host's, a repeat."""
    op = WRITTEN.get(point.op, point.op)
    rates = ceiling.summary()
    if not len(rates):      # a run without ceilings
        return []
    rates = rates.set_index(["protocol", "op", "clients"])
    return ceilings_in(rates.loc[[(protocol, op, point.clients)]])


def store_of(point, testbed: Layout, store: str | None = None) -> tuple[str, dict]:
    """Name and settings of the point's store, or of another: lab.yml's, with the point's durability and engine."""
    store = store or point.store
    name, settings = testbed.system(point.era, store)
    if point.durability != AS_SHIPPED:
        settings = settings | {"durability": point.durability}
    if "engine" in point.params and store == "mysql":
        settings = settings | {"engine": point.engine}
    return name, settings


def warm_store(lab, point, testbed: Layout):
    """The point's store, filled and warmed, on the first server of the point's size."""
    host = size_of(point)
    return warm_places(lab, [Place(point, {host: point.params[f"{host}_share"]},
                                   lambda lab: new_store(lab, point, testbed, host))])[0]


def warm_ring(lab, point, testbed: Layout, levels: list[str]) -> Ring:
    """The point's Cassandra nodes, filled, and warmed at these levels: each runs code of its own."""
    hosts = testbed.nodes[:point.nodes]
    return warm_places(lab, [Place(point, dict.fromkeys(hosts, point.node_share),
                                   lambda lab: new_ring(lab, point, hosts))], levels)[0]


def warm_places(lab, places: list[Place], levels=(None,)) -> list:
    """The servers of each place, filled and warmed. All start at the same time; those that answer first are
    filled and warmed first, while the others still start."""
    for place in places:
        limit_all(lab, dict.fromkeys(place.shares))
    return start_together([partial(place.new, lab) for place in places],
                          lambda i, target: warmed(lab, target, places[i].point, places[i].shares, levels))


def new_store(lab, point, testbed: Layout, host: str, **other):
    """The point's store on this host, up, with an empty table; `other`: in place of the point's parameters."""
    name, settings = store_of(point, testbed, **other)
    store = find(name)(lab.host(host), **settings).up()
    store.create_table()
    return store


def new_ring(lab, point, hosts: list[str]) -> Ring:
    """Cassandra on these nodes, up, with an empty table."""
    ring = Ring([lab.host(host) for host in hosts], **ring_settings(point)).up()
    ring.create_table()
    return ring


def ring_settings(point) -> dict:
    """The settings of a point's Cassandra nodes."""
    given = {name: value for name, value in point.params.items() if name == "read_repair"
             or name == "durability" and value != AS_SHIPPED}
    return dict(version=point.version, rows=point.table_rows, replication=point.replication,
                placement=point.placement) | given


def size_of(point) -> str:
    """Which of the servers the point is for."""
    return SERVER_OF[point.params.get("cores", 1)]


def wikis(lab, point, testbed: Layout) -> list:
    """The point's store and all web servers in front of it."""
    store = warm_store(lab, point, testbed)
    return [store, *(Wiki.over(lab.host(host), store).up() for host in testbed.web)]


def is_cold(point) -> bool:
    """Whether a point is to measure servers that have just started."""
    return point.params.get("warmed") == "cold"


def warmed(lab, target, point, shares: dict, levels=(None,)):
    """Fill the target and warm it at these levels without limits, then give its hosts their shares ({host: share of
    a core}); returns the target, whose `warmth` says what warming took; `facts_when_warm` are its facts.

    A point that is_cold is not warmed.
    """
    rounds = 0 if is_cold(point) else point.warm_rounds
    target.warmth = fill_and_warm(
        Crew.of(lab), target, rows=point.table_rows, value_bytes=point.value_bytes, rounds=rounds,
        levels=levels, **{name: point.params[f"warm_{name}"] for name in WARM})
    target.facts_when_warm = target.facts()
    limit_all(lab, shares)
    return target
