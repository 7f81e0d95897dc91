"""The measurements of Cassandra and MySQL under many clients.

The page declares each experiment and hands it to one of the functions here, which measures the
points that remain. A point holds everything that sets its result: the store (`store` of an `era`)
and its settings, the server (`cores`, and its share of a core), the warm-up (`warm_...`) and the
load (LOAD). The systems of each era, the hosts and their shares are those of lab.yml.
"""

from dataclasses import dataclass

from labbook.lab import LabDescription
from labbook.systems import find
from labbook.systems.cassandra.ring import Ring
from labbook.systems.cluster import Fleet
from labbook.systems.null.server import NullServer
from labbook.systems.wiki.server import Wiki
from labbook.workloads.clients.cpu import ceilings_in, limited_by_clients
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keyvalue.contents import fill_and_warm, shared_pages
from labbook.workloads.keyvalue.load import check_load, keyvalue

STORES = ("cassandra", "mysql")
SERVER_OF = {1: "small", 2: "large"}    # host by the point's `cores`
LOAD = ("op", "clients", "rows", "consistency", "requests", "value_bytes", "warmup_requests",
        "seconds_at_most")
AS_SHIPPED = "as_shipped"               # durability: the store's default


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

    def protocols(self, eras) -> list[str]:
        """The protocols of the eras' stores, and the wiki's."""
        return sorted({self.protocol(era, store) for era in eras for store in STORES} | {"http"})

    def _of_role(self, role):
        return [host.name for host in self.description.hosts if host.role == role]


def measure_ceiling(study, experiment) -> None:
    """Measure the clients' highest rates, with a server that answers at once and stores nothing."""
    check(experiment)
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            null = attempt.setup(lambda lab: NullServer(
                lab.host(point.server), protocol=point.protocol,
                value_bytes=point.value_bytes).up())
            load = make_calls(attempt, null)
            attempt.record(load.rows, metrics=load.metrics, facts=null.facts())


def measure_store(study, experiment, ceiling) -> None:
    """Measure the point's store on one server. `ceiling`: the experiment of measure_ceiling."""
    testbed = Layout.of(study)
    check_stores(experiment, testbed)
    _measure(study, experiment, ceiling, lambda lab, point: warm_store(lab, point, testbed))


def measure_ring(study, experiment, ceiling) -> None:
    """Measure Cassandra on the point's number of nodes."""
    testbed = Layout.of(study)
    _measure(study, experiment, ceiling, lambda lab, point: warm_ring(lab, point, testbed))


def measure_wiki(study, experiment, ceiling) -> None:
    """Measure the point's number of web servers with its store.

    With several servers the metric `shared` is the share of pages saved through one server that the
    others showed at once.
    """
    testbed = Layout.of(study)
    check_stores(experiment, testbed)
    _measure(study, experiment, ceiling, lambda lab, point: wikis(lab, point, testbed),
             also=lambda attempt, fleet: {} if attempt.point.wikis == 1 else {
                 "shared": shared_pages(Crew.of(attempt.lab), fleet)})


def check(experiment) -> None:
    """InputError for an invalid load, before a lab is brought up."""
    for point in experiment.points():
        check_load(**{name: point.params[name] for name in LOAD})


def check_stores(experiment, testbed: Layout) -> None:
    """InputError for settings that a point's store does not allow, before a lab is brought up."""
    for point in experiment.points():
        name, settings = store_of(point, testbed)
        find(name).checked(settings)


def make_calls(attempt, target):
    """Make the calls of the attempt's point to the target; returns their rows and metrics."""
    point = attempt.point
    return keyvalue(Crew.of(attempt.lab), target, seed=point.seed,
                    **{name: point.params[name] for name in LOAD})


def _measure(study, experiment, ceiling, bring_up, also=lambda attempt, target: {}) -> None:
    """Measure each point's target.

    `bring_up(lab, point)` returns the target, or a list of servers that ends with the target.
    `also(attempt, target)` returns further metrics.
    """
    check(experiment)
    for point in experiment.remaining():
        with study.attempt(point) as attempt:
            servers = attempt.setup(lambda lab: bring_up(lab, point))
            target = servers[-1] if isinstance(servers, list) else servers
            load = make_calls(attempt, target)
            limit = limited(point, target.protocol, load.metrics, ceiling)
            attempt.record(load.rows, facts=target.facts(), metrics={
                **load.metrics, "client_limited": float(limit), **also(attempt, target)})


def limited(point, protocol: str, metrics: dict, ceiling) -> bool:
    """Whether the clients may have limited the point's rate.

    The large server also uses the clients' core, so its ceiling is measured with a null server in its
    place, and the core's capacity for clients is reduced by the server's share.
    """
    large = SERVER_OF.get(point.params.get("cores")) == "large"
    op = "write" if point.op == "update" else point.op
    rates = ceiling.summary().set_index(["protocol", "server", "op", "clients"])
    ceilings = ceilings_in(rates.loc[[(protocol, "large" if large else "idle", op, point.clients)]])
    free = 1 - point.large_share if large else 1
    return limited_by_clients(metrics["issued_per_s"], ceilings, metrics["clients_cpu_share"] / free)


def store_of(point, testbed: Layout) -> tuple[str, dict]:
    """Name and settings of the point's store: lab.yml's, with the point's durability and engine."""
    name, settings = testbed.system(point.era, point.store)
    if point.durability != AS_SHIPPED:
        settings = settings | {"durability": point.durability}
    if "engine" in point.params and point.store == "mysql":
        settings = settings | {"engine": point.engine}
    return name, settings


def warm_store(lab, point, testbed: Layout):
    """The point's store on its server, filled and warmed."""
    name, settings = store_of(point, testbed)
    host = SERVER_OF[point.params.get("cores", 1)]
    store = find(name)(lab.host(host), **settings)
    return warmed(lab, store, point, {host: point.params[f"{host}_share"]})


def warm_ring(lab, point, testbed: Layout) -> Ring:
    """The point's Cassandra nodes, filled and warmed."""
    hosts = testbed.nodes[:point.nodes]
    ring = Ring([lab.host(host) for host in hosts], version=point.version, rows=point.table_rows,
                replication=point.replication, placement=point.placement)
    return warmed(lab, ring, point, dict.fromkeys(hosts, point.node_share))


def wikis(lab, point, testbed: Layout) -> list:
    """The point's store and the web servers in front of it."""
    store = warm_store(lab, point, testbed)
    return [store, Fleet(Wiki.over(lab.host(host), store).up()
                         for host in testbed.web[:point.wikis])]


def warmed(lab, target, point, shares: dict):
    """Bring the target up, fill it and warm it without limits, then apply `shares`; returns the target.

    shares: {host: share of a core}. A point with `warmed` "cold" is not warmed.
    """
    rounds = 0 if point.params.get("warmed") == "cold" else point.warm_rounds
    for host in shares:
        lab.limit(host, None)
    target.up().create_table()
    fill_and_warm(Crew.of(lab), target, rows=point.table_rows, value_bytes=point.value_bytes,
                  rounds=rounds, requests=point.warm_requests, seconds=point.warm_seconds)
    for host, share in shares.items():
        lab.limit(host, share)
    return target
