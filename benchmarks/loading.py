"""Loading a node with 16 KB values: labbook's loader side by side with the ordinary drivers.

    .venv/bin/python benchmarks/loading.py [--mb 512] [--rounds 3] [--versions 1.0.7 5.0.8]
                                             [--short] [--json FILE]

One idle node that has just come up and is empty, each time; the two take turns, with as many
processes. The drivers as their manuals say: thriftpy2's batch_mutate of as many rows as the loader
sends at once, cassandra-driver's execute_concurrent_with_args. MB are 10^6 bytes of values; "a
core" is MB a second of the clients' CPU, all threads counted. Then the same against a null server,
which is the clients' own ceiling. A ratio is the loader's over
the driver's, of one round. Root, an idle machine.
"""

import argparse
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import shared
from rounds import Rounds

from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.base import Needs
from labbook.systems.cassandra.config import VERSIONS
from labbook.systems.cassandra.node import Cassandra
from labbook.systems.null.server import NullServer
from labbook.targets import key_of
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keyvalue.loading import BATCH_BYTES, CLIENTS, load_pairs
from labbook.workloads.keyvalue.wire.pairs import value_of

VALUE_BYTES, HEAP_MB = 16384, {"1.0.7": 512, "5.0.8": 1024}
WAYS = ("driver", "loader")
HOSTS = {"server": {"site": "lan", "role": "db", "limits": {"memory": "4G"}},
         "client": {"site": "lan", "role": "client"}}


def main():
    args = _arguments()
    if args.one:
        return print(json.dumps(one_process(*args.one)))
    if args.short:
        args.mb, args.rounds, args.versions = 4, 1, ["1.0.7"]
    needs = Needs.union(*(Cassandra.needs(version=version) for version in args.versions))
    shared.check(packages=needs.packages, artifacts=needs.artifacts)
    rows = int(args.mb * 1e6) // VALUE_BYTES
    rounds = Rounds("loading", args, {name: version(name) for name in ("thriftpy2", "cassandra-driver")}, mb=args.mb)
    description = LabDescription.parse({"sites": ["lan"], "hosts": HOSTS})
    with Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}") as lab:
        for (rate, a_core), make in targets(lab, args.versions):
            for number in rounds.left(a_core):
                found = {way: measured(lab, make, way, rows) for way in WAYS[::1 if number % 2 else -1]}
                for row, metric in ((rate, "mb_per_s"), (a_core, "mb_per_s_per_client_core")):
                    if row:
                        rounds.add(row, found["loader"][metric], found["driver"][metric])
            rounds.show(*filter(None, (rate, a_core)))


def _arguments():
    parser = shared.parser(__doc__, rounds=3)
    parser.add_argument("--mb", type=float, default=512, help="10^6 bytes of values; default: 512")
    parser.add_argument("--versions", nargs="+", default=list(HEAP_MB), choices=HEAP_MB,
                        help="of Cassandra; default: both")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    return parser.parse_args()


def targets(lab, versions):
    """((row of MB/s, row of MB/s a core), a function that brings a fresh one up)."""
    host = lab.host("server")

    def node(number):
        made = Cassandra(host, version=number, heap_mb=HEAP_MB[number]).up()
        made.create_table()
        return made

    for number in versions:
        protocol = VERSIONS[number]["protocol"]
        yield (f"{protocol}_mb", f"{protocol}_core"), lambda: node(number)
    for protocol in ("thrift", "cql"):
        yield (None, f"null_{protocol}_core"), lambda: NullServer(
            host, protocol=protocol, value_bytes=VALUE_BYTES, values="random").up()


def measured(lab, make, way, rows) -> dict:
    target = make()
    try:
        if way == "loader":
            found = load_pairs(Crew.of(lab), target, rows=rows, value_bytes=VALUE_BYTES).metrics
            return {key: found[key] for key in ("mb_per_s", "mb_per_s_per_client_core")}
        return by_driver(lab.host("client"), target, rows)
    finally:
        target.destroy()


def by_driver(host, target, rows) -> dict:
    def process(number):
        done = host.run(f"{host.python} {Path(__file__).resolve()} --one {target.protocol} "
                        f"{target.address} {target.port} {rows * number // CLIENTS} "
                        f"{rows * (number + 1) // CLIENTS}", timeout=3600)
        return json.loads(done.stdout)

    with ThreadPoolExecutor(CLIENTS) as pool:
        found = list(pool.map(process, range(CLIENTS)))
    mb = rows * VALUE_BYTES / 1e6
    return {"mb_per_s": mb / (max(f["ended"] for f in found) - min(f["began"] for f in found)),
            "mb_per_s_per_client_core": mb / sum(f["cpu_s"] for f in found)}


def one_process(protocol, address, port, first, last) -> dict:
    """Write rows `first` to `last`: when it began and ended, by the machine's clock, and its CPU."""
    write = {"thrift": thrift, "cql": cql}[protocol](address, int(port))
    value(int(first))   # makes the noise that values are cut from, which labbook's loader has before it forks
    began, used = time.time(), time.process_time()
    write(range(int(first), int(last)))
    return {"began": began, "ended": time.time(), "cpu_s": time.process_time() - used}


def thrift(address, port):
    from thriftpy2.protocol import TCyBinaryProtocolFactory
    from thriftpy2.rpc import make_client
    from thriftpy2.transport import TCyFramedTransportFactory

    from labbook.workloads.keyvalue.protocols.thrift import idl

    types = idl()
    client = make_client(types.Cassandra, address, port, timeout=60_000,
                         proto_factory=TCyBinaryProtocolFactory(),
                         trans_factory=TCyFramedTransportFactory())
    client.set_keyspace("labbook")

    def mutation(row):
        column = types.Column(b"value", value(row), time.time_ns() // 1000)
        return {"pairs": [types.Mutation(types.ColumnOrSuperColumn(column))]}

    def write(rows):
        size = BATCH_BYTES // VALUE_BYTES
        for i in range(0, len(rows), size):
            client.batch_mutate({key_of(row): mutation(row) for row in rows[i:i + size]},
                                types.ConsistencyLevel.ONE)

    return write


def cql(address, port):
    from cassandra.cluster import Cluster
    from cassandra.concurrent import execute_concurrent_with_args
    from cassandra.io.asyncioreactor import AsyncioConnection

    session = Cluster([address], port=port, protocol_version=4,
                      connection_class=AsyncioConnection).connect()  # libev's: ConnectionBusy
    insert = session.prepare("INSERT INTO labbook.pairs (name, value) VALUES (?, ?)")

    def write(rows):
        execute_concurrent_with_args(session, insert, ((key_of(row), value(row)) for row in rows),
                                     concurrency=BATCH_BYTES // VALUE_BYTES)

    return write


def value(row) -> bytes:
    return value_of(key_of(row), VALUE_BYTES, "random")


if __name__ == "__main__":
    shared.run(main)
