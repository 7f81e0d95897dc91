"""Claims: what a paper states, as data/papers/NAME/claims.yml has it, and where verdicts are kept.

Light on purpose: `labbook claims` and the board read nothing but YAML and JSON.
"""

import fcntl
import json
from pathlib import Path

from labbook import paths
from labbook.atomic_files import make_folder, write_whole
from labbook.checks import check, did_you_mean, load_yaml
from labbook.claims.matrix import expand
from labbook.claims.schema import RULES, SCHEMA, WITH_AN_END
from labbook.errors import InputError

__all__ = ["RULES", "board", "full_words", "keep", "load", "of_section", "paper_words", "path",
           "verdicts", "verdicts_path"]


def path(study: str) -> Path:
    return paths.papers(study) / "claims.yml"


def load(study: str) -> list[dict]:
    """The claims of a study in the order of claims.yml, each matrix written out, all checked.

    None when the study has no claims.yml. InputError names file, key and what is allowed.
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


def of_section(claims: list[dict], section: str, file: Path) -> list[dict]:
    """The claims of one section; InputError when no claim has it."""
    found = [claim for claim in claims if claim["section"] == section]
    if not found:
        known = list(dict.fromkeys(claim["section"] for claim in claims))
        raise InputError(f"no claim is of the section {section!r}{did_you_mean(section, known)}",
                         file=file, allowed=known)
    return found


def full_words(study: str) -> set[str]:
    """All words among the parameters' values of the study's full profile; none without one."""
    file = paths.papers(study) / "full.yml"
    return set(_words(load_yaml(file))) if file.exists() else set()


def _words(data):
    if isinstance(data, str):
        yield data
    elif isinstance(data, (dict, list)):
        for value in data.values() if isinstance(data, dict) else data:
            yield from _words(value)


def verdicts_path(study: str) -> Path:
    return paths.build_dir() / "claims" / f"{study}.json"


def verdicts(study: str) -> list[dict]:
    """The stored verdicts of a study, as dicts; none before it was judged."""
    try:
        return json.loads(verdicts_path(study).read_text())
    except FileNotFoundError:
        return []


def keep(study: str, *judged: dict) -> None:
    """Store verdicts in build/claims/STUDY.json; each replaces an earlier one of the same claim."""
    file = verdicts_path(study)
    make_folder(file.parent)
    order = [claim["id"] for claim in load(study)]
    with open(file.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = {v["id"]: v for v in [*verdicts(study), *judged]}
        text = json.dumps([kept[i] for i in order if i in kept], indent=1, ensure_ascii=False,
                          allow_nan=False)
        write_whole(file, lambda out: out.write(text.encode()))


def board(study: str) -> list[dict]:
    """Every claim in the order of claims.yml with the fields of its verdict; `verdict` is None
    until the claim has been judged."""
    kept = {v["id"]: v for v in verdicts(study)}
    return [kept.get(claim["id"]) or _unjudged(study, claim) for claim in load(study)]


def _unjudged(study, claim) -> dict:
    nothing = dict.fromkeys(("measured", "unit", "low", "high", "level", "n", "verdict", "reason",
                             "profile", "environment"))
    named = {k: claim[k] for k in ("id", "statement", "source", "paper")}
    return {"study": study, **named, **nothing, "conditions": {}}


def paper_words(paper: dict) -> str:
    """What the paper states for a claim: its number, range or order, then its text."""
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
