"""A study's lab up and down, as a program whose privileged helper can be killed.

    python -m killing.lab_alone STUDY LOG

It writes a line to LOG when a helper begins and when it has ended: {edge, phase, at_s}, the phase `make`
or `unmake`. Exit code 1 with the error when the lab could not be made or taken down.
"""

import json
import sys
import time

from labbook import paths
from labbook.errors import LabbookError
from labbook.lab import Environment, Lab, LabDescription
from labbook.lab.local import provider

PHASE = {"up": "make", "down": "unmake"}


def main(study: str, log: str) -> int:
    note_helpers(log)
    description = LabDescription.load(paths.papers(study) / "lab.yml")
    try:
        Lab.up(description, Environment.load(paths.checkout() / "environments/local.yml")).down()
    except LabbookError as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    return 0


def note_helpers(log):
    real = provider.helper

    def helper(do, **request):
        if do not in PHASE:
            return real(do, **request)
        note(log, "begin", PHASE[do])
        try:
            return real(do, **request)
        finally:
            note(log, "end", PHASE[do])

    provider.helper = helper


def note(log, edge, phase):
    with open(log, "a") as file:
        file.write(json.dumps({"edge": edge, "phase": phase, "at_s": time.time()}) + "\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
