"""The WAN study's cloud side by side with what one would do by hand: nodes that get all there is.

    .venv/bin/python benchmarks/cluster_up.py [--nodes 6] [--rounds 5] [--short] [--json FILE]

Takes turns: Galera nodes from copies of a seeded data directory, and as many of which the first has it
and the others join and get it from the cluster (SST), which is what fresh nodes do. Then Keystone's
part: how long it takes to answer once the cluster does. A ratio is copied over SST, of one round. Root,
an idle machine.
"""

import os
import statistics
import time

import shared

from labbook import paths
from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.cluster import in_parallel
from labbook.systems.galera.cluster import Galera
from labbook.systems.keystone.stack import KeystoneCloud

COPIED, BY_SST, WHOLE = "nodes, copied", "nodes, by SST", "nodes and Keystone, copied"


def main():
    asked = _arguments()
    shared.check(packages=KeystoneCloud.NEEDS.packages, artifacts=KeystoneCloud.NEEDS.artifacts)
    description = LabDescription.load(paths.papers("wan_keystone") / "lab.yml")
    with Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}") as lab:
        lab.link("a", "b").shape()
        cloud = KeystoneCloud(hosts(lab, asked.nodes), segments=2).up()  # makes the seed if need be
        samples = [one_round(cloud, first=number % 2) for number in range(asked.rounds)]
    for what in (COPIED, BY_SST, WHOLE):
        seconds = [sample[what] for sample in samples]
        print(f"{asked.nodes} {what:38} {statistics.median(seconds):6.2f} s "
              f"({min(seconds):.2f} to {max(seconds):.2f})")
    ratio = shared.ratio([s[COPIED] for s in samples], [s[BY_SST] for s in samples])
    print(f"copied / by SST: ratio {ratio}")
    shared.write(asked.json, nodes=asked.nodes, samples=samples)


def _arguments():
    parser = shared.parser(__doc__, rounds=5)
    parser.add_argument("--nodes", type=int, default=6, choices=range(2, 7), help="default: 6")
    asked = parser.parse_args()
    if asked.short:
        asked.nodes, asked.rounds = 3, 1
    return asked


def hosts(lab, nodes: int) -> list:
    """A cloud's hosts, with so many for databases, from one site and the other in turn."""
    databases = sorted(lab.role("db"), key=lambda host: (_place(lab, host), host.site))[:nodes]
    return [*databases, lab.role("lb")[0], lab.role("keystone")[0]]


def _place(lab, host) -> int:
    """The host's number among its site's databases."""
    return [other.name for other in lab.role("db") if other.site == host.site].index(host.name)


def one_round(cloud, first: int) -> dict:
    """Seconds of each way, the one or the other first, and of the whole cloud."""
    cloud.destroy()
    ways = {COPIED: cloud.galera.up, BY_SST: lambda: by_sst(cloud.galera)}
    found = {name: timed(ways[name]) for name in sorted(ways, reverse=bool(first))}
    cloud.galera.destroy()
    return {**found, WHOLE: timed(cloud.up)}


def by_sst(cluster: Galera) -> None:
    cluster.destroy()
    front, *others = cluster.nodes
    front.deploy(cluster.data)
    in_parallel(others, lambda node: node.deploy(empty=True))
    cluster.start()


def timed(way) -> float:
    started = time.monotonic()
    way()
    return time.monotonic() - started


if __name__ == "__main__":
    shared.run(main)
