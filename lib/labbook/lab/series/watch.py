"""One sampler on each machine that has hosts of a lab, and its samples as a table.

A sampler talks over one connection and ends with it, so that none outlives its driver.
"""

import json
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from labbook.lab import clock
from labbook.lab.local import cgroups

SAMPLER = Path(__file__).with_name("on_host") / "sampler.py"
EVERY_SECONDS, ANSWER_SECONDS = 1.0, 30
LEAST_SECONDS = 0.05        # between two samples: ticks of the processor's time are 0.01 s
MACHINE = "(machine)"       # the row of what the whole machine does, beside local hosts
# A counter's growth in a second is a column: {counter: (column, scale)}; of memory, the value itself.
RATES = {"cpu_us": ("cpu_cores", 1e-6), "user_us": ("user_cores", 1e-6), "system_us": ("system_cores", 1e-6),
         "steal_us": ("steal_cores", 1e-6), "iowait_us": ("iowait_cores", 1e-6),
         "stalled_cpu_us": ("pressure_cpu", 1e-6), "stalled_io_us": ("pressure_io", 1e-6),
         "stalled_memory_us": ("pressure_memory", 1e-6), "reads": ("reads_per_s", 1), "writes": ("writes_per_s", 1),
         "read_bytes": ("read_bytes_per_s", 1), "written_bytes": ("written_bytes_per_s", 1),
         "disk_busy_ms": ("disk_busy", 1e-3)}
VALUES = ("memory_bytes",)
OF_INTERFACES = ("rx_bytes_", "tx_bytes_")      # rx_bytes_data0 becomes rx_bytes_per_s_data0


class Sampler:
    """A sampler that runs: `channel` is a socket, or what behaves like one. `ahead_s`: how far its clock is
    ahead of ours."""

    def __init__(self, channel, hosts: list[dict], seconds: float = EVERY_SECONDS, ahead_s: float = 0.0, process=None):
        self._channel, self._ahead_s, self._process = channel, ahead_s, process
        channel.settimeout(ANSWER_SECONDS)
        channel.sendall(json.dumps({"hosts": hosts, "seconds": seconds}).encode() + b"\n")

    def take(self) -> list[list]:
        """All samples since the last call, and one of now. OSError or EOFError when it does not answer."""
        self._channel.sendall(b"give\n")
        answer = b""
        while not answer.endswith(b"\n\n"):
            part = self._channel.recv(1 << 16)
            if not part:
                raise EOFError("the sampler has ended")
            answer += part
        samples = [json.loads(line) for line in answer.splitlines() if line]
        return [[at - self._ahead_s, hosts] for at, hosts in samples]

    def close(self) -> None:
        with suppress(Exception):
            self._channel.close()
        if self._process is not None:
            try:
                self._process.wait(ANSWER_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def start(lab) -> list[Sampler]:
    """A sampler on each machine with hosts of the lab."""
    made = {host["name"]: host for host in lab._made["hosts"]}
    machines = {}
    for host in lab.hosts.values():
        machines.setdefault((host.login.address, host.login.port) if host.is_remote else None, []).append(host)
    started = []
    try:
        for hosts in machines.values():
            if hosts[0].is_remote:
                started.append(_remote(hosts))
            else:
                routers = [made[one.name] for one in lab.routers.values()]
                started.append(local([of_local(lab.id, made[host.name]) for host in hosts]
                                     + [{"name": one["name"], "pid": one["pid"]} for one in routers]
                                     + [{"name": MACHINE, "machine": True, "network": False}]))
    except BaseException:
        for one in started:
            one.close()
        raise
    return started


def local(hosts: list[dict], seconds: float = EVERY_SECONDS) -> Sampler:
    """A sampler on this machine."""
    mine, its = socket.socketpair()
    with its:
        process = subprocess.Popen([sys.executable, "-I", "-S", str(SAMPLER)], stdin=its, stdout=its,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
    return Sampler(mine, hosts, seconds, process=process)


def _remote(hosts) -> Sampler:
    """On a user's own host, which as a machine is all that its lab hosts are."""
    import shlex

    program = shlex.quote(SAMPLER.read_text())
    channel = hosts[0].open(f"exec {hosts[0].python} -I -S -c {program}", apart=True)   # no host's limits or freezer
    name = ", ".join(host.name for host in hosts)
    return Sampler(channel, [{"name": name, "machine": True}], ahead_s=clock.ahead_s(hosts[0]))


def of_local(lab_id: str, made: dict, root: Path = cgroups.ROOT) -> dict:
    """What the sampler reads of a local host; `made`: an entry of lab.json."""
    group = cgroups.account(lab_id, made["name"], root)
    counts = "memory.current" if cgroups.version(root) == 2 else "memory.usage_in_bytes"
    memory = cgroups.folders(lab_id, made["name"], {"memory"}, root)["memory"] / counts
    return {"name": made["name"], "pid": made["pid"],
            **({"group": str(group)} if group is not None and group.is_dir() else {}),
            **({"memory": str(memory)} if memory.exists() else {}),
            **({"disk": Path(made["device"]).name} if made.get("device") else {})}


def table(of_machines: list[list]):
    """DataFrame of samples, a list a machine: a row an interval and host, with its end and length.

    Columns: at_s (seconds since the epoch by our clock), seconds, host, those of RATES (cores, shares of time,
    a second), memory_bytes (at the end), rx_bytes_per_s_NAME and tx_bytes_per_s_NAME of interfaces. What a host
    does not give is missing.
    """
    import pandas as pd

    rows = [row for samples in map(_apart, of_machines) for before, after in zip(samples, samples[1:])
            for row in _rows(before, after)]
    frame = pd.DataFrame(rows)
    return frame.astype({"host": "category"}) if rows else frame


def _apart(samples) -> list:
    """Samples that are not too close together for a rate; nor older than the one before, by a clock that was set."""
    apart = []
    for one in samples:
        if not apart or one[0] >= apart[-1][0] + LEAST_SECONDS:
            apart.append(one)
    return apart


def _rows(before, after):
    seconds = after[0] - before[0]
    for name, now in after[1].items():
        then = before[1].get(name, {})
        row = {"at_s": after[0], "seconds": seconds, "host": name}
        for counter, value in now.items():
            if counter in VALUES:
                row[counter] = value
            elif counter in then and value >= then[counter]:
                column, scale = _column(counter)
                rate = (value - then[counter]) * scale / seconds
                row[column] = max(rate, row.get(column, rate))      # of several disks the busiest
        yield row


def _column(counter: str) -> tuple[str, float]:
    if counter.startswith("disk_busy_ms_"):
        return RATES["disk_busy_ms"]
    way = counter[:len(OF_INTERFACES[0])]
    return (f"{way}per_s_{counter.removeprefix(way)}", 1) if way in OF_INTERFACES else RATES[counter]
