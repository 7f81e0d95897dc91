"""Noise of the machine while a point was measured, and whether the point is measured again for it."""

import time

from labbook.lab.local import cores

# Steal: at 0.5 % of all cores, one that a server is pinned to may have lost 1 % and more on a machine
# of two cores, as much as paired arms differ by chance.
STEAL = 0.005
# The loop's own spread is 1 to 2 % on a machine that others use; a core whose clock or cache changed
# differs by 5 to 15 %.
REFERENCE = 0.03
# On a virtual machine of two shared cores, the loop is off by 1 to 60 % even where nothing of ours runs, and in
# a repeat no less: there a repeat only takes the time of other repeats.
AGAIN = 1           # times at most that a point is measured again
FRUITLESS = 2       # points measured again of which at most half became quiet: then it is the machine
LOOPS, STEPS = 25, 100_000      # some 30 ms


def reference_loop() -> float:
    """ms of a fixed loop that needs nothing but a core: the shortest of several, so that it tells the
    core's speed and not who ran in between."""
    return min(_loop_s() for _ in range(LOOPS)) * 1000


def _loop_s() -> float:
    began = time.perf_counter()
    for _ in range(STEPS):
        pass
    return time.perf_counter() - began


def reasons(during: dict) -> list[str]:
    """Why the conditions of a point (see provenance.during) are noisy, in words; [] if they are not."""
    found = []
    if during.get("steal", 0.0) > STEAL:
        found.append(f"steal of {during['steal']:.1%}")
    off = during.get("reference_loop", {}).get("off", 0.0)
    if off > REFERENCE:
        found.append(f"the reference loop off by {off:.0%}")
    return found


class Noise:
    """Which points of a run are measured again."""

    def __init__(self):
        self.again = {}     # key -> how often the point has been measured again
        self._noisy = {}    # key -> whether its last measurement was noisy
        self._stayed = []   # of points that were measured again: whether they stayed noisy

    def note(self, key: str, during: dict) -> None:
        """A point was recorded under these conditions."""
        self._noisy[key] = bool(reasons(during))
        if self.again.get(key) and (not self._noisy[key] or self.again[key] == AGAIN):
            self._stayed.append(self._noisy[key])

    def wants(self, point) -> bool:
        """Whether to measure a point again now; if so, that is counted.

        Only points with paired arms, which expect their set-up to stay as it is, and only while
        repeats help. They do not where labs share cores: then the other labs are the noise.
        """
        hopeless = len(self._stayed) >= FRUITLESS and 2 * sum(self._stayed) >= len(self._stayed)
        if cores.are_shared() or not point.paired or not self._noisy.get(point.key) or hopeless or (
                self.again.get(point.key, 0) >= AGAIN):
            return False
        self.again[point.key] = self.again.get(point.key, 0) + 1
        return True
