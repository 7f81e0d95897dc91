"""Two runs, machines or versions side by side: which verdicts changed, and which measures moved.

A measure's move is B over A where both are above 0, otherwise B minus A. Its interval goes from the
lowest that both intervals allow to the highest, so it holds at a level of 1 less both chances of
error: two intervals of 95 % give 90 %.
"""

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from labbook.claims import claims
from labbook.claims.decisions import amount, number
from labbook.errors import InputError
from labbook.pipeline.publishing.outcomes import DECIDED
from labbook.study.publication import published, published_verdicts

REVERSED, AGREE, DECIDED_NOW, OPEN_NOW, OPEN = "reversed", "agree", "decided in B only", "decided in A only", "open"
CHANGES = (REVERSED, OPEN_NOW, DECIDED_NOW, AGREE, OPEN)
LEAST_LEVEL = 0.899     # of a move: that of two intervals of 95 %, which is 0.9
ALLOWED = "quick, published, published:MACHINE, or the path of a claims.json or of a folder of them"


@dataclass(frozen=True)
class Move:
    """How a measure moved from A to B: the ratio, or the difference in `unit`, with [low, high] at a
    level; low and high are None where an interval has no end."""

    ratio: bool
    value: float
    low: float | None
    high: float | None
    level: float
    unit: str

    def is_clear(self) -> bool:
        """Whether there is an interval, and it lies on one side of no move. Of fewer than six repeats there is but a
        range."""
        if self.level < LEAST_LEVEL:
            return False
        same = 1.0 if self.ratio else 0.0
        return self.low is not None and self.low > same or self.high is not None and self.high < same

    def words(self) -> str:
        unit = "times" if self.ratio else self.unit
        low, high = ("unbounded" if end is None else number(end, unit, 3) for end in (self.low, self.high))
        return f"{amount(self.value, unit, 3)} ({low} to {high}, {100 * self.level:.0f} %)"


@dataclass(frozen=True)
class Pair:
    """A claim measured in A and in B: both verdicts, what changed (one of CHANGES), and the move of
    its measure, None where one has none."""

    study: str
    id: str
    statement: str
    a: dict
    b: dict
    change: str
    move: Move | None


def load(name: str, studies) -> dict[str, dict[str, dict]]:
    """{study: {claim's id: verdict}} of one side; InputError for what does not exist.

    `quick` is the last run of this checkout, whatever its profile, and no page of published sets; `published` the set
    that pages show first; `published:MACHINE` that of a machine (see data/published); a path: a claims.json, or a
    folder of claims.json or STUDY.json files, such as another checkout's build/claims or
    data/published; of several files of a study the one in which most claims are measured.
    """
    if name == "quick":
        return {study: _by_id(one for one in claims.verdicts(study) if one.get("run") != "published")
                for study in studies}
    if name == "published" or name.startswith("published:"):
        return _published(name.partition(":")[2], studies)
    return {study: found for study, found in _of_path(Path(name)).items() if study in studies}


def _published(machine, studies) -> dict:
    sets = {study: published.sets(study) for study in studies}
    known = sorted({one for each in sets.values() for one in each})
    if machine and machine not in known:
        raise InputError(f"no published set of the machine {machine!r}", allowed=known)
    chosen = {study: machine if machine in each else each[0] if each and not machine else None
              for study, each in sets.items()}
    return {study: _by_id(published_verdicts.verdicts(study, one)) for study, one in chosen.items() if one}


def _of_path(path: Path) -> dict:
    if not path.exists():
        raise InputError("nothing of this name to compare", file=path, allowed=ALLOWED)
    files = [path] if path.is_file() else [*sorted(path.glob("*.json")), *sorted(path.glob("**/claims.json"))]
    found = {}
    for file in files:
        read = _read(file, needed=path.is_file())
        for study in {one["study"] for one in read}:
            of_study = _by_id(one for one in read if one["study"] == study)
            if _measured(of_study) > _measured(found.get(study, {})) or study not in found:
                found[study] = of_study
    if not found:
        raise InputError("no verdicts in this folder", file=path, allowed=ALLOWED)
    return found


def _measured(verdicts: dict) -> int:
    return sum(map(published_verdicts.is_measured, verdicts.values()))


def _read(file: Path, needed: bool) -> list[dict]:
    """The verdicts of a file; none of one that holds something else, unless it is the one asked for."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        found = data["claims"] if isinstance(data, dict) else data
        return [one for one in found if {"study", "id", "verdict"} <= set(one)]
    except (ValueError, KeyError, TypeError) as error:
        if needed:
            raise InputError(f"not a file of verdicts ({error})", file=file, allowed=ALLOWED) from error
        return []


def _by_id(verdicts) -> dict[str, dict]:
    return {one["id"]: one for one in verdicts}


def pairs(a: dict, b: dict) -> list[Pair]:
    """A Pair for each claim that is measured in both sides (see `load`), by study."""
    found = []
    for study in a:
        for name, one in a[study].items():
            other = b.get(study, {}).get(name)
            if other and all(map(published_verdicts.is_measured, (one, other))):
                found.append(Pair(study, name, one.get("statement", ""), one, other,
                                  change(one["verdict"], other["verdict"]), move(one, other)))
    return found


def change(a: str, b: str) -> str:
    """What became of a verdict, one of CHANGES."""
    if a in DECIDED and b in DECIDED:
        return AGREE if a == b else REVERSED
    return DECIDED_NOW if b in DECIDED else OPEN_NOW if a in DECIDED else OPEN


def move(a: dict, b: dict) -> Move | None:
    """The move of a claim's measure; None without numbers, or if its unit differs."""
    if a.get("measured") is None or b.get("measured") is None or a.get("unit") != b.get("unit"):
        return None
    level = max(0.0, 1 - (1 - (a["level"] or 0)) - (1 - (b["level"] or 0)))
    ends = [a.get("low"), a.get("high"), b.get("low"), b.get("high")]
    a_low, a_high, b_low, b_high = ends
    if min(end for end in (a["measured"], b["measured"], *ends) if end is not None) > 0:
        return Move(True, b["measured"] / a["measured"], _both(b_low, a_high, lambda x, y: x / y),
                    _both(b_high, a_low, lambda x, y: x / y), level, a["unit"])
    return Move(False, b["measured"] - a["measured"], _both(b_low, a_high, lambda x, y: x - y),
                _both(b_high, a_low, lambda x, y: x - y), level, a["unit"])


def _both(x, y, of):
    return None if x is None or y is None else of(x, y)


def counts(found: list[Pair]) -> dict[str, int]:
    """{change: how many}, in the order of CHANGES."""
    counted = Counter(pair.change for pair in found)
    return {change: counted[change] for change in CHANGES if counted[change]}


def agreement(found: list[Pair]) -> str:
    """How many of the claims decided in both agree, in words."""
    both = [pair for pair in found if pair.change in (AGREE, REVERSED)]
    agree = sum(pair.change == AGREE for pair in both)
    share = f" ({agree / len(both):.0%})".replace("%", " %") if both else ""
    return (f"{len(found)} claim{'s' * (len(found) != 1)} measured in both; "
            f"{len(both)} decided in both, {agree} of them alike{share}")


def as_data(found: list[Pair]) -> list[dict]:
    """For programs: a dict a claim."""
    return [asdict(pair) | {"moved": bool(pair.move and pair.move.is_clear())} for pair in found]
