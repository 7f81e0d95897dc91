"""A link's settings, and the shell commands that apply them at the two ends of its wire.

Each router shapes what it sends into the wire, half of the round trip at either end: by `tc netem`
where the kernel has it, else by a delay line (delayline.py) that holds the packets of an NFQUEUE.
"""

import math
import shlex
from dataclasses import asdict, dataclass
from numbers import Real

from labbook.errors import InputError
from labbook.lab.link.on_host.delayline import MAX_HELD

RANGES = {
    "rtt_ms": (0.0, 10_000.0, "0 to 10000 ms"),
    "jitter_ms": (0.0, 10_000.0, "0 to rtt_ms: the round trip lies within rtt_ms ± jitter_ms"),
    "loss": (0.0, 0.9, "0 to 0.9, the share of packets lost each way; to lose all, cut the link"),
    "rate_mbit": (0.1, 10_000.0, "0.1 to 10000 Mbit/s each way, or nothing for no limit"),
}
BUFFER_MS = 50          # queue before a rate limit; more is dropped
BURST_MS = 1            # of traffic that a rate limit passes at full speed, but at least
BURST_BYTES = 15_000    # ten full packets: with fewer the timer becomes the limit

# Exit code 0 where the kernel has netem, loading its module if need be. Changes nothing.
TRY_NETEM = "unshare --net tc qdisc add dev lo root netem delay 1ms"


@dataclass(frozen=True)
class Shape:
    """A link's round trip, jitter (± around it), loss (share, each way) and rate (each way).

    The default is an unshaped link. InputError for values that are not possible.
    """

    rtt_ms: float = 0.0
    jitter_ms: float = 0.0
    loss: float = 0.0
    rate_mbit: float | None = None

    def __post_init__(self):
        """InputError names the key and its range."""
        for key, value in asdict(self).items():
            if value is None and key == "rate_mbit":
                continue
            low, high, allowed = RANGES[key]
            if not _is_number(value) or not low <= value <= high:
                raise InputError(f"{value!r} is not possible for a link", key=key, allowed=allowed)
            object.__setattr__(self, key, float(value))
        if self.jitter_ms > self.rtt_ms:
            raise InputError(f"{self.jitter_ms:g} is more than rtt_ms, {self.rtt_ms:g}",
                             key="jitter_ms", allowed=RANGES["jitter_ms"][2])

    @property
    def holds(self) -> bool:
        """Whether packets are delayed or lost, which takes netem or a delay line."""
        return bool(self.rtt_ms or self.loss)


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def delay_line(python: str, program: str, queue: int, shape: Shape, seed: int) -> str:
    """Command line of one end's delay line, for a bare Python."""
    return " ".join(map(shlex.quote, [
        python, "-I", "-S", program, f"--queue={queue}", f"--delay-ms={shape.rtt_ms / 2:g}",
        f"--jitter-ms={shape.jitter_ms / 2:g}", f"--loss={shape.loss:g}", f"--seed={seed}"]))


def set_up(wire: str, shape: Shape, netem: bool, queue: int) -> list[str]:
    """Shell commands that replace the shaping of packets that leave by `wire`."""
    queued = shape.holds and not netem
    rule = f"POSTROUTING -o {wire} -j NFQUEUE --queue-num {queue}"
    clear = f"tc qdisc del dev {wire} root 2> /dev/null || true"
    # No --queue-bypass: without its delay line the link passes nothing, rather than undelayed.
    return [_ensure(rule) if queued else _remove(rule), clear, *_qdiscs(wire, shape, netem)]


def cut(wire: str) -> list[str]:
    """Shell commands that drop the wire's packets silently, as a cut fibre does; interfaces stay up."""
    return [_ensure(rule, first=True) for rule in _cut_rules(wire)]


def heal(wire: str) -> list[str]:
    """Shell commands that undo `cut`."""
    return [_remove(rule) for rule in _cut_rules(wire)]


def _cut_rules(wire):
    return f"PREROUTING -i {wire} -j DROP", f"POSTROUTING -o {wire} -j DROP"


def _ensure(rule, first=False):
    way = "-I" if first else "-A"
    return (f"iptables -w -t mangle -C {rule} 2> /dev/null || "
            f"iptables -w -t mangle {way} {rule}")


def _remove(rule):
    return f"while iptables -w -t mangle -D {rule} 2> /dev/null; do :; done"


def _qdiscs(wire, shape, netem):
    add, parent = f"tc qdisc add dev {wire}", "root handle 1:"
    commands = []
    if netem and shape.holds:
        commands.append(f"{add} {parent} {_netem(shape)}")
        parent = "parent 1:1 handle 10:"
    if shape.rate_mbit:
        commands.append(f"{add} {parent} {_tbf(shape.rate_mbit)}")
    return commands


def _netem(shape):
    """Loss drops whole offloaded packets here; the delay line has them segmented first.

    netem draws the jitter of each packet and keeps the order by waiting for the packet before, so under
    load the mean is longer than asked for, by up to the jitter. The delay line's is not (see its Jitter).
    """
    settings = [f"netem limit {MAX_HELD} delay {shape.rtt_ms / 2:g}ms"]
    if shape.jitter_ms:
        # A rate, however high, makes netem keep the order of packets (netem_enqueue, sch_netem.c).
        settings.append(f"{shape.jitter_ms / 2:g}ms rate 100gbit")
    if shape.loss:
        settings.append(f"loss {shape.loss * 100:g}%")
    return " ".join(settings)


def _tbf(rate_mbit):
    burst = max(BURST_BYTES, round(rate_mbit * 1e6 / 8 * BURST_MS / 1e3))
    return f"tbf rate {round(rate_mbit * 1e3)}kbit burst {burst} latency {BUFFER_MS}ms"
