"""A Ceph cluster with a file system: labbook's beside vstart.sh's way.

    .venv/bin/python benchmarks/ceph_up.py [--osds 3] [--rounds 6] [--short] [--json FILE]

A monitor, object stores on disk, and a metadata server that is active. Ceph's vstart.sh comes with its source only, so
vstart_way.sh does what it does, one daemon after the other on one host, with Debian's programs. In turns, on
hosts of one lab. Root, or sudo.
"""

import os
from pathlib import Path

import shared
from rounds import Rounds, timed

from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.ceph.cluster import Ceph

SCRIPT = Path(__file__).with_name("vstart_way.sh")
SECONDS = 300       # at most


def main():
    args = _arguments()
    shared.check(packages=Ceph.NEEDS.packages, artifacts=Ceph.NEEDS.artifacts)
    rounds = Rounds("ceph_up", args, shared.versions("ceph-mon"), osds=args.osds)
    roles = {"mon": "mon", f"osd[1-{args.osds}]": "osd", "mds": "mds", "all": "other"}
    description = LabDescription.parse({"sites": ["room"], "hosts": {
        name: {"site": "room", "role": role} for name, role in roles.items()}})
    with Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}") as lab:
        host = lab.host("all")
        host.put(SCRIPT, SCRIPT.name)

        def ours() -> float:
            cluster = Ceph([*lab.role("mon"), *lab.role("osd"), *lab.role("mds")], osds="disk")
            try:
                return timed(cluster.up)
            finally:
                cluster.destroy()

        def theirs() -> float:
            command = f"sh {SCRIPT.name} {{}} {host.root}/vstart {host.address} {args.osds}"
            try:
                return timed(lambda: host.run(command.format("up"), timeout=SECONDS))
            finally:
                host.run(command.format("down"))

        rounds.in_turns("vstart", [ours, theirs])


def _arguments():
    parser = shared.parser(__doc__, rounds=6)
    parser.add_argument("--osds", type=int, default=3, help="default: 3")
    args = parser.parse_args()
    if args.short:
        args.osds, args.rounds = 1, 1
    return args


if __name__ == "__main__":
    shared.run(main)
