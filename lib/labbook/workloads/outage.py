"""What a fault did to a stream of calls: rows with started_s, seconds and ok, in any order.

Rows with a `step` are parts of calls and do not count. A call counts when it ends: only then does
its client know.
"""

import math


def timeline(rows, seconds_a_bin: float) -> dict:
    """Calls that ended in each bin since started_s == 0: ok_per_bin, errors_per_bin, bin_s."""
    calls = _calls(rows)
    number = (calls.ends // seconds_a_bin).astype(int)
    bins = range(number.max() + 1 if len(calls) else 0)
    ok, errors = (number[calls.ok == good].value_counts() for good in (True, False))
    return {"ok_per_bin": [int(ok.get(i, 0)) for i in bins],
            "errors_per_bin": [int(errors.get(i, 0)) for i in bins], "bin_s": seconds_a_bin}


def outage(rows, after_s: float) -> dict:
    """The longest time without a success that a fault at `after_s` may have caused.

    Such a time lies between two successes that follow one another (of any client), or the calls'
    begin or end, and ends after the fault.

    outage_s, outage_from_s: how long it was and when it began. recovered: 1 when a success ended
    it, 0 when the calls ended first. first_success_s: from the fault to the first success after it;
    a call under way may be one; left out when there is none. errors, errors_before: calls that
    failed after the fault and before it. ValueError without calls.
    """
    calls = _calls(rows)
    if not len(calls):
        raise ValueError("there are no calls")
    end = float(calls.ends.max())
    good = sorted(map(float, calls.ends[calls.ok]))
    edges = [float(calls.started_s.min()), *good, end]
    gaps = [(to - since, since, to) for since, to in zip(edges, edges[1:]) if to > after_s]
    length, since, to = max(gaps, default=(0.0, end, end))
    late = calls.ends > after_s
    found = {"outage_s": length, "outage_from_s": since,
             "recovered": float(to in good), "errors": int((late & ~calls.ok).sum()),
             "errors_before": int((~late & ~calls.ok).sum())}
    first = next((at for at in good if at > after_s), math.nan)
    return found if math.isnan(first) else found | {"first_success_s": first - after_s}


def _calls(rows):
    """The calls among the rows, and when they ended."""
    if "step" in rows:
        rows = rows[rows["step"].astype(object).fillna("") == ""]
    return rows.assign(ends=rows["started_s"] + rows["seconds"], ok=rows["ok"].astype(bool))
