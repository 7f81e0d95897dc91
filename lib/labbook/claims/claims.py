"""Claims: what a paper states, as data/papers/NAME/claims.yml has it, and where verdicts are kept.

Light on purpose: `labbook claims` and the board read nothing but YAML and JSON.
"""

import fcntl
import json
from pathlib import Path

from labbook import paths
from labbook.atomic_files import make_folder, write_whole
from labbook.checks import check, load_yaml
from labbook.claims.schema import RULES, SCHEMA, WITH_AN_END
from labbook.errors import InputError

__all__ = ["RULES", "board", "full_words", "keep", "load", "paper_words", "path", "verdicts", "verdicts_path"]


def path(study: str) -> Path:
    return paths.papers(study) / "claims.yml"


def load(study: str) -> list[dict]:
    """The claims of a study, checked; none when it has no claims.yml. InputError says what is
    wrong with file, key and what is allowed."""
    file = path(study)
    if not file.exists():
        return []
    claims = load_yaml(file)
    try:
        check([] if claims is None else claims, SCHEMA, file)
    except InputError as error:
        error.key = _by_id(error.key, claims)
        raise
    ids = set()
    for claim in claims or []:
        if claim["id"] in ids:
            raise InputError("two claims have this id", file=file, key=claim["id"])
        ids.add(claim["id"])
        _check_rule(claim["rule"], file, f"{claim['id']}.rule")
        for i, need in enumerate(claim.get("needs", ())):
            if not {"at_least", "at_most"} & set(need):
                raise InputError("nothing is asked", file=file, key=f"{claim['id']}.needs.{i}",
                                 allowed="at_least, at_most, or both")
    return claims or []


def _by_id(key, claims):
    """`faster.rule.name` for `3.rule.name`, where the claim has an id."""
    number, dot, rest = (key or "").partition(".")
    claim = claims[int(number)] if number.isdigit() else None
    named = isinstance(claim, dict) and isinstance(claim.get("id"), str)
    return f"{claim['id']}{dot}{rest}" if named else key


def _check_rule(rule, file, key):
    if "than" in rule and set(rule["of"]) != set(rule["than"]):
        raise InputError("the two arms differ in other parameters", file=file, key=f"{key}.than",
                         allowed=", ".join(rule["of"]))
    if rule["name"] in WITH_AN_END and not {"low", "high"} & set(rule):
        raise InputError("nothing is asked", file=file, key=key, allowed="low, high, or both")
    if {"low", "high"} <= set(rule) and rule["low"] > rule["high"]:
        raise InputError("low lies above high", file=file, key=f"{key}.low")
    both = set(rule.get("of", ())) & set(rule.get("where", ()))
    if both:
        raise InputError("also a parameter of the arms", file=file,
                         key=f"{key}.where.{sorted(both)[0]}")


def full_words(study: str) -> set[str]:
    """All words that parameters of the study's full profile have; none without that profile."""
    file = paths.papers(study) / "full.yml"
    values = (load_yaml(file) or {}).values() if file.exists() else ()
    return {word for value in values for word in (value if isinstance(value, list) else [value])
            if isinstance(word, str)}


def verdicts_path(study: str) -> Path:
    return paths.build_dir() / "claims" / f"{study}.json"


def verdicts(study: str) -> list[dict]:
    """The verdicts that are kept of a study, as dicts; none before it was judged."""
    try:
        return json.loads(verdicts_path(study).read_text())
    except FileNotFoundError:
        return []


def keep(study: str, verdict: dict) -> None:
    """Put a verdict into build/claims/STUDY.json, in place of an earlier one on the same claim."""
    file = verdicts_path(study)
    make_folder(file.parent)
    order = [claim["id"] for claim in load(study)]
    with open(file.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = {v["id"]: v for v in verdicts(study)} | {verdict["id"]: verdict}
        text = json.dumps([kept[i] for i in order if i in kept], indent=1, ensure_ascii=False,
                          allow_nan=False)
        write_whole(file, lambda out: out.write(text.encode()))


def board(study: str) -> list[dict]:
    """Every claim in the order of claims.yml, with its verdict's fields; `verdict` is None as long
    as it has not been judged."""
    kept = {v["id"]: v for v in verdicts(study)}
    return [kept.get(claim["id"]) or _unjudged(study, claim) for claim in load(study)]


def _unjudged(study, claim) -> dict:
    nothing = dict.fromkeys(("measured", "unit", "low", "high", "level", "n", "verdict", "reason",
                             "profile", "environment"))
    named = {k: claim[k] for k in ("id", "statement", "source", "paper")}
    return {"study": study, **named, **nothing, "conditions": {}}


def paper_words(paper: dict) -> str:
    """What the paper has for a claim: its number, range or order, then its text."""
    unit = f" {paper['unit']}" if paper.get("unit") else ""
    if "value" in paper:
        head = f"{paper['value']:g}{unit}"
    elif "low" in paper or "high" in paper:
        ends = [f"{word} {paper[key]:g}" for word, key in (("from", "low"), ("to", "high"))
                if key in paper]
        head = " ".join(ends) + unit
    else:
        head = paper.get("order") or paper.get("none") or ""
    return "; ".join(part for part in (head, paper.get("text")) if part)
