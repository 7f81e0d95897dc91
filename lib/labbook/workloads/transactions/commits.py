"""Clients of databases in closed loops that commit: a row a call, and a row a statement of it.

Nothing but the database is in such a call: what a commit waits for shows without the service before
it. A call is `writes` transactions one after the other, each an INSERT of one row and a COMMIT.
"""

import pandas as pd

from labbook.errors import InputError
from labbook.targets import DATABASE, MYSQL, Server, password
from labbook.workloads.clients.driver import FORK_SECONDS, side_by_side
from labbook.workloads.clients.rows import Load, call_metrics, client_rows
from labbook.workloads.transactions.on_host import writers

TABLE = "commits"
# What makes the table where it is missing. Galera certifies rows by their primary key.
TABLE_STATEMENTS = (
    f"CREATE DATABASE IF NOT EXISTS {DATABASE}",
    f"CREATE TABLE IF NOT EXISTS {DATABASE}.{TABLE} (name CHAR(32) PRIMARY KEY, content TEXT) ENGINE=InnoDB")
CALL_SECONDS = 60       # a statement that takes longer is an error
END_SECONDS = 10        # for clients that are done to write their results
COLUMNS = {"call": "int32", "step": object, "started_s": float, "seconds": float, "error": object}


def commits_side_by_side(crew, targets: list[Server], *, clients: int, writes: int, value_bytes: int,
                         seconds: float) -> list[Load]:
    """Let clients commit to several targets at the same time: a Load of each.

    Each target, a server of MySQL's protocol with the table of TABLE_STATEMENTS, has a client host of its
    own, the first the crew's first, with `clients` clients. They start together, and begin calls of
    `writes` transactions for `seconds`; a row's content has `value_bytes`. Each call has a new connection,
    which is no part of its time, so that behind a proxy the servers take turns.

    Rows: client, host, call, step, started_s, seconds, ok, error. `step` is "" for the call as a whole,
    else "insert" or "commit". Metrics: those of `call_metrics`, in ms. InputError for numbers that are not
    possible.
    """
    if len(targets) > len(crew.hosts):
        raise InputError(f"{len(targets)} targets for {len(crew.hosts)} client hosts", key="targets",
                         allowed="a client host for each")
    for key, value, least in (("clients", clients, 1), ("writes", writes, 1), ("value_bytes", value_bytes, 0)):
        if value < least:
            raise InputError(f"{value!r} is too few", key=key, allowed=f"{least} and more")
    specs = [_spec(target) | dict(writes=writes, value_bytes=value_bytes, seconds=seconds, clients=clients,
                                  first_client=0, all_clients=clients) for target in targets]
    found = side_by_side(crew, writers, specs, FORK_SECONDS + seconds + CALL_SECONDS,
                         seconds + CALL_SECONDS + END_SECONDS)
    return [_load(of_host, heads) for of_host, (heads, _) in found]


def _spec(target: Server) -> dict:
    if target.protocol != MYSQL:
        raise InputError(f"{target.protocol!r} is not allowed", key="protocol", allowed=MYSQL)
    return dict(address=str(target.address), port=target.port, password=password(target), table=TABLE,
                call_seconds=CALL_SECONDS)


def _load(clients, heads: list[dict]) -> Load:
    rows = pd.concat([client_rows(head["client"], head["calls"], clients.hosts[0].name, COLUMNS) for head in heads],
                     ignore_index=True)
    made = call_metrics(rows[rows.step == ""], [sum(head["cpu_s"] for head in heads)], clients, "ms")
    return Load(rows.astype({"host": "category", "step": "category"}), made, clients.started)
