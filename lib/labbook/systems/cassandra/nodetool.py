"""Cassandra's own nodetool on a node's host, by version, and what it tells."""

import re
import shlex

from labbook.errors import InputError, LabError, SystemFailure
from labbook.systems.cassandra import config

# A small JVM beside the server's own, that compiles as little as it can.
JAVA = ("java", "-Xmx64M", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        config.NO_TRACE)
# Today's says what it logs on its output, all of it unless it is told otherwise.
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


def run(node, words, seconds: float) -> str:
    """Output of one command; SystemFailure when it fails, with what it said."""
    if "nodetool_opens" in node.version:
        if not node.settings.nodetool:
            raise InputError(f"Cassandra {node.settings.version} on {node.host.name} was not told "
                             "to let it in", file=config.FILE, key="nodetool", allowed="true")
        node.put(QUIET, QUIET_FILE)
    try:
        return node.host.run(command(node, words), timeout=seconds).stdout
    except LabError as error:
        if node.process is None or not node.process.alive():
            raise SystemFailure(f"{node.host.name}: nodetool {' '.join(map(str, words))}: there "
                                "is no Cassandra that runs", log=_tail(node)) from error
        raise SystemFailure(f"{node.host.name}: nodetool {' '.join(map(str, words))} failed: "
                            f"{error.message}", log=_tail(node)) from error


def command(node, words) -> str:
    tool, home = node.version["nodetool"], node.home
    given = {"java.net.preferIPv4Stack": "true", "user.home": home, "java.io.tmpdir": f"{home}/tmp",
             "logback.configurationFile": f"file:{home}/{QUIET_FILE}"}
    own = {key: value for key, value in node.version["properties"].items()
           if key in ("cassandra.config", "cassandra.storagedir", "cassandra.logdir")}
    host = tool["host"].format(address=node.address)
    return " ".join([*JAVA, *config.module_options(node.version),
                     *config.defined({**given, **own}, node.address, home),
                     f"@{home}/class_path", tool["main"], "-h", host, "-p", str(tool["port"]),
                     shlex.join(str(word) for word in words)])


def ring_told(said: str) -> dict[str, dict]:
    """By address what `ring` tells: state (as NORMAL), up, token, load_bytes (rounded by it; None
    where it does not know)."""
    nodes = (NODE.match(line) for line in said.splitlines())
    return {node["address"]: {"state": node["state"].upper(), "up": node["up"] == "Up",
                              "token": int(node["token"]), "load_bytes": size(node["load"])}
            for node in nodes if node}


def size(load: str) -> int | None:
    """Bytes of `1.5 MB` or `1.5 MiB`; both are of 1024."""
    if load == "?":
        return None
    number, unit = load.split()
    return round(float(number.replace(",", ".")) * UNITS[unit])


def busy_told(compactions: str, pools: str) -> list[str]:
    """What the papers' versions have under way, in words, by `compactionstats` and `tpstats`."""
    pending = re.search(r"pending tasks:\s*(\d+)", compactions)
    found = [f"{pending[1]} compactions wait"] if pending and int(pending[1]) else []
    running = [line.split() for line in compactions.splitlines()
               if re.search(r"\s(\d+(\.\d+)?%|n/a)\s*$", line)]
    found += [" ".join(words[:-3]) for words in running]
    for line in pools.splitlines():
        name, *numbers = line.split() or [""]
        if name in FLUSHING and any(int(number) for number in numbers[:2]):
            found.append(f"{name}: {numbers[0]} active, {numbers[1]} waiting")
    return found


def _tail(node) -> str | None:
    return node.process.log_tail() if node.process else None
