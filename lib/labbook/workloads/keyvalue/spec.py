"""What clients of a store need to know; InputError for what the protocol has no way to ask for."""

from labbook.errors import InputError
from labbook.targets import DOTS, MAX_ROWS, RANDOM, VALUES, Servers, addresses, key_of, password
from labbook.workloads.keyvalue import protocols
from labbook.workloads.keyvalue.wire.pairs import MOST_RANDOM_BYTES

CALL_SECONDS = 10  # a call that takes longer is an error; Cassandra's own limit, as shipped
KEY_BYTES = len(key_of(0))


def check_load(*, op: str, clients: int = 1, requests: int = 1, rows: int, value_bytes: int,
               values: str = DOTS, consistency: str | None = None, warmup_requests: int = 0,
               seconds_at_most: float = CALL_SECONDS, rate_per_s: float | None = None,
               requests_at_most: int | None = None, say_seconds: float | None = None,
               protocol: str | None = None) -> None:
    """InputError for a load that no store can be given or, with `protocol`, not by that one. To be
    called before there is a store."""
    for name, value, least in (("clients", clients, 1), ("requests", requests, 1),
                               ("rows", rows, 1), ("warmup_requests", warmup_requests, 0),
                               ("requests_at_most", requests_at_most, 1)):
        if value is not None and value < least:
            raise InputError(f"{value!r} is too few", key=name, allowed=f"{least} and more")
    if rows > MAX_ROWS:
        raise InputError(f"{rows} is too many", key="rows", allowed=f"1 to {MAX_ROWS}")
    for name, value in (("seconds_at_most", seconds_at_most), ("say_seconds", say_seconds)):
        if value is not None and value <= 0:
            raise InputError(f"{value!r} s leave no time", key=name, allowed="more than 0")
    if rate_per_s is not None and not rate_per_s > 0:
        raise InputError(f"{rate_per_s!r} calls a second", key="rate_per_s",
                         allowed="more than 0, or None for as many as possible")
    _check_values(value_bytes, values)
    _check_protocol(protocol, op, values, consistency)


def spec_of(target: Servers, *, seed: int = 0, op: str = "write", values: str = DOTS,
            consistency: str | None = None, **load) -> dict:
    """A client's spec: of the target, and of the load as check_load takes it."""
    check_among("protocol", target.protocol, protocols.modules())
    load |= dict(op=op, values=values, consistency=consistency)
    check_load(**load, protocol=target.protocol)
    if consistency is None:
        load["consistency"] = protocols.protocol(target.protocol).LEVEL
    return dict(load, seed=seed, protocol=target.protocol, port=target.port,
                addresses=addresses(target), password=password(target), call_seconds=CALL_SECONDS)


def _levels(kind, op) -> list[str]:
    """The consistency levels of an operation; those of a read and a write where it is both."""
    if op != "both":
        return kind.LEVELS.get(op, ())
    return [level for level in kind.LEVELS.get("read", ()) if level in kind.LEVELS.get("write", ())]


def check_among(name, value, allowed) -> None:
    if value not in allowed:
        raise InputError(f"{value!r} is not allowed", key=name, allowed=tuple(allowed))


def _check_values(value_bytes: int, values: str) -> None:
    check_among("values", values, VALUES)
    if value_bytes < KEY_BYTES:
        raise InputError(f"values of {value_bytes} bytes cannot hold their keys",
                         key="value_bytes", allowed=f"{KEY_BYTES} and more")
    if values == RANDOM and value_bytes > MOST_RANDOM_BYTES:
        raise InputError(f"{value_bytes} random bytes are too many", key="value_bytes",
                         allowed=f"{KEY_BYTES} to {MOST_RANDOM_BYTES} of values {RANDOM}")


def _check_protocol(name, op, values, consistency) -> None:
    kinds = {one: protocols.protocol(one) for one in ([name] if name else protocols.modules())}
    check_among("op", op, dict.fromkeys(op for kind in kinds.values() for op in kind.OPS))
    if values != DOTS and name:
        check_among("protocol", name, protocols.that(ANY_BYTES=True))
    levels = dict.fromkeys(level for kind in kinds.values() for level in _levels(kind, op))
    if consistency is not None and levels:
        check_among("consistency", consistency, levels)
