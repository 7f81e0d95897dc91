"""What a metadata server's crash did, in the terms of section 4 of the Ceph study's paper. Pure.

Evidence of a run is a dict:
  survivor, fresh    {part: {right, wrong, missing, unobtainable, unasked: number of names}}, asked of
                     the client that was there before the crash, and of one that mounted after it
                     (None: no mount). PARTS, by who had a name at the crash: "dead", the server
                     that was killed; "below", a living one, but the way there leads over directories
                     of the dead one's; "held", a living one, but of it or of one above it a lock
                     waits for the dead one's word, or the client's call went to the dead one, which
                     answered for copies, too; "living", a living one, and so all above it
  others_died        other metadata servers whose process ended, aborted or was made anew
  client_cut         ranks that lived on, which cut the surviving client off; see `cut_off`
  migrations_failed  migrations that were begun and failed; see `failed_migrations`
  noticed_s          when the monitor noticed the death, seconds after it; None: it did not
  map_updated_s      when the map changed in the dead server's rank; None: never
  active_s           when the rank was active again; None: never
  spare              whether another server was there for the rank, or came back for it
"""

import math
from collections import Counter

OUTCOMES = ("right", "wrong", "missing", "unobtainable")   # from good to bad
UNASKED = "unasked"     # no outcome: there was no time to ask
PARTS = ("dead", "below", "held", "living")
WAYS = ("other_mds_died", "client_cut", "migration_failed", "map_not_updated")
CLIENTS = ("survivor", "fresh")
KEYS = (*CLIENTS, "others_died", "client_cut", "migrations_failed", "noticed_s", "map_updated_s",
        "active_s", "spare")
OPEN = "open"


def parts_of(names, owned: dict, killed: int, held=()) -> dict:
    """{part: those of `names` that are in it}. names: paths from the root of the file system on,
    such as `a/b`. `owned`: by rank, from which directories on it is in charge at the crash, `/`
    among them; `killed`: the rank that was killed; `held`: names of which a lock,
    or a call, waits for that one."""
    found, held = {part: [] for part in PARTS}, {_ways(name)[-1] for name in held}
    for name in names:
        ways = _ways(name)
        ranks = [_owner(way, owned) for way in ways]
        part = ("dead" if ranks[-1] == killed else "below" if killed in ranks
                else "held" if held.intersection(ways) else "living")
        found[part].append(name)
    return found


def _ways(name: str) -> list[str]:
    """The directories from the root on that lead to a name, and it: `/`, `/a`, `/a/b`."""
    whole = [part for part in name.split("/") if part not in ("", ".")]
    return ["/" + "/".join(whole[:i]) for i in range(len(whole) + 1)]


def _owner(path: str, owned: dict) -> int | None:
    """The rank that is in charge of the nearest directory above, or of that one itself."""
    above = {folder: rank for rank, folders in owned.items() for folder in folders
             if folder == "/" or path == folder or path.startswith(f"{folder}/")}
    return above[max(above, key=len)] if above else None


def together(parts: dict) -> dict:
    """The counts of all parts."""
    return {word: sum(counts.get(word, 0) for counts in parts.values())
            for word in (*OUTCOMES, UNASKED)}


def outcome(counts: dict | None) -> str:
    """The worst that befell any name; "unobtainable" without counts; "unasked" where nothing worse
    befell any and some were not asked for. ValueError of no names."""
    if counts is None:
        return "unobtainable"
    if not any(counts.get(word) for word in (*OUTCOMES, UNASKED)):
        raise ValueError("no name was asked for")
    worst = max((word for word in OUTCOMES if counts.get(word)), key=OUTCOMES.index, default="right")
    return UNASKED if worst == "right" and counts.get(UNASKED) else worst


def worse(*outcomes: str) -> str:
    return max(outcomes, key=("right", UNASKED, *OUTCOMES[1:]).index)


def cut_off(living, before: dict, after: dict | None, *, evicted_by=(), shut_out=False) -> list[int]:
    """Ranks of `living` that cut a client off: whose session with it was open before the crash and
    is not so any more (`before`, `after`: {rank: state}; a session that a server closed is in
    neither list of a client's); which evicted it, as their log says; all, where the cluster has shut
    the client out, or where it gives no answer any more (`after` None)."""
    lost = shut_out or after is None
    return [rank for rank in living if lost or rank in evicted_by
            or (before.get(rank) == OPEN and after.get(rank) != OPEN)]


def failed_migrations(moving: dict, owned: dict, moved=None, kept=True) -> list[str]:
    """Directories whose migration failed, by what servers say once all ranks are active again.

    `moving`: by server, directories still on their way. `owned`: by rank, from which directories on
    it is in charge. `moved`: one that was on its way at the crash, which must be in one server's
    charge then; `kept`: whether all that was in it can be had.
    """
    found = {path for paths in moving.values() for path in paths}
    claimed = [path for paths in owned.values() for path in paths]
    found |= {path for path in claimed if claimed.count(path) > 1}
    return sorted(found | ({moved} if moved and not kept else set()))


def classify(evidence: dict) -> dict:
    """survivor, fresh: an outcome each; outcome: the worse of them; WAYS: 1 where that was seen,
    else 0, also where all was right; rank_unserved: 1 where nobody had the rank at the end and
    nobody was there for it, which leaves callers waiting by design; unexplained: 1 where something
    was not right, in none of the four ways and not for want of a server. What that explains is that
    names cannot be had which were the dead server's, lie below such ones or are held for
    it, or that nobody can mount: not that a living server's cannot be had, and never wrong or missing ones.

    ValueError where evidence is missing: nothing is taken to be well because nobody looked.
    """
    lacking = [key for key in KEYS if key not in evidence]
    if lacking:
        raise ValueError(f"no evidence of {', '.join(lacking)}")
    asked = [evidence[client] for client in CLIENTS]
    of_clients = {client: outcome(parts and together(parts)) for client, parts in zip(CLIENTS, asked)}
    worst = worse(*of_clients.values())
    ways = {
        "other_mds_died": bool(evidence["others_died"]),
        "client_cut": bool(evidence["client_cut"]),
        "migration_failed": bool(evidence["migrations_failed"]),
        "map_not_updated": evidence["noticed_s"] is not None and evidence["map_updated_s"] is None,
    }
    unserved = evidence["active_s"] is None and not evidence["spare"]
    why = any(ways.values()) or (unserved and all(map(_waits_for_the_dead, asked)))
    bad = worst not in ("right", UNASKED)
    return {**of_clients, "outcome": worst, **{way: int(seen) for way, seen in ways.items()},
            "rank_unserved": int(unserved), "unexplained": int(bad and not why)}


def metrics(evidence: dict, last: dict) -> dict:
    """Of a run, for its record: {name: number or text}; numbers are NaN of what was not to be had.

    {client}_{word}: how many names were right, wrong, missing, unobtainable, unasked;
    {client}_{word}_dead and _living: of those that were the dead server's and of the living ones',
    and _held: of the latter those that were held;
    {client}_differing: attributes that were not as before; {client}_outcome_{word} and
    outcome_{word}: 1 of the one that it was; not_as_before: names that were wrong or missing, for
    either client, also at last. WAYS, ways_seen: how many of them; rank_unserved, unexplained;
    fresh_mounted; right_again: 1 where `last`, the same of what both clients got at last (None: no
    more asked), is all right; noticed_s, map_updated_s, active_s.
    """
    found = classify(evidence)
    marks = (*WAYS, "rank_unserved", "unexplained")
    told = {mark: float(found[mark]) for mark in marks}
    for client in CLIENTS:
        told |= {f"{client}_{name}": value for name, value in _of_client(evidence[client]).items()}
        told |= {f"{client}_outcome_{word}": float(found[client] == word) for word in OUTCOMES}
    looks = [together(parts) for parts in (*(evidence[client] for client in CLIENTS), *last.values())
             if parts]
    return told | {
        **{f"outcome_{word}": float(found["outcome"] == word) for word in OUTCOMES},
        "not_as_before": float(sum(look["wrong"] + look["missing"] for look in looks)),
        "ways_seen": sum(told[way] for way in WAYS),
        "fresh_mounted": float(evidence["fresh"] is not None),
        "right_again": float(all(parts is not None and outcome(together(parts)) == "right"
                                 for parts in last.values())),
        **{name: math.nan if evidence[name] is None else float(evidence[name])
           for name in ("noticed_s", "map_updated_s", "active_s")}}


def _of_client(parts: dict | None) -> dict:
    """What it got; NaN where it could not ask."""
    words = (*OUTCOMES, UNASKED)
    if parts is None:
        return {name: math.nan for word in words
                for name in (word, *(f"{word}_{part}" for part in ("dead", "living", "held")))}
    every, dead, held = together(parts), *(together({part: parts.get(part, {})}) for part in ("dead", "held"))
    differing = Counter()
    for counts in parts.values():
        differing.update(counts.get("differing", {}))
    return {name: float(number) for word in words for name, number in (
        (word, every[word]), (f"{word}_dead", dead[word]),
        (f"{word}_living", every[word] - dead[word]), (f"{word}_held", held[word]))} | {
        "differing": ", ".join(f"{name} ({number})" for name, number in differing.items())}


def _waits_for_the_dead(parts: dict | None) -> bool:
    """Whether all that a client does not get, or that nobody mounts, is for want of the dead one."""
    if parts is None:
        return True
    all_names, living = together(parts), parts.get("living", {})
    return not (all_names["wrong"] or all_names["missing"] or living.get("unobtainable"))


def counted(runs: list[dict]) -> dict:
    """Of classified runs: `runs`; runs_right, runs_wrong, ... of each of OUTCOMES; {way}_runs of
    each of WAYS; rank_unserved_runs, unexplained_runs; ways_left: how many of the four were seen."""
    found = {"runs": len(runs)}
    found |= {f"runs_{word}": sum(run["outcome"] == word for run in runs) for word in OUTCOMES}
    found |= {f"{mark}_runs": sum(run[mark] for run in runs)
              for mark in (*WAYS, "rank_unserved", "unexplained")}
    return found | {"ways_left": sum(found[f"{way}_runs"] > 0 for way in WAYS)}
