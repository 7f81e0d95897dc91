"""The donor's disk during a join: sequential requests, seeks, and samples for figures. Pure functions.

A trace is a DataFrame with a row for each request, in the order of time: t_s (epoch), event ("issue":
sent to the disk; "queue": requested), sector (of 512 bytes), size_bytes, write, thread; the columns of
labbook.lab.disk.trace. A request is **sequential** when it begins where the previous one ended,
of the same direction or of both directions together, as one disk head serves both. For a group of
threads this is computed twice: against the group's own previous request (the program's view), and
against the disk's previous request (the disk's view).
"""

import re

import numpy as np
import pandas as pd

SECTOR_BYTES = 512
# Names of Cassandra's threads in both versions. Requests that the kernel issues count for the requester.
THREADS = {"stream": "^(?:Stream|NettyStream)", "gets": "^ReadStage"}
GROUPS = [*THREADS, "writes", "other"]
DRAWN, DRAWN_CLOSE = 2500, 300      # requests in a point's figures
MARGIN_S = 0.2                      # of figures, before the stream's first read and after its last
STATISTICS = ("requests", "bytes", "read_share", "size_mean_bytes", "sequential_share",
           "sequential_on_disk", "run_requests", "run_bytes", "run_on_disk_requests",
           "run_on_disk_bytes", "seek_median_bytes", "seek_mean_bytes")


def disk_metrics(requests: pd.DataFrame, lists: bool) -> dict:
    """Metrics of the donor's disk from the stream's first read to its last.

    If no read was for the stream, since all data were in memory, the whole trace is used. `lists`: add
    samples for figures.

    read_*, run_kb, seek_mb and stream_sequential are of reads alone; all_sequential and stream_on_disk,
    stream_stretch_kb, stream_seek_mb are of reads and writes together.
    """
    issued = attribute_requests(requests)
    group = pd.Series([group_of(*row) for row in zip(issued["write"], issued["thread"], issued["asked_by"])],
                      issued.index)
    streamed = issued.loc[group == "stream", "t_s"]
    start, end = (streamed if len(streamed) else issued["t_s"]).agg(["min", "max"])
    meanwhile = issued[issued["t_s"].between(start, end)]
    reads = request_statistics(meanwhile[~meanwhile["write"]], THREADS).set_index("group")
    both = request_statistics(meanwhile, THREADS, together=True).set_index("group")
    metrics = {"read_sequential": reads.loc["all", "sequential_share"], "run_kb": reads.loc["all", "run_bytes"] / 1024,
               "all_sequential": both.loc["all", "sequential_share"],
               "read_kb": reads.loc["all", "size_mean_bytes"] / 1024,
               "get_request_kb": reads.loc["gets", "size_mean_bytes"] / 1024,
               "seek_mb": reads.loc["all", "seek_median_bytes"] / 1e6,
               "stream_sequential": reads.loc["stream", "sequential_share"],
               "stream_on_disk": both.loc["stream", "sequential_on_disk"],
               "stream_stretch_kb": both.loc["stream", "run_on_disk_bytes"] / 1024,
               "stream_seek_mb": both.loc["stream", "seek_median_bytes"] / 1e6,
               "stream_read_mb": reads.loc["stream", "bytes"] / 1e6, "gets_read_mb": reads.loc["gets", "bytes"] / 1e6}
    metrics = {name: float(value) for name, value in metrics.items()}
    if not lists:
        return metrics
    drawn = issued.assign(group=group)[issued["t_s"].between(start - MARGIN_S, end + MARGIN_S)]
    return metrics | sample_evenly(drawn, start, DRAWN) | sample_consecutive(drawn, start, DRAWN_CLOSE)


def group_of(write: bool, *threads: str) -> str:
    """The group, of GROUPS, of a request with these threads as issuer and requester."""
    named = (group for group, names in THREADS.items() if any(re.search(names, thread) for thread in threads))
    return "writes" if write else next(named, "other")


def request_statistics(trace, groups: dict[str, str] | None = None, event: str = "issue",
            together: bool = False) -> pd.DataFrame:
    """DataFrame with a row for "all" requests and one for each of `groups`; columns group and STATISTICS.

    groups: {name: regular expression of threads}. A request's previous request is the one of the same
    direction or, with `together`, of either direction; `trace` then has reads and writes.

    requests, bytes; read_share (of requests); size_mean_bytes; sequential_share (of the requests
    that have a previous one in the group) and sequential_on_disk (the same requests against the
    previous one of all); run_requests and run_bytes: the mean length of a run, one request and the
    sequential ones that follow it in the group; run_on_disk_requests and run_on_disk_bytes: the same
    where a request of another group ends a run; seek_*_bytes: from the end of the disk's previous
    request to the beginning of one that is not sequential to it. NaN where there is no such request.
    Threads are the requesters where the frame has `asked_by` (attribute_requests).
    """
    chosen = trace[trace["event"] == event].reset_index(drop=True)
    chosen = chosen.assign(direction=True if together else chosen["write"])
    seeks, names = _seeks(chosen), _names(chosen)
    rows = [{"group": "all", **_of(chosen, chosen, seeks)}]
    for group, pattern in (groups or {}).items():
        mine = chosen[names.str.contains(pattern, regex=True)]
        rows.append({"group": group, **_of(mine, chosen, seeks)})
    return pd.DataFrame(rows, columns=["group", *STATISTICS])


def attribute_requests(trace) -> pd.DataFrame:
    """The issued requests with a column `asked_by`: the thread that requested the first of their
    bytes, where a thread of the kernel issued them; the issuer where no requester is known.

    An issued request may be several merged ones, or a part of one: it begins where a queued one
    began, or where another part of that one ended.
    """
    requesters, began = [], {}       # (sector, write) of a start: requester, end sector
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
        requesters.append(who)
    issued = trace[trace["event"] == "issue"]
    return issued.assign(asked_by=pd.Categorical(requesters))


def sample_evenly(requests, start: float, most: int, name: str = "request") -> dict:
    """Lists of at most `most` requests, evenly spaced in their order: {name}_t_s (seconds since
    `start`), {name}_gb (place on the disk), {name}_kb (size), {name}_group."""
    number = min(most, len(requests))
    picked = np.linspace(0, len(requests) - 1, number).round().astype(int) if number else []
    return _lists(requests.iloc[picked], start, name)


def sample_consecutive(requests, start: float, most: int, name: str = "close") -> dict:
    """The same for `most` consecutive requests, from the middle of the time on, or for the last ones."""
    ordered = requests.sort_values("t_s", kind="stable")
    if not len(ordered):
        return _lists(ordered, start, name)
    middle = (ordered["t_s"].iloc[0] + ordered["t_s"].iloc[-1]) / 2
    first = min(int((ordered["t_s"] < middle).sum()), max(0, len(ordered) - most))
    return _lists(ordered.iloc[first:first + most], start, name)


def _lists(requests, start, name) -> dict:
    return {f"{name}_t_s": [round(float(t), 6) for t in requests["t_s"] - start],
            f"{name}_gb": [round(float(gb), 6) for gb in requests["sector"] * SECTOR_BYTES / 1e9],
            f"{name}_kb": [float(kb) for kb in requests["size_bytes"] / 1024],
            f"{name}_group": [str(group) for group in requests["group"]]}


def _names(trace):
    """The requesters if known, otherwise the issuing threads."""
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
    """The share of zeros among the known values."""
    known = seeks.dropna()
    return float((known == 0).mean()) if len(known) else np.nan


def _seeks(requests) -> pd.Series:
    """Bytes from the end of the previous request to each one's beginning; NaN for the first."""
    end = requests["sector"] + requests["size_bytes"] // SECTOR_BYTES
    before = end.groupby(requests["direction"].to_numpy()).shift()
    return ((requests["sector"] - before) * SECTOR_BYTES).abs()


def _goes_on(mine, everyone, seeks) -> pd.Series:
    """Whether the disk's previous request was also one of `mine` and ended where each begins."""
    is_mine = pd.Series(everyone.index.isin(mine.index), everyone.index)
    before = is_mine.groupby(everyone["direction"].to_numpy()).shift(fill_value=False)
    return before[mine.index] & (seeks == 0)
