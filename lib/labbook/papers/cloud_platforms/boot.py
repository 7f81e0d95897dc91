"""Servers started by one API call, and statistics of their boot times.

Each server has a dict of moments in epoch seconds: `called` and `returned` (start and end of the
call), `launched` (by the cloud's clock, if the cloud reports it), `running` (when the API first
reported it), `answers` (first answer on ssh). Moments that did not occur are absent.
"""

import math
from dataclasses import dataclass
from itertools import zip_longest

import pandas as pd

UNTIL = ("ssh", "running")
COLUMNS = {"returned_s": "returned", "launched_s": "launched", "running_s": "running", "ssh_s": "answers"}


@dataclass(frozen=True)
class Load:
    """`rows` as of boot_rows; `metrics` as of boot_metrics."""

    rows: pd.DataFrame
    metrics: dict


def boot(tested, point) -> Load:
    """Start `at_once` servers of the point and wait until they run, and answer where `until` is ssh; they are
    ended then. SystemFailure where none does."""
    testbed, seconds = tested.bed.testbed, point.seconds_at_most
    cloud = testbed.cloud
    servers = cloud.run(point.at_once, cloud.image(f"guest-{point.image_gb:g}gb"), testbed.flavor, testbed.key)
    if point.until == "ssh":
        cloud.await_running_and_answers(servers, testbed.dial, seconds)
    else:
        cloud.await_running(servers, seconds)
    reached = "answers" if point.until == "ssh" else "running"
    if not any(reached in one.moments for one in servers):      # raise, since the image does not boot
        cloud.require_running(servers)
        cloud.require_answers(servers)
    moments, tested.servers = [one.moments for one in servers], servers
    cloud.terminate(servers)
    return Load(boot_rows(moments, [one.fault for one in servers]),
                boot_metrics(moments, point.at_once, answers=point.until == "ssh"))


def boot_rows(moments: list[dict], faults=()) -> pd.DataFrame:
    """A row for each server, as DataFrame.

    server (from 1); started_s (since the first call); seconds (from the call until it ran); ok (it
    ran); error (what the cloud said of it, of `faults`; empty if nothing); and the time from the call
    to each moment of COLUMNS. NaN for moments that did not occur.
    """
    first = min((one["called"] for one in moments), default=0.0)
    return pd.DataFrame([{
        "server": number, "started_s": one["called"] - first, "ok": "running" in one, "error": fault or "",
        "seconds": _after(one, "running"), **{name: _after(one, what) for name, what in COLUMNS.items()},
    } for number, (one, fault) in enumerate(zip_longest(moments, faults), 1)])


def boot_metrics(moments: list[dict], requested: int, answers: bool = True) -> dict:
    """Metrics of `requested` servers; the cloud created those in `moments`. answers: whether they were waited for
    until they answered; otherwise the metrics of that are NaN.

    asked: the number of requested servers. failed_to_run, failed_to_answer: numbers of servers. returned_s: duration of
    the call. all_running_s, all_launched_s, all_ssh_s: from the call to the last server's moment, NaN unless all
    servers reached it. mean_running_s and mean_ssh_s: means over the servers that reached it. ssh_after_running_s: mean
    over the servers that reached both; below 0 for one that answers before the API, which is asked every half a second,
    reports it as running.
    """
    rows = boot_rows(moments)
    metrics = {"asked": requested, "failed_to_run": requested - _count(rows, "running_s"),
               "failed_to_answer": requested - _count(rows, "ssh_s") if answers else math.nan}
    for name in ("running", "launched", "ssh"):
        metrics[f"all_{name}_s"] = (float(rows[f"{name}_s"].max())
                                    if _count(rows, f"{name}_s") == requested else math.nan)
    for name in ("running", "ssh"):
        metrics[f"mean_{name}_s"] = float(rows[f"{name}_s"].mean()) if len(rows) else math.nan
    metrics["returned_s"] = float(rows["returned_s"].max()) if len(rows) else math.nan
    metrics["ssh_after_running_s"] = (float((rows["ssh_s"] - rows["running_s"]).mean()) if len(rows)
                                      else math.nan)
    return metrics


def _after(one, what) -> float:
    return one[what] - one["called"] if what in one else math.nan


def _count(rows, name) -> int:
    """Number of servers that reached a moment."""
    return int(rows[name].notna().sum()) if len(rows) else 0
