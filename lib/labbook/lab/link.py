"""The path between two sites: a wire between their routers, shaped, cut, healed and checked."""

import json
import shlex
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

from labbook.errors import LabError, SystemFailure
from labbook.lab import shaping
from labbook.lab.pings import PING_INTERVAL_S, Pings, ping_plan
from labbook.lab.shaping import Shape

DELAY_LINE = Path(__file__).with_name("delayline.py")
READY_SECONDS = 20

TRIES = 3              # a busy machine holds pings up for a moment; the best of these counts


class Link:
    """Between the routers of two sites. The control path is another network, and never shaped."""

    def __init__(self, lab, site_a, site_b, router_a, router_b, wire_a, wire_b):
        self.lab, self.site_a, self.site_b = lab, site_a, site_b
        self._ends = (End(router_a, wire_a, f"{site_a}>{site_b}"),
                      End(router_b, wire_b, f"{site_b}>{site_a}"))

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
        self._both(lambda end: end.shape(shape))

    def cut(self) -> None:
        """Let every packet vanish, also those on their way, until healed."""
        self._both(lambda end: end.set_cut(True))

    def heal(self) -> None:
        self._both(lambda end: end.set_cut(False))

    def check(self) -> dict:
        """Asked and measured round trip, jitter and loss, by pings from site to site.

        LabError when the link is not what was asked, within the tolerances of pings.py.
        """
        if self.asked["cut"]:
            return self._check_cut()
        shape = self._ends[0].asked_shape
        for tries in range(1, TRIES + 1):
            pings = self._ping(*ping_plan(shape), patience_s=1 + 2 * shape.rtt_ms / 1e3)
            deviation = pings.deviation(shape)
            if not deviation:
                return self._report(pings, tries)
            if not all(self._both(End.stands)):
                break
        raise LabError(f"the link {self.site_a}-{self.site_b} is not what was asked: {deviation}",
                       remedy=self._state_of_ends())

    def facts(self) -> dict:
        """What was asked, by what means, and what the delay lines count since it was asked."""
        means, counts = zip(*self._both(lambda end: (end.means, end.stats())))
        counted = dict(zip((end.router.name for end in self._ends), counts))
        return {"between": [self.site_a, self.site_b], **self.asked, "means": means[0],
                "delay_lines": {name: stats for name, stats in counted.items() if stats}}

    def _check_cut(self):
        patience_s = 0.5 + self._ends[0].asked_shape.rtt_ms / 1e3
        pings = self._ping(3, PING_INTERVAL_S, patience_s)
        if pings.back:
            raise LabError(f"the link {self.site_a}-{self.site_b} is cut, yet pings come through",
                           remedy="Cut it again, or take the lab down and up")
        return self._report(pings, 1)

    def _report(self, pings, tries):
        asked = self.asked
        measured = {"rtt_ms": pings.rtt_ms, "jitter_ms": pings.jitter_ms, "loss": pings.loss}
        return {"site_a": self.site_a, "site_b": self.site_b,
                **{f"asked_{key}": value for key, value in asked.items() if key != "cut"},
                **{f"measured_{key}": value for key, value in measured.items()},
                "cut": asked["cut"], "pings": pings.sent, "tries": tries,
                "overflowed": self._overflowed()}

    def _overflowed(self) -> int:
        """Packets that delay lines lost for want of room, since the link was shaped."""
        counts = self._both(End.stats)
        return sum(c["overflowed"] + c["overrun"] for c in counts if c)

    def _ping(self, count, interval_s, patience_s):
        source, target = (self.lab.site(site)[0] for site in (self.site_a, self.site_b))
        command = (f"ping -q -n -c {count} -i {interval_s:.3f} -W {patience_s:.1f} "
                   f"{shlex.quote(target.address)}")
        limit = count * interval_s + patience_s + 30
        said = source.run(f"LC_ALL=C {command}", timeout=limit, check=False)
        return Pings.read(said.stdout, said.stderr)

    def _state_of_ends(self):
        dead = [end for end in self._ends if not end.stands()]
        if dead:
            return (f"The delay line on {dead[0].router.name} has ended, so the link is closed; "
                    f"shape it again. Its log ends: {dead[0].log_tail().strip()}")
        return "The machine may be too busy for exact delays: end what else runs, and try again"

    def _both(self, action):
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(action, self._ends))


class End:
    """One router's side of a wire: it shapes what the router sends into it."""

    def __init__(self, router, wire, direction):
        self.router, self.wire, self.name = router, wire, f"delay-{wire}"
        self._seed = zlib.crc32(direction.encode())
        self._note = f"link-{wire}.json"
        self._asked = None

    @property
    def asked(self) -> dict:
        """As noted on the router, so that another process that attaches knows it too."""
        if self._asked is None:
            noted = self.router.run(f"cat {self._note} 2> /dev/null", check=False).stdout
            self._asked = json.loads(noted or "{}") or {**asdict(Shape()), "cut": False}
        return self._asked

    @property
    def asked_shape(self) -> Shape:
        return Shape(**{key: value for key, value in self.asked.items() if key != "cut"})

    @property
    def means(self) -> str:
        """How packets are held back."""
        if not self.asked_shape.holds:
            return "nothing"
        return "netem" if self._netem else "delay line"

    def shape(self, shape: Shape) -> None:
        commands = shaping.set_up(self.wire, shape, self._netem, self._queue)
        line = self.router.process(self.name)
        if line:
            line.stop()
        self._apply(commands, {**asdict(shape), "cut": self.asked["cut"]})
        if self.means == "delay line":
            self._start(shape)

    def set_cut(self, cut: bool) -> None:
        commands = shaping.cut(self.wire) if cut else shaping.heal(self.wire)
        self._apply(commands, {**self.asked, "cut": cut})

    def stands(self) -> bool:
        """False when packets need a delay line and there is none."""
        if self.means != "delay line":
            return True
        line = self.router.process(self.name)
        return bool(line) and line.alive()

    def stats(self) -> dict | None:
        """What the delay line counts; None when there is none."""
        if self.means != "delay line" or not self.stands():
            return None
        line = self.router.process(self.name)
        log = shlex.quote(line.log)
        said = self.router.run(
            f"n=$(grep -c ^stats {log}); kill -USR1 {line.pid}; i=0; "
            f"while [ $(grep -c ^stats {log}) -le $n ] && [ $i -lt 100 ]; "
            f"do sleep 0.01; i=$((i+1)); done; grep ^stats {log} | tail -n 1")
        return json.loads(said.stdout.partition(" ")[2] or "null")

    def log_tail(self) -> str:
        line = self.router.process(self.name)
        return line.log_tail(5) if line else "(it was never started)"

    def _apply(self, commands, asked):
        note = f"printf %s {shlex.quote(json.dumps(asked))} > {self._note}"
        self.router.run("set -e\n" + "\n".join([*commands, note]))
        self._asked = asked

    def _start(self, shape):
        line = self.router.start(self.name, shaping.delay_line(
            self.router.python, self._program, self._queue, shape, self._seed))
        try:
            self.router.wait_for(lambda: "ready " in line.log_tail(), "the delay line",
                                 READY_SECONDS, process=line, interval=0.01)
        except SystemFailure as error:
            raise LabError(str(error), remedy="`labbook doctor` tries what it needs") from None

    @cached_property
    def _program(self) -> str:
        """The delay line's own path on the router, put there once."""
        self.router.put(DELAY_LINE, DELAY_LINE.name)
        return str(self.router.root / DELAY_LINE.name)

    @cached_property
    def _netem(self) -> bool:
        return self.router.run(shaping.TRY_NETEM, check=False).exit_code == 0

    @cached_property
    def _queue(self) -> int:
        """The interface's index: a number that no other wire of this router has."""
        return int(self.router.run(f"cat /sys/class/net/{self.wire}/ifindex").stdout) % 65536
