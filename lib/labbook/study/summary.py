"""Metrics computed from a point's rows. Figures and verdicts use summaries only."""

import math

from labbook.errors import InputError

COMPUTED = ("n", "errors", "mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "seconds",
            "rate_per_s", "service_mean_ms", "service_p50_ms", "service_p95_ms", "service_p99_ms",
            "service_max_ms")


def summarise(rows) -> dict:
    """Metrics of a DataFrame of operations, one a row; all columns are optional.

    n: the number of rows. `ok` gives errors, the number of failed operations. `seconds`, the duration of an operation,
    gives the mean, percentiles and maximum of successful ones in ms. `started_s` gives seconds, from the first start to
    the last end, and rate_per_s, the successful operations per second. `service_s`, of calls whose `seconds` count from
    when they were due, gives service_mean_ms and so on, of the calls alone. Rows with a `step` are parts of operations:
    their metrics are mean_<step>_ms only. InputError where a row has no value of `ok`: it counts neither as a success
    nor as an error.
    """
    step = rows["step"].astype(object).fillna("") if "step" in rows else None
    if step is None:
        return _of_operations(rows)
    return _of_operations(rows[step == ""]) | _of_steps(rows.assign(step=step)[step != ""])


def _of_steps(rows) -> dict:
    if "seconds" not in rows:
        return {}
    ok = _ok(rows)
    good = rows if ok is None else rows[ok]
    return {f"mean_{step}_ms": float(mean) * 1000
            for step, mean in good.groupby("step")["seconds"].mean().items()}


def _of_operations(rows) -> dict:
    metrics = {"n": len(rows)}
    ok = _ok(rows)
    if ok is not None:
        metrics["errors"] = int((~ok).sum())
    if "seconds" not in rows or not len(rows):
        return metrics
    good = rows if ok is None else rows[ok]
    if len(good):
        metrics |= _times(good["seconds"] * 1000)
        if "service_s" in good:
            metrics |= {f"service_{name}": ms for name, ms in _times(good["service_s"] * 1000).items()}
    if "started_s" in rows:
        ends = rows["started_s"] + rows["seconds"]
        metrics["seconds"] = float(ends.max() - rows["started_s"].min())
        if metrics["seconds"] > 0:
            metrics["rate_per_s"] = len(good) / metrics["seconds"]
    return {name: v for name, v in metrics.items() if not math.isnan(v)}


def _ok(rows):
    """Whether each operation came out; None without the column."""
    if "ok" not in rows:
        return None
    if lacking := int(rows["ok"].isna().sum()):
        raise InputError(f"{lacking} of {len(rows)} rows do not say whether the operation came out", key="ok",
                         allowed="true or false in every row, or no such column")
    return rows["ok"].astype(bool)


def _times(ms) -> dict:
    middle, high, higher = ms.quantile([0.5, 0.95, 0.99])
    return {"mean_ms": float(ms.mean()), "p50_ms": float(middle), "p95_ms": float(high),
            "p99_ms": float(higher), "max_ms": float(ms.max())}
