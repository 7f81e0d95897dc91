"""`labbook run --until-decided`: rounds in which a study's claims get repeats until they are decided.

A first execution of the notebook measures nothing and says where the claims stand and what a repeat takes.
Each round is an execution that ends at `study.complete()`. The page is made by a round that decides the last
open claims, or by an execution of its own.
"""

import json
import math
import statistics
import sys
import time
from dataclasses import dataclass, replace
from functools import cached_property

from labbook import paths
from labbook.checks import did_you_mean, load_yaml
from labbook.claims import claims
from labbook.claims.looks import LOOKS
from labbook.claims.selection import is_tested
from labbook.errors import InputError
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.driver import Driver
from labbook.pipeline.executing.progress import duration
from labbook.pipeline.running import planner, totals

WHICH = ("headline", "paper", "all")
ROUND_S = 8.0       # a round's execution beside its points, before one was timed
PAGE_ROUNDS = 2     # what making the page takes, in executions that only plan
# Of the time that lab.yml allows: how much longer a run may go on, for claims that are expected to be decided then. An
# experiment under way goes on by itself: to bring its systems up again takes a minute.
OVERTIME = 0.5


@dataclass(frozen=True)
class Question:
    """What is asked of a study: `which` of its claims, one of WHICH or ids with commas between; seconds: at most, or
    None. quick: it is lab.yml that asks, so the run is over when its time is. profile: in which they are asked.
    without: ids of those that lab.yml leaves out, since they take longer."""

    study: str
    which: str
    seconds: float | None = None
    quick: bool = False
    profile: str = "quick"
    without: tuple = ()

    @cached_property
    def claims(self) -> tuple:
        """Their ids, but for those that no measurement decides."""
        return tuple(one for one in ids(self.study, self.which) if one not in self.without)

    def is_answered(self, board: dict) -> bool:
        """Whether a page with this board, made of today's claims, answers it."""
        over = self.quick and not board.get("cut")
        asked = board.get("which") in (self.which, "all") and set(self.claims) <= set(board.get("claims", ()))
        return asked and (over or is_finished(board))


def question(study: str, options) -> Question | None:
    """What `labbook run` with these options asks of a study; None: its experiments as declared.

    Without --until-decided it is what lab.yml says under `quick`, unless parameters are given.
    """
    if options.published:
        return None
    if options.which:
        return Question(study, options.which, profile=options.profile)
    file = paths.papers(study) / "lab.yml"
    if options.profile != "quick" or options.given or not file.is_file():
        return None
    lab = load_yaml(file)       # all its keys are checked before a run starts
    quick = lab.get("quick") if isinstance(lab, dict) else None
    whole = isinstance(quick, dict) and quick.get("claims") in WHICH and isinstance(quick.get("seconds"), (int, float))
    without = tuple(map(str, quick.get("without") or ())) if whole else ()
    return Question(study, quick["claims"], quick["seconds"], quick=True, without=without) if whole else None


def with_claims(studies: list[str], options, named: bool) -> list[str]:
    """The studies that have claims of the kind that is asked. InputError for one without that a user
    `named` or whose lab.yml asks."""
    found = []
    for study in studies:
        asks = question(study, options)
        _check_without(asks)
        if asks is None or asks.claims:
            found.append(study)
        elif asks.quick:
            raise InputError(f"the quick profile is for {asks.which} claims, and measurements decide none of these",
                             file=paths.papers(study) / "lab.yml", key="quick.claims",
                             allowed=" or ".join(which for which in WHICH if ids(study, which)) or None)
        elif named:
            raise InputError(f"no {kind(asks.which)} claim that measurements decide",
                             file=claims.path(study), key="--claims",
                             allowed=" or ".join(which for which in WHICH if ids(study, which)) or None)
        else:
            print(f"{study}: no {kind(asks.which)} claim that measurements decide", file=sys.stderr)
    return found


def _check_without(asks: Question | None) -> None:
    """InputError for a claim that lab.yml leaves out of a quick run which would not ask it."""
    known = ids(asks.study, asks.which) if asks and asks.without else ()
    for name in asks.without if asks else ():
        if name not in known:
            raise InputError(f"the quick profile does not measure for a claim {name!r}{did_you_mean(name, known)}",
                             file=paths.papers(asks.study) / "lab.yml", key="quick.without", allowed=known)


def check_ids(studies, which) -> None:
    """InputError for an id of `--claims` that none of these studies has."""
    known = [name for study in studies for name in ids(study, "all")]
    for name in which.split(",") if which and which not in WHICH else ():
        if name not in known:
            raise InputError(f"no claim {name!r} that measurements decide{did_you_mean(name, [*WHICH, *known])}",
                             key="--claims", allowed=f"{', '.join(WHICH)}, or ids of claims with commas between")


def kind(which: str) -> str:
    """A word for the claims that are asked."""
    return which if which in WHICH else "named"


def share(options, studies: int):
    """The options for the next of so many studies: each of those left gets as much of the time of an ask."""
    if not options.which or options.until is None:
        return options
    now = time.time()
    return replace(options, until=now + max(options.until - now, 0) / studies)


def ids(study: str, which: str) -> tuple:
    """Ids of the claims that are headline, the paper's own, all, or named, but for those that no measurement
    decides."""
    named = which.split(",")
    chosen = {"headline": lambda one: one.get("headline", False),
              "paper": lambda one: one.get("owner", "paper") == "paper", "all": lambda one: True}.get(
                  which, lambda one: one["id"] in named)
    return tuple(one["id"] for one in claims.load(study) if is_tested(one) and chosen(one))


@dataclass(frozen=True)
class Answer:
    """How an ask ended. story: of its last execution. board: see `_board`. points, lab_time: of all executions."""

    outcome: object
    story: object
    board: dict
    points: dict
    lab_time: dict


class Asking:
    """The rounds of one study; `variables` and `chosen` as a Driver takes them, until: epoch s or None."""

    def __init__(self, study, chosen, partial, variables, asks: Question, until=None, bar=None):
        self.study, self._chosen, self._partial, self._variables = study, chosen, partial, variables
        self.asks, self._bar = asks, bar
        self._until, self._began, self._built_s = until, time.time(), 0.0
        self._measured = self._failed = 0
        self._lab_time = {}
        self._stop = self._overtime = None
        self.board, self.survey = {}, None

    def run(self, interrupts) -> Answer:
        """Ask until every claim is decided, cannot be, or would take longer than the time. totals.Refused of
        wrong input."""
        began = time.monotonic()
        outcome, story = self._execute(interrupts, {}, LABBOOK_PLAN="1")
        totals.check_input(outcome)
        round_s = time.monotonic() - began
        while story.survey and outcome.state == pages.PAUSED:
            before, self.survey = self.survey, _updated(self.survey, story.survey)
            following = self.next_round(round_s)
            if not following.repeats or before == self.survey:
                break
            outcome, story = self._execute(interrupts, following.repeats, claims=following.claims)
        else:
            if outcome.state == pages.OK and story.survey:     # the last round went on to the page
                self.survey = _updated(self.survey, story.survey)
                self.next_round(round_s)
            return self._answer(outcome, story)
        outcome, story = self._execute(interrupts, {}, page=True)
        return self._answer(outcome, story)

    def next_round(self, round_s: float) -> planner.Round:
        """The next round, by the last survey; the board shows it."""
        until = self._time_is_up()
        following, board = self._chosen_round(until, round_s)
        self.board = board | {"cut": self._is_cut(following, until)}
        return following

    def _chosen_round(self, until, round_s, workers=1) -> tuple[planner.Round, dict]:
        """The round that fits the time, of a quick run perhaps its overtime. workers: how many machines measure at the
        same time."""
        self._stop = None if until is None else until - PAGE_ROUNDS * round_s
        self._overtime = None if not self.asks.quick else (
            _earliest(self._until, until + OVERTIME * self.asks.seconds) - PAGE_ROUNDS * round_s)
        following, board = next_round(self.asks, self.survey, _for_all(self._stop, workers), round_s)
        if self.asks.quick and not following.repeats and following.late:
            self._stop = self._overtime
            following, board = last_rounds(self.asks, self.survey, _for_all(self._stop, workers), round_s)
        return following, board

    def _is_cut(self, following, until) -> bool:
        """Whether the time of the command (--for) ends before claims would be decided, and not that of lab.yml."""
        return bool(following.late) and until is not None and until == self._until

    def _time_is_up(self) -> float | None:
        """Epoch s, or None. What lab.yml allows is without what was built for the cache on the way."""
        return _earliest(self._until, self.asks.seconds and self._began + self.asks.seconds + self._built_s)

    def _execute(self, interrupts, repeats, claims=None, page=False, **more):
        last = bool(repeats) and {one["id"] for one in self.board["open"]} <= set(claims)
        given = {**self._variables, **more, **variables(self.asks, repeats, claims, page, last)}
        given.pop("LABBOOK_UNTIL", None)
        if repeats and self._stop is not None:
            given["LABBOOK_UNTIL"] = repr(self._stop)
        if repeats and self._overtime is not None:
            given["LABBOOK_OVERTIME"] = repr(self._overtime)
        driver = Driver(self.study, self._chosen, self._partial, given, board=self.board, since=self._began)
        outcome = driver.run(interrupts, self._bar.show if self._bar else lambda story: None)
        if driver.story.survey:
            self._built_s += driver.story.survey.pop("built_s", 0.0)
        self._measured += driver.story.measured
        self._failed += driver.story.failed
        for name, seconds in driver.story.lab_time().items():
            self._lab_time[name] = round(self._lab_time.get(name, 0.0) + seconds, 1)
        return outcome, driver.story

    def _answer(self, outcome, story) -> Answer:
        if outcome.state == pages.PAUSED:   # a notebook of its own accord, or one without a survey
            outcome = replace(outcome, state=pages.FAILED, error={
                "name": "Stopped", "message": "the notebook stopped before study.complete()", "cell": None,
                "log": None})
        recorded = _recorded(self.survey)
        if outcome.state != pages.OK:       # the survey is of before the execution that was cut short
            recorded += story.measured
        total = recorded if outcome.state == pages.OK else recorded + max(story.total - story.done, 0)
        return Answer(outcome, story, self.board, {"done": recorded, "total": total, "measured": self._measured,
                                                   "failed": self._failed}, self._lab_time)


def variables(asks: Question, repeats=None, claims=None, page=False, last=False) -> dict:
    """Of the kernel, for a round with so many repeats of each experiment; see labbook.study.ask."""
    return {"LABBOOK_ASK": json.dumps({"claims": list(asks.claims if claims is None else claims),
                                       "repeats": repeats or {}, "page": page, "last": last})}


@dataclass(frozen=True)
class Expected:
    """What a run is expected to do. points: those up to the next look of each open claim, and look_s their seconds.
    seconds: of the run; most_s: None without a limit. experiments: {name: s}, if time is not short. more_s: how much
    longer than most_s it may go on for claims that are expected to be decided then."""

    points: int
    look_s: float
    seconds: float
    most_s: float | None
    board: dict
    experiments: dict
    more_s: float = 0.0

    def lines(self, verbose: bool) -> list[str]:
        """How many claims have a verdict, what each experiment takes, and which claims are open: a line each
        if verbose."""
        board = self.board
        of_kind = "" if board["which"] == "all" else f"{kind(board['which'])} "
        asked = board["asked"] - len(board["closed"])
        found = [f"repeats until {asked} {of_kind}claims have a verdict; {board['decided']} have one"]
        each = [f"{name} {duration(seconds)}" for name, seconds in self.experiments.items() if seconds]
        found += [f"until all have one: {', '.join(each)}"] if each else []
        found += [f"up to {duration(self.more_s)} beyond the time limit for claims that are expected to be decided "
                  "then"] if self.more_s else []
        return [f"  {line}" for line in [*found, *(open_lines(board) if verbose else _open_briefly(board))]]


def expected(study: str, asks: Question, survey: dict, until: float | None, round_s: float = ROUND_S) -> Expected:
    """What a dry run says. until: epoch s, or None; round_s: what an execution that only plans took.

    Where time is short, the last point begins before the time is up and is half done then.
    """
    until = _earliest(until, asks.seconds and time.time() + asks.seconds)
    following, board = next_round(asks, survey, until and until - PAGE_ROUNDS * round_s, round_s)
    most = until and max(until - time.time(), 0.0)
    seconds = board["seconds"] + round_s
    if most is not None and seconds > most:
        seconds = most + _point_s(survey, following) / 2
    points, look_s = planner.next_look(survey, LOOKS, _default(asks, survey))
    return Expected(points, look_s, seconds, most, board, following.experiments,
                    OVERTIME * asks.seconds if asks.quick else 0.0)


def _point_s(survey, following) -> float:
    """Mean seconds of a point of the experiments of a round; 0 where nothing is known."""
    known = [one for name in following.repeats for one in survey["experiments"][name]["point_s"] or ()]
    return sum(known) / len(known) if known else 0.0


def _open_briefly(board) -> list[str]:
    """One line for all open claims, one for those that take too long and one for those left out."""
    late = [one["id"] for one in board["open"] if one["late"]]
    soon = [one["id"] for one in board["open"] if not one["late"]]
    closed = [one["id"] for one in board["closed"]]
    return [f"{label}: {', '.join(names)}" for label, names in (
        ("open", soon), ("open, and would take longer than the time limit", late), ("left out", closed)) if names]


def next_round(asks, survey, stop, round_s) -> tuple[planner.Round, dict]:
    """The next round and the board; stop: when its last point may start, epoch s, or None."""
    left = math.inf if stop is None else max(stop - time.time(), 0.0)
    following = planner.plan(survey, LOOKS, left, round_s=round_s, default_s=_default(asks, survey))
    return following, _board(survey, following, asks, PAGE_ROUNDS * round_s)


def last_rounds(asks, survey, stop, round_s) -> tuple[planner.Round, dict]:
    """As next_round, but only for claims that are expected to be decided until then."""
    following, board = next_round(asks, survey, stop, round_s)
    soon = set(following.claims) - set(following.late)
    if not soon:
        return next_round(asks, survey, 0.0, round_s)
    seconds = max(following.seconds[one] for one in soon)
    return replace(following, total_s=seconds), board | {"seconds": round(seconds + PAGE_ROUNDS * round_s, 1)}


def _updated(before: dict | None, survey: dict) -> dict:
    """The survey of a round, whose claims are some of those asked, with what was known of the others."""
    now = {one["id"]: one for one in survey["claims"]}
    return survey if before is None else survey | {
        "claims": [now.get(one["id"], one) for one in before["claims"]]}


def _for_all(stop, workers):
    """The end (epoch s, or None) of a single machine's work that so many machines do by `stop`."""
    return stop and time.time() + max(stop - time.time(), 0) * workers


def _earliest(*ends) -> float | None:
    return min((end for end in ends if end is not None), default=None)


def _recorded(survey) -> int:
    """How many recorded points the asked claims and the experiments that no claim reads have."""
    if not survey:
        return 0
    places = {}
    for one in survey["claims"]:
        places.setdefault(one["experiment"], set()).update(one["points"])
    return sum(survey["experiments"][name]["done"][place] for name, each in places.items() for place in each) + sum(
        one["declared"] - one["left"] for one in survey["unread"].values())


def _default(asks: Question, survey) -> float:
    """Seconds of a point of which nothing is known: what the study's other points take, here or else in what is
    published, or by the profile's minutes in lab.yml; 5 without."""
    known = [s for one in survey["experiments"].values() for s in one["point_s"] or ()]
    if known:
        return statistics.fmean(known)
    points = sum(one["declared"] for part in ("experiments", "unread") for one in survey[part].values())
    return totals.published_point_s(asks.study) or totals.point_s(asks.study, asks.profile, points) or 5.0


def _board(survey, following, asks, page_s) -> dict:
    """The state of an ask: which ("headline"), claims (ids), asked, decided, open ([{id, seconds
    (from at_s until it is decided), repeats, needed, late}]), closed ([{id, why}]), now ({experiment: {repeats,
    claims}}), at_s (epoch), seconds (from at_s to the end). An Asking adds cut (see Asking._is_cut)."""
    known = planner.claims_of(survey)
    waiting = [one for one in known if one.id in following.seconds]
    decided = [one for one in known if planner.is_decided(one)]
    closed = [one for one in known if one not in waiting and one not in decided]
    return {
        "which": asks.which, "claims": list(asks.claims), "asked": len(known) + len(asks.without),
        "decided": len(decided),
        "open": [{"id": one.id, "repeats": one.repeats, "needed": one.needed,
                  "seconds": round(following.seconds[one.id], 1), "late": one.id in following.late}
                 for one in waiting],
        "closed": [{"id": one.id, "why": _why_closed(one)} for one in closed]
        + [{"id": one, "why": "it takes longer than the quick profile"} for one in asks.without],
        "now": {name: {"repeats": repeats, "claims": [one.id for one in waiting if one.experiment == name
                                                      and one.id in following.claims]}
                for name, repeats in following.repeats.items()},
        "at_s": time.time(), "seconds": round(following.total_s + page_s, 1)}


def _why_closed(claim) -> str:
    if not claim.places:
        return "this profile has no point of it"
    return (f"open after the last look, {claim.repeats} repeats" if claim.repeats >= LOOKS[-1]
            else claim.verdict)


def is_finished(board: dict) -> bool:
    """Whether further repeats would decide nothing more."""
    return bool(board) and not board["open"]


def headline(board: dict) -> str:
    """The state of an ask in a few words."""
    return (f"{board['decided']} of {board['asked']} {kind(board['which']).replace('all', '')} claims decided"
            .replace("  ", " "))


def lines(board: dict) -> list[str]:
    """The whole state of an ask: the claims decided, what is asked now, and each claim that is not decided."""
    now = [f"now: {name}, up to {one['repeats']} repeats, for {', '.join(one['claims'])}"
           for name, one in board["now"].items()]
    return [headline(board), *now, *open_lines(board)]


def open_lines(board: dict) -> list[str]:
    """A line for each claim that is not decided: how many repeats it has, and when it would be."""
    lines = []
    for one in board["open"]:
        late = ", longer than the time limit" if one["late"] else ""
        lines.append(f"open: {one['id']}, {one['repeats']} repeats, {_expected_in_words(one)}, "
                     f"about {duration(one['seconds'])}{late}")
    return lines + [f"left out: {one['id']}, {one['why']}" for one in board["closed"]]


def _expected_in_words(one) -> str:
    """What is expected of an open claim at the end of its seconds. Before its first look, that is the look."""
    if not one["repeats"]:
        return "not judged yet"
    if one["repeats"] < LOOKS[0]:
        return f"judged after {LOOKS[0]}"
    return f"needs about {one['needed']} repeats" if one["needed"] else "may need more than the last look"
