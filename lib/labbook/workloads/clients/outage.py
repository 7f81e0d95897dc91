"""A stream of calls over time, and the outage that a fault caused.

`rows` have started_s, seconds and ok, in any order. Rows with a `step` are parts of calls and do
not count. A call counts when it ends: only then does its client know how it went.
"""

import math

import numpy as np
import pandas as pd


def timeline(rows, seconds_a_bin: float) -> dict:
    """Calls that ended in each bin since started_s == 0: ok_per_bin, errors_per_bin, bin_s."""
    calls, number, bins = _binned(rows, seconds_a_bin)
    ok, errors = (np.bincount(number[calls.ok == good], minlength=bins) for good in (True, False))
    return {"ok_per_bin": ok.tolist(), "errors_per_bin": errors.tolist(), "bin_s": seconds_a_bin}


def over_time(rows, seconds_a_bin: float) -> pd.DataFrame:
    """Calls over time: a row for each bin since started_s == 0, empty bins too.

    t_s: where the bin begins, seconds; calls: how many ended in it; errors: how many of these
    failed; mean_ms and p95_ms: of those that succeeded, NaN without any; of calls on a schedule also
    service_p95_ms, of the calls alone.
    """
    calls, number, bins = _binned(rows, seconds_a_bin)
    good = (calls.seconds[calls.ok].astype(float) * 1e3).groupby(number[calls.ok])
    by_bin = pd.DataFrame({"mean_ms": good.mean(), "p95_ms": good.quantile(0.95)}, dtype=float)
    if "service_s" in calls:
        service = (calls.service_s[calls.ok].astype(float) * 1e3).groupby(number[calls.ok])
        by_bin["service_p95_ms"] = service.quantile(0.95)
    return pd.DataFrame({
        "t_s": np.arange(bins) * float(seconds_a_bin),
        "calls": np.bincount(number, minlength=bins),
        "errors": np.bincount(number[~calls.ok], minlength=bins),
        **by_bin.reindex(range(bins))})


def _binned(rows, seconds_a_bin):
    """(the calls, the number of the bin in which each ended, how many bins there are)."""
    calls = _calls(rows)
    number = (calls.ends.clip(lower=0) // seconds_a_bin).astype(int)
    return calls, number, int(number.max()) + 1 if len(calls) else 0


def outage(rows, after_s: float, until_s: float = math.inf) -> dict:
    """The longest time without a success that a fault at `after_s` may have caused.

    Such a time lies between two consecutive successes (of any clients), or between one and the
    first or last call, and ends after the fault. until_s: when the clients were told to end, in the clock of the rows;
    what is waited for after that is no outage.

    outage_s, outage_from_s: how long it was and when it began. recovered: 1 when a success ended
    it, 0 when the calls ended first. first_success_s: from the fault to the first success after it,
    which may be of a call that was under way; missing when there is none. errors, errors_before:
    calls that failed after the fault and before it. ValueError without calls.
    """
    calls = _calls(rows)
    if not len(calls):
        raise ValueError("there are no calls")
    good = sorted(map(float, calls.ends[calls.ok]))
    end = max(min(float(calls.ends.max()), until_s), *good[-1:], float(calls.started_s.min()))
    edges = [float(calls.started_s.min()), *good, end]
    gaps = [(to - since, since, to) for since, to in zip(edges, edges[1:]) if to > after_s]
    length, since, to = max(gaps, default=(0.0, end, end))
    late = calls.ends > after_s
    result = {"outage_s": length, "outage_from_s": since,
              "recovered": float(to in good), "errors": int((late & ~calls.ok).sum()),
              "errors_before": int((~late & ~calls.ok).sum())}
    first = next((at for at in good if at > after_s), math.nan)
    return result if math.isnan(first) else result | {"first_success_s": first - after_s}


def _calls(rows):
    """The rows that are whole calls, with `ends`: when each ended."""
    if "step" in rows:
        rows = rows[rows["step"].astype(object).fillna("") == ""]
    return rows.assign(ends=rows["started_s"] + rows["seconds"], ok=rows["ok"].astype(bool))
