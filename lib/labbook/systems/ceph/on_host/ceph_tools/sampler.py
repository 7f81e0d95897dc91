"""Sample one MDS's cache and counters until SIGTERM: one line of JSON a sample, none without an answer."""

import json
import time

from admin_protocol import ask
from parse import sample, subtree_list

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
    """A sample of the MDS at this socket; None if it does not answer."""
    began = time.time()
    try:
        status, counters, subtrees = (ask(path, {"prefix": question}, ASK_S)
                                      for question in QUESTIONS)
        t_s = (began + time.time()) / 2
        return {"t_s": t_s, **sample(json.loads(status), json.loads(counters), subtree_list(subtrees))}
    except (OSError, ValueError, KeyError):     # ended, or still starting
        return None
