"""The WAN study's cloud side by side with what one would do by hand: nodes that get all there is.

    .venv/bin/python benchmarks/cluster_up.py [--rounds 5] [--json FILE]

Takes turns: six Galera nodes from copies of a seeded data directory, and six of which the first has
it and the others join and get it from the cluster (SST), which is what a fresh node does. Then
Keystone's part: how long it takes to answer once the cluster does. Root, an idle machine.
"""

import argparse
import json
import os
import platform
import statistics
import time
from pathlib import Path

from labbook import paths
from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.cluster import in_parallel
from labbook.systems.galera.cluster import Galera
from labbook.systems.keystone.stack import KeystoneCloud


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the samples there")
    asked = parser.parse_args()
    description = LabDescription.load(paths.papers("wan_keystone") / "lab.yml")
    with Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}") as lab:
        lab.link("a", "b").shape()
        cloud = KeystoneCloud(list(lab.hosts.values()), segments=2).up()  # makes the seed if need be
        samples = [one_round(cloud, first=number % 2) for number in range(asked.rounds)]
    for what in samples[0]:
        print(f"{what:40} {statistics.median(s[what] for s in samples):6.2f} s "
              f"({min(s[what] for s in samples):.2f} to {max(s[what] for s in samples):.2f})")
    ratios = [s["six nodes, copied"] / s["six nodes, by SST"] for s in samples]
    print(f"copied / by SST: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    if asked.json:
        asked.json.write_text(json.dumps({"machine": machine(), "samples": samples}, indent=1))


def one_round(cloud, first: int) -> dict:
    """Seconds of each way, the one or the other first, and of the whole cloud."""
    cloud.destroy()
    ways = {"six nodes, copied": cloud.galera.up, "six nodes, by SST": lambda: by_sst(cloud.galera)}
    found = {name: timed(ways[name]) for name in sorted(ways, reverse=bool(first))}
    cloud.galera.destroy()
    found["six nodes and Keystone, copied"] = timed(cloud.up)
    return found


def by_sst(cluster: Galera) -> None:
    cluster.destroy()
    first, *others = cluster.nodes
    first.deploy(cluster.data)
    in_parallel(others, lambda node: node.deploy(empty=True))
    first.start("--wsrep-new-cluster")
    in_parallel(others, lambda node: node.start(seconds=300))
    cluster.synced()


def timed(way) -> float:
    started = time.monotonic()
    way()
    return time.monotonic() - started


def machine() -> dict:
    return {"cores": os.cpu_count(), "kernel": platform.release(),
            "python": platform.python_version(), "load": os.getloadavg()[0]}


if __name__ == "__main__":
    main()
