"""What is known of each claim: by the last run here, and by the published set of each machine.

A run that measured no point of a claim says nothing of it: then the published verdict stands, marked
as such.
"""

from collections import Counter

from labbook.claims import claims, compared, rules
from labbook.claims.decisions import DECIDED
from labbook.claims.verdict import disk_words, ours, tendency_words
from labbook.pipeline.running.status import aligned
from labbook.study.publication import machine_kind, published, published_verdicts
from labbook.study.records.fingerprint import fingerprint

WORDS = (*rules.JUDGED, rules.NOT_TESTABLE, rules.NOT_RUN)
NOT_JUDGED = "not judged yet"


def of_study(study: str) -> list[dict]:
    """A dict for each claim, in the order of claims.yml: the fields of its verdict as shown, those of a published one
    as they were published, and its `rule`, `compared` (what is over what), `from_set` (the machine whose published
    verdict stands here, or None), `beside` (of a claim that the last run here measured: the published verdict with its
    `set`, or None), `machines` ({machine: verdict's word}, those on which it was measured), `chosen_of` (of a published
    verdict those of all sets that measured the claim)."""
    sets = published_verdicts.by_machine(study)
    stands = published_verdicts.of_today(sets, study, fingerprint(study).code) if sets else {}
    entries = {claim["id"]: claim for claim in claims.load(study)}
    rows = []
    for own in claims.board(study):
        claim = entries[own["id"]]
        stand = stands.get(own["id"]) if has_no_verdict(own) else None
        verdict = stand or own
        each = {machine: of_set.get(own["id"]) for machine, of_set in sets.items()}
        rows.append({
            **verdict, "owner": claim["owner"], "headline": claim["headline"],
            "statement": claim["statement"], "rule": claim["rule"],
            "run": "published" if stand else own.get("run") or own.get("profile"),
            "tendency": verdict.get("tendency"), "compared": compared.words(study, claim),
            "from_set": stand["set"] if stand else None,
            "beside": stands.get(own["id"]) if not stand and own.get("run") != "published" else None,
            "machines": _machines(own, each),
            "chosen_of": [one for one in each.values() if one and published_verdicts.is_measured(one)] if (
                stand or own.get("run") == "published") else []})
    return rows


def expected_wrong(rows) -> float:
    """How many of these verdicts are expected to be wrong, at most (see rules.expected_wrong). One that was chosen of
    several published sets could be wrong by each of them."""
    return rules.expected_wrong([each | {"rule": one["rule"]} for one in rows
                                 for each in one.get("chosen_of") or [one]])


def agreement(own: str, published: str) -> str:
    """How the verdict of the last run here is to the published one: "agrees", "disagrees", or which is open."""
    decided = [word in DECIDED for word in (own, published)]
    if own == published:
        return "open in both" if own == rules.OPEN else "agrees"
    if all(decided):
        return "disagrees"
    return "not decided here" if decided[1] else "decided here only" if decided[0] else "decided in neither"


def has_no_verdict(one: dict) -> bool:
    """Whether a verdict is none for want of points."""
    return one["verdict"] in (None, rules.NOT_RUN)


def _machines(own: dict, of_sets: dict) -> dict:
    """{machine: word} of the machines on which a claim was measured, also by the last run here."""
    found = {machine: one["verdict"] for machine, one in of_sets.items()
             if one and published_verdicts.is_measured(one)}
    if own.get("run") == "published":
        return found
    where = own.get("conditions") or {}
    if isinstance(where.get("cores"), int) and published_verdicts.is_measured(own):
        found.setdefault(machine_kind.slug(machine_kind.kind(where)), own["verdict"])
    return found


def machines_words(machines: dict) -> str:
    """On how many machines a claim was measured and how it came out: "1 machine", "2 machines: replicated",
    "3 machines: 2 replicated, 1 open"; empty if on none."""
    if not machines:
        return ""
    counted = Counter(machines.values())
    if len(machines) == 1:
        return "1 machine"
    many = f"{len(machines)} machines"
    if len(counted) == 1:
        return f"{many}: {next(iter(counted))}"
    return f"{many}: " + ", ".join(f"{counted[word]} {word}" for word in sorted(counted, key=_place))


def _place(word) -> int:
    return WORDS.index(word) if word in WORDS else WORDS.index(rules.OPEN)


def counts(rows) -> dict[str, int]:
    """{word: how many} of verdicts as shown, in the order of WORDS, then those not judged yet."""
    counted = Counter(NOT_JUDGED if one["verdict"] is None else WORDS[_place(one["verdict"])] for one in rows)
    return {word: counted[word] for word in (*WORDS, NOT_JUDGED) if counted[word]}


def set_words(study: str) -> list[str]:
    """Each published set in words with its number of points, the one that pages show first."""
    return [f"{published_verdicts.words(study, machine)} ({published.points(study, machine)} points)"
            for machine in published.sets(study)]


def summary(rows) -> str:
    """For a terminal: how many claims of each study have which verdict, and the headline claims."""
    by_study = {study: [one for one in rows if one["study"] == study]
                for study in dict.fromkeys(one["study"] for one in rows)}
    verdicts = list(counts(rows))
    lines = [("claims", *verdicts, "all")]
    for name, mine in [*by_study.items()] + [("all", rows)] * (len(by_study) > 1):
        counted = counts(mine)
        lines.append((name, *(counted.get(verdict, 0) or "-" for verdict in verdicts), len(mine)))
    headline = [one for one in rows if one["headline"]]
    more = "`labbook claims -v`, or a study or a filter, lists every claim"
    return "\n\n".join([aligned(lines), *([f"headline claims\n\n{table(headline)}"] if headline else []), more])


def table(rows) -> str:
    """For a terminal: by study its counts, then a line a claim, the headline claims first."""
    parts = []
    for study in dict.fromkeys(one["study"] for one in rows):
        mine = sorted((one for one in rows if one["study"] == study), key=lambda one: not one["headline"])
        counted = ", ".join(f"{count} {word}" for word, count in counts(mine).items())
        lines = [(_mark(one), *_words(one), one["id"], _value(one)) for one in mine]
        parts.append(f"{study}: {counted}\n{aligned(lines)}")
    legend = "* headline claim   + ours   (published): this run measured nothing of it"
    return "\n\n".join([*parts, legend]) if parts else "no such claims"


def _value(one) -> str:
    """What was measured; of a claim that was not run why, and what would measure it."""
    if one["verdict"] == rules.NOT_RUN:
        return one.get("reason", "")
    return ", ".join(filter(None, (ours(one), disk_words(one.get("conditions"))))) if one.get("n") else ""


def _mark(one) -> str:
    return f" {'*' if one['headline'] else ' '}{'+' if one['owner'] == 'ours' else ' '}"


def _words(one) -> tuple[str, str]:
    word = one["verdict"] or NOT_JUDGED
    return f"{word} (published)" if one["from_set"] else word, tendency_words(one)
