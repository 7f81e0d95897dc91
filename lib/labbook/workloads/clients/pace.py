"""How fast clients issue calls: by host, and by phase where a load has phases.

A call that hangs must not hide that the clients were busy, so their pace does not come from the time
to the end of the last call. It comes from turns: the time from one call's start to the same client's
next. A host's pace is the number of its clients over the mean of their turns. Left out are the
longest turn of each host and phase, and stalls, in which a client issues nothing.
"""

import numpy as np
import pandas as pd

from labbook.workloads.clients.cpu import limited_by_clients

STALL_SECONDS, STALL_TIMES = 1.0, 20    # a turn longer than this, and than so many times the median
PHASE_SECONDS = 0.5


def paces(calls: pd.DataFrame, hosts: list[str], phase="") -> pd.DataFrame:
    """Calls a second while calls are issued, failed ones too: a row for each phase, in order, and a
    column for each of the `hosts`, 0 where it made no call.

    calls: client, host, started_s, seconds and, at a rate, service_s. `phase`: the one that each call
    belongs to, by default one for all.
    """
    made = calls.assign(phase=phase)
    made = made.assign(turn=turns(made))
    found = {name: {host: _pace(of_phase[of_phase["host"] == host]) for host in hosts}
             for name, of_phase in made.groupby("phase", observed=True)}
    return pd.DataFrame.from_dict(found, orient="index", columns=list(hosts), dtype=float)


def limited_in_phases(load, changes_s: list[float], ceilings) -> bool:
    """Whether the clients may have limited any phase of a load.

    `load`: rows, and the metrics of `call_metrics`. `changes_s`: when a phase ends and the next one
    begins, in seconds since the load's start; phases of less than PHASE_SECONDS are too short to
    tell. `ceilings`: as of limited_by_clients.
    """
    edges = np.array(sorted(changes_s))
    edges = edges[np.diff(edges, append=np.inf) >= PHASE_SECONDS]
    phases = np.searchsorted(edges, load.rows["started_s"], side="right")
    whole, share = np.array(load.metrics["issued_per_s"]), load.metrics["clients_cpu_share"]
    issued = paces(load.rows, list(load.rows["host"].cat.categories), phases).to_numpy()
    busier = (issued / np.where(whole > 0, whole, np.inf)).max(axis=1)
    return any(limited_by_clients(phase, ceilings, share * more)
               for phase, more in zip(issued, busier))


def turns(calls: pd.DataFrame) -> pd.Series:
    """Seconds from the start of each call to the same client's next one in its phase.

    The last one's is NaN; that of a client's only call is the call's own length.
    """
    took = calls["service_s"] if "service_s" in calls else calls["seconds"]
    began = (calls["started_s"] + calls["seconds"] - took).sort_values()
    groups = [calls[name].loc[began.index] for name in ("client", "phase")]
    of_client = began.groupby(groups, observed=True)
    alone = of_client.transform("size") == 1
    return (of_client.shift(-1) - began).mask(alone, took).reindex(calls.index)


def usual_turn(turns: pd.Series) -> float:
    """Mean of these turns (seconds) without the longest one, and without stalls."""
    usual = turns.sort_values().iloc[:-1] if len(turns) > 1 else turns
    return float(usual[usual <= max(STALL_SECONDS, STALL_TIMES * usual.median())].mean())


def _pace(made: pd.DataFrame) -> float:
    known = made["turn"].dropna()
    return made["client"].nunique() / max(usual_turn(known), 1e-9) if len(known) else 0.0
