"""How long a node waited and streamed while it joined or left, by its own log."""

import re
from datetime import datetime

from labbook.errors import SystemFailure

LINE = re.compile(r"^\s*[A-Z]+\s+\[.*?\]\s+(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d,\d{3})\s+(.*)$")
# From the first of a pair to the second: waits of a fixed length, and all that is streamed. The
# first wait of today's version as shipped has in it that for gossip to settle.
JOINING = {
    "waits": (("JOINING: waiting for ring", "JOINING: schema complete"),
              ("JOINING: sleeping", "JOINING: Starting to bootstrap")),
    "streaming": (("JOINING: Starting to bootstrap",
                   "Bootstrap/Replace/Move completed|Bootstrap completed for tokens"),),
}
LEAVING = {
    "waits": (("LEAVING: sleeping",
               "LEAVING: (streaming data|replaying batch log|streaming hints)"),
              ("Announcing that I have left the ring", "DECOMMISSIONED")),
    "streaming": (("LEAVING: (streaming data|replaying batch log)",
                   "Announcing that I have left the ring"),),
}
FAILED = "Some data streaming failed|Bootstrap will have to be restarted"
WHOLE = "Block Writing component to .*/labbook/pairs-.*-Data.db"
WORDS = "JOINING|LEAVING|Bootstrap|Announcing that I have left|DECOMMISSIONED"


def told(node, spans: dict, partly: bool = False) -> dict:
    """fixed_wait_s and streaming_s of a node by its log; of what it does not tell None if it may
    have come only `partly` so far, else SystemFailure."""
    said = node.run("grep", "-aE", WORDS, node.process.log, check=False).stdout
    found = {"fixed_wait_s": seconds(said, spans["waits"]),
             "streaming_s": seconds(said, spans["streaming"])}
    if not partly and (silent := [key for key, value in found.items() if value is None]):
        raise SystemFailure(f"{node.host.name}: its log {node.process.log} does not tell "
                            f"{' and '.join(silent)}", log=node.process.log_tail())
    return found


def whole_files(node) -> int:
    """How many of the table's SSTables came to a node as they were on another, by its log; else
    they come row by row, which no log tells."""
    said = node.run("grep", "-acE", WHOLE, node.process.log, check=False).stdout
    return int(said)


def failed(node) -> bool:
    """Whether its log says that it will not get on by itself, though it runs."""
    return node.run("grep", "-qaE", FAILED, node.process.log, check=False).exit_code == 0


def seconds(log: str, pairs) -> float | None:
    """Seconds from a line that begins like the first of each pair to the next one like its second,
    in all; None when no pair is there."""
    lines = [(datetime.fromisoformat(f"{day} {time}".replace(",", ".")), text)
             for day, time, text in (found.groups() for found in map(LINE.match, log.splitlines())
                                     if found)]
    spans = [span for begin, end in pairs if (span := _span(lines, begin, end)) is not None]
    return sum(spans) if spans else None


def _span(lines, begin: str, end: str) -> float | None:
    started = None
    for at, text in lines:
        if started is None:
            started = at if re.match(begin, text) else None
        elif re.match(end, text):
            return (at - started).total_seconds()
    return None
