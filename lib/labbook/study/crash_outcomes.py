"""What a metadata server's crash did, in the terms of section 4 of the Ceph study's paper. Pure.

Evidence of a run is a dict:
  survivor, fresh    {right, wrong, missing, unobtainable: number of names}, asked of the client that
                     was there before the crash, and of one that mounted after it (None: no mount)
  others_died        other metadata servers whose process ended, aborted or was made anew
  client_cut         ranks that lived on, whose session with the surviving client was closed or which
                     shut it out (evicted, blocklisted)
  migrations_failed  migrations that were begun and neither completed nor rolled back at the end, or
                     whose failure is in a log
  noticed_s          when the monitor noticed the death, seconds after it; None: it did not
  map_updated_s      when the map gave the dead server's rank to nobody or to another; None: never
  active_s           when the rank was active again; None: never
  spare              whether another server was there for the rank, or came back for it
"""

OUTCOMES = ("right", "wrong", "missing", "unobtainable")   # from good to bad
WAYS = ("other_mds_died", "client_cut", "migration_failed", "map_not_updated")
CLIENTS = ("survivor", "fresh")
KEYS = (*CLIENTS, "others_died", "client_cut", "migrations_failed", "noticed_s", "map_updated_s",
        "active_s", "spare")


def outcome(counts: dict | None) -> str:
    """The worst that befell any name; "unobtainable" without counts. ValueError of no names."""
    if counts is None:
        return "unobtainable"
    if not any(counts[word] for word in OUTCOMES):
        raise ValueError("no name was asked for")
    return max((word for word in OUTCOMES if counts[word]), key=OUTCOMES.index)


def classify(evidence: dict) -> dict:
    """survivor, fresh: an outcome each; outcome: the worse of them; WAYS: 1 where that was seen,
    else 0, also where all was right; rank_unserved: 1 where nobody had the rank at the end and
    nobody was there for it, which leaves callers waiting by design; unexplained: 1 where something
    was not right, in none of the four ways and not for want of a server.

    ValueError where evidence is missing: nothing is taken to be well because nobody looked.
    """
    lacking = [key for key in KEYS if key not in evidence]
    if lacking:
        raise ValueError(f"no evidence of {', '.join(lacking)}")
    of_clients = {client: outcome(evidence[client]) for client in CLIENTS}
    worst = max(of_clients.values(), key=OUTCOMES.index)
    ways = {
        "other_mds_died": bool(evidence["others_died"]),
        "client_cut": bool(evidence["client_cut"]),
        "migration_failed": bool(evidence["migrations_failed"]),
        "map_not_updated": evidence["noticed_s"] is not None and evidence["map_updated_s"] is None,
    }
    unserved = evidence["active_s"] is None and not evidence["spare"]
    why = any(ways.values()) or (unserved and worst == "unobtainable")
    return {**of_clients, "outcome": worst, **{way: int(seen) for way, seen in ways.items()},
            "rank_unserved": int(unserved), "unexplained": int(worst != "right" and not why)}


def counted(runs: list[dict]) -> dict:
    """Of classified runs: `runs`; runs_right, runs_wrong, ... of each of OUTCOMES; {way}_runs of
    each of WAYS; rank_unserved_runs, unexplained_runs; ways_left: how many of the four were seen."""
    found = {"runs": len(runs)}
    found |= {f"runs_{word}": sum(run["outcome"] == word for run in runs) for word in OUTCOMES}
    found |= {f"{mark}_runs": sum(run[mark] for run in runs)
              for mark in (*WAYS, "rank_unserved", "unexplained")}
    return found | {"ways_left": sum(found[f"{way}_runs"] > 0 for way in WAYS)}
