"""The delay line: delays each packet of one NFQUEUE, for kernels without `tc netem`.

Standard library only, so that it runs on any host with Python: `python3 -I -S delayline.py --queue 7
--delay-ms 50`, as root in the network namespace whose firewall sends packets to that queue. It
fails closed: the firewall rule has no `--queue-bypass`, so that packets stop when this program ends.

It prints `ready ...` when it has bound the queue, and `stats {...}` upon SIGUSR1. Upon SIGTERM it
releases the packets that it holds and ends.
"""

import argparse
import gc
import json
import os
import random
import select
import signal
import socket
import struct
import sys
import time
from collections import deque
from contextlib import suppress

MAX_HELD = 500_000           # packets; beyond it the kernel drops and counts
RECEIVE_BYTES = 64 << 20     # socket buffer, for bursts while this program is not scheduled
TOGETHER_S = 20e-6           # packets due within this time of each other share one verdict
BURST = 128                  # packets received before due packets are released

# linux/netlink.h, linux/netfilter/nfnetlink.h and nfnetlink_queue.h
_SOL_NETLINK, _NETLINK_NETFILTER, _NO_ENOBUFS, _SO_RCVBUFFORCE = 270, 12, 5, 33
_REQUEST, _ACK, _ERROR = 1, 4, 2
_PACKET, _VERDICT, _CONFIG, _VERDICT_BATCH = (3 << 8 | kind for kind in range(4))
_CFG_CMD, _CFG_PARAMS, _CFG_MAXLEN, _CFG_MASK, _CFG_FLAGS = range(1, 6)
_BIND, _COPY_META, _F_GSO, _VERDICT_HDR = 1, 1, 4, 2
DROP, ACCEPT = 0, 1


class Jitter:
    """A deviation within ± `most_s` that wanders: on straight lines between uniform random values which
    are 2 `most_s` apart in time.

    A value of its own for each packet would lengthen the mean under load: to keep the order, a packet
    waits for the largest value of those just before it. Here the deviation falls no faster than time
    passes, as in a queue that empties. So packets keep their order by themselves, and the mean is that
    of the values, however dense the packets are.
    """

    def __init__(self, most_s, draw):
        self._most_s, self._draw = most_s, draw
        self._step_s = 2 * most_s
        self._begin_s = self._first = self._second = None

    def at(self, now):
        """The deviation in seconds at a time that never falls."""
        if self._begin_s is None or now - self._begin_s >= 2 * self._step_s:
            # a random place on its line, or whoever sends rarely would see the line's ends alone
            self._begin_s = now - self._step_s * self._draw()
            self._first, self._second = self._value(), self._value()
        elif now - self._begin_s >= self._step_s:
            self._begin_s += self._step_s
            self._first, self._second = self._second, self._value()
        share = (now - self._begin_s) / self._step_s
        return self._first + (self._second - self._first) * share

    def _value(self):
        return self._most_s * (2 * self._draw() - 1)


class Schedule:
    """When each packet is released: arrival + delay ± jitter, in order, with seeded loss.

    A packet is its id in the queue; ids increase. Times are seconds of one clock.
    """

    def __init__(self, delay_s, jitter_s=0.0, loss=0.0, seed=0):
        self.delay_s, self.jitter_s, self.loss = delay_s, jitter_s, loss
        self._random = random.Random(seed).random
        self._jitter = Jitter(jitter_s, random.Random(~seed).random)
        self._held = deque()    # [due, last packet of a group with one verdict, lost]

    def arrive(self, packet, now):
        due = now + self.delay_s
        if self.jitter_s:
            due += self._jitter.at(now)
        lost = bool(self.loss) and self._random() < self.loss
        if self._held:
            last = self._held[-1]
            due = max(due, last[0])
            if not lost and not last[2] and due - last[0] < TOGETHER_S:
                last[1] = packet
                return
        self._held.append([due, packet, lost])

    def next_due(self):
        """Time of the next release; None when no packet is held."""
        return self._held[0][0] if self._held else None

    def release(self, now):
        """[(packet, verdict)] due by `now`; ACCEPT applies to all held packets up to that one."""
        verdicts, accepted = [], None
        while self._held and self._held[0][0] <= now:
            _, packet, lost = self._held.popleft()
            if not lost:
                accepted = packet
                continue
            if accepted is not None:
                verdicts.append((accepted, ACCEPT))
                accepted = None
            verdicts.append((packet, DROP))
        if accepted is not None:
            verdicts.append((accepted, ACCEPT))
        return verdicts


class Queue:
    """One NFQUEUE of this network namespace. OSError when it is in use, missing or not permitted."""

    def __init__(self, number, segments=False, max_held=MAX_HELD):
        """`segments`: the kernel segments large offloaded packets before it queues them."""
        self.number = number
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
        self.socket.bind((0, 0))
        self._config(_attribute(_CFG_CMD, struct.pack(">BxH", _BIND, 0)))
        self._config(_attribute(_CFG_PARAMS, struct.pack(">IB", 0, _COPY_META))
                     + _attribute(_CFG_MAXLEN, struct.pack(">I", max_held))
                     + _attribute(_CFG_MASK, struct.pack(">I", _F_GSO))
                     + _attribute(_CFG_FLAGS, struct.pack(">I", 0 if segments else _F_GSO)))
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, RECEIVE_BYTES)
        self.socket.setsockopt(_SOL_NETLINK, _NO_ENOBUFS, 1)
        self.socket.setblocking(False)
        # The id follows three headers: netlink 16, nfgenmsg 4, attribute 4. No more is read.
        self._message = bytearray(28)
        self._id = struct.Struct(">I")
        self._packet_type = struct.pack("=H", _PACKET)

    def receive(self):
        """The next packet's id; None for another kind of message; BlockingIOError when there is none."""
        message = self._message
        self.socket.recv_into(message)
        if message[4:6] != self._packet_type:
            return None
        return self._id.unpack_from(message, 24)[0]

    def give(self, packet, verdict):
        """Send a verdict: ACCEPT for all packets up to this one, DROP for this one."""
        kind = _VERDICT_BATCH if verdict == ACCEPT else _VERDICT
        header = _attribute(_VERDICT_HDR, struct.pack(">II", verdict, packet))
        self.socket.send(_message(kind, self.number, header))

    def counts(self):
        """Packets (held, dropped because the queue was full, dropped because the socket was full)."""
        with open("/proc/self/net/netfilter/nfnetlink_queue") as lines:
            for fields in map(str.split, lines):
                if int(fields[0]) == self.number:
                    return int(fields[2]), int(fields[5]), int(fields[6])
        return 0, 0, 0

    def _config(self, attributes):
        self.socket.send(_message(_CONFIG, self.number, attributes, _ACK))
        kind = None
        while kind != _ERROR:   # a packet may come first; the next verdict of a batch is its, too
            answer = self.socket.recv(4096)
            kind, = struct.unpack_from("=H", answer, 4)
        code, = struct.unpack_from("=i", answer, 16)
        if code:
            raise OSError(-code, f"queue {self.number}: {os.strerror(-code)}")


def _attribute(kind, payload):
    padding = b"\0" * (-len(payload) % 4)
    return struct.pack("=HH", 4 + len(payload), kind) + payload + padding


def _message(kind, queue, attributes, flags=0):
    body = struct.pack(">BBH", socket.AF_UNSPEC, 0, queue) + attributes
    return struct.pack("=IHHII", 16 + len(body), kind, _REQUEST | flags, 0, 0) + body


class Line:
    """A queue, its schedule, and counters."""

    def __init__(self, queue, schedule):
        self.queue, self.schedule = queue, schedule
        self.taken = self.lost = self.last = 0
        self.late_s, self.priority = 0.0, "ordinary"

    def run(self):
        """Delay packets until an exception, such as SystemExit upon SIGTERM."""
        clock, queue, schedule = time.monotonic, self.queue, self.schedule
        waiting_for = [queue.socket]
        while True:
            due = schedule.next_due()
            patience = None if due is None else max(0.0, due - clock())
            if select.select(waiting_for, (), (), patience)[0]:
                self._take(clock)
            now = clock()
            if due is not None and due <= now:
                self.late_s = max(self.late_s, now - due)
                self._give(schedule.release(now))

    def let_go(self):
        """Release all held packets now, so that a change of the settings loses none."""
        self._give(self.schedule.release(float("inf")))

    def stats(self):
        held, overflowed, overrun = self.queue.counts()
        return {"taken": self.taken, "held": held, "lost_on_purpose": self.lost,
                "overflowed": overflowed, "overrun": overrun,
                "latest_ms": round(self.late_s * 1e3, 3), "priority": self.priority}

    def _take(self, clock):
        receive, arrive = self.queue.receive, self.schedule.arrive
        try:
            for _ in range(BURST):
                packet = receive()
                if packet is not None:
                    arrive(packet, clock())
                    self.taken += 1
        except BlockingIOError:
            pass

    def _give(self, verdicts):
        for packet, verdict in verdicts:
            self.queue.give(packet, verdict)
            self.lost += verdict == DROP


def _settings(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queue", type=int, required=True, help="NFQUEUE number")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="one way")
    parser.add_argument("--jitter-ms", type=float, default=0.0, help="± around the delay")
    parser.add_argument("--loss", type=float, default=0.0, help="share of packets, 0 to 1")
    parser.add_argument("--seed", type=int, default=0, help="of jitter and loss")
    parser.add_argument("--try", dest="only_try", action="store_true",
                        help="bind the queue and end: does it work here?")
    return parser.parse_args(arguments)


def _hurry():
    """Get real-time priority if permitted; return "real-time" or "ordinary".

    With four busy loops on two cores a round trip of 5 ms was 5.5 ms (at most 5.8) in real time,
    and 14 ms (at most 105) at the best ordinary priority.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        return "real-time"
    except OSError:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, -20)
        return "ordinary"


def main(arguments=None):
    settings = _settings(arguments)
    # Loss must drop single packets, as on a wire, not offloaded bundles of 64 KiB.
    queue = Queue(settings.queue, segments=settings.loss > 0)
    schedule = Schedule(settings.delay_ms / 1e3, settings.jitter_ms / 1e3, settings.loss, settings.seed)
    line = Line(queue, schedule)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGUSR1, lambda *_: print("stats", json.dumps(line.stats()), flush=True))
    line.priority = _hurry()
    gc.disable()    # nothing here makes reference cycles, and a collection would delay packets
    print(f"ready queue={settings.queue} delay_ms={settings.delay_ms:g} jitter_ms={settings.jitter_ms:g} "
          f"loss={settings.loss:g} seed={settings.seed} priority={line.priority}", flush=True)
    if settings.only_try:
        return
    try:
        line.run()
    finally:
        line.let_go()


if __name__ == "__main__":
    main()
