"""A link between two sites: shaped, cut and healed at its ends, and checked by pings."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

from labbook.errors import LabError
from labbook.lab.link.endpoints import End, ends
from labbook.lab.link.pings import PING_INTERVAL_S, Pings, ping_plan
from labbook.lab.link.shaping import Shape

TRIES = 3              # a busy machine delays pings for a moment: the first good round counts


class Link:
    """The link between two sites: a wire between their routers, or on a user's own hosts all traffic
    between the sites' data addresses. SSH to the control addresses is never shaped.
    """

    def __init__(self, lab, site_a, site_b):
        self.lab, self.site_a, self.site_b = lab, site_a, site_b
        self._sides = ends(lab, site_a, site_b), ends(lab, site_b, site_a)
        self._ends = [*self._sides[0], *self._sides[1]]

    @property
    def asked(self) -> dict:
        """rtt_ms, jitter_ms, loss, rate_mbit and cut as last set, by any process."""
        self._forget()
        return self._asked

    def shape(self, rtt_ms=0.0, jitter_ms=0.0, loss=0.0, rate_mbit=None) -> None:
        """Replace the link's settings; half of delay and jitter is added at either end.

        The round trip lies within rtt_ms ± jitter_ms, in order; `loss` is the share of packets
        lost each way, `rate_mbit` the limit each way (None: no limit). InputError names the key
        and its range; LabError when an end cannot be set: with a delay line the link then passes no packets.
        """
        shape = Shape(rtt_ms, jitter_ms, loss, rate_mbit)
        self._forget()
        if shape == Shape() and all(self._each(lambda end: end.untouched)):
            return  # needs no permission to shape
        self._change(lambda end: end.shape(shape))

    def cut(self) -> None:
        """Drop every packet, including those under way, until `heal`."""
        self._forget()
        self._change(lambda end: end.set_cut(True))

    def heal(self) -> None:
        """End a cut; the settings of `shape` apply again."""
        self._forget()
        self._change(lambda end: end.set_cut(False))

    def check(self) -> dict:
        """Asked and measured round trip, jitter and loss, by pings from site to site.

        A dict of site_a, site_b, asked_* and measured_* (rtt_ms, jitter_ms, loss), cut, pings, tries
        and overflowed (packets that delay lines dropped for lack of room). LabError when the link is
        not as asked, within the tolerances of pings.py. Between a user's own hosts a link without
        settings may have any delay.
        """
        self._forget()
        if self._asked["cut"]:
            return self._check_cut()
        shape = self._ends[0].asked_shape
        any_delay = shape == Shape() and self._ends[0].has_own_delay
        for tries in range(1, TRIES + 1):
            results = self._ping(*ping_plan(shape), patience_s=1 + 2 * shape.rtt_ms / 1e3)
            judged = [(pings.deviation(shape, any_delay), pair, pings) for pair, pings in results]
            deviation, pair, pings = max(judged, key=lambda one: (one[0] is not None, one[2].strays(shape)))
            if not deviation:
                return self._report(pings, tries)
            if not all(self._each(End.is_working)):
                break
        raise LabError(f"the link {self.site_a}-{self.site_b} is not what was asked ({pair}): "
                       f"{deviation}", remedy=self._state_of_ends())

    def traffic(self) -> dict:
        """{"a>b": {"bytes", "packets"}, "b>a": ...} since the lab came up, for sites a and b; None in
        place of the counts between a user's own hosts.

        Bytes are those of Ethernet frames. A large send that the kernel has not segmented yet counts
        as one packet with one header.
        """
        first, second = self._sides
        return {f"{self.site_a}>{self.site_b}": first[0].traffic(),
                f"{self.site_b}>{self.site_a}": second[0].traffic()}

    def facts(self) -> dict:
        """Settings, means ("nothing", "netem" or "delay line"), and the delay lines' counters by host."""
        self._forget()
        means, counts = zip(*self._each(lambda end: (end.means, end.stats())))
        counted = dict(zip((end.host.name for end in self._ends), counts))
        return {"between": [self.site_a, self.site_b], **self._asked, "means": means[0],
                "delay_lines": {name: stats for name, stats in counted.items() if stats}}

    @property
    def _asked(self) -> dict:
        return dict(self._ends[0].asked)

    def _forget(self):
        for end in self._ends:
            end.forget()

    def _check_cut(self):
        patience_s = 0.5 + self._ends[0].asked_shape.rtt_ms / 1e3
        for pair, pings in self._ping(3, PING_INTERVAL_S, patience_s):
            if pings.back:
                raise LabError(f"the link {self.site_a}-{self.site_b} is cut, yet pings come "
                               f"through ({pair})",
                               remedy="Cut it again, or take the lab down and up")
        return self._report(pings, 1)

    def _report(self, pings, tries):
        asked = self._asked
        measured = {"rtt_ms": pings.rtt_ms(self._ends[0].asked_shape),
                    "jitter_ms": pings.jitter_ms, "loss": pings.loss}
        return {"site_a": self.site_a, "site_b": self.site_b,
                **{f"asked_{key}": value for key, value in asked.items() if key != "cut"},
                **{f"measured_{key}": value for key, value in measured.items()},
                "cut": asked["cut"], "pings": pings.sent, "tries": tries,
                "overflowed": self._overflowed()}

    def _overflowed(self) -> int:
        """Packets that delay lines dropped for lack of room since the link was shaped."""
        counts = self._each(End.stats)
        return sum(c["overflowed"] + c["overrun"] for c in counts if c)

    def _ping(self, count, interval_s, patience_s):
        """[("h1 to h2", its Pings)] for as many pairs of hosts as it takes to pass all ends."""
        sides = [[end.witness for end in side] for side in self._sides]
        pairs = list(islice(zip(*map(cycle, sides)), max(map(len, sides))))
        # -U: until ping reads the reply. By default ping takes the kernel's time of arrival, which is
        # before the delay on a host that delays what it receives.
        options = f"-q -n -U -c {count} -i {interval_s:.3f} -W {patience_s:.1f}"
        limit = count * interval_s + patience_s + 30

        def ping(pair):
            source, target = pair
            done = source.run(f"LC_ALL=C ping {options} {shlex.quote(target.address)}",
                              timeout=limit, check=False)
            return f"{source.name} to {target.name}", Pings.parse(done.stdout, done.stderr)

        with ThreadPoolExecutor(min(32, len(pairs))) as pool:
            return list(pool.map(ping, pairs))

    def _state_of_ends(self):
        dead = [end for end in self._ends if not end.is_working()]
        if dead:
            return (f"The delay line on {dead[0].host.name} has ended, so the link passes nothing; "
                    f"shape it again. Its log ends: {dead[0].log_tail().strip()}")
        return self._ends[0].doubt

    def _change(self, action):
        for end in self._ends:  # before any of them is changed
            end.require_allowed()
        self._each(action)

    def _each(self, action):
        with ThreadPoolExecutor(min(32, len(self._ends))) as pool:
            return list(pool.map(action, self._ends))
