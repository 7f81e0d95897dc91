"""Claims of a paper, from data/papers/NAME/claims.yml, and their stored verdicts.

This module imports neither pandas nor matplotlib, so that `labbook claims` starts quickly.
"""

import fcntl
import json
import math
from functools import lru_cache
from pathlib import Path

from labbook import paths
from labbook.atomic_files import make_folder, open_lock, write_whole
from labbook.checks import check, did_you_mean, load_yaml
from labbook.claims.decisions import BY_SIGHT, RATE, tries_needed
from labbook.claims.looks import LOOKS
from labbook.claims.matrix import expand
from labbook.claims.schema import OPEN_ENDED, RULES, SCHEMA
from labbook.errors import InputError

__all__ = ["RULES", "board", "full_values", "load", "of_section", "paper_words", "path", "store",
           "verdicts", "verdicts_path"]


def path(study: str) -> Path:
    return paths.papers(study) / "claims.yml"


def load(study: str) -> list[dict]:
    """The claims of a study as dicts, in the order of claims.yml, with every matrix expanded and with the
    `owner` and `headline` that they do not name.

    Empty when the study has no claims.yml. InputError for the first mistake; it names file, key and
    what is allowed.
    """
    file = path(study)
    if not file.exists():
        return []
    claims = expand(load_yaml(file), file)
    try:
        check([] if claims is None else claims, SCHEMA, file)
    except InputError as error:
        error.key = _by_id(error.key, claims)
        raise
    ids = set()
    for claim in claims or []:
        claim.setdefault("owner", "paper")
        claim["headline"] = _is_headline(claim)
        if claim["id"] in ids:
            raise InputError("two claims have the same id", file=file, key=claim["id"])
        ids.add(claim["id"])
        _check_rule(claim["rule"], file, f"{claim['id']}.rule")
        _check_finite(claim["paper"], file, f"{claim['id']}.paper")
        for i, need in enumerate(claim.get("needs", ())):
            _check_range(need, file, f"{claim['id']}.needs.{i}")
    return claims or []


def _is_headline(claim) -> bool:
    """`headline` of a claim; of one that a matrix made it may be the list of the ids that it holds for."""
    headline = claim.get("headline", False)
    return claim["id"] in headline if isinstance(headline, list) else headline


def _by_id(key, claims):
    """The key with the claim's id in the place of its number: `faster.rule.name` for `3.rule.name`."""
    number, dot, rest = (key or "").partition(".")
    claim = claims[int(number)] if number.isdigit() else None
    named = isinstance(claim, dict) and isinstance(claim.get("id"), str)
    return f"{claim['id']}{dot}{rest}" if named else key


def _check_rule(rule, file, key):
    if "than" in rule and set(rule["of"]) != set(rule["than"]):
        raise InputError("`than` has other parameters than `of`", file=file, key=f"{key}.than",
                         allowed=", ".join(rule["of"]))
    if rule["name"] in OPEN_ENDED and not {"low", "high"} & set(rule):
        raise InputError("a bound is missing", file=file, key=key, allowed="low, high, or both")
    _check_ends(rule, file, key)
    _check_finite(rule, file, key)
    if rule["name"] in BY_SIGHT and rule.get("per") != "point" and tries_needed(rule.get("rate", RATE)) > LOOKS[-1]:
        raise InputError(f"what occurs so rarely is decided by no {LOOKS[-1]} repeats", file=file, key=f"{key}.rate",
                         allowed="0.05 or more, or per: point")
    if rule.get("along") in {**rule.get("of", {}), **rule.get("than", {})}:
        raise InputError("the rule follows this parameter, so that it selects no arm", file=file,
                         key=f"{key}.of.{rule['along']}")
    for name, want in rule.get("where", {}).items():
        if isinstance(want, dict):
            _check_range(want, file, f"{key}.where.{name}")
    both = set(rule.get("of", ())) & set(rule.get("where", ()))
    if both:
        raise InputError("this parameter already selects the arms", file=file,
                         key=f"{key}.where.{sorted(both)[0]}")


def _check_ends(rule, file, key):
    """InputError where nothing lies between low and high; a single point may lie where both are the same."""
    if not {"low", "high"} <= set(rule):
        return
    low, high, of_points = rule["low"], rule["high"], rule["name"] in BY_SIGHT
    if low > high or low == high and not of_points:
        raise InputError("nothing lies between low and high", file=file, key=f"{key}.low",
                         allowed=f"{'up to' if of_points else 'below'} {high:g}")


def _check_finite(data, file, key):
    """InputError for a number that is infinite or none (YAML's .inf and .nan), at any depth."""
    for name, value in data.items():
        if isinstance(value, dict):
            _check_finite(value, file, f"{key}.{name}")
        elif isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{value} is no number to compare with", file=file, key=f"{key}.{name}",
                             allowed="a finite number")


def _check_range(bounds, file, key):
    """InputError without at_least and at_most, and where no number is within."""
    _check_finite(bounds, file, key)
    if not {"at_least", "at_most"} & set(bounds):
        raise InputError("a bound is missing", file=file, key=key, allowed="at_least, at_most, or both")
    if {"at_least", "at_most"} <= set(bounds) and bounds["at_least"] > bounds["at_most"]:
        raise InputError("at_least is greater than at_most", file=file, key=f"{key}.at_least",
                         allowed=f"{bounds['at_most']:g} at most")


def of_section(claims: list[dict], section: str, file: Path) -> list[dict]:
    """The claims of one section; InputError when no claim has it."""
    chosen = [claim for claim in claims if claim["section"] == section]
    if not chosen:
        known = list(dict.fromkeys(claim["section"] for claim in claims))
        raise InputError(f"no claim has the section {section!r}{did_you_mean(section, known)}",
                         file=file, allowed=known)
    return chosen


def full_values(study: str) -> set[str]:
    """All strings among the values in the study's full.yml; empty without that file."""
    file = paths.papers(study) / "full.yml"
    return set(texts(load_yaml(file))) if file.exists() else set()


def texts(data):
    """Yield all strings among the values of nested lists and dicts."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, (dict, list)):
        for value in data.values() if isinstance(data, dict) else data:
            yield from texts(value)


def verdicts_path(study: str) -> Path:
    """build/claims/STUDY.json."""
    return paths.build_dir() / "claims" / f"{study}.json"


def verdicts(study: str) -> list[dict]:
    """The stored verdicts of a study, as dicts; empty before any claim was judged."""
    try:
        return json.loads(verdicts_path(study).read_text())
    except (FileNotFoundError, ValueError):     # none yet, or a damaged file, which the next verdict replaces
        return []


def store(study: str, *judged: dict) -> None:
    """Write verdicts to build/claims/STUDY.json; each replaces an earlier one of the same claim.

    Stored verdicts of claims that claims.yml no longer has are dropped. A lock serialises writers.
    """
    file = verdicts_path(study)
    make_folder(file.parent)
    order = _ids(study, _state(path(study)))
    with open_lock(file.with_suffix(".lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stored = {v["id"]: v for v in [*verdicts(study), *judged]}
        text = json.dumps([stored[i] for i in order if i in stored], indent=1, ensure_ascii=False,
                          allow_nan=False)
        write_whole(file, lambda out: out.write(text.encode()))


@lru_cache
def _ids(study: str, state) -> tuple[str, ...]:
    """Ids of the claims, in their order, as long as their file's state is this one."""
    return tuple(claim["id"] for claim in load(study))


def _state(file: Path) -> tuple | None:
    """Which file it is, and when it was written; None when it is not there."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return str(file), found.st_ino, found.st_size, found.st_mtime_ns


def board(study: str) -> list[dict]:
    """A dict for each claim, in the order of claims.yml, with the fields of its verdict; `verdict` is
    None until the claim has been judged."""
    stored = {v["id"]: v for v in verdicts(study)}
    return [stored.get(claim["id"]) or _unjudged(study, claim) for claim in load(study)]


def _unjudged(study, claim) -> dict:
    nothing = dict.fromkeys(("measured", "unit", "low", "high", "level", "n", "verdict", "reason",
                             "profile", "environment", "run", "tendency", "repeats_needed"))
    named = {k: claim[k] for k in ("id", "statement", "source", "paper", "owner", "headline")}
    return {"study": study, **named, **nothing, "conditions": {}}


def _range(low, high) -> str:
    """One of the two may be None."""
    if low is None:
        return f"at most {high:g}"
    return f"{low:g}" if low == high else f"from {low:g}" if high is None else f"from {low:g} to {high:g}"


def paper_words(paper: dict) -> str:
    """A claim's `paper` entry in words: its number, range or order, then its text."""
    unit = f" {paper['unit']}" if paper.get("unit") else ""
    if "value" in paper:
        head = f"{paper['value']:g}{unit}"
    elif "low" in paper or "high" in paper:
        head = _range(paper.get("low"), paper.get("high")) + unit
    else:
        head = paper.get("order") or paper.get("none") or ""
    return "; ".join(part for part in (head, paper.get("text")) if part)
