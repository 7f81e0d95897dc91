"""Key-value load for each client core: labbook's clients beside cassandra-stress and latte.

    .venv/bin/python benchmarks/keyvalue_load.py [--calls 200000] [--rounds 6] [--short] [--json FILE]

One Cassandra 5.0.8 node with 10 000 values of 100 bytes for each; 32 clients, or calls under way, read them at random
until so many calls are made. A figure is calls for each second of the clients' CPU time. Of a program it is that of
the whole process; labbook's engines are up with the lab. Both have packages of their own (`labbook install
--benchmarks`); a row whose program is not there says why. --short has labbook's side only. Root, or sudo.
"""

import json
import os
import re
import shlex
from pathlib import Path

import shared
from rounds import Rounds

from labbook.errors import LabError
from labbook.lab import Environment, Lab, LabDescription
from labbook.lab.cache.push import push
from labbook.pipeline.setup import peers
from labbook.systems.cassandra.node import Cassandra
from labbook.workloads.crew.crew import Crew
from labbook.workloads.keyvalue.load import keyvalue
from labbook.workloads.keyvalue.loading import load_pairs

VERSION, HEAP_MB = "5.0.8", 1024
ROWS, VALUE_BYTES, CLIENTS = 10_000, 100, 32
SECONDS = 600       # at most, of a run
HOSTS = {"server": {"site": "lan", "role": "db", "limits": {"memory": "4G"}},
         "client": {"site": "lan", "role": "client"}}
# Run a command and print, as the last line, the CPU seconds of it and all that it started.
CPU = """import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
sys.exit(code)"""


def main():
    args = _arguments()
    needs = Cassandra.needs(version=VERSION)
    shared.check(packages=needs.packages, artifacts=(*needs.artifacts, *(() if args.short else (peers.CASSANDRA,))))
    rounds = Rounds("keyvalue_load", args, {"cassandra-stress": peers.CASSANDRA.version, "latte": peers.LATTE.version},
                    calls=args.calls)
    description = LabDescription.parse({"sites": ["lan"], "hosts": HOSTS})
    with Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}") as lab:
        node = Cassandra(lab.host("server"), version=VERSION, heap_mb=HEAP_MB).up()
        node.create_table()
        ours = Labbook(Crew.of(lab), node, args.calls)
        if args.short:
            return print(f"{ours.calls_a_core_second():.0f} reads a second of a client core")
        if why := peers.LATTE.why_missing():
            rounds.absent("latte", why)
        for row, make in (("stress", Stress), *(() if why else (("latte", Latte),))):
            other = make(lab.host("client"), node, args.calls)
            rounds.in_turns(row, [ours.calls_a_core_second, other.calls_a_core_second])
        if why:
            rounds.show("latte")


def _arguments():
    parser = shared.parser(__doc__, rounds=6)
    parser.add_argument("--calls", type=int, default=200_000, help="of a run; default: 200000")
    args = parser.parse_args()
    if args.short:
        args.calls, args.rounds = 500, 1
    return args


class Labbook:
    """Labbook's own clients."""

    def __init__(self, crew, node, calls: int):
        self._crew, self._node, self._calls = crew, node, calls
        load_pairs(crew, node, rows=ROWS, value_bytes=VALUE_BYTES, values="dots")

    def calls_a_core_second(self) -> float:
        found = keyvalue(self._crew, self._node, op="read", clients=CLIENTS, requests=max(1, self._calls // CLIENTS),
                         rows=ROWS, value_bytes=VALUE_BYTES, warmup_requests=10, seed=1, seconds_at_most=SECONDS)
        if wrong := (~found.rows.ok).sum():
            raise LabError(f"{wrong} of labbook's calls failed")
        return 1e6 / found.metrics["clients_cpu_us_per_call"]


class Program:
    """A load generator that is a program of its own, on the client host. A kind defines `prepare` and `command`."""

    def __init__(self, host, node, calls: int):
        self.host, self.node, self.calls = host, node, calls
        self.prepare()

    def calls_a_core_second(self) -> float:
        output = self.run(f"{self.host.python} -I -S -c {shlex.quote(CPU)} {self.command()}")
        cpu_s = float(output.splitlines()[-1])
        return self.calls_made(output) / cpu_s

    def run(self, command: str) -> str:
        return self.host.run(command, timeout=SECONDS).stdout


class Stress(Program):
    """cassandra-stress, of the newest Cassandra whose whole tarball Maven has."""

    def prepare(self) -> None:
        place = push(self.host, peers.CASSANDRA.fetch())
        self._java = (f"java -Xmx512M -XX:-UsePerfData -cp {place}/conf:{place}/tools/lib/stress.jar:{place}/lib/'*' "
                      "-Dlogback.configurationFile=logback-tools.xml org.apache.cassandra.stress.Stress")
        self.run(f"{self._java} write n={ROWS} cl=ONE no-warmup {self._options(f'seq=1..{ROWS}')}")

    def command(self) -> str:
        return f"{self._java} read n={self.calls} cl=ONE no-warmup {self._options(f'dist=UNIFORM(1..{ROWS})')}"

    def _options(self, rows: str) -> str:
        options = ("-pop", rows, "-col", f"size=FIXED({VALUE_BYTES})", "n=FIXED(1)", "-rate", f"threads={CLIENTS}",
                   "-mode", "native", "cql3", "-node", self.node.address, "-port", f"native={self.node.port}")
        return shlex.join(options)

    def calls_made(self, output: str) -> int:
        return stress_calls(output)


class Latte(Program):
    def prepare(self) -> None:
        script = self.host.root / "latte.rn"
        self.host.put(Path(__file__).with_name("latte.rn"), script)
        self._latte, self._script = push(self.host, peers.LATTE.fetch()) / "bin/latte", script
        for step in ("schema", "load"):
            self.run(f"{self._latte} {step} {script} -P rows={ROWS} {self.node.address}:{self.node.port}")

    def command(self) -> str:
        return (f"{self._latte} run {self._script} -P rows={ROWS} --duration {self.calls} --warmup 1 --threads 1 "
                f"--concurrency {CLIENTS} --quiet --output {self.host.root}/latte.json "
                f"{self.node.address}:{self.node.port}")

    def calls_made(self, output: str) -> int:
        return latte_calls(json.loads(self.host.get("latte.json")))


def stress_calls(output: str) -> int:
    """The calls of cassandra-stress's results; LabError when some failed."""
    partitions, errors = (re.search(rf"^Total {what} *: *([0-9,]+)", output, re.M) for what in ("partitions", "errors"))
    if not partitions or not errors or number(errors[1]):
        raise LabError(f"cassandra-stress did not make its calls:\n{output[-2000:]}")
    return number(partitions[1])


def latte_calls(report: dict) -> int:
    """The calls of latte's report; LabError when some failed."""
    result = report["result"]
    if result["error_count"]:
        raise LabError(f"{result['error_count']} of latte's calls failed")
    return result["request_count"]


def number(text: str) -> int:
    return int(text.replace(",", ""))


if __name__ == "__main__":
    shared.run(main)
