"""What spares the processor in labs of tests, where nothing is measured: a server that starts for seconds is asked less
often whether it answers, since each question takes 20 ms of a core; and the loop that finds a noisy core is short, since
these labs share cores, so that it decides nothing.

A notebook's kernel runs this file first where PYTHONSTARTUP names it.
"""

import time
from functools import wraps

from labbook.lab.host.host import Host
from labbook.study import noise

FREELY_S, REST_S = 1.0, 0.25        # of asking, and before each question from then on


def patient(wait_for):
    """Host.wait_for with fewer questions; one that rests itself (interval=0: on the host) is as it was."""
    @wraps(wait_for)
    def waiting(self, predicate, what, timeout, process=None, interval=0.1):
        began = time.monotonic()

        def answer():
            if interval and time.monotonic() - began > FREELY_S:
                time.sleep(REST_S)
            return predicate()

        return wait_for(self, answer, what, timeout, process, interval)
    return waiting


def spare() -> None:
    """For all labs of this process."""
    noise.LOOPS = 1
    Host.wait_for = patient(Host.wait_for)


if __name__ == "__main__":
    spare()
