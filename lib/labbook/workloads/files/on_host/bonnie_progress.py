"""Runs bonnie++ and prints when each phase began and ended, from its progress messages.

Standard library only, so that it can be put on any host: `python3 -I -S bonnie_progress.py COMMAND`,
where COMMAND is bonnie++'s command line. It prints a line of JSON for each phase, with seconds since
the epoch by the host's clock, and at the end one with all that bonnie++ printed and the CPU seconds
that it used.
"""

import json
import os
import re
import resource
import subprocess
import sys
import time

# `Create files in sequential order...done.`, of which the first half comes when it begins.
PHASE = re.compile(r"(Create|Stat|Delete) files in (sequential|random) order\.\.\.(done)?")


class Phases:
    """Phases of bonnie++, from its progress messages; `emit` is called at the end of each."""

    def __init__(self, emit):
        self.messages, self.emit, self.began, self.ended = "", emit, {}, set()

    def feed(self, text: str, at_s: float) -> None:
        self.messages += text
        for op, order, done in PHASE.findall(self.messages):
            name = f"{order}_{op.lower()}"
            self.began.setdefault(name, at_s)
            if done and name not in self.ended:
                self.ended.add(name)
                self.emit(phase=name, began_s=self.began[name], ended_s=at_s)


def main(command):
    bonnie = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    phases = Phases(print_line)
    ahead = time.time() - time.monotonic()      # read once: the length of a phase is no matter of a set clock
    while part := os.read(bonnie.stderr.fileno(), 65536):
        phases.feed(part.decode(errors="replace"), time.monotonic() + ahead)
    printed = bonnie.stdout.read().decode(errors="replace")
    code, used = bonnie.wait(), resource.getrusage(resource.RUSAGE_CHILDREN)
    print_line(printed=printed, said=phases.messages[-2000:], exit=code, cpu_s=used.ru_utime + used.ru_stime)


def print_line(**fields):
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except OSError as error:
        sys.exit(f"bonnie++: {error}")
