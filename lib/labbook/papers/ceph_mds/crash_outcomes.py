"""Classify the outcomes of a metadata server's crash, in the terms of section 4. Pure functions.

The evidence of a run is a dict:
  survivor, fresh    {part: {right, wrong, missing, unobtainable, unasked: number of names}}, from
                     the client that was there before the crash, and from one that mounted after it
                     (None: it could not mount). PARTS, by the server of a name at the crash: "dead",
                     the one that was killed; "below", a living one, but the path leads over
                     directories of the dead one; "held", a living one, but a lock on the name or on a
                     directory above it waits for the dead one, or the client's call went to the dead
                     one, which answered for copies, too; "living", a living one, and so all above it
  others_died        other metadata servers whose process ended, aborted or restarted
  client_cut         living ranks that disconnected the surviving client; see `cut_off`
  migrations_failed  directories whose migration failed; see `failed_migrations`
  noticed_s          seconds until the monitor noticed the death; None: never
  map_updated_s      seconds until the map of the dead server's rank changed; None: never
  active_s           seconds until the rank was active again; None: never
  spare              whether another server was available for the rank
"""

import math
from collections import Counter

OUTCOMES = ("right", "wrong", "missing", "unobtainable")   # from good to bad
UNASKED = "unasked"     # not an outcome: the time limit passed before the name was tried
PARTS = ("dead", "below", "held", "living")
WAYS = ("other_mds_died", "client_cut", "migration_failed", "map_not_updated")
CLIENTS = ("survivor", "fresh")
KEYS = (*CLIENTS, "others_died", "client_cut", "migrations_failed", "noticed_s", "map_updated_s",
        "active_s", "spare")
OPEN = "open"


def parts_of(names, owned: dict, killed: int, held=()) -> dict:
    """{part: its names}. `names`: paths from the file system's root, such as `a/b`. `owned`: by rank,
    the roots of the subtrees that it owned at the crash, including `/`; `killed`: the rank that was
    killed; `held`: names for which a lock, or a call, waits for that rank."""
    parts, held = {part: [] for part in PARTS}, {_ancestors(name)[-1] for name in held}
    for name in names:
        ancestors = _ancestors(name)
        ranks = [_owner(path, owned) for path in ancestors]
        part = ("dead" if ranks[-1] == killed else "below" if killed in ranks
                else "held" if held.intersection(ancestors) else "living")
        parts[part].append(name)
    return parts


def _ancestors(name: str) -> list[str]:
    """A name and all directories above it, from the root: `/`, `/a`, `/a/b`."""
    whole = [part for part in name.split("/") if part not in ("", ".")]
    return ["/" + "/".join(whole[:i]) for i in range(len(whole) + 1)]


def _owner(path: str, owned: dict) -> int | None:
    """The rank that owns a path: that of the nearest subtree root."""
    above = {folder: rank for rank, folders in owned.items() for folder in folders
             if folder == "/" or path == folder or path.startswith(f"{folder}/")}
    return above[max(above, key=len)] if above else None


def together(parts: dict) -> dict:
    """Sums of the counts over all parts."""
    return {word: sum(counts.get(word, 0) for counts in parts.values())
            for word in (*OUTCOMES, UNASKED)}


def outcome(counts: dict | None) -> str:
    """The worst outcome of any name.

    "unobtainable" without counts (the client could not mount); "unasked" where some names were not
    tried and all others are right. ValueError without names.
    """
    if counts is None:
        return "unobtainable"
    if not any(counts.get(word) for word in (*OUTCOMES, UNASKED)):
        raise ValueError("there are no names")
    worst = max((word for word in OUTCOMES if counts.get(word)), key=OUTCOMES.index, default="right")
    return UNASKED if worst == "right" and counts.get(UNASKED) else worst


def worse(*outcomes: str) -> str:
    """The worst of these outcomes."""
    return max(outcomes, key=("right", UNASKED, *OUTCOMES[1:]).index)


def cut_off(living, before: dict, after: dict | None, *, evicted_by=(), shut_out=False) -> list[int]:
    """The ranks of `living` that disconnected a client.

    A rank did so if its session with the client was open before the crash and is not any more, or if
    its log shows that it evicted the client (`evicted_by`). All ranks did so if the cluster blocklisted
    the client (`shut_out`) or the client does not answer (`after` is None). before, after: {rank: state
    of the session}; a session closed by the server is in neither.
    """
    lost = shut_out or after is None
    return [rank for rank in living if lost or rank in evicted_by
            or (before.get(rank) == OPEN and after.get(rank) != OPEN)]


def in_both(one: dict, other: dict) -> dict:
    """{rank: roots of subtrees} that a rank named in both answers."""
    return {rank: [path for path in paths if path in other.get(rank, ())] for rank, paths in one.items()}


def failed_migrations(moving: dict, owned: dict, moved=None, kept=True) -> list[str]:
    """Directories whose migration failed, judged once all ranks are active again.

    moving: {server: directories that still migrate}. owned: {rank: roots of its subtrees}; a root with
    two owners failed. moved: a directory that was migrating at the crash; it failed unless all its
    contents can be read (`kept`).
    """
    failed = {path for paths in moving.values() for path in paths}
    claimed = [path for paths in owned.values() for path in paths]
    failed |= {path for path in claimed if claimed.count(path) > 1}
    return sorted(failed | ({moved} if moved and not kept else set()))


def classify(evidence: dict) -> dict:
    """Classify the evidence of a run, by the paper's four ways to fail (WAYS).

    survivor, fresh: the outcome for each client; outcome: the worse of them. WAYS: 1 where observed,
    otherwise 0, whatever the outcome. rank_unserved: 1 where the rank had neither a server at the end
    nor a spare, so that callers wait by design. unexplained: 1 where the outcome is not right, none of
    WAYS was observed, and the lack of a server does not explain it. That lack explains failed mounts
    and unobtainable names of parts other than "living"; it never explains wrong or missing names.

    ValueError where evidence is missing, since an unchecked property does not count as right.
    """
    missing = [key for key in KEYS if key not in evidence]
    if missing:
        raise ValueError(f"no evidence of {', '.join(missing)}")
    by_client = [evidence[client] for client in CLIENTS]
    of_clients = {client: outcome(parts and together(parts)) for client, parts in zip(CLIENTS, by_client)}
    worst = worse(*of_clients.values())
    ways = {
        "other_mds_died": bool(evidence["others_died"]),
        "client_cut": bool(evidence["client_cut"]),
        "migration_failed": bool(evidence["migrations_failed"]),
        "map_not_updated": evidence["noticed_s"] is not None and evidence["map_updated_s"] is None,
    }
    unserved = evidence["active_s"] is None and not evidence["spare"]
    why = any(ways.values()) or (unserved and all(map(_waits_for_the_dead, by_client)))
    bad = worst not in ("right", UNASKED)
    return {**of_clients, "outcome": worst, **{way: int(seen) for way, seen in ways.items()},
            "rank_unserved": int(unserved), "unexplained": int(bad and not why)}


def crash_metrics(evidence: dict, last: dict) -> dict:
    """Metrics of a run; NaN for unknown values.

    {client}_{word}: how many names were right, wrong, missing, unobtainable, unasked;
    {client}_{word}_dead, _living, _held: of the dead server's names, of the living servers' names, and
    of the latter those that were held; {client}_differing: attributes that differ from before;
    {client}_outcome_{word} and outcome_{word}: 1 for the outcome, otherwise 0, NaN where names were not asked and
    nothing is worse; not_as_before: names wrong or missing for either client, also at the end. WAYS, ways_seen: their
    number; rank_unserved, unexplained; fresh_mounted; right_again: 1 where all of `last` is right: what both clients
    get once all servers are back, None where one could not mount (NaN as above); noticed_s, map_updated_s, active_s.
    """
    found = classify(evidence)
    marks = (*WAYS, "rank_unserved", "unexplained")
    metrics = {mark: float(found[mark]) for mark in marks}
    for client in CLIENTS:
        metrics |= {f"{client}_{name}": value for name, value in _of_client(evidence[client]).items()}
        metrics |= {f"{client}_outcome_{word}": _is(found[client], word) for word in OUTCOMES}
    looks = [together(parts) for parts in (*(evidence[client] for client in CLIENTS), *last.values())
             if parts]
    return metrics | {
        **{f"outcome_{word}": _is(found["outcome"], word) for word in OUTCOMES},
        "not_as_before": float(sum(look["wrong"] + look["missing"] for look in looks)),
        "ways_seen": sum(metrics[way] for way in WAYS),
        "fresh_mounted": float(evidence["fresh"] is not None),
        "right_again": _is(worse(*(outcome(parts and together(parts)) for parts in last.values())), "right"),
        **{name: math.nan if evidence[name] is None else float(evidence[name])
           for name in ("noticed_s", "map_updated_s", "active_s")}}


def _is(found: str, word: str) -> float:
    """Whether an outcome is this one; NaN where time was over before it was known."""
    return math.nan if found == UNASKED else float(found == word)


def _of_client(parts: dict | None) -> dict:
    """Counts of one client; NaN where it could not mount."""
    outcomes = (*OUTCOMES, UNASKED)
    if parts is None:
        return {name: math.nan for word in outcomes
                for name in (word, *(f"{word}_{part}" for part in ("dead", "living", "held")))}
    every, dead, held = together(parts), *(together({part: parts.get(part, {})}) for part in ("dead", "held"))
    differing = Counter()
    for counts in parts.values():
        differing.update(counts.get("differing", {}))
    return {name: float(number) for word in outcomes for name, number in (
        (word, every[word]), (f"{word}_dead", dead[word]),
        (f"{word}_living", every[word] - dead[word]), (f"{word}_held", held[word]))} | {
        "differing": ", ".join(f"{name} ({number})" for name, number in differing.items())}


def _waits_for_the_dead(parts: dict | None) -> bool:
    """Whether the lack of a server explains everything that the client could not get or mount."""
    if parts is None:
        return True
    all_names, living = together(parts), parts.get("living", {})
    return not (all_names["wrong"] or all_names["missing"] or living.get("unobtainable"))
