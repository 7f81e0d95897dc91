"""Labs side by side with Mininet: up and down of the same number of hosts, the whole process each.

    sudo .venv/bin/python benchmarks/lab_up.py [--hosts 9 50 200] [--rounds 6] [--json FILE]

Mininet (Debian's `mininet`, Linux bridge) and labbook take turns; so do a command on a host by labbook
and by `ssh` on a control connection. A ratio is labbook over the other, of one round; the range of
n rounds' ratios holds the median ratio with a certainty of 1 - 2^(1-n), whatever the distribution.
Labbook's hosts each answer over SSH before `up` returns, and have file systems and processes of
their own; Mininet's have neither. Run it on an idle machine.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMANDS_A_ROUND = 50


def main():
    asked = _arguments()
    if asked.one:
        return one_lab(asked.one)
    samples = []
    print(f"{'':34}{'labbook':>10}{'other':>10}   ratio (range of {asked.rounds} rounds)")
    for hosts in asked.hosts:
        pairs = [up_and_down(hosts, first=number % 2) for number in range(asked.rounds)]
        samples += _report(f"up and down, {hosts} hosts / mininet", pairs)
    samples += _report("one remote command / ssh", remote_commands(asked.rounds))
    if asked.json:
        asked.json.write_text(json.dumps({"machine": machine(), "samples": samples}, indent=1))


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, nargs="*", default=[9, 50, 200])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the samples there")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def one_lab(hosts: int):
    """What a timed process does: a lab of that many hosts up and down."""
    lab = _up(hosts)
    lab.down()


def _up(hosts):
    from labbook.lab import Environment, Lab, LabDescription
    from labbook.lab.description import HostPlan

    plans = tuple(HostPlan(f"h{number}", "lan", "node") for number in range(1, hosts + 1))
    description = LabDescription("benchmark", ("lan",), plans)
    return Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}")


def up_and_down(hosts: int, first: int) -> tuple[float, float]:
    """Seconds of (labbook, Mininet), the one or the other first."""
    commands = [[sys.executable, __file__, "--one", str(hosts)],
                ["mn", "--switch", "lxbr", "--topo", f"single,{hosts}", "--test", "none"]]
    seconds = {number: _timed(commands[number]) for number in (first, 1 - first)}
    return seconds[0], seconds[1]


def _timed(command) -> float:
    started = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    seconds = time.monotonic() - started
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return seconds


def remote_commands(rounds: int) -> list[tuple[float, float]]:
    """Seconds a command by (Host.run, ssh on a control connection), a mean of many each round."""
    lab = _up(1)
    try:
        host = lab.host("h1")
        with tempfile.TemporaryDirectory() as folder:
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
    finally:
        lab.down()


def _turn(ways, first):
    seconds = {}
    for number in (first, 1 - first):
        started = time.monotonic()
        for _ in range(COMMANDS_A_ROUND):
            ways[number]()
        seconds[number] = (time.monotonic() - started) / COMMANDS_A_ROUND
    return seconds[0], seconds[1]


def _report(what, pairs) -> list[dict]:
    ratios = [ours / theirs for ours, theirs in pairs]
    ours, theirs = (statistics.median(side) for side in zip(*pairs))
    certain = 1 - 2 ** (1 - len(pairs))
    print(f"{what:34}{_seconds(ours):>10}{_seconds(theirs):>10}   {statistics.median(ratios):.2f} "
          f"({min(ratios):.2f} to {max(ratios):.2f}, {certain:.0%})", flush=True)
    return [{"what": what, "round": number, "labbook_s": ours, "other_s": theirs}
            for number, (ours, theirs) in enumerate(pairs)]


def _seconds(value) -> str:
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.2f} ms"


def machine() -> dict:
    return {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version(),
            "load": os.getloadavg()[0],
            "mininet": subprocess.run(["mn", "--version"], text=True, capture_output=True).stdout.strip()}


if __name__ == "__main__":
    main()
