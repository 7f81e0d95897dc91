"""Clients of Keystone in closed loops that create users, and list them: a row a call and a step.

The calls are those of Rally's KeystoneBasic.create_user and create_and_list_users, and two more (see
on_host/calls.py): each is by a client of its own, which authenticates first; those of one_post are single requests of
a client that has a token. Nothing of a call is random but the names of what it creates, which no other call has.
"""

import pandas as pd

from labbook.errors import InputError
from labbook.targets import KEYSTONE, IdentityServer
from labbook.workloads.clients.driver import (
    FORK_SECONDS,
    Clients,
    Stream,
    of_each_host,
    shares,
    side_by_side,
)
from labbook.workloads.clients.rows import Load, call_metrics, client_rows
from labbook.workloads.keystone.history import calls_of
from labbook.workloads.keystone.on_host import runner
from labbook.workloads.keystone.on_host.calls import STEPS

SCENARIOS = tuple(STEPS)
NOTED = ("create_user", "create_and_list_users")    # of which a stream's history has every call
CALL_SECONDS = 60   # a call of a load that takes longer is an error
END_SECONDS = 10    # for clients that are done to write their results
COLUMNS = {"call": "int32", "step": object, "started_s": float, "seconds": float, "error": object,
           "user": object}


def keystone_users(crew, target: IdentityServer, *, scenario: str, concurrency: int, times: int,
                   seconds_at_most: float) -> Load:
    """Let `concurrency` clients, spread evenly over the crew's hosts, make `times` calls in all.

    They start together, and whoever is free makes the next call. After `seconds_at_most` no new
    call is made. `target` has the protocol "keystone" and `credentials`; where the servers' CPU is
    to be known, a `process` or several `processes`.

    Rows: client, host, call, step, started_s, seconds, ok, error, user. `call` counts a client's
    calls; `step` is "" for the call as a whole, else one of the scenario's STEPS;
    `user` names the user that was created once Keystone has said so, also where the call failed
    later, and is "" before. Metrics: those of `call_metrics`, in ms, and truncated (1 when the time
    limit ended the load).
    """
    if not concurrency <= times <= runner.MOST_TIMES:
        raise InputError(f"{times!r} calls of {concurrency} clients", key="times",
                         allowed=f"concurrency ({concurrency}) to {runner.MOST_TIMES}")
    clients = _prepare(crew, target, scenario, concurrency, seconds_at_most, CALL_SECONDS, times)
    found = clients.run(seconds_at_most + CALL_SECONDS + END_SECONDS, target)
    made = sum(row[1] == "" for heads, _ in found for head in heads for row in head["calls"])
    return _load(clients, found, float(made < times))


def keystone_users_side_by_side(crew, targets: list, *, scenario: str, concurrency: int,
                                seconds: float, think_s: float = 0.0, seed: int = 0) -> list[Load]:
    """Clients as those of keystone_users on several targets at the same time: a Load of each.

    Each target has a client host of its own, the first the crew's first, with `concurrency` clients, who
    start together and begin calls for `seconds`. Before each call a client pauses, `think_s` seconds on average; the
    pauses are those of the `seed`, and the same on each target. InputError for more targets than client hosts.
    """
    specs = [spec | {"think_s": think_s, "seed": seed} for spec in _a_host_each(
        crew, targets, scenario, concurrency, seconds, CALL_SECONDS, runner.MOST_TIMES)]
    found = side_by_side(crew, runner, specs, FORK_SECONDS + seconds + CALL_SECONDS,
                         seconds + CALL_SECONDS + END_SECONDS)
    return [_load(clients, [of_host], 0.0) for clients, of_host in found]


def begin_users(crew, targets: list, *, scenario: str, concurrency: int, seconds_at_most: float,
                call_seconds: float = CALL_SECONDS) -> Stream:
    """The clients of keystone_users_side_by_side, who call until `end()`, which gives a list of Loads:
    returns when all have started.

    A call that takes longer than `call_seconds` is a row with its error, and the next one follows.
    After `seconds_at_most` no new call is made though nobody ends the stream; and it ends with its
    engine, and so with the lab. Its Loads have a history (see keystone.history), so that `scenario` is one of NOTED.
    """
    _require("scenario", scenario, NOTED)
    specs = _a_host_each(crew, targets, scenario, concurrency, seconds_at_most, call_seconds, None)
    clients = Clients(crew, runner, specs, FORK_SECONDS + seconds_at_most + call_seconds)
    return Stream(clients, seconds_at_most, lambda truncated: [
        _load(of_host, [found], truncated)
        for of_host, found in of_each_host(clients, clients.finish(call_seconds + END_SECONDS))])


def host_specs(spec: dict, hosts: int) -> list[dict]:
    """The spec of each host: its clients, and the same share of the calls."""
    specs = shares(spec, hosts)
    upto = [spec["times"] * (s["first_client"] + s["clients"]) // spec["clients"] for s in specs]
    return [s | {"times": last - first} for s, first, last in zip(specs, [0, *upto], upto)]


def _prepare(crew, target, scenario, concurrency, seconds_at_most, call_seconds, times) -> Clients:
    spec = _spec(target, scenario, concurrency, seconds_at_most, call_seconds, times)
    return Clients(crew, runner, host_specs(spec, len(crew.hosts)),
                   FORK_SECONDS + seconds_at_most + call_seconds)


def _a_host_each(crew, targets: list, scenario, concurrency, seconds_at_most, call_seconds, times) -> list[dict]:
    """The spec of each target's client host."""
    if len(targets) > len(crew.hosts):
        raise InputError(f"{len(targets)} targets for {len(crew.hosts)} client hosts", key="targets",
                         allowed="a client host for each")
    return [_spec(target, scenario, concurrency, seconds_at_most, call_seconds, times) | dict(
        first_client=0, all_clients=concurrency) for target in targets]


def _spec(target, scenario, concurrency, seconds_at_most, call_seconds, times) -> dict:
    _require("protocol", target.protocol, (KEYSTONE,))
    _require("scenario", scenario, SCENARIOS)
    if concurrency < 1:
        raise InputError(f"{concurrency!r} is too few", key="concurrency", allowed="1 and more")
    for key, value in (("seconds_at_most", seconds_at_most), ("call_seconds", call_seconds)):
        if value <= 0:
            raise InputError(f"{value!r} s leave no time", key=key, allowed="more than 0")
    return dict(credentials=dict(target.credentials), scenario=scenario, clients=concurrency,
                times=times, seconds_at_most=seconds_at_most, call_seconds=call_seconds, think_s=0.0, seed=0)


def _require(key: str, value: str, allowed: tuple) -> None:
    if value not in allowed:
        raise InputError(f"{value!r} is not allowed", key=key, allowed=allowed)


def _load(clients: Clients, found, truncated: float) -> Load:
    rows = pd.concat([client_rows(head["client"], head["calls"], host.name, COLUMNS)
                      for (heads, _), host in zip(found, clients.hosts) for head in heads],
                     ignore_index=True)
    used = [sum(head["cpu_s"] for head in heads) for heads, _ in found]
    made = call_metrics(rows[rows.step == ""], used, clients, "ms") | {"truncated": truncated}
    history = [call for heads, _ in found for head in heads
               for call in calls_of(head["client"], head["history"])]
    return Load(rows.astype({"host": "category", "step": "category"}), made, clients.started,
                tuple(history), clients.uncertainty_s)
