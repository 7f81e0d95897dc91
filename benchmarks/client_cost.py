"""What a call costs a client: the ordinary drivers side by side with the key-value clients.

    .venv/bin/python benchmarks/client_cost.py [--calls 4000] [--rounds 6] [--rows 1]
                                                 [--short] [--json FILE]

Each protocol's driver, used as its manual says (one prepared statement or one cursor for all
calls), and the prepared calls of labbook.workloads take turns against a null server, one client
in one process each. Client CPU is that of all the client's threads. A ratio is the prepared calls over
the driver, of one round; the range of n rounds' ratios holds the median ratio with a
certainty of 1 - 2^(1-n), whatever the distribution. Both read the same value. Neither root nor a lab.
"""

import argparse
import json
import socket
import subprocess
import sys
import time
from importlib.metadata import version

import shared
from rounds import Rounds

from labbook.errors import LabError

PROTOCOLS = {"thrift": "thriftpy2", "cql": "cassandra-driver", "mysql": "pymysql"}
VALUE_BYTES, WARM_UP = 100, 500
KEYS = "row%06d"


def main():
    args = _arguments()
    if args.one:
        return print(json.dumps(one_client(*args.one.split(), args)))
    if args.short:
        args.calls, args.rounds = 100, 1
    file = shared.log("client_cost")
    rounds = Rounds("client_cost", args, {name: version(name) for name in PROTOCOLS.values()},
                    calls=args.calls, rows=args.rows)
    for protocol in PROTOCOLS:
        for op in ("read", "write"):
            compared(protocol, op, args, file, rounds)


def _arguments():
    parser = shared.parser(__doc__, rounds=6)
    parser.add_argument("--calls", type=int, default=4000, help="of each process; default: 4000")
    parser.add_argument("--rows", type=int, default=1, help="that the calls go round; default: 1")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def compared(protocol, op, args, file, rounds) -> None:
    """Keep a round after the other: CPU microseconds of a call by prepared calls and by the driver."""
    row = f"{protocol}_{op}"
    if not rounds.wanted(row):
        return rounds.show(row)
    server, port = null_server(protocol, file)
    try:
        rounds.in_turns(row, [lambda way=way: _one_process(protocol, op, way, port, args)["cpu_us"]
                              for way in ("prepared", "driver")])
    finally:
        server.kill()
        server.wait()


def null_server(protocol, file):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "labbook.systems.null.on_host.null_server", protocol, "127.0.0.1",
               str(port), str(VALUE_BYTES)]
    with open(file, "ab") as out:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    until = time.monotonic() + 20
    while not listens(port):
        if server.poll() is not None or time.monotonic() > until:
            server.kill()
            server.wait()
            raise LabError(f"no null server for {protocol}; see {file}")
        time.sleep(0.02)
    return server, port


def listens(port) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _one_process(protocol, op, way, port, args) -> dict:
    done = subprocess.run(
        [sys.executable, __file__, "--one", f"{protocol} {op} {way} {port}", "--calls",
         str(args.calls), "--rows", str(args.rows)], capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"the client ({protocol} {op}, {way}) failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def one_client(protocol, op, way, port, args) -> dict:
    """CPU microseconds a call and calls a second."""
    client = prepared if way == "prepared" else globals()[protocol]
    call = client(op, int(port), protocol) if way == "prepared" else client(op, int(port))
    for number in range(WARM_UP):
        call(number % args.rows)
    began, used = time.perf_counter(), time.process_time()
    for number in range(args.calls):
        call(number % args.rows)
    return {"cpu_us": (time.process_time() - used) / args.calls * 1e6,
            "rate_per_s": args.calls / (time.perf_counter() - began)}


def prepared(op, port, protocol):
    from labbook.workloads.keyvalue import protocols

    calls = protocols.calls(dict(protocol=protocol, address="127.0.0.1", port=port, client=0,
                              value_bytes=VALUE_BYTES, consistency="ONE", call_seconds=10))
    calls.connect()
    return getattr(calls, op)


def thrift(op, port):
    from thriftpy2.protocol import TCyBinaryProtocolFactory
    from thriftpy2.rpc import make_client
    from thriftpy2.transport import TCyFramedTransportFactory

    from labbook.workloads.keyvalue.protocols.thrift import idl

    types = idl()
    client = make_client(types.Cassandra, "127.0.0.1", port,
                         proto_factory=TCyBinaryProtocolFactory(),
                         trans_factory=TCyFramedTransportFactory())
    client.set_keyspace("labbook")

    def read(row):
        path = types.ColumnPath(column_family="pairs", column=b"value")
        found = client.get((KEYS % row).encode(), path, types.ConsistencyLevel.ONE)
        check(row, found.column.value.decode())

    def write(row):
        column = types.Column(name=b"value", value=value(row).encode(),
                              timestamp=time.time_ns() // 1000)
        client.insert((KEYS % row).encode(), types.ColumnParent(column_family="pairs"), column,
                      types.ConsistencyLevel.ONE)

    return {"read": read, "write": write}[op]


def cql(op, port):
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
    from cassandra.policies import RoundRobinPolicy

    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy())
    session = Cluster(["127.0.0.1"], port=port, protocol_version=4,
                      execution_profiles={EXEC_PROFILE_DEFAULT: profile}).connect()
    select = session.prepare("SELECT value FROM labbook.pairs WHERE name=?")
    insert = session.prepare("INSERT INTO labbook.pairs (name, value) VALUES (?, ?)")

    def read(row):
        check(row, session.execute(select, [(KEYS % row).encode()]).one().value.decode())

    def write(row):
        session.execute(insert, [(KEYS % row).encode(), value(row).encode()])

    return {"read": read, "write": write}[op]


def mysql(op, port):
    import pymysql

    connection = pymysql.connect(host="127.0.0.1", port=port, user="labbook", database="labbook",
                                 autocommit=True)
    cursor = connection.cursor()

    def read(row):
        cursor.execute("SELECT VALUE FROM pairs WHERE NAME=%s", (KEYS % row,))
        check(row, cursor.fetchone()[0])

    def write(row):
        cursor.execute("REPLACE INTO pairs (NAME, VALUE, TIMEUUID) VALUES (%s, %s, %s)",
                       (KEYS % row, value(row), time.time_ns() // 1000))

    return {"read": read, "write": write}[op]


def value(row) -> str:
    return (KEYS % row).ljust(VALUE_BYTES, ".")


def check(row, found):
    assert found == value(row), found


if __name__ == "__main__":
    shared.run(main)
