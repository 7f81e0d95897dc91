"""A link's delay and rate: how far they are from what was asked, and beside netem where the kernel has it.

    .venv/bin/python benchmarks/link_error.py [--pings 200] [--seconds 5] [--rounds 6] [--short] [--json FILE]

Two hosts with a link between them, shaped by labbook's delay lines, also where the kernel has netem, which labbook
would take itself there. Mean round trips by `ping`, throughput by `iperf3` over TCP. Netem's turn has the link unshaped
and netem on the data interface of either host. Root, or sudo.
"""

import json
import os
import re

import shared
from rounds import Rounds

from labbook.errors import LabbookError
from labbook.lab import Environment, Lab, LabDescription
from labbook.lab.link.endpoints import WireEnd

DELAYS_MS, RATES_MBIT = (1, 10, 100), (10, 100)
COMPARED_MS = 10
LEAST_ERROR_MS = 0.001      # what ping prints; less than that is no figure
NO_NETEM = "netem cannot be set here: {}"


def main():
    args = _arguments()
    WireEnd._netem = False      # delay lines
    shared.check(packages=("iputils-ping", "iperf3"))
    rounds = Rounds("link_error", args, shared.versions("iperf3", "iputils-ping"), pings=args.pings,
                    seconds=args.seconds)
    description = LabDescription.parse({
        "sites": ["here", "there"], "links": [{"between": ["here", "there"]}],
        "hosts": {"client": {"site": "here", "role": "client"}, "server": {"site": "there", "role": "db"}}})
    with Lab.up(description, Environment("benchmark"), lab_id=f"b{os.urandom(3).hex()}") as lab:
        pair = Pair(lab, args)
        for rtt_ms in DELAYS_MS:
            for _ in rounds.left(f"rtt_{rtt_ms}"):
                pair.link.shape(rtt_ms=rtt_ms)
                rounds.add(f"rtt_{rtt_ms}", pair.round_trip_ms(), rtt_ms)
            rounds.show(f"rtt_{rtt_ms}")
        for rate in RATES_MBIT:
            for _ in rounds.left(f"rate_{rate}"):
                pair.link.shape(rate_mbit=rate)
                rounds.add(f"rate_{rate}", pair.mbit_per_s(), rate)
            rounds.show(f"rate_{rate}")
        beside_netem(pair, rounds)


def _arguments():
    parser = shared.parser(__doc__, rounds=6)
    parser.add_argument("--pings", type=int, default=200, help="of a round; default: 200")
    parser.add_argument("--seconds", type=int, default=5, help="of a measure of throughput; default: 5")
    args = parser.parse_args()
    if args.short:
        args.pings, args.seconds, args.rounds = 5, 1, 1
    return args


def beside_netem(pair, rounds) -> None:
    try:
        pair.netem(True)
    except LabbookError as error:
        for row in ("through", "error"):
            rounds.absent(row, NO_NETEM.format(error.message))
        return rounds.show("through", "error")
    pair.netem(False)
    ways = ("labbook", "netem")
    rounds.in_turns("through", [lambda way=way: pair.shaped(way, pair.mbit_per_s) for way in ways])
    rounds.in_turns("error", [
        lambda way=way: max(LEAST_ERROR_MS, abs(pair.shaped(way, pair.round_trip_ms) - COMPARED_MS)) for way in ways])


class Pair:
    """The two hosts, and their link."""

    def __init__(self, lab, args):
        self.client, self.server, self.link = lab.host("client"), lab.host("server"), lab.link("here", "there")
        self._pings, self._seconds = args.pings, args.seconds
        self.server.start("iperf3", f"iperf3 -s -B {self.server.address}")

    def round_trip_ms(self) -> float:
        """The mean of the round trips."""
        return mean_ms(self.client.run(f"LC_ALL=C ping -q -n -U -c {self._pings} -i 0.01 {self.server.address}",
                                       timeout=300).stdout)

    def mbit_per_s(self) -> float:
        command = f"iperf3 -J -c {self.server.address} -t {self._seconds} -O {self._seconds // 5}"
        output = self.client.run(command, timeout=120).stdout
        return json.loads(output)["end"]["sum_received"]["bits_per_second"] / 1e6

    def shaped(self, way: str, measure) -> float:
        """What `measure` returns for the link with COMPARED_MS, by labbook or by netem."""
        self.link.shape(rtt_ms=COMPARED_MS if way == "labbook" else 0)
        if way == "labbook":
            return measure()
        self.netem(True)
        try:
            return measure()
        finally:
            self.netem(False)

    def netem(self, on: bool) -> None:
        """Put half of COMPARED_MS on what either host sends, or take it away; LabbookError where the kernel cannot."""
        for host in (self.client, self.server):
            found = host.run(f"ip -o -4 addr show to {host.address}").stdout.split()[1].partition("@")[0]
            what = f"netem delay {COMPARED_MS / 2}ms limit 100000" if on else ""
            host.run(f"tc qdisc {'replace' if on else 'del'} dev {found} root {what}", root=True)


def mean_ms(output: str) -> float:
    """The mean round trip that `ping -q` prints."""
    return float(re.search(r"= [0-9.]+/([0-9.]+)/", output)[1])


if __name__ == "__main__":
    shared.run(main)
