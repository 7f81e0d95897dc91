"""Nodes of Cassandra that start in half of the processor's time, to be slower later, and are asked less often whether
they answer: where nothing is measured.

A notebook's kernel runs this file first where PYTHONSTARTUP names it.
"""

import sys
from pathlib import Path

from labbook.systems.base import System
from labbook.systems.cassandra import config
from labbook.systems.cassandra.node import Cassandra

QUICK = "-XX:TieredStopAtLevel=1"
ASK_SECONDS = 0.3       # a node starts for seconds, and each question takes 20 ms of a core


def quick(jvm_options):
    """The function with that option before its own."""
    return lambda *given: [QUICK, *jvm_options(*given)]


def patient(self, seconds=None, interval=ASK_SECONDS):
    """Cassandra's await_answer."""
    System.await_answer(self, seconds, interval)


if __name__ == "__main__":
    config.jvm_options = quick(config.jvm_options)
    Cassandra.await_answer = patient
    sys.path.insert(0, str(Path(__file__).parent))
    import quick_noise  # noqa: F401 (for what it sets)
