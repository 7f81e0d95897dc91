"""Nodes that join a running ring: watched until they own their ranges, and checked for their data."""

import time
from dataclasses import dataclass

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.lab import clock
from labbook.systems.base import PROGRAMMING_ERRORS
from labbook.systems.cassandra import logs, sstables, token_plan
from labbook.systems.cassandra.node import Cassandra

# Seconds between two questions to the donor: a hundredth of the time that the join has taken, within
# these limits, since each question takes CPU from the donor and from this machine.
MIN_SECONDS, MAX_SECONDS = 0.2, 1.0
CHECK_SECONDS = 5    # between two checks of the processes


@dataclass
class Joiner:
    """A node that joins. `token` is where its range ends, `share` the part of the ring that it is
    to own. Times are epoch seconds by this machine's clock."""

    node: Cassandra
    token: int
    share: float
    asked_s: float | None = None
    normal_s: float | None = None
    killed_s: float | None = None
    received_bytes: int | None = None

    @property
    def name(self) -> str:
        return self.node.host.name

    @property
    def under_way(self) -> bool:
        return self.normal_s is None and self.killed_s is None

    def begin(self) -> None:
        self.asked_s = clock.now()
        self.node.begin()


class Joins:
    """The result of ElasticRing.join: nodes that were started together.

    `held_bytes`: the data of the donor that the ring shares out. `donor_bytes`: what was on the
    donor's disk when the join began.
    """

    def __init__(self, ring, joiners: list[Joiner], donor_bytes: int, held_bytes: int):
        self.ring, self.joiners = ring, joiners
        self.donor_bytes, self.held_bytes = donor_bytes, held_bytes

    def wait(self, seconds: float) -> list[dict]:
        """Return when the donor knows all joiners as owners of their ranges, with their data.

        One row a joiner: node, token, share, asked_s, normal_s (epoch seconds), join_s,
        fixed_wait_s, streaming_s, streamed_from_s and streamed_to_s (epoch seconds), from_request_s,
        whole_files_sent (SSTables that were received whole),
        received_bytes, expected_bytes (a lower bound: nodes that join together receive more than
        they own), donor_bytes_before, donor_bytes_after. The row of a joiner that was killed has
        killed_s too, and None for what it did not reach. SystemFailure when a process ends, a
        joiner gives up, is late, has joined without its data, or its log lacks a phase.
        """
        begun, checked_s = time.monotonic(), 0.0
        while self._under_way():
            if time.monotonic() > checked_s:
                self._check_processes()
                checked_s = time.monotonic() + CHECK_SECONDS
            refused, taken = self._ask(), time.monotonic() - begun
            if self._under_way():
                if taken > seconds:
                    self._fail_late(seconds, refused)
                time.sleep(min(MAX_SECONDS, max(MIN_SECONDS, taken / 100)))
        after = sstables.table_bytes(self.ring.donor)
        return [self._row(joiner, after) for joiner in self.joiners]

    def kill(self, name: str) -> None:
        """SIGKILL to a joiner."""
        joiner = self._joiner(name)
        joiner.node.process.kill()
        joiner.killed_s = clock.now()
        joiner.received_bytes = sstables.arriving_bytes(joiner.node)
        self.ring.mark_stopped(name)

    def arriving_bytes(self, name: str) -> int:
        """Bytes on a joiner's disk now, incomplete SSTables included."""
        return sstables.arriving_bytes(self._joiner(name).node)

    def await_share(self, name: str, part: float, seconds: float) -> int:
        """Return once this part (0 to 1) of a joiner's data has arrived: the bytes."""
        joiner = self._joiner(name)
        wanted = part * joiner.share * self.held_bytes
        return joiner.node.host.wait_for(
            lambda: (bytes_ := self.arriving_bytes(name)) > wanted and bytes_,
            f"{part:g} of {name}'s share to arrive", seconds, joiner.node.process)

    def _joiner(self, name: str) -> Joiner:
        for joiner in self.joiners:
            if joiner.name == name:
                return joiner
        raise InputError(f"{name!r} does not join", allowed=[j.name for j in self.joiners])

    def _under_way(self) -> list[Joiner]:
        return [joiner for joiner in self.joiners if joiner.under_way]

    def _ask(self) -> Exception | None:
        """Ask the donor who owns what, and note who has joined; the error when it does not answer."""
        try:
            owners = self.ring.owners()
        except (LabbookError, *PROGRAMMING_ERRORS):
            raise
        except Exception as error:  # whatever a client raises when the server is overloaded
            return error
        now = clock.now()
        for joiner in self._under_way():
            if owners.get(joiner.name) == joiner.token:
                joiner.normal_s = now
                joiner.received_bytes = sstables.table_bytes(joiner.node)
                self.ring.mark_joined(joiner.name)
                check_received(joiner, self.held_bytes)
        return None

    def _check_processes(self) -> None:
        """SystemFailure for a process that has ended, or a joiner that has given up."""
        for node in (self.ring.donor, *(joiner.node for joiner in self._under_way())):
            if not node.process.alive():
                raise SystemFailure(f"{node.host.name}: its Cassandra ended while nodes joined",
                                    log=node.process.log_tail())
            if node is not self.ring.donor and logs.has_failed(node):
                raise SystemFailure(f"{node.host.name}: it could not get its data",
                                    log=node.process.log_tail())

    def _fail_late(self, seconds, refused) -> None:
        late = self._under_way()
        answer = f"; the donor's last answer was {refused!r}" if refused else ""
        raise SystemFailure(
            f"{', '.join(joiner.name for joiner in late)}: not in the ring {seconds:g} s after "
            f"the join began{answer}", log=late[0].node.process.log_tail())

    def _row(self, joiner: Joiner, after: int) -> dict:
        done = joiner.normal_s is not None
        return {
            "node": joiner.name, "token": joiner.token, "share": joiner.share,
            "asked_s": joiner.asked_s, "normal_s": joiner.normal_s, "killed_s": joiner.killed_s,
            "join_s": joiner.normal_s - joiner.asked_s if done else None,
            **logs.phases(joiner.node, logs.JOINING, partly=not done),
            "whole_files_sent": logs.whole_files(joiner.node),
            "received_bytes": joiner.received_bytes,
            "expected_bytes": round(joiner.share * self.held_bytes),
            "donor_bytes_before": self.donor_bytes, "donor_bytes_after": after,
        }


def check_received(joiner: Joiner, held_bytes: int) -> None:
    """SystemFailure for a node that is in the ring without the data of its range. Cassandra does
    not report this itself; it happens where the ring delay is too short."""
    expected = joiner.share * held_bytes
    if joiner.received_bytes < token_plan.least_bytes(expected):
        raise SystemFailure(
            f"{joiner.name} has joined with {joiner.received_bytes} bytes, where its share "
            f"({joiner.share:.3g} of {held_bytes}) is {expected:.0f}",
            log=joiner.node.process.log_tail() if joiner.node.process else None)
