"""Links between real hosts: the firewall's rules that hand a site's packets to the delay line.

A link takes packets in hand where they arrive, unlike a wire, where they leave: each host holds
what comes to its data address from the data addresses of the far site's hosts. Where they leave
they would still be their socket's, and TCP puts no more on the way than the queue of a network
card should hold ("TCP small queues"): 0.8 Mbit/s at 100 ms of round trip, against 285. And a
sender is told of a packet dropped in its own kernel, as it is not of a cut fibre.
What measures by the kernel's time of arrival, as ping does without -U, sees none of that hold.

Everything else on the host's network goes its way, the SSH connections of the driver too.
All text, for a shell of root's; undone from the journal alone.
"""

import ipaddress
import re
from dataclasses import dataclass

KIND = "chain"      # of entries in a host's journal
# A rate of a link is one of all its hosts together, and none of them sees what the others send.
NO_RATE = "no rate_mbit where the environment's provider is ssh: leave it out"
ALL_QUEUES = range(30_000, 65_536)  # above those that people choose

# What says which queues have a program, and which are named by a rule and wait for theirs.
QUEUES_IN_USE = """echo programs; cat /proc/net/netfilter/nfnetlink_queue 2> /dev/null
echo notes; cat queue-* 2> /dev/null
echo rules; iptables-save 2> /dev/null; ip6tables-save 2> /dev/null; nft list ruleset 2> /dev/null
true"""


@dataclass(frozen=True)
class Chain:
    """The rules of one link on one host: `far` is the other site, `peers` its data addresses.

    `exempt` are words of rules for packets that are never held: (peer, words).
    """

    lab: str
    far: str
    address: str
    peers: tuple[str, ...]
    exempt: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Of the lab's own; 27 characters at most, of the 28 that the kernel takes."""
        return f"lb-{self.lab}-{self.far}"

    @property
    def entry(self) -> dict:
        """For the host's journal, before the chain is made; `undo` takes it."""
        return {"made": KIND, "chain": self.name}

    def commands(self, queue: int | None, cut: bool) -> list[str]:
        """Shell commands (root's, `set -e`) that make the chain so, whatever it was.

        `queue`: packets wait there for a delay line; None: they need not wait. No chain at all
        where nothing is asked.
        """
        if queue is None and not cut:
            return undo(self.entry)
        made = [f"iptables-restore -w --noflush <<'RULES'\n{self.rules(queue, cut)}RULES",
                _jump("PREROUTING", self.name)]
        # What a delay line lets go of comes by INPUT: a cut is for packets on their way, too.
        if cut:
            return [*made, _jump("INPUT", self.name)]
        return [_no_jump("INPUT", self.name), *made]

    def rules(self, queue, cut) -> str:
        """Input of iptables-restore, which replaces the chain in one step."""
        # No --queue-bypass: without its delay line the link is closed, not fast.
        target = "DROP" if cut else f"NFQUEUE --queue-num {queue}"
        exempt = [f"{self._from(peer)} {words} -j RETURN" for peer, words in self.exempt]
        held = [f"{self._from(peer)} -j {target}" for peer in self.peers]
        return "\n".join(["*mangle", f":{self.name} - [0:0]", *exempt, *held, "COMMIT", ""])

    def _from(self, peer):
        return f"-A {self.name} -s {peer} -d {self.address}"


def undo(entry: dict) -> list[str]:
    """Shell commands (root's) that take away the chain of a journal's entry; twice does no harm.

    They fail when something of it stays. The rules' queue goes with its delay line, a process.
    """
    name, quiet = entry["chain"], "2> /dev/null || true"
    return [_no_jump("PREROUTING", name), _no_jump("INPUT", name),
            f"iptables -w -t mangle -F {name} {quiet}",
            f"iptables -w -t mangle -X {name} {quiet}",
            f"! iptables -w -t mangle -S {name} > /dev/null 2>&1"]


def ssh_exemptions(host, peers) -> list[tuple[str, str]]:
    """(peer's address, words of a rule) of SSH connections between a host and far ones, both ways.

    Only where SSH goes to the data address: one of the hosts may be the other's jump host.
    """
    out = []
    for peer in peers:
        if _shared(host):
            out.append((peer.address, f"-p tcp --dport {host.login.port}"))
        if _shared(peer):
            out.append((peer.address, f"-p tcp --sport {peer.login.port}"))
    return out


def _shared(host) -> bool:
    """Whether control is on the data address; a name may stand for any address."""
    try:
        return ipaddress.ip_address(host.login.address) == ipaddress.ip_address(host.address)
    except ValueError:
        return True


def free_queue(said: str) -> int:
    """A queue's number that is not in use, from what QUEUES_IN_USE said."""
    used = set()
    _, programs, notes, rules = re.split(r"^(?:programs|notes|rules)$", said, maxsplit=3, flags=re.M)
    used |= {int(line.split()[0]) for line in programs.splitlines() if line.strip()}
    used |= set(map(int, notes.split()))
    # iptables: --queue-num 5, --queue-balance 0:3; nft: queue num 5, queue flags bypass to 0-3
    for low, high in re.findall(r"\bqueue\b[^\d\n]*(\d+)(?:[-:](\d+))?", rules):
        used |= set(range(int(low), int(high or low) + 1))
    return next(number for number in ALL_QUEUES if number not in used)


def _jump(hook, name):
    """First of all rules there, since another may let a packet go at once."""
    command = "iptables -w -t mangle"
    return f"{command} -C {hook} -j {name} 2> /dev/null || {command} -I {hook} -j {name}"


def _no_jump(hook, name):
    return f"while iptables -w -t mangle -D {hook} -j {name} 2> /dev/null; do :; done"
