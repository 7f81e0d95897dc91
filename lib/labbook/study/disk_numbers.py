"""A disk's trace in numbers: how sequential its requests were, how far it seeked. Pure.

Frames have one row a request, in the order of time: t_s, event ("issue": given to the disk; "queue":
asked for), sector (of 512 bytes), size_bytes, write, thread; the columns of labbook.lab.trace_text.
A request is **sequential** when it begins where the previous one of the same direction ended. For a
group of threads that is told twice: beside the group's own previous request, which is what the
program does, and beside the disk's, which is what the disk sees of it: others' requests come between.
"""

import numpy as np
import pandas as pd

SECTOR_BYTES = 512
NUMBERS = ("requests", "bytes", "read_share", "size_mean_bytes", "sequential_share",
           "sequential_on_disk", "run_requests", "run_bytes", "seek_median_bytes",
           "seek_mean_bytes")


def numbers(trace, groups: dict[str, str] | None = None, event: str = "issue") -> pd.DataFrame:
    """A row for "all" requests and one for each of `groups` ({name: regular expression of threads});
    columns group and NUMBERS.

    requests, bytes; read_share (of requests); size_mean_bytes; sequential_share (of the requests
    that have a previous one in the group) and sequential_on_disk (the same requests beside the
    previous one of all); run_requests and run_bytes: the mean length of a run, one request and the
    sequential ones that follow it in the group; seek_*_bytes: from the end of the disk's previous
    request of the same direction to the beginning of one that is not sequential on it. NaN where
    there is none to tell of. Threads are those that asked, where the frame has `asked_by`
    (who_asked).
    """
    chosen = trace[trace["event"] == event].reset_index(drop=True)
    seeks = _seeks(chosen)
    rows = [{"group": "all", **_of(chosen, seeks)}]
    names = _names(chosen)
    for group, pattern in (groups or {}).items():
        mine = chosen[names.str.contains(pattern, regex=True)]
        rows.append({"group": group, **_of(mine, seeks[mine.index])})
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


def sizes_over_time(trace, seconds_a_bin: float, event: str = "issue", write: bool = False,
                    threads: str | None = None) -> pd.DataFrame:
    """Sizes of the reads (or writes) in each bin since the trace's first request: t_s (the bin's
    beginning, from 0), requests, mean_bytes, median_bytes, p95_bytes, max_bytes; bins without
    requests are left out."""
    chosen = trace[(trace["event"] == event) & (trace["write"] == write)]
    if threads is not None:
        chosen = chosen[_names(chosen).str.contains(threads, regex=True)]
    began = trace["t_s"].min()
    number = ((chosen["t_s"] - began) // seconds_a_bin).astype(int)
    sizes = chosen["size_bytes"].groupby(number.to_numpy())
    found = sizes.agg(["count", "mean", "median", "max"])
    return pd.DataFrame({
        "t_s": found.index * seconds_a_bin, "requests": found["count"], "mean_bytes": found["mean"],
        "median_bytes": found["median"], "p95_bytes": sizes.quantile(0.95),
        "max_bytes": found["max"]}).reset_index(drop=True)


def by_thread(trace, event: str = "queue") -> pd.DataFrame:
    """thread, read_bytes, write_bytes, requests, of the threads in the order of their bytes."""
    chosen = trace[trace["event"] == event]
    sizes = chosen["size_bytes"].where(~chosen["write"], 0)
    found = pd.DataFrame({"thread": _names(chosen), "read_bytes": sizes,
                          "write_bytes": chosen["size_bytes"] - sizes, "requests": 1})
    summed = found.groupby("thread", as_index=False).sum()
    order = (summed["read_bytes"] + summed["write_bytes"]).sort_values(ascending=False).index
    return summed.loc[order].reset_index(drop=True)


def _names(trace):
    """Who asked: as who_asked found out, else as the trace itself says."""
    return trace["asked_by" if "asked_by" in trace else "thread"].astype(str)


def _of(mine, seeks) -> dict:
    if not len(mine):
        return {"requests": 0, "bytes": 0}
    own = _seeks(mine)
    runs = int((own != 0).sum())        # a run begins with a request that is not sequential
    far = seeks[seeks.notna() & (seeks != 0)]
    return {
        "requests": len(mine), "bytes": int(mine["size_bytes"].sum()),
        "read_share": float((~mine["write"]).mean()),
        "size_mean_bytes": float(mine["size_bytes"].mean()),
        "sequential_share": _share(own), "sequential_on_disk": _share(seeks),
        "run_requests": len(mine) / runs, "run_bytes": mine["size_bytes"].sum() / runs,
        "seek_median_bytes": float(far.median()), "seek_mean_bytes": float(far.mean()),
    }


def _share(seeks) -> float:
    """Of 0 among those that are known."""
    known = seeks.dropna()
    return float((known == 0).mean()) if len(known) else np.nan


def _seeks(trace) -> pd.Series:
    """Bytes from the end of the previous request of the same direction to each one's beginning;
    NaN for the first."""
    end = trace["sector"] + trace["size_bytes"] // SECTOR_BYTES
    before = end.groupby(trace["write"].to_numpy()).shift()
    return ((trace["sector"] - before) * SECTOR_BYTES).abs()
