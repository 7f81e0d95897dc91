"""Clients that write and read registers of a replicated store, and the history of their calls."""

import pandas as pd

from labbook.errors import InputError
from labbook.targets import READ_LEVELS, WRITE_LEVELS, Servers, key_of
from labbook.workloads.clients.driver import Clients, Stream, shares
from labbook.workloads.clients.rows import Load, call_metrics
from labbook.workloads.histories.calls import Call
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.on_host import registers
from labbook.workloads.keyvalue.spec import check_among, spec_of

VALUE_BYTES = 100       # what the protocols' own values have; a register's are a few letters
READY_SECONDS = 60      # for all clients of a host to be forked
END_SECONDS = 60
LAST_SECONDS = 60       # for the last reads of all rows
COLUMNS = ["op", "row", "value", "started_s", "ended_s", "outcome", "error"]


def check_registers(*, keys: int, readers: int, write_level: str, read_level: str,
                    calls_per_s: float, call_seconds: float, seconds_at_most: float) -> None:
    """InputError for clients that there cannot be. To be called before there is a store."""
    for name, value in (("keys", keys), ("readers", readers)):
        if value < 1:
            raise InputError(f"{value!r} is too few", key=name, allowed="1 and more")
    for name, value in (("calls_per_s", calls_per_s), ("call_seconds", call_seconds),
                        ("seconds_at_most", seconds_at_most)):
        if not value > 0:
            raise InputError(f"{value!r} is too little", key=name, allowed="more than 0")
    check_among("write_level", write_level, WRITE_LEVELS)
    check_among("read_level", read_level, READ_LEVELS)


def begin_registers(crew, target: Servers, *, keys: int, readers: int, write_level: str,
                    read_level: str, calls_per_s: float, call_seconds: float,
                    seconds_at_most: float, seed: int) -> Stream:
    """Let `keys` writers, of one row each, and `readers`, of all rows, call until `end()`: returns
    when all have started.

    Each makes at most `calls_per_s` calls a second. A call that takes longer than `call_seconds` has
    failed, and its client calls the next of the target's addresses. The rows must be new: nobody has
    written them before. The protocol must have REGISTERS.

    Rows: client, host, op, row, value, started_s, ended_s, outcome, error, seconds, ok. Metrics:
    those of `call_metrics`, in µs, and truncated. The history has a Call for each.
    """
    clients = dict(keys=keys, readers=readers, write_level=write_level, read_level=read_level,
                   calls_per_s=calls_per_s, call_seconds=call_seconds, seconds_at_most=seconds_at_most)
    check_registers(**clients)
    spec = _spec(target, keys) | clients | dict(clients=keys + readers, seed=seed)
    ready = Clients(crew, registers, shares(spec, len(crew.hosts)),
                    READY_SECONDS + seconds_at_most + call_seconds)
    return Stream(ready, seconds_at_most, lambda truncated: _load(
        ready, ready.finish(call_seconds + END_SECONDS), truncated))


def last_reads(crew, target: Servers, keys: int, now) -> list[Call]:
    """A last read of each row at the level of all replicas, once all is at rest. `now()`: seconds
    since the clients started."""
    level = protocols.protocol(target.protocol).STRONGEST
    begun = now()
    values, = crew.run(registers.values_of, [_spec(target, keys) | {"consistency": level}],
                       timeout=LAST_SECONDS)
    end = now()
    return [Call(level, registers.READ, _key(row), value, begun, end, last=True)
            for row, value in enumerate(values)]


def calls_of(client: int, steps) -> list[Call]:
    """The Calls of a client, from the `history` that it kept."""
    return [Call(str(client), op, _key(row), value, begun, end, outcome)
            for op, row, value, begun, end, outcome, _ in steps]


def _spec(target: Servers, keys: int) -> dict:
    check_among("protocol", target.protocol, protocols.that(REGISTERS=True))
    return spec_of(target, rows=keys, value_bytes=VALUE_BYTES)


def _key(row: int) -> str:
    return key_of(row).decode()


def _load(clients: Clients, found, truncated: float) -> Load:
    frames = [pd.DataFrame(head["history"], columns=COLUMNS).assign(
        client=head["client"], host=host.name)
        for (heads, _), host in zip(found, clients.hosts) for head in heads]
    rows = pd.concat(frames, ignore_index=True)
    rows = rows.assign(seconds=rows["ended_s"] - rows["started_s"], ok=rows["outcome"] == registers.OK)
    used = [sum(head["cpu_s"] for head in heads) for heads, _ in found]
    history = [call for heads, _ in found for head in heads
               for call in calls_of(head["client"], head["history"])]
    return Load(rows, call_metrics(rows, used, clients) | {"truncated": truncated}, clients.started,
                tuple(history), clients.uncertainty_s)
