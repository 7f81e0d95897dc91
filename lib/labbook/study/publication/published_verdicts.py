"""The verdicts on published sets: each claim judged by the points of one kind of machine alone.

A set's claims.json has them as they were when it was published. Where the rules, the claims or the
points have changed since, they are judged anew and kept below build/published, so that every
verdict in the book is by today's rules.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from labbook import paths
from labbook.atomic_files import make_folder, write_whole
from labbook.claims import claims, rules, verdict
from labbook.claims.decisions import DECIDED
from labbook.claims.selection import fits, is_tested
from labbook.study.publication import machine_kind, published
from labbook.study.records.conditions import combined

RULES = Path(claims.__file__).parent


def verdicts(study: str, machine: str) -> list[dict]:
    """The verdicts on a set as dicts, with the fields of Verdict, in the order of claims.yml."""
    of = _judged_from(study, machine)
    for path in (claims_path(study, machine), _cache_path(study, machine)):
        try:
            found = json.loads(path.read_text())
            if found["of"] == of:
                return found["claims"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            continue
    return _write(_cache_path(study, machine), of, judge(study, machine))


def by_machine(study: str) -> dict[str, dict[str, dict]]:
    """{machine: {claim's id: verdict}} of all sets, in the order of published.sets."""
    return {machine: {one["id"]: one for one in verdicts(study, machine)}
            for machine in published.sets(study)}


def stands(sets: dict) -> dict[str, dict]:
    """{claim's id: the published verdict that stands where a run measured nothing}, each with `set`, its machine: of
    the sets (see by_machine) that decided the claim the first, or else the one with the most repeats of it, or else the
    first that found it not testable. Before those of points by earlier code alone go those of others."""
    found = {}
    for machine, each in sets.items():
        for name, one in each.items():
            if _weight(one) > _weight(found.get(name)):
                found[name] = one | {"set": machine}
    return found


def of_today(sets: dict, study: str, code: str) -> dict[str, dict]:
    """As stands, of a study's sets where its code has this digest. All points of a set of other code are stale, as
    published.load says."""
    return stands({machine: _seen(each, [] if published.code(study, machine) == code else ["code"])
                   for machine, each in sets.items()})

def _seen(each: dict, changed: list[str]) -> dict:
    """The verdicts on a set, whose points are stale where something has `changed`."""
    if not changed:
        return each
    return {name: one | {"conditions": one["conditions"] and one["conditions"] | {
        "stale": one["conditions"]["points"], "stale_because": changed}} for name, one in each.items()}


def _weight(one) -> tuple[int, bool, int]:
    if one is None or one["verdict"] in (None, rules.NOT_RUN):
        return 0, False, 0
    decided, where = one["verdict"] in DECIDED, one.get("conditions") or {}
    is_of_today = where.get("stale", 0) < where.get("points", 1)
    return 1 + is_measured(one) + decided, is_of_today, 0 if decided else one.get("n") or 0


def is_measured(one: dict) -> bool:
    """Whether a verdict is by points, and not for want of them."""
    return bool(one.get("n")) and one["verdict"] is not None


def write(study: str, machine: str) -> Path:
    """Judge a set and write its claims.json; the file's path."""
    _write(claims_path(study, machine), _judged_from(study, machine), judge(study, machine))
    return claims_path(study, machine)


def claims_path(study: str, machine: str) -> Path:
    return published.folder(study, machine) / "claims.json"


def judge(study: str, machine: str) -> list[dict]:
    """The verdicts on a set by today's rules, as dicts."""
    run = published.read_run(study, machine)
    judged, tables = [], {}
    for claim in claims.load(study):
        name = claim.get("experiment")
        if name not in tables:
            tables[name] = _table(study, machine, run, name)
        rows, parameters, conditions = tables[name]
        if is_tested(claim) and not fits(claim, rows, parameters):
            rows = []
        judged.append(asdict(verdict.judge(
            claim, rows, parameters, study=study, file=claims.path(study), profile=run["profile"],
            conditions=conditions, environment=conditions.get("environment", ""), run="published")))
    return judged


def _table(study, machine, run, experiment):
    """(rows, names of parameters, conditions) of an experiment in a set; empty if it has none."""
    if run["experiments"].get(experiment, {}).get("points", 0) == 0:
        return [], (), {}
    frame = published.rows(study, machine, experiment)
    rows = frame.drop(columns=published.JSON_COLUMNS).to_dict("records")
    return rows, run["experiments"][experiment]["parameters"], combined(published.measured(frame))


def words(study: str, machine: str) -> str:
    """A set's machine for readers."""
    return machine_kind.words(published.read_run(study, machine)["machine"])


def address(study: str, machine: str) -> str:
    """Where the book shows a set's numbers, from a page in book/ or notebooks/."""
    return f"../book/compare.html#{anchor(study, machine)}"


def anchor(study: str, machine: str) -> str:
    """The id of a set's part of the page; without dots, which scripts of pages take for CSS classes."""
    return f"set-{study}-{machine.replace('.', '-')}"


def _judged_from(study: str, machine: str) -> str:
    """Digest of the rules, the claims and the set's points."""
    digest = hashlib.sha256()
    files = [*sorted(RULES.glob("*.py")), claims.path(study),
             paths.papers(study) / "full.yml", paths.papers(study) / "paper.yml", published.folder(study, machine) / "run.json",
             *sorted(published.folder(study, machine).glob("*.parquet"))]
    for path in files:
        if path.is_file():
            data = path.read_bytes()
            digest.update(f"{path.name}:{len(data)}:".encode() + data)
    return digest.hexdigest()


def _cache_path(study: str, machine: str) -> Path:
    return paths.build_dir() / "published" / study / f"{machine}.json"


def _write(path: Path, of: str, judged: list[dict]) -> list[dict]:
    make_folder(path.parent)
    text = json.dumps({"of": of, "claims": judged}, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))
    return json.loads(text)["claims"]
