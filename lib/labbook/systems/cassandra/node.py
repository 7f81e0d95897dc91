"""A Cassandra node on a host: the papers' versions (Thrift) and today's (CQL)."""

from pathlib import Path

import yaml

from labbook.lab.cache.push import push
from labbook.systems.artifacts import Artifact, fetch
from labbook.systems.base import Needs, System, memory_mb
from labbook.systems.cassandra import config, nodetool
from labbook.systems.cassandra.admin_cql import CQLAdmin
from labbook.systems.cassandra.admin_thrift import ThriftAdmin
from labbook.systems.cassandra.config import VERSIONS
from labbook.systems.cluster import poll
from labbook.targets import DATABASE, TABLE

JAVA = "openjdk-17-jre-headless | default-jre-headless"
ON_HOST = Path(__file__).with_name("on_host")
AGREE_SECONDS = 60      # for all nodes to have the same schema
ADMINS = {"thrift": ThriftAdmin, "cql": CQLAdmin}


class Cassandra(System):
    """One node. durability periodic: the commit log is synced every `sync_ms`; commit: before each
    answer. (A stop of 0.7.0 is not orderly: it loses what a periodic sync has still to write.)

    placement hash: rows are spread by a hash of their keys, and `token` is the hash at which the
    node's range ends. ordered: rows are in the order of their keys, and `token` is the key at which
    the range ends. ring_delay_ms: how long nodes wait for a change of the ring to spread.
    stream_mbit: the limit of streaming, in Mbit/s (0: none). whole_files: whether 5.0 streams whole
    SSTables. None of these three: as shipped. nodetool: admit nodetool, from the node's own host
    only. stage_threads: of the stages of reads and of writes, each, 2 at least (None: as the version has it).
    stage_samples_ms: write how many tasks work and wait in each stage so often (see stages.py).
    seeds: addresses of nodes that a new one asks who is there (by default, itself).
    """

    NAME = "cassandra"
    SETTINGS = {
        "version": {"enum": list(VERSIONS), "default": "0.7.0"},
        "heap_mb": {"type": "integer", "minimum": config.SMALLEST_HEAP_MB},
        "durability": {"enum": list(config.DURABILITIES), "default": "periodic"},
        "sync_ms": {"type": "integer", "minimum": 1},
        "seeds": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "placement": {"enum": list(config.PLACEMENTS), "default": "hash"},
        "token": {"type": ["integer", "string"]},
        "ring_delay_ms": {"type": ["integer", "null"], "minimum": 0},
        "stream_mbit": {"type": ["integer", "null"], "minimum": 0},
        "whole_files": {"type": ["boolean", "null"]},
        "disk_access": {"enum": list(config.DISK_ACCESS), "default": "standard"},
        "nodetool": {"type": "boolean", "default": False},
        "stage_threads": {"type": ["integer", "null"], "minimum": 2},
        "stage_samples_ms": {"type": ["integer", "null"], "minimum": 1},
    }

    def __init__(self, host, **settings):
        super().__init__(host, **settings)
        s = self.settings
        s.heap_mb = config.heap_mb(s.heap_mb, memory_mb(host),
                                   self.version.get("beside_heap_mb", 0))
        s.sync_ms = config.sync_ms(s.version, s.durability, s.sync_ms)
        s.token = s.token or 0
        self.START_SECONDS = self.version["start_seconds"]
        self.admin = ADMINS[self.protocol](self)

    @classmethod
    def checked(cls, settings: dict) -> dict:
        settings = super().checked(settings)
        config.check_token(settings["version"], settings["placement"], settings["token"])
        config.sync_ms(settings["version"], settings["durability"], settings["sync_ms"])
        config.check_streaming(settings["version"], settings["stream_mbit"],
                               settings["whole_files"], settings["disk_access"])
        config.check_sampling(settings["version"], settings["nodetool"], settings["stage_samples_ms"])
        return settings

    @classmethod
    def needs(cls, **settings) -> Needs:
        version = VERSIONS[cls.checked(settings)["version"]]
        artifacts = map(Artifact.parse, version["artifacts"])
        return Needs(packages=(JAVA, "iproute2", "procps"),
                     artifacts=tuple(artifacts), commands=("java", "ss", "ps"))

    @property
    def version(self) -> dict:
        return VERSIONS[self.settings.version]

    @classmethod
    def speaks(cls, **settings) -> str:
        return VERSIONS[cls.checked(settings)["version"]]["protocol"]

    @property
    def protocol(self) -> str:
        return self.version["protocol"]

    @property
    def port(self) -> int:
        return next(iter(self.version["port"].values()))

    @property
    def range_end(self) -> int | bytes:
        """The node's token, as its admin reports tokens."""
        token = self.settings.token
        return token.encode() if isinstance(token, str) else token

    def deploy(self) -> None:
        self.run("mkdir", self.home / "tmp")
        self.put(yaml.safe_dump(self.configuration()), "cassandra.yaml")
        for name, text in self.version["files"].items():
            self.put(text.format(home=self.home), name)
        folders = [fetch(Artifact.parse(a)) for a in self.version["artifacts"]]
        places = [(push(self.host, folder), folder) for folder in folders]
        mains = [name for name in (config.JMX_OPENER, config.STAGE_SAMPLER) if name in self.main_arguments()]
        classes = self._compiled(mains[0]) if mains else ()
        self.put(config.class_path(places, self.version.get("agent"), classes), "class_path")

    def command(self) -> str:
        options = config.jvm_options(self.settings, self.address, self.home, self.properties())
        return " ".join(["java", *options, f"@{self.home}/class_path",
                         *self.main_arguments()])

    def main_arguments(self) -> list[str]:
        """The main class and its arguments."""
        return config.main_arguments(self.settings, self.home)

    def _compiled(self, name: str) -> tuple:
        """The folder of a class of ours that runs Cassandra's, compiled on the host by Java itself."""
        source = self.put((ON_HOST / f"{name}.java").read_text(), f"{name}.java")
        self.run(*nodetool.JAVA, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-d",
                 self.home / "classes", source, timeout=120)
        return (self.home / "classes",)

    def configuration(self) -> dict:
        """cassandra.yaml."""
        return config.configuration(self.settings, self.address, self.home)

    def properties(self) -> dict:
        """Properties of the JVM besides those that the version always has."""
        return config.properties(self.settings)

    def nodetool(self, *arguments, seconds: float = 60) -> str:
        """Output of the version's own nodetool for a command; SystemFailure when it fails."""
        return nodetool.run(self, arguments, seconds)

    def answers(self) -> None:
        self.admin.answers()

    def report(self) -> dict:
        java = self.run("java", config.NO_TRACE, "-version").stderr.splitlines()[0]
        return {**self.admin.facts(), "java": java}

    def client(self, timeout=30):
        """A client for administration: of Thrift, or a CQL connection with `query(statement)`."""
        return self.admin.client(timeout)

    def create_table(self, keyspace=DATABASE, table=TABLE, replication=1,
                     compression: bool | None = None, read_repair: float | None = None) -> None:
        """Create the keyspace with one table of bytes; return when all nodes have the schema.

        compression: None is as shipped, which is no compression in the papers' versions. read_repair: the chance,
        0 to 1, that a read at ONE has all copies compared and repaired; None is as shipped.
        """
        config.check_read_repair(self.settings.version, read_repair)
        chance = {} if read_repair is None else {"read_repair": read_repair}
        self.admin.create_table(keyspace, table, replication, compression, **chance)
        self.await_agreed(f"all nodes to know keyspace {keyspace}")

    def await_agreed(self, what: str) -> None:
        """Return when all nodes have the same schema."""
        poll(self.host, self.admin.agreed, bool, what, AGREE_SECONDS, process=self.process)


Cassandra.NEEDS = Cassandra.needs()
