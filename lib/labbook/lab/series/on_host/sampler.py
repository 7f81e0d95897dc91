"""Samples what hosts of a lab on this machine use, once a second, until its standard input ends.

The first line of standard input is JSON: {"hosts": [...], "seconds": 1}. A host is {"name", "group" (the folder of its
control group), "memory" (a file with its memory, bytes), "pid" (a process in its network), "disk" (the name of its
block device)}, each but the name optional; {"name", "machine": true} is the whole machine, with "network": false
without its interfaces. Each further line takes a sample at once and is answered by all samples since the last answer, a
line of JSON each, oldest first, and an empty line.

A sample is [seconds since the epoch, {name: {counter: number}}]. Counters only grow but for memory: cpu_us,
user_us, system_us, steal_us, iowait_us, stalled_cpu_us, stalled_io_us, stalled_memory_us, memory_bytes,
reads, writes, read_bytes, written_bytes, disk_busy_ms (of a machine disk_busy_ms_NAME of each of its disks),
rx_bytes_NAME and tx_bytes_NAME of interfaces. Times are those of the clock when the sampler began, and go on evenly
though the clock is set. What the kernel does not give is left out. Standard library only; every file is closed again,
since an open one of a network would keep that alive.
"""

import json
import os
import re
import select
import sys
import time
from collections import deque

MOST = 20_000           # samples that wait to be fetched; older ones are dropped
SECTOR_BYTES = 512
TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
EPOCH_S = time.time() - time.monotonic()
WHOLE_DISK = re.compile(r"(sd[a-z]+|vd[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+)")
USAGE = {"usage_usec": "cpu_us", "user_usec": "user_us", "system_usec": "system_us"}


def read(path: str) -> str:
    """A file's text; empty where it cannot be read. The kernel gives a file of many records by about a page a read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return b"".join(iter(lambda: os.read(file, 1 << 16), b"")).decode()
    except OSError:
        return ""
    finally:
        os.close(file)


def usage(text: str) -> dict:
    """Of a control group's cpu.stat."""
    pairs = (line.split() for line in text.splitlines())
    return {USAGE[pair[0]]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] in USAGE}


def stalled(text: str) -> int | None:
    """Microseconds in which some task waited, of a pressure file; None without one."""
    first = text.partition("\n")[0]
    return int(first.rpartition("total=")[2]) if first.startswith("some") else None


def block(fields: list) -> dict:
    """Of /sys/block/NAME/stat, or of the same fields in /proc/diskstats."""
    return {"reads": int(fields[0]), "read_bytes": int(fields[2]) * SECTOR_BYTES, "writes": int(fields[4]),
            "written_bytes": int(fields[6]) * SECTOR_BYTES, "disk_busy_ms": int(fields[9])}


def network(text: str) -> dict:
    """Of /proc/net/dev, without the loopback interface."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        name, fields = name.strip(), numbers.split()
        if name != "lo" and len(fields) >= 9:
            found["rx_bytes_" + name], found["tx_bytes_" + name] = int(fields[0]), int(fields[8])
    return found


def processor(text: str) -> dict:
    """Of the machine's /proc/stat."""
    fields = [int(field) * TICK_US for field in text.partition("\n")[0].split()[1:9]]
    if len(fields) < 8:
        return {}
    user, nice, system, _, iowait, irq, softirq, steal = fields
    return {"cpu_us": user + nice + system + irq + softirq, "user_us": user + nice,
            "system_us": system + irq + softirq, "iowait_us": iowait, "steal_us": steal}


def disks(text: str) -> dict:
    """The sums of a machine's whole disks, of /proc/diskstats, and the busy time of each."""
    lines = (line.split() for line in text.splitlines())
    found = {line[2]: block(line[3:]) for line in lines if len(line) > 13 and WHOLE_DISK.fullmatch(line[2])}
    busy = {f"disk_busy_ms_{name}": one.pop("disk_busy_ms") for name, one in found.items()}
    sums = {counter: sum(one[counter] for one in found.values()) for one in found.values() for counter in one}
    return sums | busy


def used(text: str) -> dict:
    """Of /proc/meminfo."""
    kib = {line.partition(":")[0]: int(line.split()[1]) for line in text.splitlines() if line.startswith("Mem")}
    return {"memory_bytes": (kib["MemTotal"] - kib["MemAvailable"]) * 1024} if "MemAvailable" in kib else {}


def pressure(folder: str, ending: str) -> dict:
    each = {what: stalled(read(f"{folder}/{what}{ending}")) for what in ("cpu", "io", "memory")}
    return {f"stalled_{what}_us": total for what, total in each.items() if total is not None}


def resident(pids: str) -> dict:
    """Memory of processes, where no control group counts it; of pages that they share, each counts."""
    sizes = (read(f"/proc/{pid}/statm").split() for pid in pids.split())
    return {"memory_bytes": sum(int(size[1]) for size in sizes if len(size) > 1) * PAGE_BYTES}


def of_machine(host: dict) -> dict:
    return {**processor(read("/proc/stat")), **pressure("/proc/pressure", ""), **used(read("/proc/meminfo")),
            **disks(read("/proc/diskstats")), **(network(read("/proc/net/dev")) if host.get("network", True) else {})}


def of_host(host: dict) -> dict:
    found, group = {}, host.get("group")
    if group:
        found = {**usage(read(f"{group}/cpu.stat")), **pressure(group, ".pressure")}
    memory = read(host["memory"]).strip() if host.get("memory") else ""
    if memory.isdigit():
        found["memory_bytes"] = int(memory)
    elif group:
        found.update(resident(read(f"{group}/cgroup.procs")))
    if host.get("disk"):
        fields = read(f"/sys/block/{host['disk']}/stat").split()
        found.update(block(fields) if len(fields) > 9 else {})
    if host.get("pid"):
        found.update(network(read(f"/proc/{host['pid']}/net/dev")))
    return found


def sample(hosts: list) -> list:
    return [time.monotonic() + EPOCH_S,
            {host["name"]: (of_machine if host.get("machine") else of_host)(host) for host in hosts}]


def main():
    lines = Lines(sys.stdin.fileno())
    while not (first := lines.next(None)):
        if first is None:
            return
    request = json.loads(first)
    samples, due = deque(maxlen=MOST), time.monotonic()
    while True:
        line = lines.next(max(0.0, due - time.monotonic()))
        if line is None:
            return
        samples.append(json.dumps(sample(request["hosts"]), separators=(",", ":")))
        if line:
            answer = "".join(f"{each}\n" for each in samples) + "\n"
            samples.clear()
            sys.stdout.write(answer)
            sys.stdout.flush()
        else:
            due = max(due + request["seconds"], time.monotonic())     # late once, not for ever


class Lines:
    """Lines of a file that may be waited for."""

    def __init__(self, file: int):
        self._file, self._left = file, b""

    def next(self, seconds) -> str | None:
        """The next line, which is never empty; "" when none came in so many seconds, None at the end."""
        while b"\n" not in self._left:
            if not select.select([self._file], (), (), seconds)[0]:
                return ""
            part = os.read(self._file, 1 << 16)
            if not part:
                return None
            self._left += part
        line, _, self._left = self._left.partition(b"\n")
        return line.decode() or " "


if __name__ == "__main__":
    main()
