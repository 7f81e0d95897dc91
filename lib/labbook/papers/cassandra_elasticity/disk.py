"""A disk's trace in numbers: how sequential its requests were, how far it seeked. Pure.

Frames have one row a request, in the order of time: t_s, event ("issue": given to the disk; "queue":
asked for), sector (of 512 bytes), size_bytes, write, thread; the columns of labbook.lab.disk.trace.
A request is **sequential** when it begins where the previous one ended: of the same direction, or of
both together, as a head moves that reads and writes. For a group of threads that is told twice: beside
the group's own previous request, which is what the program does, and beside the disk's, which is what
the disk sees of it: others' requests come between.
"""

import numpy as np
import pandas as pd

SECTOR_BYTES = 512
NUMBERS = ("requests", "bytes", "read_share", "size_mean_bytes", "sequential_share",
           "sequential_on_disk", "run_requests", "run_bytes", "run_on_disk_requests",
           "run_on_disk_bytes", "seek_median_bytes", "seek_mean_bytes")


def numbers(trace, groups: dict[str, str] | None = None, event: str = "issue",
            together: bool = False) -> pd.DataFrame:
    """A row for "all" requests and one for each of `groups` ({name: regular expression of threads});
    columns group and NUMBERS. The previous request is the previous one of the same direction or,
    `together`, of either: `trace` must have reads and writes then.

    requests, bytes; read_share (of requests); size_mean_bytes; sequential_share (of the requests
    that have a previous one in the group) and sequential_on_disk (the same requests beside the
    previous one of all); run_requests and run_bytes: the mean length of a run, one request and the
    sequential ones that follow it in the group; run_on_disk_requests and run_on_disk_bytes: the same
    where anybody else's request ends a run; seek_*_bytes: from the end of the disk's previous request
    to the beginning of one that is not sequential on it. NaN where there is none to tell of. Threads are those that asked, where the frame has `asked_by`
    (who_asked).
    """
    chosen = trace[trace["event"] == event].reset_index(drop=True)
    chosen = chosen.assign(direction=True if together else chosen["write"])
    seeks, names = _seeks(chosen), _names(chosen)
    rows = [{"group": "all", **_of(chosen, chosen, seeks)}]
    for group, pattern in (groups or {}).items():
        mine = chosen[names.str.contains(pattern, regex=True)]
        rows.append({"group": group, **_of(mine, chosen, seeks)})
    return pd.DataFrame(rows, columns=["group", *NUMBERS])


def who_asked(trace) -> pd.DataFrame:
    """The issued requests with a column `asked_by`: the thread that asked for the first of their
    bytes, where the kernel's own carried the request; a carrier where none is known to have asked.

    A request may be several that were merged, or a part of one: it begins where one that was queued
    began, or where another part of that one ended.
    """
    asked, began = [], {}       # (sector, write): who asked for what begins there, and its end
    columns = (trace[name].to_numpy() for name in ("event", "sector", "size_bytes", "write"))
    threads = trace["thread"].astype(object).to_numpy()
    for event, sector, size, write, thread in zip(*columns, threads):
        end = sector + size // SECTOR_BYTES
        if event == "queue":
            began[sector, write] = thread, end
            continue
        who, until = began.pop((sector, write), (thread, end))
        if until > end:
            began[end, write] = who, until
        asked.append(who)
    issued = trace[trace["event"] == "issue"]
    return issued.assign(asked_by=pd.Categorical(asked))


def _names(trace):
    """Who asked: as who_asked found out, else as the trace itself says."""
    return trace["asked_by" if "asked_by" in trace else "thread"].astype(str)


def _of(mine, everyone, all_seeks) -> dict:
    if not len(mine):
        return {"requests": 0, "bytes": 0}
    own, seeks = _seeks(mine), all_seeks[mine.index]
    far = seeks[seeks.notna() & (seeks != 0)]
    size = mine["size_bytes"]
    runs, on_disk = int((own != 0).sum()), int((~_goes_on(mine, everyone, seeks)).sum())
    return {
        "requests": len(mine), "bytes": int(size.sum()),
        "read_share": float((~mine["write"]).mean()), "size_mean_bytes": float(size.mean()),
        "sequential_share": _share(own), "sequential_on_disk": _share(seeks),
        "run_requests": len(mine) / runs, "run_bytes": size.sum() / runs,
        "run_on_disk_requests": len(mine) / on_disk, "run_on_disk_bytes": size.sum() / on_disk,
        "seek_median_bytes": float(far.median()), "seek_mean_bytes": float(far.mean()),
    }


def _share(seeks) -> float:
    """Of 0 among those that are known."""
    known = seeks.dropna()
    return float((known == 0).mean()) if len(known) else np.nan


def _seeks(requests) -> pd.Series:
    """Bytes from the end of the previous request to each one's beginning; NaN for the first."""
    end = requests["sector"] + requests["size_bytes"] // SECTOR_BYTES
    before = end.groupby(requests["direction"].to_numpy()).shift()
    return ((requests["sector"] - before) * SECTOR_BYTES).abs()


def _goes_on(mine, everyone, seeks) -> pd.Series:
    """Whether the disk's previous request was one of `mine`, too, and ended where each begins."""
    is_mine = pd.Series(everyone.index.isin(mine.index), everyone.index)
    before = is_mine.groupby(everyone["direction"].to_numpy()).shift(fill_value=False)
    return before[mine.index] & (seeks == 0)
