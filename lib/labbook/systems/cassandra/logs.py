"""Parse a node's log: how long it waited and streamed while it joined or left."""

import re
from datetime import datetime

from labbook.errors import SystemFailure
from labbook.lab.clock import ahead_s

LINE = re.compile(r"^\s*[A-Z]+\s+\[.*?\]\s+(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d,\d{3})\s+(.*)$")
# Each phase lasts from a line that begins like the first of a pair to one that begins like the
# second. `waits` have a fixed length; as shipped, the first one of today's version includes the wait
# for gossip to settle.
JOINING = {
    "waits": (("JOINING: waiting for ring", "JOINING: schema complete"),
              ("JOINING: sleeping", "JOINING: Starting to bootstrap")),
    "streaming": (("JOINING: Starting to bootstrap",
                   "Bootstrap/Replace/Move completed|Bootstrap completed for tokens"),),
    "whole": (("JOINING: waiting for ring", "Bootstrap/Replace/Move completed|Bootstrap completed for tokens"),),
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


def phases(node, spans: dict, partly: bool = False) -> dict:
    """fixed_wait_s and streaming_s of a node, by its log, with when it streamed, streamed_from_s and streamed_to_s
    (epoch seconds by this machine's clock); of one that joins also from_request_s, the whole since it asked for its
    place in the ring. A phase that the log lacks, or of which it lacks a part, is None where the node may have got
    there only `partly`, else SystemFailure."""
    lines = node.run("grep", "-aE", WORDS, node.process.log, check=False).stdout
    parts = {"fixed_wait_s": spans["waits"], "streaming_s": spans["streaming"]}
    missing = [f"{key} from {begin!r} to {end!r}" for key, pairs in parts.items() for begin, end in pairs
               if seconds(lines, [(begin, end)]) is None]
    if missing and not partly:
        raise SystemFailure(f"{node.host.name}: its log {node.process.log} has no lines for "
                            f"{' and '.join(missing)}", log=node.process.log_tail())
    phases = {key: seconds(lines, pairs) for key, pairs in parts.items()}
    phases |= dict(zip(("streamed_from_s", "streamed_to_s"), _moments(node, lines, *spans["streaming"])))
    return phases | ({"from_request_s": seconds(lines, spans["whole"])} if "whole" in spans else {})


def _moments(node, log: str, pair) -> tuple:
    """When the pair's phase began and ended by this machine's clock; (None, None) where the log lacks it."""
    span = _span(_lines(log), *pair)
    if span is None:
        return None, None
    zone = datetime.strptime(node.run("date", "+%z").stdout.strip(), "%z").tzinfo     # of the log, too
    ahead = ahead_s(node.host)
    return tuple(at.replace(tzinfo=zone).timestamp() - ahead for at in span)


def whole_files(node) -> int:
    """How many of the table's SSTables a node received as whole files, by its log. (Those received
    row by row are not logged.)"""
    return int(node.run("grep", "-acE", WHOLE, node.process.log, check=False).stdout)


def has_failed(node) -> bool:
    """Whether, by its log, the node has given up joining, although it still runs."""
    return node.run("grep", "-qaE", FAILED, node.process.log, check=False).exit_code == 0


def seconds(log: str, pairs) -> float | None:
    """The sum over `pairs` of the seconds from the first line that matches a pair's beginning to the
    next one that matches its end; None unless the log has all of them."""
    lines = _lines(log)
    spans = [_span(lines, begin, end) for begin, end in pairs]
    return None if None in spans else sum((last - first).total_seconds() for first, last in spans)


def _lines(log: str) -> list[tuple[datetime, str]]:
    """(time by the host's clock and zone, text) of each line."""
    return [(datetime.fromisoformat(f"{day} {time}".replace(",", ".")), text)
            for day, time, text in (match.groups() for match in map(LINE.match, log.splitlines()) if match)]


def _span(lines, begin: str, end: str) -> tuple[datetime, datetime] | None:
    started = None
    for at, text in lines:
        if started is None:
            started = at if re.match(begin, text) else None
        elif re.match(end, text):
            return started, at
    return None
