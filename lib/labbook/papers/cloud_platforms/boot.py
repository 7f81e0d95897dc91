"""What the moments of servers that were started in one call come to. Pure.

Moments are epoch seconds: `called` and `returned` of the call, `launched` (by the cloud's own clock,
where it tells that), `running` (when the API first said so), `answers` (on ssh). What never came is
not among them.
"""

import math

import pandas as pd

COLUMNS = {"returned_s": "returned", "launched_s": "launched", "running_s": "running", "ssh_s": "answers"}


def boot_rows(moments: list[dict]) -> pd.DataFrame:
    """A row a server: server (from 1), started_s, seconds (until it ran), ok (it did), and when each
    moment came after the call; NaN for what never came."""
    first = min((one["called"] for one in moments), default=0.0)
    return pd.DataFrame([{
        "server": number, "started_s": one["called"] - first, "ok": "running" in one,
        "seconds": _after(one, "running"), **{name: _after(one, what) for name, what in COLUMNS.items()},
    } for number, one in enumerate(moments, 1)])


def boot_numbers(moments: list[dict], asked: int) -> dict:
    """Measures of `asked` servers, of which the cloud made those with moments.

    failed_to_run, failed_to_answer: how many did not. returned_s: the call itself. all_running_s,
    all_launched_s, all_ssh_s: from the call to the last one's moment, NaN unless all of them had it;
    mean_running_s and mean_ssh_s over those that had. ssh_after_running_s: from the one moment to the
    other, mean of those that had both.
    """
    rows = boot_rows(moments)
    found = {"asked": asked, "failed_to_run": asked - _came(rows, "running_s"),
             "failed_to_answer": asked - _came(rows, "ssh_s")}
    for name in ("running", "launched", "ssh"):
        found[f"all_{name}_s"] = (float(rows[f"{name}_s"].max()) if _came(rows, f"{name}_s") == asked
                                  else math.nan)
    for name in ("running", "ssh"):
        found[f"mean_{name}_s"] = float(rows[f"{name}_s"].mean()) if len(rows) else math.nan
    found["returned_s"] = float(rows["returned_s"].max()) if len(rows) else math.nan
    found["ssh_after_running_s"] = (float((rows["ssh_s"] - rows["running_s"]).mean()) if len(rows)
                                    else math.nan)
    return found


def _after(one, what) -> float:
    return one[what] - one["called"] if what in one else math.nan


def _came(rows, name) -> int:
    return int(rows[name].notna().sum()) if len(rows) else 0
