"""A host's own disk: its scheduler and read-ahead, a trace of its requests, the cost of a seek.

The cost of a seek is the time of random reads over that of sequential ones, by fio. Verdicts that
need a disk that seeks depend on it: a ratio near 1 says that this one does not.
"""

import json
import os
import shlex
from contextlib import contextmanager
from statistics import mean

from labbook.errors import InputError, LabError
from labbook.lab.disk import loop_device, models, served
from labbook.lab.disk.trace import Trace
from labbook.lab.ssh.transfer import say

DEVICES = "/sys/dev/block"      # a folder each, by major:minor
SLOWEST = 5e6       # bytes a second: fio gets a time limit by it
FIO = "Type: apt-get install fio; in the study's lab.yml name it: needs: {packages: [fio]}"
BUSY_FIELD = 9      # of /sys/dev/block/*/stat: ms with requests under way
# Schedulers that may be kernel modules: listed only once loaded, and loaded when a disk gets one.
MODULES = {"bfq": "bfq", "kyber-iosched": "kyber", "mq-deadline": "mq-deadline"}
OFFERED = f"""cat queue/scheduler; PATH=$PATH:/usr/sbin:/sbin
for module in {' '.join(MODULES)}; do modprobe -nq $module 2> /dev/null && echo $module; done; true"""
# Facts of the device, and of the disk below it where its file is visible from the host.
LOOK = """fact() { printf '%s\\t%s\\n' "$1" "$(cat "$2" 2> /dev/null)"; }
of() { for name in scheduler read_ahead_kb rotational; do fact $1$name $2/queue/$name; done; }
of '' .; fact size size; fact dio loop/dio
printf 'free\\t%s\\n' "$(df -PB1 @PLACE@ | sed -n 2p | tr -s ' ' | cut -d' ' -f4)"
number=$(stat -c %d -- "$(cat loop/backing_file 2> /dev/null)" 2> /dev/null) || exit 0
below=@DEVICES@/$((number >> 8 & 0xfff)):$((number & 0xff | number >> 12 & 0xfff00))
[ -e $below/queue ] || below=$below/..
[ ! -e $below/queue ] || of below_ $below"""


BLOCK_BYTES = 128 << 10     # the kernel's default read-ahead
ROUNDS = 2                  # of each kind, in turns, so that a slow moment does not hit one kind only
MEBIBYTE = 1 << 20
LEAST_BYTES, MOST_BYTES = 64 * MEBIBYTE, 1024 * MEBIBYTE
KINDS = {"sequential": "read", "random": "randread"}


class Disk:
    """`write_down(host)` notes a tracing instance for the host in the journal and returns its name.
    `ask(command)` is a modelled disk's answer (see modelled.ask), `log()` its log of served requests."""

    def __init__(self, host, write_down, ask=None, log=None):
        if not (host.limits or {}).get("disk"):
            raise LabError(f"{host.name} has no disk of its own",
                           remedy="Give it one in lab.yml: limits: {disk: {size: 4G}}")
        self.host, self._write_down, self._numbers = host, write_down, None
        self._ask, self._log = ask, log

    @property
    def number(self) -> str:
        """major:minor of the device that the host's folder lies on."""
        if self._numbers is None:
            found = int(self.host.run("stat -c %d .").stdout)
            self._numbers = f"{os.major(found)}:{os.minor(found)}"
        return self._numbers

    def schedulers(self) -> list[str]:
        """Schedulers that the kernel offers for this disk."""
        listed, *modules = self._here(OFFERED).splitlines()
        names = [name.strip("[]") for name in listed.split()]
        return list(dict.fromkeys([*names, *(MODULES[module] for module in modules)]))

    @property
    def model(self) -> models.Model | None:
        """The model of its time as lab.yml chose it, with its `order` there; None without one."""
        disk = self.host.limits["disk"]
        return models.Model(disk["model"], order=disk["order"], **disk["figures"]) if "model" in disk else None

    def set(self, scheduler: str | None = None, read_ahead_kb: int | None = None,
            order: str | None = None, tags: int | None = None) -> None:
        """Set the scheduler, the read-ahead, the tags (requests that the disk takes at a time), a modelled
        disk's order of waiting requests. They are restored when the lab goes down.

        A loop device has tags for all requests, so that a scheduler has nothing to order; with four and more
        processes than that mq-deadline orders by place (see the book's page on modelled disks).

        A read-ahead applies to files that are opened afterwards: set it before a server starts.

        InputError for a scheduler that the kernel does not offer, for an order that is none or is asked
        of a disk without a model, for a read-ahead that is not whole pages, and for tags outside of 4 to
        128; LabError when the kernel does not apply it.
        """
        if order is not None and order not in models.ORDERS:
            raise InputError(f"{order!r} is no order of requests", key="order", allowed=models.ORDERS)
        if tags is not None and tags not in loop_device.TAGS:
            raise InputError(f"{tags!r} tags", key="tags", allowed=f"{loop_device.TAGS[0]} to {loop_device.TAGS[-1]}")
        if scheduler is not None and scheduler not in (offered := self.schedulers()):
            raise InputError(f"no scheduler {scheduler!r} on {self.host.name}", key="scheduler",
                             allowed=offered)
        if read_ahead_kb is not None:
            _check_read_ahead(read_ahead_kb)
        if order is not None:
            self._set_order(order)
        if tags is not None:
            self._here(f"set -e -- {tags} queue; {loop_device.SET_TAGS}", root=True)
        requested = {"scheduler": scheduler, "read_ahead_kb": read_ahead_kb}
        requested = {key: str(value) for key, value in requested.items() if value is not None}
        for name, value in requested.items():
            self._here(f"echo {shlex.quote(value)} > queue/{name}", root=True)
        found = self.facts()
        for name, value in requested.items():
            if str(found[name]) != value:
                raise LabError(f"{self.host.name}: {name} {value} was set and is {found[name]}")

    def facts(self) -> dict:
        """scheduler, read_ahead_kb, rotational (as the kernel assumes), size_bytes, free_bytes,
        direct_io (past the machine's page cache) and, where it is visible, `below`: the first three
        of the disk that holds its file. Of a modelled disk also its `model`, the `order` of its waiting
        requests, and how many of the `served` were `late` or `failed`."""
        place = shlex.quote(str(self.host.root))
        facts = dict(line.split("\t", 1) for line in
                    self._here(LOOK.replace("@PLACE@", place)).splitlines())
        below = {"below": _queue(facts, "below_")} if "below_scheduler" in facts else {}
        modelled = {}
        if self.model:
            state = self.served_so_far()
            modelled = {"model": self.model.name, **{key: state[key] for key in ("order", "served", "late",
                                                                                  "failed")}}
        return {**_queue(facts), **modelled, "size_bytes": int(facts["size"]) * 512,
                "free_bytes": int(facts["free"]), "direct_io": facts["dio"] == "1", **below}

    def _set_order(self, order):
        found = self.served_so_far(f"order {order}")["order"]
        if found != order:
            raise LabError(f"{self.host.name}: the order {order} was set and is {found}")

    def served_so_far(self, command: str = "status") -> dict:
        """What a modelled disk says of itself: served, failed, late, ...: see modelled.ask. InputError for a
        disk without a model, LabError when its daemon does not answer."""
        if self.model is None:
            raise InputError(f"the disk of {self.host.name} has no model", key="model",
                             allowed=f"in lab.yml: disk: {{size: 4G, model: {next(iter(models.models()))}}}")
        return self._ask(command)

    def busy_s(self) -> float:
        """Seconds in which the disk had a request, by the kernel's account of its device, which begins anywhere: take
        differences."""
        return int(self._here("cat stat").split()[BUSY_FIELD]) / 1000

    @contextmanager
    def in_a_hurry(self):
        """`with disk.in_a_hurry(): ...`: a modelled disk takes no modelled time meanwhile, so that data are
        laid out as fast as the machine's disk takes them. A disk without a model stays as it is.

        LabError where the disk does not take the model's time again afterwards.
        """
        if self.model is None:
            yield
            return
        try:
            self.served_so_far("hurry on")
            yield
        finally:
            if self.served_so_far("hurry off")["hurries"]:
                raise LabError(f"{self.host.name}: its disk does not take the model's time again")

    def served(self, after: int = 0):
        """Requests that a modelled disk has served: a DataFrame, see served.frame for its columns.

        `after`: without the first so many, such as `served_so_far()["served"]` before a measurement. The
        log keeps the last 131072 (8 MB); a line says how many it lacks.
        """
        state = self.served_so_far()
        requests = served.frame(self._log(), state["offset_s"], after)
        lost = state["served"] - state["kept"] - after
        if lost > 0:
            say(f"{self.host.name}: the log of served requests lacks the first {lost}: it keeps {state['kept']}")
        return requests

    def trace(self) -> Trace:
        """`with disk.trace() as trace: ...`, then `trace.requests`; or `begin()` and `end()`."""
        return Trace(self.host, self.number, self._write_down)

    def seek_cost(self, seconds: float = 3) -> dict:
        """sequential_ms and random_ms of a read of 128 KB, one at a time past all caches of the
        host, in a file that is laid out before (not within `seconds`) and goes after; their
        `ratio`, and the `ratios` of the rounds. Near 1: this disk does not seek.

        LabError without the package fio, or with too little room.
        """
        host, file = self.host, str(self.host.root / "seek-cost")
        if host.run("command -v fio", check=False).exit_code:
            raise LabError(f"{host.name}: no fio there", remedy=FIO)
        size = seek_file_bytes(self.facts()["free_bytes"])
        limit = 60 + seconds + size / SLOWEST
        try:        # the host ends fio: a command that is given up goes on there
            done = host.run(f"timeout -k 5 {limit:.0f} {seek_command(file, size, seconds)}", timeout=limit + 30)
        finally:
            host.run(f"rm -f {shlex.quote(file)}", check=False)
        return {**seek_times(done.stdout), "laid_out_bytes": size,
                "block_bytes": BLOCK_BYTES}

    def _here(self, script, **options) -> str:
        """Run a script in the device's folder in /sys; as root only where it is a loop device, as the lab made it.

        After a host has started anew its folder lies on another disk, which is not the lab's to change.
        """
        guard = "test -d loop || { echo 'no loop device of the lab' >&2; exit 1; }; " if options.get("root") else ""
        place = f"cd {DEVICES}/{self.number} && {{ {guard}{script}\n}}"
        return self.host.run(place.replace("@DEVICES@", str(DEVICES)), **options).stdout


def _check_read_ahead(kb):
    if not isinstance(kb, int) or isinstance(kb, bool) or kb not in loop_device.READ_AHEADS_KB:
        raise InputError(f"{kb!r} is no read-ahead", key="read_ahead_kb", allowed=loop_device.READ_AHEADS)


def _queue(facts, prefix="") -> dict:
    listed = facts[f"{prefix}scheduler"].split()
    current = next((name.strip("[]") for name in listed if name.startswith("[")), "none")
    return {"scheduler": current, "read_ahead_kb": int(facts[f"{prefix}read_ahead_kb"]),
            "rotational": facts[f"{prefix}rotational"] == "1"}


def seek_file_bytes(free_bytes: int) -> int:
    """Size of the file that fio reads: large, for long seeks, but at most half of the free space."""
    size = min(MOST_BYTES, free_bytes // 2) // MEBIBYTE * MEBIBYTE
    if size < LEAST_BYTES:
        raise LabError(f"{free_bytes / 1e6:.0f} MB are free, and {2 * LEAST_BYTES / 1e6:.0f} MB are "
                       "needed to find out what a seek costs", remedy="Give the host a larger disk")
    return size


def seek_command(file: str, size: int, seconds: float) -> str:
    """fio's command line: write the file, then read it for `seconds` in total, one read at a time."""
    each_ms = max(1, round(seconds * 1000 / (ROUNDS * len(KINDS))))
    command = ["fio", "--output-format=json", f"--filename={file}", f"--size={size}", "--direct=1",
               "--ioengine=psync", "--name=layout", "--rw=write", f"--bs={MEBIBYTE}", "--end_fsync=1"]
    for number in range(ROUNDS):
        for kind, way in KINDS.items():
            command += [f"--name={kind}-{number}", "--stonewall", f"--rw={way}",
                        f"--bs={BLOCK_BYTES}", "--norandommap", f"--randseed={number + 1}",
                        "--time_based", f"--runtime={each_ms}ms"]
    return shlex.join(command)


def seek_times(output: str) -> dict:
    """From fio's output: sequential_ms and random_ms (mean time of a read), their `ratio`, and the
    `ratios` of the rounds. LabError when fio did not read."""
    try:
        jobs = {job["jobname"]: job for job in json.loads(output[output.index("{"):])["jobs"]}
        times = {kind: [jobs[f"{kind}-{i}"]["read"]["lat_ns"]["mean"] / 1e6 for i in range(ROUNDS)]
                 for kind in KINDS}
    except (ValueError, KeyError, TypeError):
        raise LabError(f"fio gave no times: {output.strip()[-300:] or 'nothing'}") from None
    if not all(value > 0 for values in times.values() for value in values):
        raise LabError("fio read nothing: the disk is slower than the time it was given")
    sequential, random = mean(times["sequential"]), mean(times["random"])
    return {"sequential_ms": sequential, "random_ms": random, "ratio": random / sequential,
            "ratios": [r / s for s, r in zip(times["sequential"], times["random"])]}
