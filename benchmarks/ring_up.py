"""Five Cassandra nodes that are a ring: labbook's beside ccm.

    .venv/bin/python benchmarks/ring_up.py [--nodes 5] [--rounds 3] [--short] [--json FILE]

Cassandra 5.0.8, one range a node, a heap of 512 MB. ccm, from packages of its own (`labbook install --benchmarks`),
starts its nodes on loopback addresses of one host of the lab, from a folder that is laid out as Cassandra's tarball
and has the same jars, options of Java and cassandra.yaml; which waits Cassandra itself makes is as shipped. --short
has labbook's side only. Root, or sudo.
"""

import os
import shlex
from pathlib import Path

import shared
import yaml
from rounds import Rounds, timed

from labbook.errors import LabError
from labbook.lab import Environment, Lab, LabDescription
from labbook.lab.cache.push import push
from labbook.pipeline.setup import peers
from labbook.systems.artifacts import Artifact
from labbook.systems.cassandra import config
from labbook.systems.cassandra.ring import Ring

VERSION, HEAP_MB, SECONDS = "5.0.8", 512, 900
HERE = Path(__file__).parent
# Of the version's properties, what spares a node of labbook's a wait: ccm's users have it as shipped.
NOT_SHIPPED = ("cassandra.shutdown_announce_in_ms", "cassandra.skip_wait_for_gossip_to_settle", "cassandra.config",
               "cassandra.storagedir", "cassandra.logdir", "logback.configurationFile")
# ccm writes the level anew, on a line of its own, and waits for words in system.log.
LOGBACK = """<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>${cassandra.logdir}/system.log</file>
    <encoder><pattern>%-5level [%thread] %date{ISO8601} %F:%L - %msg%n</pattern></encoder>
  </appender>
  <root level="INFO">
    <appender-ref ref="file"/>
  </root>
</configuration>
"""


def main():
    args = _arguments()
    needs = Ring.needs(version=VERSION)
    shared.check(packages=needs.packages, artifacts=(*needs.artifacts, *(() if args.short else (
        peers.CCM, peers.CASSANDRA))))
    rounds = Rounds("ring_up", args, {"ccm": peers.CCM.version}, nodes=args.nodes)
    description = LabDescription.parse({"sites": ["room"], "hosts": {
        f"node[1-{args.nodes}]": {"site": "room", "role": "db"}, "all": {"site": "room", "role": "other"}}})
    with Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}") as lab:

        def ours() -> float:
            ring = Ring(lab.role("db"), version=VERSION, heap_mb=HEAP_MB)
            try:
                return timed(ring.up)
            finally:
                ring.destroy()

        if args.short:
            return print(f"{args.nodes} nodes: {ours():.1f} s")
        try:
            ccm = Ccm(lab.host("all"), args.nodes)
        except LabError as error:
            rounds.absent("ccm", f"ccm {peers.CCM.version} does not run here: {error.message}")
            return rounds.show("ccm")
        rounds.in_turns("ccm", [ours, ccm.up])


def _arguments():
    parser = shared.parser(__doc__, rounds=3)
    parser.add_argument("--nodes", type=int, default=5, help="default: 5")
    args = parser.parse_args()
    if args.short:
        args.nodes, args.rounds = 2, 1
    return args


class Ccm:
    """ccm on one host, with a folder that it installs from."""

    def __init__(self, host, nodes: int):
        self.host, self.nodes, self.installed = host, nodes, host.root / "installed"
        tarball = push(host, peers.CASSANDRA.fetch())
        host.run(f"mkdir -p {self.installed}/lib && cp -r {tarball}/bin {tarball}/conf {self.installed}")
        for name, text in files(self._class_path()).items():
            host.put(text, self.installed / name, 0o755 if name.startswith("bin") else 0o644)
        host.put(HERE / "ccm_ring.py", host.root / "ccm_ring.py")
        self._python = peers.CCM.python_on(host)
        host.run(f"{self._python} -c 'import ccmlib.cluster'")     # it wants a module that Python 3.12 took out

    def up(self) -> float:
        """Seconds until all nodes see each other and serve; none runs afterwards."""
        folder = self.host.root / "ccm"
        try:
            command = f"{self._python} {self.host.root}/ccm_ring.py {folder} {self.installed} {self.nodes}"
            output = self.host.run(command, timeout=SECONDS).stdout
            return float(output.splitlines()[-1])
        finally:
            self.host.run(f"rm -rf {shlex.quote(str(folder))}")

    def _class_path(self) -> str:
        folders = [Artifact.parse(each).fetch() for each in config.VERSIONS[VERSION]["artifacts"]]
        return config.class_path([(push(self.host, folder), folder) for folder in folders], "jamm-",
                                 ("conf",))


def files(class_path: str) -> dict[str, str]:
    """What differs from the tarball of Cassandra 3.11.4 in the folder that ccm installs from."""
    version = config.VERSIONS[VERSION]
    properties = {name: value for name, value in version["properties"].items() if name not in NOT_SHIPPED}
    options = ["-ea", "-XX:+ExitOnOutOfMemoryError",
               f"-Xms{HEAP_MB}M", f"-Xmx{HEAP_MB}M", "-Xss512k", "-XX:+UseSerialGC", config.NO_TRACE,
               "-Dlogback.configurationFile=logback.xml", "-Djava.net.preferIPv4Stack=true",
               "-Dcassandra-foreground=yes", *config.module_options(version), *config.defined(properties, "", "")]
    return {"0.version.txt": VERSION, "bin/cassandra": (HERE / "ccm_cassandra.sh").read_text(),
            "conf/logback.xml": LOGBACK, "conf/cassandra.yaml": yaml.safe_dump(settings()),
            "java_options": "\n".join([*options, class_path])}


def settings() -> dict:
    """cassandra.yaml, to which ccm adds what is a node's own."""
    return {"cluster_name": "labbook", "num_tokens": 1, "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
            "endpoint_snitch": "SimpleSnitch", "commitlog_sync": "periodic", "commitlog_sync_period": "10s",
            "storage_port": 7000, "native_transport_port": 9042,
            **config.seed_nodes("provider", ["127.0.0.1"])}


if __name__ == "__main__":
    shared.run(main)
