"""Labs side by side with Mininet: up and down of the same number of hosts, the whole process each.

    sudo .venv/bin/python benchmarks/lab_up.py [--hosts 9 50 200] [--rounds 6] [--short] [--json FILE]

Mininet (Debian's `mininet` and `bridge-utils`, Linux bridge) and labbook take turns. A ratio is labbook
over the other, of one round; the range of n rounds' ratios holds the median ratio with a certainty of
1 - 2^(1-n), whatever the distribution. Labbook's hosts each answer over SSH before `up` returns, and have
file systems and processes of their own; Mininet's have neither. Kathara and containerlab are
left out: they need container images, and these benchmarks fetch none. Root, an idle machine. Mininet runs in namespaces of its own, so that
nothing of it is left however it ends.
"""

import os
import signal
import sys

import shared

from labbook.errors import LabError

PACKAGES = ("mininet", "bridge-utils")
NO_IMAGES = "its hosts need container images from a registry, and these benchmarks fetch none"
# When `unshare` is killed so is Mininet, with all that it started, and its links go with the namespace.
APART = ("unshare", "--net", "--pid", "--mount-proc", "--kill-child")


def main():
    args = _arguments()
    if args.one:
        return one_lab(args.one)
    from rounds import Rounds       # here, since a timed process imports this file

    shared.check(packages=PACKAGES)
    if os.geteuid():
        raise LabError("Mininet needs root", remedy=f"Type: sudo {sys.executable} {' '.join(sys.argv)}")
    if args.short:
        args.hosts, args.rounds = [9], 1
    file, rounds = shared.log("lab_up"), Rounds("lab_up", args, shared.versions("mininet"))
    for hosts in args.hosts:
        rounds.in_turns(f"hosts_{hosts}", [lambda: labbook_up(hosts, file), lambda: mininet_up(hosts, file)])
    for other in ("kathara", "containerlab"):
        rounds.absent(other, NO_IMAGES)


def _arguments():
    parser = shared.parser(__doc__, rounds=6)
    parser.add_argument("--hosts", type=int, nargs="+", default=[9, 50, 200], help="default: 9 50 200")
    parser.add_argument("--one", type=int, help=shared.argparse.SUPPRESS)
    return parser.parse_args()


def one_lab(hosts: int):
    """What a timed process does: a lab of that many hosts up and down."""
    from labbook.lab import Environment, Lab, LabDescription
    from labbook.lab.description import HostPlan

    plans = tuple(HostPlan(f"h{number}", "lan", "node") for number in range(1, hosts + 1))
    description = LabDescription("benchmark", ("lan",), plans)
    with Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}"):
        pass


def labbook_up(hosts: int, file) -> float:
    return shared.timed((sys.executable, __file__, "--one", str(hosts)), file, signal.SIGINT)


def mininet_up(hosts: int, file) -> float:
    command = (*APART, "mn", "--switch", "lxbr", "--topo", f"single,{hosts}", "--test", "none")
    return shared.timed(command, file, signal.SIGKILL)


if __name__ == "__main__":
    shared.run(main)
