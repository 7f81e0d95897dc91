"""Links between a user's own hosts: firewall rules that queue a site's packets for the delay line.

Packets are delayed where they arrive, unlike on a wire, where they are delayed on leaving: each host
queues what comes to its data address from the data addresses of the far site's hosts. On leaving,
packets still count against their socket, and TCP sends no more than fits a network card's queue
("TCP small queues"): 0.8 Mbit/s at 100 ms of round trip instead of 285. Also, a sender learns of a
packet that its own kernel drops, which is unlike a cut fibre. A program that measures by the
kernel's time of arrival, such as ping without -U, does not see this delay.

All other traffic of the host is unaffected, including the driver's SSH connections. The module only
makes shell text for root; `undo` needs the journal's entry alone.
"""

import ipaddress
import re
from dataclasses import dataclass

KIND = "chain"      # in a host's journal
# A link's rate would be shared by all its hosts, and no host sees what the others send.
NO_RATE = "no rate_mbit where the environment's provider is ssh: leave it out"
ALL_QUEUES = range(30_000, 65_536)  # above the numbers that people usually choose

# Lists queues that a program has bound and queues that a rule names.
QUEUES_IN_USE = """echo programs; cat /proc/net/netfilter/nfnetlink_queue 2> /dev/null
echo notes; cat queue-* 2> /dev/null
echo rules; iptables-save 2> /dev/null; ip6tables-save 2> /dev/null; nft list ruleset 2> /dev/null
true"""


@dataclass(frozen=True)
class Chain:
    """One link's chain of rules on one host: `far` is the other site, `peers` its data addresses.

    `exempt` are (peer, match) pairs for packets that are never delayed or cut.
    """

    lab: str
    far: str
    address: str
    peers: tuple[str, ...]
    exempt: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """At most 27 characters; the kernel takes 28."""
        return f"lb-{self.lab}-{self.far}"

    @property
    def entry(self) -> dict:
        """The journal's entry, to be written before the chain is made; `undo` takes it."""
        return {"made": KIND, "chain": self.name}

    def commands(self, queue: int | None, cut: bool) -> list[str]:
        """Shell commands (as root, `set -e`) that replace the chain's rules.

        `queue`: the NFQUEUE of the delay line; None: no delay. Without a delay and a cut there is
        no chain.
        """
        if queue is None and not cut:
            return undo(self.entry)
        made = [f"iptables-restore -w --noflush <<'RULES'\n{self.rules(queue, cut)}RULES",
                _jump("PREROUTING", self.name)]
        # Packets that a delay line releases pass INPUT next: a cut drops those under way as well.
        if cut:
            return [*made, _jump("INPUT", self.name)]
        return [_no_jump("INPUT", self.name), *made]

    def rules(self, queue, cut) -> str:
        """Input of iptables-restore, which replaces the chain in one step."""
        # No --queue-bypass: without its delay line the link passes nothing, rather than undelayed.
        target = "DROP" if cut else f"NFQUEUE --queue-num {queue}"
        exempt = [f"{self._from(peer)} {match} -j RETURN" for peer, match in self.exempt]
        queued = [f"{self._from(peer)} -j {target}" for peer in self.peers]
        return "\n".join(["*mangle", f":{self.name} - [0:0]", *exempt, *queued, "COMMIT", ""])

    def _from(self, peer):
        return f"-A {self.name} -s {peer} -d {self.address}"


def undo(entry: dict) -> list[str]:
    """Shell commands (as root) that remove the chain of a journal's entry, if it is there.

    They fail when something of it stays.
    """
    name, quiet = entry["chain"], "2> /dev/null || true"
    return [_no_jump("PREROUTING", name), _no_jump("INPUT", name),
            f"iptables -w -t mangle -F {name} {quiet}",
            f"iptables -w -t mangle -X {name} {quiet}",
            f"if command -v iptables > /dev/null; then rules=$(iptables -w -t mangle -S) || exit 1; "
            f"if echo \"$rules\" | grep -qxF -e '-N {name}'; then echo 'the chain {name} stays' >&2; exit 1; fi; fi"]


def ssh_exemptions(host, peers) -> list[tuple[str, str]]:
    """(peer's address, match) pairs for SSH connections between a host and far ones, both ways.

    Only where SSH uses the data address: one of the hosts may be the other's jump host.
    """
    out = []
    for peer in peers:
        if _shared(host):
            out.append((peer.address, f"-p tcp --dport {host.login.port}"))
        if _shared(peer):
            out.append((peer.address, f"-p tcp --sport {peer.login.port}"))
    return out


def _shared(host) -> bool:
    """Whether SSH goes to the data address; assumed for a host name, which may resolve to it."""
    try:
        return ipaddress.ip_address(host.login.address) == ipaddress.ip_address(host.address)
    except ValueError:
        return True


def free_queue(listing: str) -> int:
    """The number of a queue that is not in use, from the output of QUEUES_IN_USE."""
    used = set()
    _, programs, notes, rules = re.split(r"^(?:programs|notes|rules)$", listing, maxsplit=3, flags=re.M)
    used |= {int(line.split()[0]) for line in programs.splitlines() if line.strip()}
    used |= set(map(int, notes.split()))
    # iptables: --queue-num 5, --queue-balance 0:3; nft: queue num 5, queue flags bypass to 0-3
    for low, high in re.findall(r"\bqueue\b[^\d\n]*(\d+)(?:[-:](\d+))?", rules):
        used |= set(range(int(low), int(high or low) + 1))
    return next(number for number in ALL_QUEUES if number not in used)


def _jump(hook, name):
    """Insert the jump as the first rule, before rules that accept packets."""
    command = "iptables -w -t mangle"
    return f"{command} -C {hook} -j {name} 2> /dev/null || {command} -I {hook} -j {name}"


def _no_jump(hook, name):
    return f"while iptables -w -t mangle -D {hook} -j {name} 2> /dev/null; do :; done"
