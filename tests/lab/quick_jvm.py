"""Nodes of Cassandra that start in half of the processor's time, to be slower later: where nothing is measured.

A notebook's kernel runs this file first where PYTHONSTARTUP names it.
"""

import sys
from pathlib import Path

from labbook.systems.cassandra import config

QUICK = "-XX:TieredStopAtLevel=1"


def quick(jvm_options):
    """The function with that option before its own."""
    return lambda *given: [QUICK, *jvm_options(*given)]


if __name__ == "__main__":
    config.jvm_options = quick(config.jvm_options)
    sys.path.insert(0, str(Path(__file__).parent))
    from sparing import spare

    spare()
