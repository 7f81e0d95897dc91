"""Tables of calls, and the metrics that all kinds of clients have in common."""

from dataclasses import dataclass

import pandas as pd
from pandas.api.types import union_categoricals

from labbook.workloads.clients.cpu import busy_shares, cpus
from labbook.workloads.clients.pace import paces

PER_SECOND = {"us": 1e6, "ms": 1e3}


@dataclass(frozen=True)
class Load:
    """What a load gave. `rows`: a row a call; `metrics`: a dict of numbers; the function that made
    the load says which. `started`: seconds since the epoch, by our clock, at which started_s is 0.
    `history`: its histories.calls.Calls, of a load that keeps them; slack_s: how far apart the clocks
    may be at the start by which these were timed.
    """

    rows: pd.DataFrame
    metrics: dict
    started: float
    history: tuple = ()
    slack_s: float = 0.0


def client_rows(client: int, calls: list, host: str, columns: dict) -> pd.DataFrame:
    """The rows of one client: client, host and `columns` ({name: type}, with "error"), and before the error
    whether it is empty, as `ok`."""
    found = pd.DataFrame(calls, columns=list(columns)).astype(columns)
    found.insert(0, "client", pd.Series(client, index=found.index, dtype="int32"))
    found.insert(1, "host", host)
    found.insert(found.columns.get_loc("error"), "ok", found.error == "")
    return found


def together(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all hosts; `host` and `error` stay categorical."""
    for column in ("host", "error"):  # each host's has categories of its own
        every = union_categoricals([frame[column] for frame in frames]).categories
        frames = [frame.assign(**{column: frame[column].cat.set_categories(every)})
                  for frame in frames]
    return pd.concat(frames, ignore_index=True)


def from_due(rows: pd.DataFrame, rate_per_s: float, clients: int) -> pd.DataFrame:
    """Calls of clients on a schedule, with times from when each was due: who waits for its turn
    because others hang, waits for the servers.

    rows: client, in the order of each one's calls, started_s, seconds. Call i of client n is due at
    (n + i * clients) / rate_per_s, which is the new started_s; seconds go from there to the answer.
    service_s: from the call's own start.
    """
    due = (rows["client"] + rows.groupby("client").cumcount() * clients) / rate_per_s
    return rows.assign(started_s=due, seconds=rows["seconds"] + (rows["started_s"] - due).clip(lower=0),
                       service_s=rows["seconds"])


def rate_metrics(rows: pd.DataFrame, rate_per_s: float, clients: int) -> dict:
    """Of `from_due`'s rows. latest_s: how much later than it was due a call began at most. not_made:
    calls that were due a turn or more before the last answer, and that no client came to make."""
    counts, end = rows.groupby("client").size(), (rows["started_s"] + rows["seconds"]).max()
    every = clients / rate_per_s
    left = ((end - counts.index / rate_per_s) / every - counts).clip(lower=0).astype(int)
    return {"latest_s": float((rows["seconds"] - rows["service_s"]).max()), "not_made": int(left.sum())}


def call_metrics(calls: pd.DataFrame, used: list[float], clients, unit: str = "us",
                 phase=None) -> dict:
    """Of all calls (client, host, started_s, seconds, ok) and the CPU seconds of each host's clients.

    rate_per_s: successful calls a second, from the first call's start to the last one's end;
    start_spread_s: how far apart the clients' first calls began, the clocks' uncertainty included;
    issued_per_s: a list, of each host the pace of its clients (see `paces`); clients_cpu_share: of
    the busiest host at that pace, since one host that lacks CPU spoils the result, or of the CPUs that hosts share
    (see `busy_shares`);
    clients_cpu_{unit}_per_call and, where the servers' CPU is known, server_cpu_{unit}_per_call.

    With the `phase` of each call the paces are {phase}_issued_per_s, and the share is the highest of
    any phase.
    """
    ends = calls.started_s + calls.seconds
    elapsed = ends.max() - calls.started_s.min()
    begun = ends - calls.service_s if "service_s" in calls else calls.started_s     # others are due before they begin
    first = begun.groupby(calls.client).min()
    hosts = [host.name for host in clients.hosts]
    issued = paces(calls, hosts, "" if phase is None else phase)
    shares = [cpu_share(issued[host.name].max(), cpu, int((calls.host == host.name).sum()), cpus(host))
              for cpu, host in zip(used, clients.hosts)]
    found = {
        "rate_per_s": calls.ok.sum() / elapsed,
        "start_spread_s": first.max() - first.min() + clients.uncertainty_s,
        **{f"{name}_issued_per_s".lstrip("_"): of_phase.tolist() for name, of_phase in issued.iterrows()},
        "clients_cpu_share": min(1.0, max(busy_shares(clients.hosts, shares))),
        f"clients_cpu_{unit}_per_call": sum(used) / max(1, len(calls)) * PER_SECOND[unit],
    }
    if clients.server_cpu_s is not None:
        found[f"server_cpu_{unit}_per_call"] = (
            clients.server_cpu_s / max(1, len(calls)) * PER_SECOND[unit])
    return found


def cpu_share(issued_per_s: float, cpu_s: float, calls: int, cpus: float) -> float:
    """The share of a host's `cpus` that its clients use at this pace, if all calls cost the same."""
    return float(min(1.0, issued_per_s * cpu_s / max(1, calls) / cpus))
