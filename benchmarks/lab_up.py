"""Labs side by side with Mininet: up and down of the same number of hosts, the whole process each.

    sudo .venv/bin/python benchmarks/lab_up.py [--hosts 9 50 200] [--rounds 6] [--short] [--json FILE]

Mininet (Debian's `mininet` and `bridge-utils`, Linux bridge) and labbook take turns; so do a command on
a host by labbook and by `ssh` on a control connection. A ratio is labbook over the other, of one round;
the range of n rounds' ratios holds the median ratio with a certainty of 1 - 2^(1-n), whatever the
distribution. Labbook's hosts each answer over SSH before `up` returns, and have file systems and
processes of their own; Mininet's have neither. Root, an idle machine. Mininet runs in namespaces of its
own, so that nothing of it is left however it ends.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import shared

from labbook.errors import LabError

COMMANDS_A_ROUND = 50
PACKAGES = ("mininet", "bridge-utils")
# When `unshare` is killed so is Mininet, with all that it started, and its links go with the namespace.
APART = ("unshare", "--net", "--pid", "--mount-proc", "--kill-child")


def main():
    asked = _arguments()
    if asked.one:
        return one_lab(asked.one)
    shared.check(packages=PACKAGES)
    if os.geteuid():
        raise LabError("Mininet needs root", remedy=f"Type: sudo {sys.executable} {' '.join(sys.argv)}")
    if asked.short:
        asked.hosts, asked.rounds = [2], 1
    file, samples = shared.log("lab_up"), []
    print(f"{'':34}{'labbook':>10}{'other':>10}   ratio (range of {asked.rounds} rounds)")
    for hosts in asked.hosts:
        pairs = [up_and_down(hosts, file, first=number % 2) for number in range(asked.rounds)]
        samples += _report(f"up and down, {hosts} hosts / mininet", pairs)
    samples += _report("one remote command / ssh", remote_commands(asked.rounds))
    shared.write(asked.json, samples=samples)


def _arguments():
    parser = shared.parser(__doc__, rounds=6)
    parser.add_argument("--hosts", type=int, nargs="+", default=[9, 50, 200], help="default: 9 50 200")
    parser.add_argument("--one", type=int, help=shared.argparse.SUPPRESS)
    return parser.parse_args()


def one_lab(hosts: int):
    """What a timed process does: a lab of that many hosts up and down."""
    with _up(hosts):
        pass


def _up(hosts):
    from labbook.lab import Environment, Lab, LabDescription
    from labbook.lab.description import HostPlan

    plans = tuple(HostPlan(f"h{number}", "lan", "node") for number in range(1, hosts + 1))
    description = LabDescription("benchmark", ("lan",), plans)
    return Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}")


def up_and_down(hosts: int, file, first: int) -> tuple[float, float]:
    """Seconds of (labbook, Mininet), the one or the other first."""
    mininet = (*APART, "mn", "--switch", "lxbr", "--topo", f"single,{hosts}", "--test", "none")
    ways = [((sys.executable, __file__, "--one", str(hosts)), signal.SIGINT), (mininet, signal.SIGKILL)]
    seconds = {}
    for number in (first, 1 - first):
        command, stop = ways[number]
        seconds[number] = shared.timed(command, file, stop)
    return seconds[0], seconds[1]


def remote_commands(rounds: int) -> list[tuple[float, float]]:
    """Seconds a command by (Host.run, ssh on a control connection), a mean of many each round."""
    with _up(1) as lab, tempfile.TemporaryDirectory() as folder:
        host = lab.host("h1")
        ssh = ["ssh", "-F", str(lab.folder / "ssh_config"), "-S", f"{folder}/control"]
        subprocess.run([*ssh, "-M", "-N", "-f", "h1"], check=True, stderr=subprocess.DEVNULL)
        try:
            ways = [lambda: host.run("true"),
                    lambda: subprocess.run([*ssh, "h1", "true"], check=True)]
            for way in ways:
                way()
            return [_turn(ways, first=number % 2) for number in range(rounds)]
        finally:
            subprocess.run([*ssh, "-O", "exit", "h1"], stderr=subprocess.DEVNULL)


def _turn(ways, first):
    seconds = {}
    for number in (first, 1 - first):
        started = time.monotonic()
        for _ in range(COMMANDS_A_ROUND):
            ways[number]()
        seconds[number] = (time.monotonic() - started) / COMMANDS_A_ROUND
    return seconds[0], seconds[1]


def _report(what, pairs) -> list[dict]:
    ours, theirs = zip(*pairs)
    print(f"{what:34}{_seconds(statistics.median(ours)):>10}{_seconds(statistics.median(theirs)):>10}   "
          f"{shared.ratio(ours, theirs)}", flush=True)
    return [{"what": what, "round": number, "labbook_s": ours, "other_s": theirs}
            for number, (ours, theirs) in enumerate(pairs)]


def _seconds(value) -> str:
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.2f} ms"


if __name__ == "__main__":
    shared.run(main)
