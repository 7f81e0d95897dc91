"""Cassandra of the papers' time (Thrift): a node on a host, by version."""

import re
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath

import yaml

from labbook.errors import InputError, LabError
from labbook.systems.artifacts import Artifact, bring, fetch
from labbook.systems.base import Needs, System, memory_mb

VERSIONS = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text())
JAVA = "openjdk-17-jre-headless | default-jre-headless"
IDL = Path(__file__).with_suffix(".thrift")
HEAP_MB, SMALLEST_HEAP_MB = 512, 64
# How long the commit log may wait for the disk, ms. As shipped: 10 s. Batch: as soon as may be,
# for MySQL's flush does not wait either.
SYNC_MS = {"periodic": 10_000, "commit": 1}
# Tools for tests, code generation and Hadoop that the jars depend on and the server does not.
LEFT_OUT = re.compile(r"(junit|antlr|stringtemplate|servlet-api|jline)-[0-9].*")
JAVA_OPENED = ("java.base/java.io", "java.base/java.nio", "java.base/sun.nio.ch")
LOG4J = """log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%5p [%t] %d{ISO8601} %m%n
"""


class Cassandra(System):
    """One node. 0.7.0 has no orderly end: a stop loses what a periodic sync has still to write."""

    NAME = "cassandra"
    SETTINGS = {
        "version": {"enum": list(VERSIONS), "default": "0.7.0"},
        "heap_mb": {"type": "integer", "minimum": SMALLEST_HEAP_MB},
        "durability": {"enum": list(SYNC_MS), "default": "periodic"},
        "sync_ms": {"type": "integer", "minimum": 1},
        "seeds": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "token": {"type": "integer", "minimum": 0, "maximum": 2**127, "default": 0},
    }
    port = 9160
    protocol = "thrift"

    def __init__(self, host, **settings):
        super().__init__(host, **settings)
        s = self.settings
        s.heap_mb = heap_mb(s.heap_mb, memory_mb(host))
        s.sync_ms = s.sync_ms or SYNC_MS[s.durability]

    @classmethod
    def needs(cls, **settings) -> Needs:
        version = VERSIONS[cls.checked(settings)["version"]]
        artifacts = map(Artifact.parse, version["artifacts"])
        return Needs(packages=(JAVA, "iproute2", "procps"),
                     artifacts=tuple(artifacts), commands=("java", "ss", "ps"))

    @property
    def version(self) -> dict:
        return VERSIONS[self.settings.version]

    def deploy(self) -> None:
        s = self.settings
        self.run("mkdir", "-p", self.home)
        self.put(yaml.safe_dump(configuration(s, self.address, self.home)), "cassandra.yaml")
        self.put(LOG4J, "log4j.properties")
        folders = [fetch(artifact) for artifact in self.needs(version=s.version).artifacts]
        self.put("-cp " + class_path([(bring(self.host, f), f) for f in folders]), "class_path")

    def command(self) -> str:
        return " ".join(["java", *jvm_options(self.settings, self.address, self.home),
                         f"@{self.home}/class_path", self.version["main"]])

    def answers(self) -> None:
        with self.client() as client:
            client.describe_version()

    def server_facts(self) -> dict:
        with self.client() as client:
            api = client.describe_version()
        log = self.process.log
        said = self.run("grep", "-m", "1", "Cassandra version: ", log).stdout
        java = self.run("java", "-version").stderr.splitlines()[0]
        return {"version": said.split("Cassandra version:")[1].strip(), "thrift_api": api,
                "java": java}

    @contextmanager
    def client(self, timeout=30):
        """A Thrift client of this node, for administration: its calls cost an SSH round trip.

        TimeoutError when no answer comes within `timeout` seconds.
        """
        from thriftpy2.protocol import TCyBinaryProtocol
        from thriftpy2.thrift import TClient
        from thriftpy2.transport import TCyFramedTransport, TSocket

        socket = TSocket(self.address, self.port)
        socket.set_handle(self.dial(timeout))
        transport = TCyFramedTransport(socket)
        try:
            yield TClient(idl().Cassandra, TCyBinaryProtocol(transport))
        finally:
            transport.close()

    def create_table(self, keyspace="labbook", table="pairs", replication=1) -> None:
        """Make the keyspace with one column family; returns when all nodes know it."""
        with self.client() as client:
            client.system_add_keyspace(
                keyspace_definition(self.settings.version, keyspace, table, replication))
        self.host.wait_for(self._agreed, f"all nodes to know keyspace {keyspace}", timeout=30,
                           process=self.process)

    def _agreed(self) -> bool:
        with self.client() as client:
            return len(client.describe_schema_versions()) == 1


@cache
def idl():
    """The module of Thrift types; one a process, for its enums and exceptions to be comparable."""
    import thriftpy2

    return thriftpy2.load(str(IDL), module_name="labbook_cassandra_thrift")


def heap_mb(asked: int | None, memory: int) -> int:
    """The heap in MB: what was asked or 512, if at least as much again stays for all else."""
    most = memory // 2
    if asked is None:
        if most < SMALLEST_HEAP_MB:
            raise LabError(f"{memory} MB of memory are too few for Cassandra",
                           remedy=f"Give the host at least {2 * SMALLEST_HEAP_MB}M")
        return min(HEAP_MB, most)
    if asked > most:
        raise InputError(f"{asked} does not fit the host's memory of {memory} MB",
                         file="settings of cassandra", key="heap_mb",
                         allowed=f"{SMALLEST_HEAP_MB} to {most}")
    return asked


def configuration(settings, address: str, home: PurePosixPath) -> dict:
    """cassandra.yaml of a node; what is not about this lab is as Cassandra shipped it."""
    version = VERSIONS[settings.version]
    return {
        "cluster_name": "labbook",
        "partitioner": "org.apache.cassandra.dht.RandomPartitioner",
        "initial_token": str(settings.token),
        "auto_bootstrap": False,
        "endpoint_snitch": "org.apache.cassandra.locator.SimpleSnitch",
        "listen_address": address, "storage_port": 7000,
        "rpc_address": address, "rpc_port": Cassandra.port,
        "data_file_directories": [str(home / "data")],
        "commitlog_directory": str(home / "commitlog"),
        "saved_caches_directory": str(home / "saved_caches"),
        "disk_access_mode": "standard",  # mapped files fail on Java 17
        "thrift_framed_transport_size_in_mb": 15,
        "column_index_size_in_kb": 64, "in_memory_compaction_limit_in_mb": 64,
        "rpc_timeout_in_ms": 10_000, "phi_convict_threshold": 8,
        **commit_log(settings.durability, settings.sync_ms),
        **seed_nodes(version["seeds"], settings.seeds or [address]),
        **version["configuration"],
    }


def commit_log(durability: str, sync_ms: int) -> dict:
    """`periodic` answers before the log is on disk, `commit` after."""
    if durability == "periodic":
        return {"commitlog_sync": "periodic", "commitlog_sync_period_in_ms": sync_ms}
    return {"commitlog_sync": "batch", "commitlog_sync_batch_window_in_ms": float(sync_ms)}


def seed_nodes(form: str, seeds: list[str]) -> dict:
    if form == "list":
        return {"seeds": list(seeds)}
    return {"seed_provider": [{"class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                               "parameters": [{"seeds": ",".join(seeds)}]}]}


def jvm_options(settings, address: str, home: PurePosixPath) -> list[str]:
    heap, jmx = settings.heap_mb, VERSIONS[settings.version]["jmx_port"]
    properties = {
        "java.rmi.server.hostname": address,
        "com.sun.management.jmxremote.host": address,
        "com.sun.management.jmxremote.port": jmx,
        "com.sun.management.jmxremote.ssl": "false",
        "com.sun.management.jmxremote.authenticate": "false",
        "java.net.preferIPv4Stack": "true",
        "log4j.configuration": f"file:{home}/log4j.properties",
        "cassandra.config": f"file:{home}/cassandra.yaml",
        "cassandra-foreground": "yes",
    }
    return ["-ea", f"-Xms{heap}M", f"-Xmx{heap}M", "-Xss512k", "-XX:+UseSerialGC",
            *(f"--add-opens={package}=ALL-UNNAMED" for package in JAVA_OPENED),
            "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
            *(f"-D{key}={value}" for key, value in properties.items())]


def class_path(folders: list[tuple[PurePosixPath, Path]]) -> str:
    """Each jar once, by its name; `folders` are pairs of place on the host and place here."""
    jars = {jar.name: str(place / jar.name) for place, here in folders
            for jar in sorted(here.glob("*.jar")) if not LEFT_OUT.fullmatch(jar.name)}
    return ":".join(jars.values())


def keyspace_definition(version: str, keyspace: str, table: str, replication: int):
    """A KsDef with one column family of bytes."""
    types = idl()
    copies = {"replication_factor": replication}
    if VERSIONS[version]["replication"] == "option":
        copies = {"strategy_options": {"replication_factor": str(replication)}}
    return types.KsDef(name=keyspace, strategy_class="org.apache.cassandra.locator.SimpleStrategy",
                       cf_defs=[types.CfDef(keyspace=keyspace, name=table)], **copies)


Cassandra.NEEDS = Cassandra.needs()
