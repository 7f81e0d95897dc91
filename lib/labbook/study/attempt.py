"""An attempt to measure one point, which writes a record or a failure record."""

import traceback

from labbook.errors import InputError, LabbookError, Stopped
from labbook.lab import clock
from labbook.study import provenance
from labbook.study.experiment import COLUMNS
from labbook.study.judging import check_metrics
from labbook.study.record import SERIES_NAME
from labbook.study.summary import summarise

# Errors that would recur at every point, so that the study stops at the first one: invalid input, and
# mistakes in the measuring code.
FATAL = (InputError, TypeError, AttributeError, NameError, ImportError)


class Attempt:
    """Use as `with study.attempt(point) as attempt:` and call `record` inside.

    When the system or the lab fails, the failure is recorded, the lab is taken down, and the `with`
    block ends without an exception, so that the next point can run; `study.complete()` raises later.
    After an interruption the lab is taken down and the exception propagates.
    """

    def __init__(self, study, point):
        self.study, self.point = study, point
        self._redact = study.redact
        self._recorded = self._during = self._links_before = self._lab = None
        self._setups = 0

    @property
    def lab(self):
        """The study's lab; brought up on first use."""
        session = self.study.session
        if self._lab is None:
            new_block = session.enter(self.point)
            self._lab = self.study.lab_up()
            if new_block:
                self.check_links()
        return self._lab

    def setup(self, make):
        """The result of `make(lab)`, created once per block and reused by the block's later points.

        At the end of the block its `destroy()` is called if it has one; for a list or tuple, that
        of each element in reverse order.
        """
        lab = self.lab
        self._setups += 1
        return self.study.session.create_once(self._setups, lambda: make(lab))

    def check_links(self) -> list[dict]:
        """Measure the lab's links now: a list of dicts, also recorded as the check before the point."""
        self._links_before = self.lab.check_links()
        return self._links_before

    def record(self, rows=None, metrics=None, facts=None, series=None) -> None:
        """Set the point's result; it is written when the block ends without an exception.

        rows: DataFrame or list of dicts, one operation a row (`started_s`, `seconds`, `ok`, ...).
        metrics: {name: number, text or list of numbers}; they override computed metrics.
        facts: versions and settings of the systems. series: {name: DataFrame}, which is stored on
        this machine only, like the rows; data for figures belong in the metrics. InputError for an
        invalid name or value; LabbookError when called twice.
        """
        self._during = provenance.during(self._start)   # excludes the time of writing the record
        import pandas as pd
        import pyarrow as pa

        if self._recorded is not None:
            raise LabbookError("record() was called twice in this attempt")
        frame = _redacted(rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows or []),
                        self._redact)
        metrics = dict(metrics or {})
        _check_metrics(metrics, self.point)
        for name in series or {}:
            if not SERIES_NAME.fullmatch(name):
                raise InputError(f"{name!r} is not a valid name of a series", allowed="a-z, 0-9 and _")
        self._recorded = {
            "table": pa.Table.from_pandas(frame, preserve_index=False),
            "summary": summarise(frame) | metrics, "facts": dict(facts or {}),
            "series": {n: pa.Table.from_pandas(_redacted(f, self._redact), preserve_index=False)
                       for n, f in (series or {}).items()},
        }

    def __enter__(self):
        self.study.run.progress.start(self.point)
        self._start = provenance.before()
        return self

    def __exit__(self, _kind, error, _trace):
        try:
            return self._end(error)
        except BaseException:
            self.study.session.down()
            raise

    def _end(self, error) -> bool:
        if error is not None and (not isinstance(error, Exception) or isinstance(error, Stopped)):
            raise error     # an interruption is no failure of the point
        if error is None:
            try:
                meta = self._meta()
            except Exception as failure:
                error = failure
            else:
                self._write(meta)
                return False
        self._write_failure(error)
        run, session = self.study.run, self.study.session
        if isinstance(error, FATAL) or run.gives_up(self.point.experiment) or session.failed_starts > 1:
            raise error
        session.down()
        return True

    def _write(self, meta):
        point, recorded = self.point, self._recorded
        self.study.records(point.experiment).write(point.key, recorded["table"], meta,
                                                   recorded["series"])
        self.study.run.succeeded(point, meta["took_s"])
        check_metrics(self.study, point, meta["summary"])

    def _write_failure(self, error):
        took = clock.now() - self._start["time"]
        message = "; ".join([_message(error), *(self._lab.short_of_memory() if self._lab else ())])
        failure = self._about() | {
            "message": self._redact(message), "error": type(error).__name__,
            "logs": self._redact(_logs(error)),
            "took_s": took, "provenance": self._provenance({})}     # without facts: a broken lab may not answer
        trace = self._redact("".join(traceback.format_exception(error)))
        self.study.records(self.point.experiment).write_failure(self.point.key, failure, trace)
        self.study.run.failed(self.point, took, failure["message"])

    def _meta(self) -> dict:
        if self._recorded is None:
            raise LabbookError("the attempt ended without record()")
        links, failed = {}, self.study.records(self.point.experiment).failure(self.point.key)
        if failed and self.study.run.is_stale(failed):
            failed = None       # it is of earlier code or versions
        if self._lab:
            links = {"before": self._links_before, "after": self._lab.check_links()}
        about = self._about() | {"summary": self._recorded["summary"],
                                 "facts": self._recorded["facts"],
                                 "provenance": self._provenance(self.study.session.facts())
                                 | {"links": links}
                                 | ({"failed_first": failed["message"]} if failed else {})}
        return self._redact(about | {"took_s": clock.now() - self._start["time"]})

    def _about(self) -> dict:
        point = self.point
        return {"key": point.key, "label": point.label, "study": self.study.name,
                "experiment": point.experiment, "setup": point.setup, "vary": point.vary,
                "repeat": point.repeat, "block": point.block, "order": point.order,
                "seed": point.seed, "fingerprint": self.study.fingerprint.code,
                "profile": self.study.run.profile, "environment": str(self.study.environment)}

    def _provenance(self, lab: dict) -> dict:
        return {"machine": provenance.machine(), "code": provenance.code(),
                "versions": self.study.fingerprint.versions,
                "during": self._during or provenance.during(self._start), "lab": lab}


def _redacted(frame, redact):
    """The frame without addresses and user names in its text columns."""
    texts = frame.select_dtypes(("object", "string")).columns
    return frame.assign(**{column: frame[column].map(redact) for column in texts})


def _check_metrics(metrics: dict, point) -> None:
    for name, value in metrics.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"{name!r} is not a valid name of a metric")
        if name in point.params or name in COLUMNS:
            raise InputError("a parameter or column already has this name", key=f"metric {name}")
        if isinstance(value, dict):
            raise InputError("a metric cannot be a dict", key=f"metric {name}",
                             allowed="a number, text or a list of numbers")


def _message(error) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _logs(error) -> list[str]:
    """Log tails of the error and of its causes."""
    logs = []
    while error is not None:
        if getattr(error, "log", None):
            logs.append(str(error.log))
        error = error.__cause__ or error.__context__
    return logs
