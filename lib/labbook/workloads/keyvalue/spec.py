"""What clients of a store are told; InputError for what no store can be asked."""

from labbook.errors import InputError
from labbook.targets import READ_LEVELS as LEVELS_OF_READS
from labbook.targets import WRITE_LEVELS as LEVELS
from labbook.targets import addresses
from labbook.workloads.keyvalue.on_host.pairs import (
    DOTS,
    MOST_RANDOM_BYTES,
    MOST_ROWS,
    RANDOM,
    VALUES,
    key_of,
)
from labbook.workloads.keyvalue.protocols import registry as stores

CALL_SECONDS = 10  # a call that takes longer is an error; Cassandra's own limit, as shipped
KEY_BYTES = len(key_of(0))


def check_load(*, op: str, clients: int = 1, requests: int = 1, rows: int, value_bytes: int,
               values: str = DOTS, consistency: str = "ONE", warmup_requests: int = 0,
               seconds_at_most: float = CALL_SECONDS, rate_per_s: float | None = None) -> None:
    """InputError for what no store can be asked; to be called before there is one."""
    for name, value, least in (("clients", clients, 1), ("requests", requests, 1),
                               ("rows", rows, 1), ("warmup_requests", warmup_requests, 0)):
        if value < least:
            raise InputError(f"{value!r} is too few", key=name, allowed=f"{least} and more")
    if rows > MOST_ROWS:
        raise InputError(f"{rows} is too many", key="rows", allowed=f"1 to {MOST_ROWS}")
    if seconds_at_most <= 0:
        raise InputError(f"{seconds_at_most!r} s leave no time", key="seconds_at_most",
                         allowed="more than 0")
    if rate_per_s is not None and not rate_per_s > 0:
        raise InputError(f"{rate_per_s!r} a second are no calls", key="rate_per_s",
                         allowed="more than 0, or None for as many as come out")
    _check_values(value_bytes, values)
    _check_among("op", op, stores.ALL_OPS)
    _check_among("consistency", consistency, LEVELS_OF_READS if op == "read" else LEVELS)


def spec_of(target, *, seed: int = 0, op: str = "write", values: str = DOTS,
            consistency: str = "ONE", **load) -> dict:
    """What a client needs to know of the target, and of the load as check_load takes it."""
    _check_among("protocol", target.protocol, tuple(stores.CALLS))
    _check_among("op", op, stores.ops(target.protocol))
    if values != DOTS:
        _check_among("protocol", target.protocol, stores.CASSANDRA)
    load |= dict(op=op, values=values, consistency=consistency)
    check_load(**load)
    return dict(load, seed=seed, protocol=target.protocol, port=target.port,
                addresses=addresses(target), call_seconds=CALL_SECONDS)


def _check_values(value_bytes: int, values: str) -> None:
    _check_among("values", values, VALUES)
    if value_bytes < KEY_BYTES:
        raise InputError(f"{value_bytes} bytes do not tell values apart", key="value_bytes",
                         allowed=f"{KEY_BYTES} and more")
    if values == RANDOM and value_bytes > MOST_RANDOM_BYTES:
        raise InputError(f"there is not as much noise as {value_bytes} bytes", key="value_bytes",
                         allowed=f"{KEY_BYTES} to {MOST_RANDOM_BYTES} of values {RANDOM}")


def _check_among(name, value, allowed) -> None:
    if value not in allowed:
        raise InputError(f"{value!r} is not allowed", key=name, allowed=allowed)
