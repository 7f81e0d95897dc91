"""Makes foreign hosts and holds them: root's part of foreign.py, a program of its own.

    python3 foreign_keeper.py < requests

A request is a line of JSON on standard input, and so is its answer on standard output. The hosts
end when standard input ends, so with the tests, whatever killed them; what a killed keeper leaves
(a folder, control groups, a disk) is cleared by the next one. Nothing of labbook is used here.
"""

import fcntl
import json
import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path

import foreign_files as files

STATE = Path("/var/tmp/labbook-foreign")   # on a disk, as the folders of real hosts are
RANGE = IPv4Network("198.18.0.0/15")
OURS = IPv4Network("198.19.128.0/17")      # labs take theirs from the other end of the range
LAST_METRIC = 4278198272                   # every other route goes before
INIT = Path(__file__).with_name("foreign_init.sh")
SECONDS = 30
NETS = ("control", "inner", "data")        # the driver has an address in the first one only


def run(*words, **options):
    done = subprocess.run([str(w) for w in words], text=True, capture_output=True, **options)
    if done.returncode:
        raise OSError(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def dying_with_us(*words, **options):
    """Started so that the kernel kills it when we end, and with it its children."""
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, words)], **options)


class Keeper:
    def __init__(self):
        self.booted, self.specs = {}, {}

    def make(self, hosts: dict, user: str, sudo: bool, lent=()) -> dict:
        """`hosts`: the nets that each has an address in; `lent`: folders of this machine that they may read. Gives
        addresses and the driver's files."""
        self.lent = list(lent)
        STATE.mkdir(mode=0o700, exist_ok=True)
        with cleared_by_one():
            clear_leftovers()
            self.id = f"{random.SystemRandom().getrandbits(24):06x}"
            self.folder = STATE / self.id
            self.folder.mkdir()
            self.lock = open(self.folder / "owner.lock", "w")
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            self.nets = dict(zip(NETS, free_block().subnets(new_prefix=24)))
            self._switch()
        keys = files.make_keys(self.folder, hosts)
        for number, (name, nets) in enumerate(hosts.items()):
            root = self.folder / name
            addresses = {net: str(self.nets[net][11 + number]) for net in nets}
            self.specs[name] = {"name": name, "number": number, "nets": addresses, "root": root}
            files.make_root(root, name, keys, user, sudo, addresses)
        self.boot(list(hosts))
        return {"id": self.id, "folder": str(self.folder), "keys": keys, "pids": self.pids(),
                "addresses": {name: spec["nets"] for name, spec in self.specs.items()},
                "switch": self.switch.pid}

    def _switch(self):
        """A place with a bridge for each net, and our one end of a cable to the first."""
        self.switch = dying_with_us("unshare", "--net", "sleep", "infinity")
        until(lambda: netns(self.switch.pid) != netns("self"), "the switch")
        (self.folder / "pids").write_text(f"{self.switch.pid} {start_time(self.switch.pid)}\n")
        self._in_switch("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1",
                        "net.ipv6.conf.default.disable_ipv6=1")
        for net in NETS:
            self._in_switch("ip", "link", "add", net, "type", "bridge")
            self._in_switch("ip", "link", "set", net, "up")
        run("ip", "route", "replace", "unreachable", RANGE, "metric", LAST_METRIC)
        cable = f"fh-{self.id}"
        run("ip", "link", "add", cable, "type", "veth", "peer", "name", "driver",
            "netns", self.switch.pid)
        Path("/proc/sys/net/ipv6/conf", cable, "disable_ipv6").write_text("1")
        self._in_switch("ip", "link", "set", "driver", "master", "control", "up")
        run("ip", "address", "add", f"{self.nets['control'][1]}/24", "dev", cable)
        run("ip", "link", "set", cable, "up")

    def _in_switch(self, *words):
        run("nsenter", "-t", self.switch.pid, "--net", *words)

    def boot(self, names: list[str]) -> dict:
        """Their processes, networks and /run, /tmp and /dev/shm anew; the rest is on their disks."""
        for name in names:
            spec = self.specs[name]
            cgroups = files.make_cgroups(self.id, name)
            spec["root"].with_suffix(".boot_id").write_text(files.new_boot_id())
            join = "".join(f"echo 0 > {place}/cgroup.procs; " for place in cgroups)
            apart = ("unshare --net --mount --uts --ipc --pid --cgroup --fork --kill-child=KILL "
                     f"sh {INIT} {spec['root']} {name} {' '.join(self.lent)}")
            log = open(self.folder / f"{name}.log", "a")
            self.booted[name] = dying_with_us(
                "sh", "-c", f"{join} exec {apart}", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, text=True)
        for name in names:
            if not self.booted[name].stdout.readline():
                raise OSError(f"{name} did not boot: {(self.folder / f'{name}.log').read_text()}")
            files.settle_cgroups(self.id, name)
            self._plug(self.specs[name], self.booted[name].pid)
            print("go", file=self.booted[name].stdin, flush=True)
        for name in names:
            pid = first_process(self.booted[name].pid)
            until(lambda pid=pid: listens(pid, 22), f"sshd of {name}", self.booted[name],
                  self.folder / f"{name}.log")
        lines = [f"{self.switch.pid} {start_time(self.switch.pid)}"]
        lines += [f"{pid} {start_time(pid)}" for pid in self.pids().values()]
        (self.folder / "pids").write_text("\n".join(lines) + "\n")
        return {"pids": self.pids()}

    def _plug(self, spec, pid):
        for net, address in spec["nets"].items():
            port = f"{net[:3]}{spec['number']}"
            # its cable to a host that was halted, which goes with the last of the namespaces over there
            subprocess.run(["nsenter", "-t", str(self.switch.pid), "--net", "ip", "link", "delete", port],
                           capture_output=True)
            self._in_switch("ip", "link", "add", port, "type", "veth", "peer", "name", net,
                            "netns", pid)
            self._in_switch("ip", "link", "set", port, "master", net, "up")
            inside = ("nsenter", "-t", pid, "--net", "ip")
            card = f"02:{self.id[:2]}:{self.id[2:4]}:{self.id[4:]}:{NETS.index(net):02x}"
            run(*inside, "link", "set", net, "address", f"{card}:{spec['number']:02x}")
            run(*inside, "address", "add", f"{address}/24", "dev", net)
            run(*inside, "link", "set", net, "up")
        run("nsenter", "-t", pid, "--net", "ip", "link", "set", "lo", "up")

    def halt(self, names: list[str]) -> dict:
        """As if their power was cut."""
        for name in names:
            end(first_process(self.booted[name].pid), self.id)
            self.booted.pop(name).wait(SECONDS)
        return {"pids": self.pids()}

    def cable(self, name: str, net: str, up: bool) -> dict:
        """Pull a host's cable out of the switch, or put it back: packets are lost, nobody is told."""
        port = f"{net[:3]}{self.specs[name]['number']}"
        self._in_switch("ip", "link", "set", port, *(["master", net] if up else ["nomaster"]))
        return {}

    def pids(self):
        return {name: first_process(made.pid) for name, made in self.booted.items()}

    def end(self):
        self.halt(list(self.booted))
        if hasattr(self, "switch"):
            end(self.switch.pid)
            self.switch.wait(SECONDS)
        if hasattr(self, "folder"):
            with cleared_by_one():
                clear(self.folder)


@contextmanager
def cleared_by_one():
    """Of all keepers, one at a time makes and clears folders: the lock in a folder goes with it."""
    with open(STATE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def free_block() -> IPv4Network:
    """A /22 that this machine has no route to."""
    routes = json.loads(run("ip", "-j", "-4", "route", "show", "table", "all"))
    taken = [IPv4Network(r["dst"]) for r in routes
             if r["dst"] != "default" and r.get("type") != "unreachable"]
    blocks = list(OURS.subnets(new_prefix=22))
    random.shuffle(blocks)
    return next(b for b in blocks if not any(b.overlaps(t) for t in taken))


def clear_leftovers():
    """What keepers left that were killed themselves: their hosts died with them."""
    for folder in STATE.glob("??????"):
        with open(folder / "owner.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            pids = folder / "pids"
            for line in pids.read_text().splitlines() if pids.exists() else ():
                pid, started = map(int, line.split())
                if start_time(pid) == started:
                    end(pid, folder.name)
            clear(folder)


def clear(folder: Path):
    """A place's folder, control groups, disks and cable, once its hosts have ended."""
    subprocess.run(["ip", "link", "delete", f"fh-{folder.name}"], capture_output=True)
    detach_disks(folder)
    until(lambda: files.remove_cgroups(folder.name), "control groups to empty")
    shutil.rmtree(folder)


def detach_disks(folder: Path):
    """Loop devices on files of a folder; on other file systems files may have the same numbers."""
    files = [p.stat() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()]
    ours = {(f"{os.major(f.st_dev)}:{os.minor(f.st_dev)}", f.st_ino) for f in files}
    listing = run("losetup", "-J", "-l", "-O", "NAME,BACK-INO,BACK-MAJ:MIN")
    for loop in json.loads(listing)["loopdevices"] if listing else ():
        place, number = loop["back-maj:min"], loop["back-ino"]      # none of one that is going
        if place and number and (place.strip(), int(number)) in ours:
            run("losetup", "--detach", loop["name"])


def end(pid: int | None, place: str | None = None):
    """Kill a process; of a host of a place, its labs may be frozen."""
    if pid is not None and (started := start_time(pid)):
        os.kill(pid, 9)
        if place:
            files.thaw(place)
        until(lambda: start_time(pid) != started, f"the end of {pid}")


def first_process(unshare: int) -> int | None:
    """The first process of the place that `unshare` made."""
    children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
    return int(children[0]) if children else None


def start_time(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def netns(pid) -> str:
    return os.readlink(f"/proc/{pid}/ns/net")


def listens(pid: int, port: int) -> bool:
    rows = (row.split() for row in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:])
    return any(row[3] == "0A" and int(row[1].split(":")[1], 16) == port for row in rows)


def until(true, what, process=None, log=None):
    limit = time.monotonic() + SECONDS
    while not true():
        if time.monotonic() > limit or (process and process.poll() is not None):
            raise OSError(f"waited for {what}" + (f": {log.read_text()[-2000:]}" if log else ""))
        time.sleep(0.005)


def main():
    keeper = Keeper()
    try:
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = getattr(keeper, request.pop("do"))(**request)
            except (OSError, subprocess.SubprocessError, StopIteration) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), flush=True)
    finally:
        keeper.end()


if __name__ == "__main__":
    main()
