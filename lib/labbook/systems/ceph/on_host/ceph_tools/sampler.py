"""Asks one MDS over and over how much it has in its cache and what it does, and writes that down.

A line of JSON a look; none while nobody answers. It ends by SIGTERM.
"""

import json
import time

from asking import ask
from reading import listed, look

ASK_S = 5
QUESTIONS = ("status", "perf dump", "get subtrees")


def main(path, seconds_between, out):
    between, due = float(seconds_between), time.monotonic()
    with open(out, "w", buffering=1) as file:
        while True:
            if found := row(path):
                file.write(json.dumps(found) + "\n")
            due = max(due + between, time.monotonic())
            time.sleep(max(due - time.monotonic(), 0))


def row(path):
    """What the MDS at that socket says; None when it does not."""
    began = time.time()
    try:
        status, counters, subtrees = (ask(path, {"prefix": question}, ASK_S)
                                      for question in QUESTIONS)
        t_s = (began + time.time()) / 2
        return {"t_s": t_s, **look(json.loads(status), json.loads(counters), listed(subtrees))}
    except (OSError, ValueError, KeyError):     # gone, or not yet there as a whole
        return None
