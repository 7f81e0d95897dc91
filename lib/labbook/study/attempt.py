"""An attempt to measure one point, which writes a record or a failure record."""

import traceback
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress

from labbook.errors import InputError, LabbookError, LabError, Stopped, in_words
from labbook.lab import clock
from labbook.study import noise, paired, watcher
from labbook.study.experiment import COLUMNS
from labbook.study.judging import check_metrics
from labbook.study.records import provenance
from labbook.study.records.record import SERIES_NAME
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
        self._recorded = self._during = self._links_before = self._lab = self._hosts = None
        self._setups = Counter()     # calls of setup() of each arm
        self._set_up_s = 0.0         # of the point's time that of its lab and its set-up

    @property
    def lab(self):
        """The study's lab; brought up on first use."""
        session = self.study.session
        if self._lab is None:
            with self._setting_up():
                session.fit(self.study.with_own_lab(self.point.experiment))
                new_block = session.enter(self.point)
                self._lab = self.study.lab_up()
                if new_block:
                    self.check_links()
            # its set-up is an earlier point's, and ran beside the first loop
            if not new_block and self.point.paired:
                self._start["reference_ms"] = self._reference_ms()
            self.study.watcher.begin(self._lab)
        return self._lab

    def setup(self, make, arm=None, used_up=False):
        """The result of `make(lab)`, created once per block and reused by the block's later points.

        At the end of the block its `destroy()` is called if it has one; for a list or tuple, that
        of each element in reverse order. arm: the value of the paired parameter of which this is the
        set-up, asked for once in each attempt; where arms take turns, what is set up of other arms is
        destroyed first. used_up: measuring changes the set-up, so that it serves this attempt alone and is
        made anew for the next one, also where the same point is measured again.
        """
        lab, session = self.lab, self.study.session
        if arm is not None and not self.at_once:
            session.destroy_others(arm)
        self._setups[arm] += 1
        with self._setting_up():
            return session.create_once(self._setups[arm], lambda: self._made(make(lab)), arm, used_up)

    @contextmanager
    def _setting_up(self):
        """Count the block's time as that of the set-up."""
        began = clock.now()
        try:
            yield
        finally:
            self._set_up_s += clock.now() - began

    def _made(self, result):
        """Note the machine's speed anew: the time of a set-up is no part of what is measured."""
        self._start["reference_ms"] = self._reference_ms()
        return result

    def _reference_ms(self) -> float:
        """The reference loop's time. What a lab of paired arms has on this machine is frozen meanwhile: servers
        that share a core with the loop would be taken for a slower machine."""
        lab = self._lab if self.point.paired else None
        with ExitStack() as frozen:
            if lab is not None:
                with suppress(LabError):    # a process that cannot be stopped: the loop runs beside it
                    frozen.enter_context(lab.only(*(host.name for host in lab.hosts.values() if host.is_remote)))
            return noise.reference_loop()

    @property
    def at_once(self) -> bool:
        """Whether the arms of the point are up at the same time; otherwise they take turns."""
        return self._arm_hosts.at_once

    def hosts(self, arm) -> list[str]:
        """The names of an arm's hosts in this repeat; none where the experiment names none."""
        return self._arm_hosts.hosts(self.point.repeat).get(arm, [])

    @property
    def _arm_hosts(self):
        return self.study.experiments[self.point.experiment].arm_hosts

    def slices(self, rounds: int) -> list[paired.Slice]:
        """The point's slices in the order in which to measure them, `rounds` of each arm, to be given
        their `rows` and `metrics` and to record_slices.

        Arms that are up at once alternate (A B, B A ...), first the one and in the next repeat the other.
        Those that take turns are measured one after the other.
        """
        arms, repeat = self.point.arm_values, self.point.repeat
        if not arms:
            raise InputError("this point has no paired parameter", key=f"experiment {self.point.experiment}",
                             allowed="slices with study.experiment(..., paired={parameter: values})")
        found = paired.order(arms, rounds, repeat) if self.at_once else paired.in_turns(
            arms, rounds, repeat, self._is_up(arms))
        return [paired.Slice(arm, number, point=self.point.of(arm), hosts=self.hosts(arm))
                for number, arm in found]

    def _is_up(self, arms):
        """An arm that an earlier point of this block has left set up, or None."""
        assert self.lab
        return next((arm for arm in self.study.session.arms() if arm in arms), None)

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
        self._end_of_measuring()
        if self.point.paired:
            raise InputError("this point has paired arms", key=f"experiment {self.point.experiment}",
                             allowed="record_slices")
        import pandas as pd

        metrics = dict(metrics or {})
        _check_metrics(metrics, self.point)
        frame = self._redacted(rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows or []))
        self._recorded = self._tables(frame, series) | {"summary": summarise(frame) | metrics,
                                                        "facts": dict(facts or {})}

    def record_slices(self, slices, metrics=None, arm_metrics=None, facts=None, series=None) -> None:
        """Set the result of a point with paired arms, as `record` does.

        slices: labbook.study.paired.Slice, each with its arm, number, rows and metrics; slices of one
        number are a pair. metrics: of the point, shared by its arms. arm_metrics: {arm: metrics}, which
        override what is computed from the slices. The rows get the columns of the paired parameter and
        `slice`. InputError for an unknown arm, one without a slice, and two slices that are the same.
        """
        self._end_of_measuring()
        slices, metrics, further = list(slices), dict(metrics or {}), arm_metrics or {}
        parameter, = self.point.paired or [None]
        paired.check_slices(slices, parameter, self.point.arm_values)
        paired.check_arms(further, parameter, self.point.arm_values)
        for given in (metrics, *(one.metrics for one in slices), *further.values()):
            _check_metrics(given, self.point)
        for one in slices:
            one.rows = self._redacted(paired.rows_of(one))
        self._recorded = self._tables(paired.frame(slices, parameter), series) | {
            "summary": metrics, "facts": dict(facts or {}),
            "arms": paired.arm_results(slices, self.point.arm_values, further),
            "slices": [{"arm": one.arm, "number": one.number, "summary": summary}
                       for one, summary in zip(slices, paired.summaries(slices))]}

    def _end_of_measuring(self):
        # Here, so that it excludes the time of writing the record.
        self._hosts = self.study.watcher.table() if self._lab is not None else None
        self._during = provenance.during(self._start, self._reference_ms)
        if again := self.study.run.noise.again.get(self.point.key):
            self._during["measured_again"] = again
        if self.point.paired:
            self._during["arms_at_once"] = self.at_once
        if self._recorded is not None:
            raise LabbookError("record() was called twice in this attempt")

    def _tables(self, frame, series) -> dict:
        """The tables of the rows and of each named series, with what the hosts did as the series `hosts`."""
        import pyarrow as pa

        series = ({watcher.NAME: self._hosts} if self._hosts is not None else {}) | (series or {})
        for name in series:
            if not SERIES_NAME.fullmatch(name):
                raise InputError(f"{name!r} is not a valid name of a series", allowed="a-z, 0-9 and _")
        return {"table": pa.Table.from_pandas(frame, preserve_index=False),
                "series": {n: pa.Table.from_pandas(self._redacted(f), preserve_index=False)
                           for n, f in series.items()}, "load_starts": list(clock.starts)}

    def _redacted(self, frame):
        """The frame without addresses and user names in its text columns."""
        texts = frame.select_dtypes(("object", "string", "category")).columns
        return frame.assign(**{column: frame[column].map(self._redact) for column in texts})

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
        self.study.run.succeeded(point, meta["took_s"], self._set_up_s)
        self.study.run.noise.note(point.key, meta["provenance"]["during"])
        for params, arm in zip(point.arms, meta.get("arms") or [{"summary": {}}]):
            check_metrics(self.study, point, meta["summary"] | arm["summary"], params)

    def _write_failure(self, error):
        took = clock.now() - self._start["time"]
        message = _message(error)
        message = "; ".join([message, *(short for short in self._shortages() if short not in message)])
        failure = self._about() | {
            "message": self._redact(message), "error": type(error).__name__,
            "logs": self._redact(_logs(error)),
            "took_s": took, "provenance": self._provenance({})}     # without facts: a broken lab may not answer
        trace = self._redact("".join(traceback.format_exception(error)))
        self.study.records(self.point.experiment).write_failure(self.point.key, failure, trace)
        self.study.run.failed(self.point, took, failure["message"])

    def _shortages(self) -> list[str]:
        """What the lab's hosts lacked, in words."""
        found = []
        for ask in (self._lab.short_of_memory, self._lab.short_of_space, self._lab.broken_disks) if self._lab else ():
            with suppress(LabbookError):    # a broken lab may not answer
                found += ask()
        return found

    def _meta(self) -> dict:
        if self._recorded is None:
            raise LabbookError("the attempt ended without record()")
        links, failed = {}, self.study.records(self.point.experiment).failure(self.point.key)
        if failed and self.study.run.is_stale(failed):
            failed = None       # it is of earlier code or versions
        if self._lab:
            if short := self._lab.short_of_space():
                raise LabError("; ".join(short), remedy="Free some space, or name a roomier `state` or root")
            if broken := self._lab.broken_disks():
                raise LabError("; ".join(broken))
            links = {"before": self._links_before, "after": self._lab.check_links()}
        result = {k: v for k, v in self._recorded.items() if k not in ("table", "series")}
        about = self._about() | result | {"provenance": self._provenance(self.study.session.facts()) | {
            "links": links} | ({"failed_first": failed["message"]} if failed else {})}
        return self._redact(about | {"took_s": clock.now() - self._start["time"]})

    def _about(self) -> dict:
        point = self.point
        return {"key": point.key, "label": point.label, "study": self.study.name,
                **({"paired": point.paired} if point.paired else {}),
                "experiment": point.experiment, "setup": point.setup, "vary": point.vary,
                "repeat": point.repeat, "block": point.block, "order": point.order,
                "seed": point.seed, "fingerprint": self.study.fingerprint.code,
                "profile": self.study.run.profile, "environment": str(self.study.environment)}

    def _provenance(self, lab: dict) -> dict:
        return {"machine": provenance.machine(), "code": provenance.code(),
                "versions": self.study.fingerprint.versions,
                "during": self._during or provenance.during(self._start), "lab": lab}


def _check_metrics(metrics: dict, point) -> None:
    for name, value in metrics.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"{name!r} is not a valid name of a metric")
        if name in point.params or name in point.paired or name in COLUMNS:
            raise InputError("a parameter or column already has this name", key=f"metric {name}")
        if isinstance(value, dict):
            raise InputError("a metric cannot be a dict", key=f"metric {name}",
                             allowed="a number, text or a list of numbers")


def _message(error) -> str:
    return in_words(type(error).__name__, str(error).partition("\n")[0])


def _logs(error) -> list[str]:
    """Log tails of the error and of its causes."""
    logs = []
    while error is not None:
        if getattr(error, "log", None):
            logs.append(str(error.log))
        error = error.__cause__ or error.__context__
    return logs
