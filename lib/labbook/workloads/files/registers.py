"""Clients that write and read registers and sets of files, and the history of their calls."""

import uuid

import pandas as pd

from labbook.errors import InputError
from labbook.workloads.clients.driver import Clients, Stream, shares
from labbook.workloads.clients.rows import Load, call_metrics
from labbook.workloads.files.load import CALL_SECONDS, WRITE_SECONDS, work_places
from labbook.workloads.files.on_host import registers
from labbook.workloads.files.on_host.runner import KILLED_SECONDS
from labbook.workloads.histories.calls import LIST, OK, READ, Call

READY_SECONDS = 60      # for all clients of a host to be forked
LAST_SECONDS = 60       # for the last reads through all mounts
COLUMNS = ["op", "key", "value", "started_s", "ended_s", "outcome", "error"]


class Registers:
    """Folders of registers and sets, new and empty, on mounted file systems.

    `paths`: one item for each client host, its mounted folder or a list of several, as in
    load.metadata. `homes`: existing folders below each path; each gets a folder with `keys` registers
    and a set.
    """

    def __init__(self, crew, paths, *, homes, keys: int):
        if keys < 1:
            raise InputError(f"{keys!r} is too few", key="keys", allowed="1 and more")
        self.crew, self.paths, self._keys = crew, paths, keys
        name = f"labbook-{uuid.uuid4().hex[:8]}"
        self.folders = [f"{home}/{name}" for home in homes]

    def begin(self, *, clients: int, calls_per_s: float, seed: int, seconds_at_most: float,
              call_seconds: float = CALL_SECONDS) -> Stream:
        """Let `clients` clients write, read, add and list until `end()`: returns when all have started.

        Each makes at most `calls_per_s` calls a second. A call that does not return within
        `call_seconds` of the end is left behind: its error is "blocked", and the outcome of a write unknown.

        Rows: client, host, op, key, value (of registers), started_s, ended_s, outcome, error, seconds, ok.
        Metrics: those of `call_metrics`, in µs, longest_s, errors, blocked and truncated. The history
        has a Call for each.
        """
        for key, value in (("clients", clients), ("calls_per_s", calls_per_s),
                           ("seconds_at_most", seconds_at_most), ("call_seconds", call_seconds)):
            if not value > 0:
                raise InputError(f"{value!r} is too little", key=key, allowed="more than 0")
        spec = self._spec() | dict(clients=clients, calls_per_s=calls_per_s, seed=seed,
                                   seconds_at_most=seconds_at_most, call_seconds=call_seconds)
        places = work_places(self.paths, len(self.crew.hosts))
        ready = Clients(self.crew, registers, [
            dict(share, paths=of_paths) for share, of_paths in zip(shares(spec, len(places)), places)],
            READY_SECONDS)
        return Stream(ready, seconds_at_most, lambda truncated: _load(
            ready, ready.finish(call_seconds + KILLED_SECONDS + WRITE_SECONDS), truncated))

    def last_reads(self, paths, now) -> list[Call]:
        """A last read of each register and each set through each of `paths`, which are as the class's,
        once all is at rest. `now()`: seconds since the clients started."""
        places = work_places(paths, len(self.crew.hosts))
        begun = now()
        found = self.crew.run(registers.contents, [self._spec() | {"paths": of_host} for of_host in places],
                              timeout=LAST_SECONDS)
        end = now()
        calls = []
        for host, of_host in zip(self.crew.hosts, found):
            for number, (values, sets) in enumerate(of_host):
                client = f"last-{host.name}-{number}"
                calls += [Call(client, READ, key, value, begun, end, last=True)
                          for key, value in values.items()]
                calls += [Call(client, LIST, key, tuple(keys), begun, end, last=True)
                          for key, keys in sets.items()]
        return calls

    def _spec(self) -> dict:
        return {"folders": self.folders, "keys": self._keys}


def calls_of(client: int, steps) -> list[Call]:
    """The Calls of a client, from the `history` that it kept."""
    return [Call(str(client), op, key, tuple(value) if op == LIST and value is not None else value,
                 begun, end, outcome)
            for op, key, value, begun, end, outcome, _ in steps]


def _load(clients: Clients, found, truncated: float) -> Load:
    frames = [pd.DataFrame(head["history"], columns=COLUMNS).assign(
        client=head["client"], host=host.name)
        for (heads, _), host in zip(found, clients.hosts) for head in heads]
    rows = pd.concat(frames, ignore_index=True)
    rows = rows.assign(seconds=rows["ended_s"] - rows["started_s"], ok=rows["outcome"] == OK,
                       value=rows["value"].where(rows["op"] != LIST))
    used = [sum(head["cpu_s"] for head in heads) for heads, _ in found]
    history = [call for heads, _ in found for head in heads
               for call in calls_of(head["client"], head["history"])]
    metrics = call_metrics(rows, used, clients) | {
        "longest_s": float(rows["seconds"].max()), "errors": float((~rows["ok"]).sum()),
        "blocked": float((rows["error"] == registers.BLOCKED).sum()), "truncated": truncated}
    return Load(rows, metrics, clients.started, tuple(history), clients.uncertainty_s)
