"""Run Cassandra's own nodetool on a node's host, and parse its output."""

import re
import shlex

from labbook.errors import InputError, LabError, SystemFailure
from labbook.systems.cassandra import config

# A small JVM, started beside the server's, that compiles as little as it can.
JAVA = ("java", "-Xmx64M", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        config.NO_TRACE)
# Today's version writes its whole log to its output unless it is configured not to.
QUIET = """<configuration>
  <appender name="err" class="ch.qos.logback.core.ConsoleAppender">
    <target>System.err</target><encoder><pattern>%msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="err"/></root>
</configuration>
"""
QUIET_FILE = "nodetool.xml"
NODE = re.compile(r"^(?P<address>\d+\.\d+\.\d+\.\d+)\S*\s.*\b(?P<up>Up|Down|\?)\s+"
                  r"(?P<state>Normal|Joining|Leaving|Moving)\s+"
                  r"(?P<load>\?|[\d.,]+ \S+)\s+\S+\s+(?P<token>-?\d+)\s*$")
UNITS = {"bytes": 1, "B": 1, **{f"{prefix}{unit}": 1024**power for unit in ("B", "iB")
                                for power, prefix in enumerate("KMGT", 1)}}
FLUSHING = ("FlushWriter", "MemtablePostFlusher")


def run(node, arguments, seconds: float) -> str:
    """Output of one command; SystemFailure with that output when it fails."""
    if not node.settings.nodetool:
        raise InputError(f"Cassandra {node.settings.version} on {node.host.name} does not "
                         "admit nodetool", file=config.FILE, key="nodetool", allowed="true")
    node.put(QUIET, QUIET_FILE)
    try:
        return node.host.run(command(node, arguments), timeout=seconds).stdout
    except LabError as error:
        if node.process is None or not node.process.alive():
            raise SystemFailure(f"{node.host.name}: nodetool {' '.join(map(str, arguments))}: no "
                                "Cassandra runs there", log=_tail(node)) from error
        raise SystemFailure(f"{node.host.name}: nodetool {' '.join(map(str, arguments))} failed: "
                            f"{error.message}", log=_tail(node)) from error


def command(node, arguments) -> str:
    tool, home = node.version["nodetool"], node.home
    values = {"java.net.preferIPv4Stack": "true", "user.home": home, "java.io.tmpdir": f"{home}/tmp",
             "logback.configurationFile": f"file:{home}/{QUIET_FILE}"}
    own = {key: value for key, value in node.version["properties"].items()
           if key in ("cassandra.config", "cassandra.storagedir", "cassandra.logdir")}
    return " ".join([*JAVA, *config.module_options(node.version),
                     *config.defined({**values, **own}, node.address, home),
                     f"@{home}/class_path", tool["main"], "-h", config.LOOPBACK, "-p", str(tool["port"]),
                     shlex.join(str(word) for word in arguments)])


def parse_ring(output: str) -> dict[str, dict]:
    """By address, what `nodetool ring` shows: state (such as NORMAL), up, token, load_bytes (as
    rounded by nodetool; None where it is unknown)."""
    nodes = (NODE.match(line) for line in output.splitlines())
    return {node["address"]: {"state": node["state"].upper(), "up": node["up"] == "Up",
                              "token": int(node["token"]), "load_bytes": size(node["load"])}
            for node in nodes if node}


def size(load: str) -> int | None:
    """Bytes of a text such as `1.5 MB` or `1.5 MiB`, both with prefixes of 1024; None for `?`."""
    if load == "?":
        return None
    number, unit = load.split()
    return round(float(number.replace(",", ".")) * UNITS[unit])


def parse_busy(compactions: str, pools: str) -> list[str]:
    """Compactions and flushes under way, in words, from the output of the papers' versions for
    `compactionstats` and `tpstats`."""
    pending = re.search(r"pending tasks:\s*(\d+)", compactions)
    busy = [f"{pending[1]} compactions wait"] if pending and int(pending[1]) else []
    running = [line.split() for line in compactions.splitlines()
               if re.search(r"\s(\d+(\.\d+)?%|n/a)\s*$", line)]
    busy += [" ".join(fields[:-3]) for fields in running]
    for line in pools.splitlines():
        name, *numbers = line.split() or [""]
        if name in FLUSHING and any(int(number) for number in numbers[:2]):
            busy.append(f"{name}: {numbers[0]} active, {numbers[1]} waiting")
    return busy


def _tail(node) -> str | None:
    return node.process.log_tail() if node.process else None
