"""The WAN study's cloud side by side with what one would do by hand: nodes that get all there is.

    .venv/bin/python benchmarks/cluster_up.py [--nodes 6] [--rounds 5] [--short] [--json FILE]

Takes turns: Galera nodes from copies of a seeded data directory, and as many of which the first has it
and the others join and get it from the cluster (SST), which is what fresh nodes do. At last the whole
cloud from copies, with Keystone. A ratio is copied over SST, of one round. Root, an idle machine.
"""

import os

import shared
from rounds import Rounds, timed

from labbook import paths
from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.cluster import in_parallel
from labbook.systems.galera.cluster import Galera
from labbook.systems.keystone.stack import KeystoneCloud


def main():
    args = _arguments()
    shared.check(packages=KeystoneCloud.NEEDS.packages, artifacts=KeystoneCloud.NEEDS.artifacts)
    description = LabDescription.load(paths.papers("wan_keystone") / "lab.yml")
    with Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}") as lab:
        lab.link("a", "b").shape()
        cloud = KeystoneCloud(hosts(lab, args.nodes), segments=2)
        in_parallel(cloud.nodes, lambda node: node.provide())
        cloud.deploy()  # makes the seed if need be
        rounds = Rounds("cluster_up", args, shared.versions("mariadb-server"), nodes=args.nodes)
        rounds.in_turns("galera", [lambda: copied(cloud), lambda: by_sst(cloud)])
        cloud.destroy()
        print(f"{args.nodes} nodes and Keystone, copied: {timed(cloud.up):.2f} s")


def _arguments():
    parser = shared.parser(__doc__, rounds=5)
    parser.add_argument("--nodes", type=int, default=6, choices=range(2, 7), help="default: 6")
    args = parser.parse_args()
    if args.short:
        args.nodes, args.rounds = 3, 1
    return args


def hosts(lab, nodes: int) -> list:
    """A cloud's hosts, with so many for databases, from one site and the other in turn."""
    databases = sorted(lab.role("db"), key=lambda host: (_place(lab, host), host.site))[:nodes]
    return [*databases, lab.role("lb")[0], lab.role("keystone")[0]]


def _place(lab, host) -> int:
    """The host's number among its site's databases."""
    return [other.name for other in lab.role("db") if other.site == host.site].index(host.name)


def copied(cloud: KeystoneCloud) -> float:
    """Seconds until the nodes have a copy each and are in sync."""
    cloud.destroy()
    return timed(cloud.galera.up)


def by_sst(cloud: KeystoneCloud) -> float:
    """Seconds until the first node has the data, and the others got them from it and are in sync."""
    cloud.destroy()
    return timed(lambda: _by_sst(cloud.galera))


def _by_sst(cluster: Galera) -> None:
    cluster.destroy()
    front, *others = cluster.nodes
    front.deploy(cluster.data)
    in_parallel(others, lambda node: node.deploy(empty=True))
    cluster.start()


if __name__ == "__main__":
    shared.run(main)
