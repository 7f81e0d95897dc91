"""Systems made of several servers: the base of all clusters, and equal servers as one target."""

from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack, contextmanager, suppress
from types import SimpleNamespace

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.systems.base import PROGRAMMING_ERRORS, Described, System
from labbook.targets import password


class Cluster(Described):
    """Several servers that are one system: to a workload, one target.

    The constructor takes the hosts, and settings as a System does. A subclass defines
    `make_nodes()`, and overrides what it does differently:

    - `front`: the server that clients call, and whose process stands for the cluster;
    - `deploy()`: what each node gets before the start (all nodes at once);
    - `start()`: the order in which nodes start (the first node, then all others at once);
    - `await_formed()`: how to see that the running nodes have become one cluster;
    - `report()`: what the cluster adds to the facts of its nodes.

    Where the role of a host decides what it has, PARTS maps the role to the name of the system,
    and `of_role` gives the hosts.
    """

    PARTS: dict[str, str] = {}

    def __init__(self, hosts, **settings):
        if not hosts:
            raise InputError("no hosts", file=f"settings of {self.NAME}", key="hosts")
        self.hosts = list(hosts)
        self.settings = SimpleNamespace(**self.checked(settings))
        self.nodes: list[System] = list(self.make_nodes())

    def make_nodes(self) -> list[System]:
        """The cluster's servers, none of them running; called once, with settings checked."""
        raise NotImplementedError

    def of_role(self, role: str) -> list:
        """The hosts of this role, in order."""
        return [host for host in self.hosts if host.role == role]

    def node(self, name: str) -> System:
        """The node on the host of this name. InputError where none runs on it."""
        for node in self.nodes:
            if node.host.name == name:
                return node
        raise InputError(f"no node on a host {name!r}",
                         allowed=[node.host.name for node in self.nodes])

    @property
    def front(self) -> System:
        return self.nodes[0]

    @property
    def host(self):
        return self.front.host

    @property
    def address(self) -> str:
        return self.front.address

    @property
    def addresses(self) -> list[str]:
        """The addresses over which clients go round."""
        return [node.address for node in self.nodes]

    @property
    def port(self) -> int:
        return self.front.port

    @property
    def protocol(self) -> str:
        return self.front.protocol

    @property
    def password(self) -> str:
        """As of targets.password."""
        return password(self.front)

    @property
    def process(self):
        return self.front.process

    @property
    def processes(self) -> list:
        """The processes whose CPU time counts as the servers'."""
        return [process for node in self.nodes if (process := node.process) is not None]

    def up(self) -> "Cluster":
        """Remove what earlier runs left, deploy and start. When that fails, no node is left
        running; SystemFailure has the tail of a log."""
        self.destroy()
        in_parallel(self.nodes, lambda node: node.provide())
        self.deploy()
        self.start()
        return self

    def deploy(self) -> None:
        in_parallel(self.nodes, lambda node: node.deploy())

    def start(self) -> None:
        """Start the first node, then all others at once; return when they are one cluster."""
        first, *others = self.nodes
        with self.all_or_none():
            first.start()
            in_parallel(others, lambda node: node.start(), self.kill_all)
            self.await_formed()

    def await_formed(self) -> None:
        """Return when the running nodes are one cluster; by default, at once."""

    def stop(self) -> None:
        """Stop all nodes in order; their data stay."""
        in_parallel(self.nodes, lambda node: node.stop())

    def kill_all(self) -> None:
        """SIGKILL to all nodes that run."""
        in_parallel(self.nodes, lambda node: node.kill())

    def destroy(self) -> None:
        """Kill all nodes that run, and delete their files."""
        in_parallel(self.nodes, lambda node: node.destroy())

    def facts(self) -> dict:
        """The facts of the nodes, merged: a value that differs is a list, in the order of the
        nodes. With them the number of nodes, and `report()`."""
        return {**merged(in_parallel(self.nodes, lambda node: node.facts())),
                "nodes": len(self.nodes), **self.report()}

    def report(self) -> dict:
        """What is known of the cluster as a whole."""
        return {}

    @contextmanager
    def all_or_none(self):
        """When the block fails, kill all nodes: none is left running."""
        try:
            yield
        except BaseException:
            with suppress(LabbookError):  # the first error is the one to report
                self.kill_all()
            raise


class Fleet:
    """Equal servers without a cluster between them, as one target: clients go round over them."""

    def __init__(self, servers):
        self.servers = list(servers)

    @property
    def address(self) -> str:
        return self.servers[0].address

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.servers]

    @property
    def port(self) -> int:
        return self.servers[0].port

    @property
    def protocol(self) -> str:
        return self.servers[0].protocol

    @property
    def processes(self) -> list:
        return [server.process for server in self.servers]

    def facts(self) -> dict:
        """The facts of the first server, with the number of servers and the memory of each."""
        found = [server.facts() for server in self.servers]
        return {**found[0], "servers": len(found), "resident_mb": [f["resident_mb"] for f in found]}

    def destroy(self) -> None:
        destroy_all(self.servers)


class Together(dict):
    """{name: its servers}, which end together, the last first."""

    def destroy(self) -> None:
        destroy_all(self.values())


def destroy_all(systems) -> None:
    """`destroy()` of all, the last first; an error is raised once all have been tried."""
    with ExitStack() as stack:
        for system in systems:
            stack.callback(system.destroy)


def in_parallel(nodes, job, at_failure=None) -> list:
    """job(node) of all nodes at once, over the connection of each one's host: the results.

    The first error is raised. Before that, `at_failure()` may end what the other jobs wait for.
    """
    nodes = list(nodes)
    with ThreadPoolExecutor(len(nodes) or 1) as pool:
        jobs = [pool.submit(job, node) for node in nodes]
        try:
            done, _ = wait(jobs, return_when=FIRST_EXCEPTION)
            for one in done:
                one.result()
        except BaseException:
            if at_failure is not None:
                with suppress(LabbookError):
                    at_failure()
            raise
        return [one.result() for one in jobs]


def start_together(starts, prepare) -> list:
    """Call all `starts` at once, and `prepare(number, started)` for the result of each, one at a time: those
    that have started first are prepared while others still start. The results of `prepare`, by number. The first
    error is raised once no start is under way."""
    prepared = {}
    with ThreadPoolExecutor(len(starts) or 1) as pool:
        numbers = {pool.submit(start): number for number, start in enumerate(starts)}
        for started in as_completed(numbers):
            number = numbers[started]
            prepared[number] = prepare(number, started.result())
    return [prepared[number] for number in range(len(starts))]


def merged(facts: list[dict]) -> dict:
    """Facts of several nodes as one dict: a value that all share, or the list of their values."""
    return {key: value if all(f[key] == value for f in facts) else [f[key] for f in facts]
            for key, value in facts[0].items()}


def poll(host, ask, accept, what: str, seconds: float, *, process=None, interval: float = 0.2,
         show=repr):
    """Call `ask()` until `accept(answer)`: that answer.

    Errors of labbook and programming errors are raised at once; any other exception is an answer
    that is not accepted, as a cluster that is still forming gives them. SystemFailure when the
    time is up or `process` ends, with the last answer as `show` writes it.
    """
    last = None

    def accepted() -> bool:
        nonlocal last
        try:
            last = ask()
        except (LabbookError, *PROGRAMMING_ERRORS):
            raise
        except Exception as error:
            last = error
            return False
        return bool(accept(last))

    try:
        host.wait_for(accepted, what, seconds, process, interval)
    except SystemFailure as error:
        error.message += f"; the last answer was {last if last is None else show(last)}"
        raise
    return last
