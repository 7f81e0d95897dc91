"""Clients of Keystone in closed loops that create users, and list them: one row a call and a step.

The calls are those of Rally's KeystoneBasic.create_user and create_and_list_users (see
keystone_calls): each is a client of its own, which authenticates first. Nothing of a call is
chosen at random but the user's name, which no other call has.
"""

import time
from dataclasses import dataclass

import pandas as pd

from labbook.errors import InputError
from labbook.workloads.clients.server_cpu import server_cpu
from labbook.workloads.clients.start import clocks, cpus, notice_seconds, shares
from labbook.workloads.keystone.on_host import engine as keystone_users_host
from labbook.workloads.keystone.on_host.calls import STEPS
from labbook.workloads.keystone.on_host.runner import MOST_TIMES

SCENARIOS = tuple(STEPS)
PROTOCOL = "keystone"
CALL_SECONDS = 60   # a call of a load that takes longer is an error
FORK_SECONDS = 60   # for all clients of a host to be there
SETTLE_SECONDS = 0.1
END_SECONDS = 10    # for clients that are done to hand over what they found


@dataclass(frozen=True)
class Load:
    """`rows`: client, host, call, step, started_s, seconds, ok, error, user.

    `call` counts a client's calls; `step` is "" for the call as a whole, else "authenticate",
    "create_user" or "list_users"; `user` names the user that was created once Keystone has said
    so, also where the call failed later, and is "" before. `started`: seconds since the epoch, by
    our clock, at which started_s is 0. `metrics`: rate_per_s, start_spread_s (what the clocks may
    be off counted in), truncated (1 when the time limit ended it), clients_cpu_share,
    clients_cpu_ms_per_call, and of a load server_cpu_ms_per_call (all servers' CPU, known to 10 ms
    of each).
    """

    rows: pd.DataFrame
    metrics: dict
    started: float


def keystone_users(crew, target, *, scenario: str, concurrency: int, times: int,
                   seconds_at_most: float) -> Load:
    """Let `concurrency` clients, spread evenly over the crew's hosts, make `times` calls in all.

    They start together, and whoever is free makes the next one.
    After `seconds_at_most` no new call is made, and the metric `truncated` is 1. `target` has the
    protocol "keystone" and `credentials`; where the servers' CPU is to be known, a `process` or
    several `processes`.
    """
    if not concurrency <= times <= MOST_TIMES:
        raise InputError(f"{times!r} calls of {concurrency} clients", key="times",
                         allowed=f"concurrency ({concurrency}) to {MOST_TIMES}")
    clients = _Clients(crew, _spec(target, scenario, concurrency, seconds_at_most, CALL_SECONDS,
                                   times=times))
    cpu_before = server_cpu(target)
    load = clients.go()
    if cpu_before is not None:
        calls = (load.rows.step == "").sum()
        load.metrics["server_cpu_ms_per_call"] = (server_cpu(target) - cpu_before) / calls * 1e3
    return load


class Stream:
    """Clients at work; `started`: when they began, seconds since the epoch by our clock."""

    def __init__(self, clients: "_Clients"):
        self._clients, self._load = clients, None
        self.started = clients.begin()

    def end(self) -> Load:
        """Stop after the calls under way; asked again, what it gave before."""
        if self._load is None:
            self._load = self._clients.end()
        return self._load


def begin_users(crew, target, *, scenario: str, concurrency: int, seconds_at_most: float,
                call_seconds: float = CALL_SECONDS) -> Stream:
    """The same clients, who call until `end()`: returns when all have begun.

    A call that takes longer than `call_seconds` is a row with its error, and the next one follows.
    After `seconds_at_most` no new call is made though nobody ends the stream; and it ends with its
    engine, and so with the lab.
    """
    return Stream(_Clients(crew, _spec(target, scenario, concurrency, seconds_at_most,
                                       call_seconds, times=None)))


class _Clients:
    """Clients on the crew's hosts, ready when this has been made."""

    def __init__(self, crew, spec: dict):
        self._crew, self._spec = crew, spec
        self._specs = host_specs(spec, len(crew.hosts))
        ready_seconds = FORK_SECONDS + spec["seconds_at_most"] + spec["call_seconds"]
        crew.run(keystone_users_host.prepare, self._specs, [ready_seconds] * len(self._specs),
                 timeout=ready_seconds + 10)

    def begin(self) -> float:
        """When they began, which they have."""
        self._crew.run(keystone_users_host.begin, self._starts())
        time.sleep(max(0, self._started - time.time()) + SETTLE_SECONDS)
        return self._started

    def end(self) -> Load:
        seconds = self._spec["call_seconds"] + END_SECONDS
        truncated = time.time() > self._started + self._spec["seconds_at_most"]
        return self._load(truncated, self._crew.run(
            keystone_users_host.end, [seconds] * len(self._specs), timeout=seconds + 10))

    def go(self) -> Load:
        starts = self._starts()
        seconds = (self._started - time.time() + self._spec["seconds_at_most"]
                   + self._spec["call_seconds"] + END_SECONDS)
        found = self._crew.run(keystone_users_host.go, starts, [seconds] * len(starts),
                               timeout=seconds + 10)
        made = sum(row[1] == "" for host in found for _, rows, _ in host for row in rows)
        return self._load(made < self._spec["times"], found)

    def _starts(self) -> list[float]:
        """When to start, by the clock of each host with clients."""
        offsets, self._uncertainty = clocks(self._crew)
        self._started = time.time() + notice_seconds(self._crew, self._spec["clients"])
        return [self._started + offset for offset, _ in zip(offsets, self._specs)]

    def _load(self, truncated: bool, found) -> Load:
        """`found`: of each host what its runner found."""
        hosts = self._crew.hosts[:len(found)]
        rows = pd.concat([_frame(client, each, host.name) for host, of_host in zip(hosts, found)
                          for client, each, _ in of_host], ignore_index=True)
        used = [sum(cpu for _, _, cpu in of_host) for of_host in found]
        metrics = _metrics(rows[rows.step == ""], used, hosts)
        metrics["start_spread_s"] += self._uncertainty
        return Load(rows.astype({"host": "category", "step": "category"}),
                    metrics | {"truncated": float(truncated)}, self._started)


def host_specs(spec: dict, hosts: int) -> list[dict]:
    """The spec of each host: its clients, and of the calls as large a share as of the clients."""
    specs = shares(spec, spec["clients"], hosts)
    if spec["times"] is None:
        return specs
    upto = [spec["times"] * (s["first_client"] + s["clients"]) // spec["clients"] for s in specs]
    return [s | {"times": last - first} for s, first, last in zip(specs, [0, *upto], upto)]


def _spec(target, scenario, concurrency, seconds_at_most, call_seconds, **more) -> dict:
    for key, value, allowed in (("protocol", target.protocol, (PROTOCOL,)),
                                ("scenario", scenario, SCENARIOS)):
        if value not in allowed:
            raise InputError(f"{value!r} is not allowed", key=key, allowed=allowed)
    if concurrency < 1:
        raise InputError(f"{concurrency!r} is too few", key="concurrency", allowed="1 and more")
    for key, value in (("seconds_at_most", seconds_at_most), ("call_seconds", call_seconds)):
        if value <= 0:
            raise InputError(f"{value!r} s leave no time", key=key, allowed="more than 0")
    return dict(credentials=dict(target.credentials), scenario=scenario, clients=concurrency,
                seconds_at_most=seconds_at_most, call_seconds=call_seconds, **more)


def _frame(client: int, rows, host: str) -> pd.DataFrame:
    call, step, started, seconds, error, user = zip(*rows) if rows else [()] * 6
    return pd.DataFrame({
        "client": pd.Series([client] * len(rows), dtype="int32"), "host": host,
        "call": pd.Series(call, dtype="int32"), "step": pd.Series(step, dtype=object),
        "started_s": pd.Series(started, dtype=float), "seconds": pd.Series(seconds, dtype=float),
        "ok": pd.Series([not e for e in error], dtype=bool),
        "error": pd.Series(error, dtype=object), "user": pd.Series(user, dtype=object)})


def _metrics(calls, used, hosts) -> dict:
    """Of whole calls and the CPU seconds of each host's clients; `clients_cpu_share` is the
    busiest host's: one host that is short spoils the result."""
    elapsed = (calls.started_s + calls.seconds).max() - calls.started_s.min()
    first = calls.groupby("client").started_s.min()
    return {
        "rate_per_s": calls.ok.sum() / elapsed,
        "start_spread_s": first.max() - first.min(),
        "clients_cpu_share": max(cpu / (elapsed * cpus(host)) for cpu, host in zip(used, hosts)),
        "clients_cpu_ms_per_call": sum(used) / max(1, len(calls)) * 1e3,
    }
