"""The ends of a link: where packets of one direction are delayed, lost or cut."""

import json
import shlex
import zlib
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

from labbook.errors import InputError, LabError, SystemFailure
from labbook.lab.host import as_root
from labbook.lab.journal import append_command
from labbook.lab.link import firewall, shaping
from labbook.lab.link.shaping import Shape

DELAY_LINE = Path(__file__).with_name("on_host") / "delayline.py"
READY_SECONDS = 20
NOTHING_ASKED = {**asdict(Shape()), "cut": False}


def ends(lab, site: str, far: str) -> list["End"]:
    """The ends of a link on the side of `site`: its router's, or where it has none each host's."""
    if site in lab.routers:
        return [WireEnd(lab.routers[site], site, far, lab.site(site)[0])]
    return [HostEnd(host, far, _machines(lab, far), lab.id) for host in _machines(lab, site)]


def _machines(lab, site):
    """One host of each data address of a site: a user's host may serve as several lab hosts."""
    return list({host.address: host for host in reversed(lab.site(site))}.values())[::-1]


class End:
    """One host's side of a link. Its state is kept on the host, for any process that attaches.

    `wire` names the link on this host; `witness` is a host whose pings pass this end.
    """

    has_own_delay = False
    doubt = "The machine may be too busy for exact delays: end what else runs, and try again"

    def __init__(self, host, wire, direction, witness):
        self.host, self.wire, self.name, self.witness = host, wire, f"delay-{wire}", witness
        self._seed = zlib.crc32(direction.encode())
        self._note = f"link-{wire}.json"
        self._asked = None

    def forget(self) -> None:
        """Read anew what was asked: another process may have changed it since."""
        self._asked = None

    @property
    def asked(self) -> dict:
        """The settings and `cut` as read since the last `forget`, from a note on the host, where any process
        finds them."""
        if self._asked is None:
            noted = self.host.run(f"[ ! -e {self._note} ] || cat {self._note}").stdout
            try:
                self._asked = json.loads(noted) if noted else dict(NOTHING_ASKED)
            except ValueError:
                raise LabError(f"{self.host.name}: the note of a link, {self._note}, is damaged",
                               remedy="Take the lab down and up") from None
        return self._asked

    @property
    def asked_shape(self) -> Shape:
        return Shape(**{key: value for key, value in self.asked.items() if key != "cut"})

    @property
    def means(self) -> str:
        """How packets are delayed: "nothing", "netem" or "delay line"."""
        if not self.asked_shape.holds:
            return "nothing"
        return "netem" if self._netem else "delay line"

    @property
    def untouched(self) -> bool:
        """Whether its settings are those of a link that was never shaped or cut."""
        return self.asked == NOTHING_ASKED

    def require_allowed(self) -> None:
        """LabError when the host's owner does not allow to delay or cut."""

    def shape(self, shape: Shape) -> None:
        """Replace the settings; start a delay line if need be."""
        commands = self._shaping(shape)
        line = self.host.process(self.name)
        if line:
            line.stop()
        self._apply(commands, {**asdict(shape), "cut": self.asked["cut"]})
        if self.means == "delay line":
            self._start(shape)

    def set_cut(self, cut: bool) -> None:
        """Drop all packets, or stop dropping them."""
        self._apply(self._cutting(cut), {**self.asked, "cut": cut})

    def traffic(self) -> dict | None:
        """Bytes and packets that entered the link here; None where nothing counts them."""
        return None

    def is_working(self) -> bool:
        """False when packets need a delay line and none runs."""
        if self.means != "delay line":
            return True
        line = self.host.process(self.name)
        return bool(line) and line.alive()

    def stats(self) -> dict | None:
        """The delay line's counters; None when there is none."""
        if self.means != "delay line" or not self.is_working():
            return None
        line = self.host.process(self.name)
        log = shlex.quote(line.log)
        done = self.host.run(
            f"n=$(grep -c ^stats {log}); kill -USR1 {line.pid}; i=0; "
            f"while [ $(grep -c ^stats {log}) -le $n ] && [ $i -lt 100 ]; "
            f"do sleep 0.01; i=$((i+1)); done; grep ^stats {log} | tail -n 1", root=True)
        return json.loads(done.stdout.partition(" ")[2] or "null")

    def log_tail(self) -> str:
        """The end of the delay line's log."""
        line = self.host.process(self.name)
        return line.log_tail(5) if line else "(it was never started)"

    def _apply(self, commands, asked):
        new = f"{self._note}.new"       # before anything is changed: the host's disk may be full
        write = f"umask 022; printf %s {shlex.quote(json.dumps(asked))} > {new}"
        self.host.run("set -e\n" + "\n".join([write, *commands, f"mv {new} {self._note}"]), root=True)
        self._asked = asked

    def _start(self, shape):
        line = self.host.start(self.name, shaping.delay_line(
            self.host.python, self._program, self._queue, shape, self._seed), root=True)
        try:
            self.host.wait_for(lambda: "ready " in line.log_tail(), "the delay line",
                               READY_SECONDS, process=line, interval=0.01)
        except SystemFailure as error:
            raise LabError(str(error), remedy="`labbook doctor` tries what it needs") from None

    @cached_property
    def _program(self) -> str:
        """Path of the delay line's program on the host; copies it there."""
        self.host.put(DELAY_LINE, DELAY_LINE.name)
        return str(self.host.root / DELAY_LINE.name)


class WireEnd(End):
    """A router's side of a wire to another router: it shapes what the router sends into it."""

    def __init__(self, router, site, far, witness):
        super().__init__(router, f"w-{far}", f"{site}>{far}", witness)

    def traffic(self):
        """From the wire's own counters, after all shaping."""
        counts = f"/sys/class/net/{self.wire}/statistics"
        output = self.host.run(f"cat {counts}/tx_bytes {counts}/tx_packets").stdout
        return dict(zip(("bytes", "packets"), map(int, output.split())))

    def _shaping(self, shape):
        return shaping.set_up(self.wire, shape, self._netem, self._queue)

    def _cutting(self, cut):
        return shaping.cut(self.wire) if cut else shaping.heal(self.wire)

    @cached_property
    def _netem(self) -> bool:
        return self.host.run(shaping.TRY_NETEM, check=False).exit_code == 0

    @cached_property
    def _queue(self) -> int:
        """The number of the wire's NFQUEUE: its interface index, unique on this router."""
        return int(self.host.run(f"cat /sys/class/net/{self.wire}/ifindex").stdout) % 65536


class HostEnd(End):
    """A user's host's side: it shapes what arrives from the data addresses of the far site's hosts.

    A wire is shaped where packets enter it; why not here, see firewall.py.
    """

    # netem would replace the queueing discipline of the user's interface, which carries more than
    # the link. So always use the delay line.
    _netem = False
    has_own_delay = True
    doubt = ("The hosts may be too busy for exact delays, or that far apart without any: "
             "a link adds to what their network takes")

    def __init__(self, host, far, peers, lab_id):
        super().__init__(host, far, f"{far}>{host.name}", host)
        self._chain = firewall.Chain(lab_id, far, host.address,
                                 tuple(peer.address for peer in peers),
                                 tuple(firewall.ssh_exemptions(host, peers)))

    def require_allowed(self) -> None:
        if not self.host.may("shape"):  # even where other permissions give root
            raise LabError(f"{self.host.name}: links cannot be delayed or cut there: shape is not "
                           "allowed", remedy="Add shape to the host's `allow` if you agree, and "
                                             "bring the lab up anew")

    def _shaping(self, shape):
        if shape.rate_mbit:
            raise InputError("a link between real hosts takes no rate", key="rate_mbit",
                             allowed=firewall.NO_RATE)
        return self._commands(shape, self.asked["cut"])

    def _cutting(self, cut):
        return self._commands(self.asked_shape, cut)

    def _commands(self, shape, cut):
        queue = self._queue if shape.holds else None
        if queue is None:
            self.__dict__.pop("_queue", None)
            self.host.run(f"rm -f {self._queue_note}")    # another lab may take the number, whoever had chosen it
        lab = self.host.root.parent
        return [*as_root.unless_going_down(shlex.quote(str(lab))),
                append_command(self._chain.entry, lab / "journal"),
                *self._chain.commands(queue, cut)]

    @cached_property
    def _queue(self) -> int:
        """The number of an NFQUEUE that nothing on this host uses; chosen once and noted there."""
        noted = self.host.run(f"cat {self._queue_note} 2> /dev/null", check=False).stdout.strip()
        if noted:
            return int(noted)
        queue = firewall.free_queue(self.host.run(firewall.QUEUES_IN_USE, root=True).stdout)
        self.host.run(f"echo {queue} > {self._queue_note}")
        return queue

    @property
    def _queue_note(self) -> str:
        return f"queue-{self.wire}"
