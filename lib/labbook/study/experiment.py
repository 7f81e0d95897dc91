"""An experiment: a named grid of points, and the order in which they are measured."""

import random
import re
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, groupby, product
from keyword import iskeyword

from labbook.claims.decisions import BY_SIGHT
from labbook.errors import InputError
from labbook.study import arm_hosts, ask
from labbook.study.point import Point, digest, values
from labbook.study.summary import COMPUTED

NAME = re.compile(r"[a-z][a-z0-9_-]{0,59}")
# Columns of every summary; no parameter may have such a name.
COLUMNS = ("point", "repeat", "block", "order", "stale", "slice")
RESERVED = {name for name in dir(Point) if not name.startswith("_")} | set(
    Point.__dataclass_fields__) | set(COMPUTED) | set(COLUMNS) | {"client_limited"}


def grid(name: str, setup: dict, vary: dict, repeats: int, leave_out=None, paired=None) -> list[Point]:
    """The points in the order of measurement, without those for which `leave_out(point)` is true.

    Each repeat is one sweep over the set-ups, alternately forward and backward (A B B A ...), so
    that a slow drift of the machine affects all set-ups alike. Within each block the points are in
    random order, so that none is always first. The seed depends only on the block. With 0 repeats
    the list is empty. Each point has the arms of `paired`, but for those for which `leave_out(arm)` is
    true; a point without arms is left out. InputError for invalid names and values.
    """
    check(name, setup, vary, repeats, paired)
    arms = {n: values(n, v) for n, v in (paired or {}).items()}
    for parameter, listed in arms.items():
        if len(listed) < 2:
            raise InputError(f"{len(listed)} value to pair", key=f"experiment {name}: parameter {parameter}",
                             allowed="two values or more in paired; one value belongs in setup")
    setups = _settings({n: values(n, v) for n, v in setup.items()})
    inner = _settings({n: values(n, v) for n, v in vary.items()})
    points, block = [], 0
    for repeat in range(1, repeats + 1):
        for setting in setups if repeat % 2 else reversed(setups):
            block += 1
            seed = int(digest([name, sorted(setting.items()), repeat])[:8], 16)
            drawn = random.Random(seed).sample(inner, len(inner))
            points += [Point(name, setting, given, repeat, block, order, seed, arms)
                       for order, given in enumerate(drawn, 1)]
    return points if leave_out is None else [left for p in points for left in _without(p, leave_out)]


def _without(point: Point, leave_out) -> list[Point]:
    """The point with the arms that are not left out, or no point."""
    if not point.paired:
        return [] if leave_out(point) else [point]
    values = [value for value in point.arm_values if not leave_out(point.of(value))]
    return [replace(point, paired=dict.fromkeys(point.paired, values))] if values else []


def _settings(parameters: dict) -> list[dict]:
    return [dict(zip(parameters, chosen)) for chosen in product(*parameters.values())]


def check(name, setup, vary, repeats, paired=None) -> None:
    """InputError for invalid names of the experiment or its parameters, and for invalid `repeats`."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(f"{name!r} is not a valid name of an experiment",
                         allowed="a letter, then a-z, 0-9, - and _")
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 0:
        raise InputError(f"{repeats!r} repeats", key="repeats",
                         allowed="a whole number from 0 up; 0 leaves the experiment out")
    paired = _one_parameter(name, paired)
    for parameter in (*setup, *vary, *paired):
        key = f"experiment {name}: parameter {parameter}"
        if not isinstance(parameter, str) or not parameter.isidentifier() or iskeyword(parameter):
            raise InputError("not a valid Python name", key=key)
        if parameter in RESERVED or parameter.startswith("_"):
            raise InputError("this name is reserved", key=key,
                             allowed=f"any name but {', '.join(sorted(RESERVED))}")
    groups = {"setup": setup, "vary": vary, "paired": paired}
    for one, other in combinations(groups, 2):
        for parameter in set(groups[one]) & set(groups[other]):
            raise InputError(f"both in {one} and in {other}",
                             key=f"experiment {name}: parameter {parameter}",
                             allowed=f"one of {', '.join(groups)}")


def _one_parameter(name, paired) -> dict:
    """`paired` as a dict; InputError unless it is {parameter: values} of at most one parameter."""
    if paired is not None and not isinstance(paired, dict):
        raise InputError(f"{paired!r} is not a mapping", key=f"experiment {name}: paired",
                         allowed="{parameter: [values]}")
    if len(paired or {}) > 1:
        raise InputError(f"{len(paired)} paired parameters, {' and '.join(map(str, paired))}",
                         key=f"experiment {name}: paired", allowed="one parameter; the others in setup or vary")
    return paired or {}


class Experiment:
    """A study's grid of points and their records. Created by `study.experiment(...)`."""

    def __init__(self, study, name, setup=None, vary=None, repeats=1, leave_out=None, *, paired=None,
                 hosts=None, serves=None):
        self.study, self.name, self.serves = study, name, serves
        check(name, setup or {}, vary or {}, repeats, paired)       # before the cache, which takes no list as a number
        self.parameters = (*(setup or {}), *(paired or {}), *(vary or {}))
        self.planned = cache(partial(grid, name, setup or {}, vary or {}, leave_out=leave_out, paired=paired))
        self._points = self.planned(repeats)
        self.arm_hosts = arm_hosts.ArmHosts.of(study, name, paired or {}, hosts)

    def __repr__(self):
        from labbook.study.explorer import shown

        return shown.experiment(self)

    def _repr_html_(self) -> str:
        from labbook.study.explorer import shown

        return shown.experiment_table(self)

    def points(self) -> list[Point]:
        """The declared points, and those of further repeats that are recorded: see labbook.study.ask."""
        run = self.study.run
        return self.declared() + ([] if run.published else ask.further(self, run.is_valid))

    def declared(self) -> list[Point]:
        return list(self._points)

    def places(self) -> list[Point]:
        """The points of one repeat; none of an experiment that is left out (0 repeats)."""
        return self.planned(1) if self._points else []

    @property
    def is_paired(self) -> bool:
        return any(point.paired for point in self._points)

    def __len__(self):
        return len(self._points)

    def remaining(self):
        """Iterate over the points without a valid record, in blocks of one set-up.

        A point whose attempt fails is repeated once at the end of its block; one with paired arms that
        was measured in noise is measured again at once (see labbook.study.noise), but not for what claims need:
        there the same time makes a further repeat, which says more. The iteration stops when
        LABBOOK_UNTIL has passed. InputError for claims that do not fit the experiments.
        """
        run = self.study.run
        todo = run.begin(self)
        for _, block in groupby(todo, key=lambda point: point.block):
            for point in self._with_retries(run, list(block)):
                if run.time_is_up(self):
                    return
                yield point

    def _with_retries(self, run, block):
        failed = []
        for point in block:
            yield point
            while run.ask is None and not self._is_watched(point) and run.noise.wants(point):
                yield point
            if run.failed_now(point):
                failed.append(point)
        yield from failed

    def _is_watched(self, point) -> bool:
        """Whether a claim that one sight decides needs the point: what noise made visible was seen, and measuring
        again would lose it."""
        return any(claim["rule"]["name"] in BY_SIGHT and ask.needs(claim, point) for claim in self.study.claim_entries
                   if claim.get("experiment") == self.name)

    def summary(self):
        """DataFrame with a row for each arm of each recorded point: parameters, repeat, block, metrics."""
        from labbook.study.results import summary

        return summary(self)

    def metrics(self, rows) -> list[str]:
        """Names of the metrics that are numbers in these rows of the summary."""
        return [name for name in rows.select_dtypes("number") if name not in (*self.parameters, *COLUMNS)]

    def failures(self) -> list[dict]:
        """The failure records of points without a valid record."""
        return self.study.run.failures(self)

    def rows(self, point=None, /, **parameters):
        """DataFrame of the raw rows of a point: of a Point, or of the one recorded point with these
        parameters, such as `rows(clients=90, op="read", repeat=1)`; of a paired parameter's value those of
        that arm. InputError when no point on this machine has them, and when several do."""
        return self._raw(point, parameters)

    def series(self, point, name=None, /, **parameters):
        """DataFrame of a named series of a point: `series(point, "disk")`, or
        `series("disk", clients=90, repeat=1)`, which chooses as `rows` does."""
        if name is None:
            point, name = None, point
        return self._raw(point, parameters, name)

    def show(self, point=None, /, **parameters):
        """A point through time: its operations, and what each host of the lab did; chosen as `rows` does.
        InputError for a point that was measured without such series."""
        from labbook.study.explorer import showing

        return showing.of_experiment(self, point, parameters)

    def _raw(self, point, parameters: dict, series=None):
        from labbook.study.explorer import choosing

        records = self.study.records(self.name)
        if point is None:
            return choosing.rows(records, choosing.of_experiment(self, parameters), parameters, series)
        if parameters:
            raise InputError("a point, and parameters beside it", key=f"experiment {self.name}",
                             allowed="either a point or its parameters")
        return records.rows(point.key) if series is None else records.series(point.key, series)
