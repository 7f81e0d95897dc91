"""The path between two sites: shaped at its ends, cut, healed and checked."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

from labbook.errors import LabError
from labbook.lab.link.endpoints import End, ends
from labbook.lab.link.pings import PING_INTERVAL_S, Pings, ping_plan
from labbook.lab.link.shaping import Shape

TRIES = 3              # a busy machine holds pings up for a moment; the best of these counts


class Link:
    """A wire between the routers of two sites, or else all that their hosts send each other.

    The control path is never shaped.
    """

    def __init__(self, lab, site_a, site_b):
        self.lab, self.site_a, self.site_b = lab, site_a, site_b
        self._sides = ends(lab, site_a, site_b), ends(lab, site_b, site_a)
        self._ends = [*self._sides[0], *self._sides[1]]

    @property
    def asked(self) -> dict:
        """rtt_ms, jitter_ms, loss, rate_mbit, cut: as set last, by whichever process."""
        return dict(self._ends[0].asked)

    def shape(self, rtt_ms=0.0, jitter_ms=0.0, loss=0.0, rate_mbit=None) -> None:
        """Set the link anew, whatever it was; half of delay and jitter at either end.

        The round trip lies within rtt_ms ± jitter_ms, order kept; `loss` is the share of packets
        lost each way, `rate_mbit` the limit each way. InputError names key and range; LabError
        when an end cannot be set: the link then stays closed.
        """
        shape = Shape(rtt_ms, jitter_ms, loss, rate_mbit)
        if shape == Shape() and all(self._each(lambda end: end.untouched)):
            return  # which also hosts allow that may not be shaped
        self._change(lambda end: end.shape(shape))

    def cut(self) -> None:
        """Let every packet vanish, also those on their way, until healed."""
        self._change(lambda end: end.set_cut(True))

    def heal(self) -> None:
        self._change(lambda end: end.set_cut(False))

    def check(self) -> dict:
        """Asked and measured round trip, jitter and loss, by pings from site to site.

        LabError when the link is not what was asked, within the tolerances of pings.py. Between a
        user's own hosts a link of which nothing was asked is what it is.
        """
        if self.asked["cut"]:
            return self._check_cut()
        shape = self._ends[0].asked_shape
        for tries in range(1, TRIES + 1):
            found = self._ping(*ping_plan(shape), patience_s=1 + 2 * shape.rtt_ms / 1e3)
            pair, pings = max(found, key=lambda one: one[1].strays(shape))
            as_it_is = pings.back and shape == Shape() and self._ends[0].has_own_delay
            deviation = None if as_it_is else pings.deviation(shape)
            if not deviation:
                return self._report(pings, tries)
            if not all(self._each(End.stands)):
                break
        raise LabError(f"the link {self.site_a}-{self.site_b} is not what was asked ({pair}): "
                       f"{deviation}", remedy=self._state_of_ends())

    def traffic(self) -> dict:
        """{"a>b": {"bytes", "packets"}, "b>a": ...} that crossed since the lab came up, of a link
        between sites a and b; None in place of the counts where the sites' hosts are a user's.

        Bytes are those of Ethernet frames. Large sends that the kernel has not cut up yet count
        as one packet, with one header.
        """
        first, second = self._sides
        return {f"{self.site_a}>{self.site_b}": first[0].traffic(),
                f"{self.site_b}>{self.site_a}": second[0].traffic()}

    def facts(self) -> dict:
        """What was asked, by what means, and what the delay lines count since it was asked."""
        means, counts = zip(*self._each(lambda end: (end.means, end.stats())))
        counted = dict(zip((end.host.name for end in self._ends), counts))
        return {"between": [self.site_a, self.site_b], **self.asked, "means": means[0],
                "delay_lines": {name: stats for name, stats in counted.items() if stats}}

    def _check_cut(self):
        patience_s = 0.5 + self._ends[0].asked_shape.rtt_ms / 1e3
        for pair, pings in self._ping(3, PING_INTERVAL_S, patience_s):
            if pings.back:
                raise LabError(f"the link {self.site_a}-{self.site_b} is cut, yet pings come "
                               f"through ({pair})",
                               remedy="Cut it again, or take the lab down and up")
        return self._report(pings, 1)

    def _report(self, pings, tries):
        asked = self.asked
        measured = {"rtt_ms": pings.rtt_ms(self._ends[0].asked_shape),
                    "jitter_ms": pings.jitter_ms, "loss": pings.loss}
        return {"site_a": self.site_a, "site_b": self.site_b,
                **{f"asked_{key}": value for key, value in asked.items() if key != "cut"},
                **{f"measured_{key}": value for key, value in measured.items()},
                "cut": asked["cut"], "pings": pings.sent, "tries": tries,
                "overflowed": self._overflowed()}

    def _overflowed(self) -> int:
        """Packets that delay lines lost for want of room, since the link was shaped."""
        counts = self._each(End.stats)
        return sum(c["overflowed"] + c["overrun"] for c in counts if c)

    def _ping(self, count, interval_s, patience_s):
        """[(words for a pair of hosts, its pings)]: as many pairs as it takes to pass all ends."""
        sides = [[end.witness for end in side] for side in self._sides]
        pairs = list(islice(zip(*map(cycle, sides)), max(map(len, sides))))
        # -U: the round trip up to the program. The kernel's own time of arrival, which ping takes
        # else, is from before the hold of a host that holds what it receives.
        options = f"-q -n -U -c {count} -i {interval_s:.3f} -W {patience_s:.1f}"
        limit = count * interval_s + patience_s + 30

        def ping(pair):
            source, target = pair
            said = source.run(f"LC_ALL=C ping {options} {shlex.quote(target.address)}",
                              timeout=limit, check=False)
            return f"{source.name} to {target.name}", Pings.read(said.stdout, said.stderr)

        with ThreadPoolExecutor(min(32, len(pairs))) as pool:
            return list(pool.map(ping, pairs))

    def _state_of_ends(self):
        dead = [end for end in self._ends if not end.stands()]
        if dead:
            return (f"The delay line on {dead[0].host.name} has ended, so the link is closed; "
                    f"shape it again. Its log ends: {dead[0].log_tail().strip()}")
        return self._ends[0].doubt

    def _change(self, action):
        for end in self._ends:  # before any of them is another than it was
            end.require_allowed()
        self._each(action)

    def _each(self, action):
        with ThreadPoolExecutor(min(32, len(self._ends))) as pool:
            return list(pool.map(action, self._ends))
