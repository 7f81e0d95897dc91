"""Nodes that join a running ring: started, watched until they own their ranges, and checked."""

import time
from dataclasses import dataclass

from labbook.errors import InputError, LabbookError, SystemFailure
from labbook.systems.cassandra import logs
from labbook.systems.cassandra import sstables as files
from labbook.systems.cassandra import token_plan as shares
from labbook.systems.cassandra.growing_node import GrowingNode

# Between two looks at the ring: a hundredth of what the join has taken, within these. Each look
# costs the donor and this machine something.
LEAST_SECONDS, MOST_SECONDS = 0.2, 1.0
LOOK_SECONDS = 5    # between two looks at the processes


@dataclass
class Joiner:
    """A node on its way: `token` is where its range ends, `share` what of the ring it is to own.
    Times are seconds since the epoch, by this machine."""

    node: GrowingNode
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
        self.asked_s = time.time()
        self.node.begin()


class Joins:
    """What GrowingRing.join gives. `held_bytes` is what the donor had that must be shared out,
    `donor_bytes` what was on its disk when the join was asked for."""

    def __init__(self, ring, joiners: list[Joiner], donor_bytes: int, held_bytes: int):
        self.ring, self.joiners = ring, joiners
        self.donor_bytes, self.held_bytes = donor_bytes, held_bytes

    def wait(self, seconds: float) -> list[dict]:
        """Returns when the donor has all of them as owners of their ranges, with their bytes.

        One row a joiner: node, token, share, asked_s, normal_s, join_s, fixed_wait_s, streaming_s,
        whole_files_sent (SSTables that came as they were), received_bytes, expected_bytes (at
        least: who joins together with others gets more than it owns), donor_bytes_before,
        donor_bytes_after; of one that was killed also killed_s, and None for what it did not come
        to. SystemFailure when one ends, fails, is not there in time, has joined without its bytes,
        or does not tell in its log what it waited for.
        """
        begun, look = time.monotonic(), 0.0
        while self._under_way():
            if time.monotonic() > look:
                self._look()
                look = time.monotonic() + LOOK_SECONDS
            refused, taken = self._ask(), time.monotonic() - begun
            if self._under_way():
                if taken > seconds:
                    self._late(seconds, refused)
                time.sleep(min(MOST_SECONDS, max(LEAST_SECONDS, taken / 100)))
        after = files.table_bytes(self.ring.donor)
        return [self._row(joiner, after) for joiner in self.joiners]

    def kill(self, name: str) -> None:
        """SIGKILL to a joiner."""
        joiner = self._joiner(name)
        joiner.node.process.kill()
        joiner.killed_s = time.time()
        joiner.received_bytes = files.arriving_bytes(joiner.node)
        self.ring.ended(name)

    def arriving_bytes(self, name: str) -> int:
        """What a joiner has on its disk by now, with what is not whole yet."""
        return files.arriving_bytes(self._joiner(name).node)

    def await_share(self, name: str, part: float, seconds: float) -> int:
        """Returns, with the bytes, once that part (0 to 1) of a joiner's data has come."""
        joiner = self._joiner(name)
        wanted = part * joiner.share * self.held_bytes
        return joiner.node.host.wait_for(
            lambda: (bytes_ := self.arriving_bytes(name)) > wanted and bytes_,
            f"{part:g} of {name}'s share to come", seconds, joiner.node.process)

    def _joiner(self, name: str) -> Joiner:
        for joiner in self.joiners:
            if joiner.name == name:
                return joiner
        raise InputError(f"{name!r} does not join", allowed=[j.name for j in self.joiners])

    def _under_way(self) -> list[Joiner]:
        return [joiner for joiner in self.joiners if joiner.under_way]

    def _ask(self) -> Exception | None:
        """Ask the donor who owns what; the error when it gives no answer."""
        try:
            owners = self.ring.owners()
        except LabbookError:
            raise
        except Exception as error:  # whatever a driver makes of a server that is at its limit
            return error
        now = time.time()
        for joiner in self._under_way():
            if owners.get(joiner.node.address) == joiner.token:
                joiner.normal_s = now
                joiner.received_bytes = files.table_bytes(joiner.node)
                self.ring.came(joiner.name)
                check_came(joiner, self.held_bytes)
        return None

    def _look(self) -> None:
        """SystemFailure for a process that has ended, or a joiner that has given up."""
        for node in (self.ring.donor, *(joiner.node for joiner in self._under_way())):
            if not node.process.alive():
                raise SystemFailure(f"{node.host.name}: its Cassandra ended while nodes joined",
                                    log=node.process.log_tail())
            if node is not self.ring.donor and logs.failed(node):
                raise SystemFailure(f"{node.host.name}: it could not get its data",
                                    log=node.process.log_tail())

    def _late(self, seconds, refused) -> None:
        late = self._under_way()
        told = f"; last asked, the donor gave {refused!r}" if refused else ""
        raise SystemFailure(
            f"{', '.join(joiner.name for joiner in late)}: not in the ring {seconds:g} s after "
            f"the join was asked for{told}", log=late[0].node.process.log_tail())

    def _row(self, joiner: Joiner, after: int) -> dict:
        done = joiner.normal_s is not None
        return {
            "node": joiner.name, "token": joiner.token, "share": joiner.share,
            "asked_s": joiner.asked_s, "normal_s": joiner.normal_s, "killed_s": joiner.killed_s,
            "join_s": joiner.normal_s - joiner.asked_s if done else None,
            **logs.told(joiner.node, logs.JOINING, partly=not done),
            "whole_files_sent": logs.whole_files(joiner.node),
            "received_bytes": joiner.received_bytes,
            "expected_bytes": round(joiner.share * self.held_bytes),
            "donor_bytes_before": self.donor_bytes, "donor_bytes_after": after,
        }


def check_came(joiner: Joiner, held_bytes: int) -> None:
    """SystemFailure for a node that is in the ring without the data of its range, which it does
    not say itself: a ring delay that is too short does this."""
    expected = joiner.share * held_bytes
    if joiner.received_bytes < shares.least_bytes(expected):
        raise SystemFailure(
            f"{joiner.name} has joined with {joiner.received_bytes} bytes, where its share "
            f"({joiner.share:.3g} of {held_bytes}) is {expected:.0f}",
            log=joiner.node.process.log_tail() if joiner.node.process else None)
