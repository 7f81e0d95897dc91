"""A modelled disk by fio, beside its model's arithmetic and beside the machine's own disk.

    .venv/bin/python benchmarks/modelled_disk.py [--models hdd_2010,ssd_2010] [--seconds 4] [--rounds 3]
                                                 [--short] [--json FILE]

Takes turns within a round: a host with a modelled disk and one with a disk of the same size that is the
machine's own (a loop device, too). One reader or writer at a time, past the host's page cache. A line a
model and kind of request: its time by fio over the model's (what is above 1 is the machine's own, and more
on a busy one), the time by the disk's log over the model's, and by fio over the own disk's; then the ratio
of random to sequential reads of 128 KB by fio, by the model, and of the machine's own disk; and the share
of replies that were late. Root. The book's page "Modelled disks" has what --json keeps of it:
data/benchmarks/measured/modelled_disk.json.
"""

import json
import os
import shlex
import statistics

import shared

from labbook.errors import InputError
from labbook.lab import Environment, Lab, LabDescription
from labbook.lab.disk import modelled, models

KB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZE, DATA = 2 * GIB, 512 * MIB
KINDS = {"sequential read 128 KB": ("read", 128 * KB), "random read 128 KB": ("randread", 128 * KB),
         "random read 4 KB": ("randread", 4 * KB), "sequential write 128 KB": ("write", 128 * KB),
         "random write 4 KB": ("randwrite", 4 * KB)}
SEQUENTIAL, RANDOM = "sequential read 128 KB", "random read 128 KB"
MODELLED, OWN, LOG = "modelled", "own", "log"


def main():
    args = _arguments()
    shared.check(packages=("fio", *modelled.PACKAGES))
    samples = {name: measure(name, args) for name in args.models}
    print(f"{'':40} fio / model   log / model   modelled / own disk   ({args.rounds} rounds)")
    for name, found in samples.items():
        show(name, found)
    shared.write(args.json, disk_bytes=SIZE, data_bytes=DATA, samples=samples)


def _arguments():
    parser = shared.parser(__doc__, rounds=3)
    parser.add_argument("--models", default=",".join(models.models()), help="default: all")
    parser.add_argument("--seconds", type=float, default=4, help="of a kind of request; default: 4")
    args = parser.parse_args()
    args.models = args.models.split(",")
    for name in args.models:
        models.find(name, key="--models")
    if args.seconds <= 0:
        raise InputError(f"{args.seconds:g} seconds", key="--seconds", allowed="above 0")
    if args.short:
        args.models, args.rounds, args.seconds = args.models[:1], 1, 1
    return args


def measure(name: str, args) -> dict:
    """{"rounds": [{disk: {kind: ms of a request}}], "model_ms": {kind: ms}, "late": share}: both disks, in turns, and
    LOG, by the log."""
    disks = {MODELLED: {"size": SIZE, "model": name}, OWN: {"size": SIZE}}
    hosts = {host: {"site": "lan", "role": "db", "limits": {"disk": disk}} for host, disk in disks.items()}
    description = LabDescription.parse({"sites": ["lan"], "hosts": hosts})
    with Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}") as lab:
        for host in disks:
            fio(lab.host(host), "write", MIB, "--end_fsync=1")
        rounds = []
        for number in range(args.rounds):
            turns = sorted(disks, reverse=bool(number % 2))
            rounds.append({host: {} for host in (*turns, LOG)})
            for host in turns:
                for kind in KINDS:
                    one_kind(lab, host, kind, args.seconds, rounds[-1])
        state = lab.disk(MODELLED).served_so_far()
    model = models.find(name)
    return {"rounds": rounds, "model_ms": {kind: expected(model, kind) for kind in KINDS},
            "late": state["late"] / state["served"]}


def one_kind(lab, host, kind, seconds, found) -> None:
    """Fill in ms of a kind of request on a host, and of its log."""
    disk, (way, size) = lab.disk(host), KINDS[kind]
    before = disk.served_so_far()["served"] if host == MODELLED else 0
    found[host][kind] = fio(lab.host(host), way, size, "--time_based", f"--runtime={round(seconds * 1000)}ms")
    if host == MODELLED:
        requests = disk.served(before)
        mine = requests[(requests["size_bytes"] == size) & (requests["write"] == ("write" in way))]
        found[LOG][kind] = mine["service_ms"].mean() + (disk.model.fixed_ms if way.startswith("rand") else 0)


def fio(host, way: str, size: int, *more) -> float:
    """ms of a request, one at a time, on the host's file of DATA bytes."""
    command = ["fio", "--name=one", "--filename=data", f"--size={DATA}", "--direct=1", "--ioengine=psync",
               f"--rw={way}", f"--bs={size}", "--norandommap", "--output-format=json", *more]
    output = host.run(shlex.join(command), timeout=300).stdout
    job = json.loads(output[output.index("{"):])["jobs"][0]
    return job["read" if "read" in way else "write"]["lat_ns"]["mean"] / 1e6


def expected(model, kind: str) -> float:
    way, size = KINDS[kind]
    return model.random_ms(size, DATA, SIZE) if way.startswith("rand") else model.sequential_ms(size)


def show(name: str, found: dict) -> None:
    rounds, model_ms = found["rounds"], found["model_ms"]
    for kind in KINDS:
        ours, own, log = ([one[disk][kind] for one in rounds] for disk in (MODELLED, OWN, LOG))
        by_model = [model_ms[kind]] * len(rounds)
        print(f"{name:15} {kind:24} {shared.ratio(ours, by_model)}   {shared.ratio(log, by_model)}   "
              f"{shared.ratio(ours, own)}   ({statistics.median(ours):.2f} ms)")
    ratios = {disk: shared.ratio([one[disk][RANDOM] for one in rounds], [one[disk][SEQUENTIAL] for one in rounds])
              for disk in (MODELLED, OWN)}
    print(f"{name:15} random / sequential read: fio {ratios[MODELLED]}, model "
          f"{model_ms[RANDOM] / model_ms[SEQUENTIAL]:.2f}, own disk {ratios[OWN]}; "
          f"late {100 * found['late']:.2f} %")


if __name__ == "__main__":
    shared.run(main)
