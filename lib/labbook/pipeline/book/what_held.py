"""The book's page across the papers: what held, what was reversed, what was learned about replicating.

A study's part is data/papers/STUDY/findings.yml: `answer`, and `lessons`, each with a kind, a title and a
text. In these texts `{claim}` stands for a claim's measured value and `{claim:verdict}` for its verdict, so
that no number is copied by hand.
"""

import re
from itertools import combinations

from labbook import paths
from labbook.checks import check, did_you_mean, load_yaml
from labbook.claims.rules import NOT_RUN
from labbook.claims.verdict import badge, brief, faint
from labbook.errors import InputError
from labbook.pipeline.book import opening
from labbook.pipeline.book.board import bar, counted, title
from labbook.pipeline.book.markup import escape, raw
from labbook.pipeline.publishing import compare, outcomes
from labbook.study.publication import published_verdicts

KINDS = {"design": "How an experiment is designed", "machine": "What the machine decides",
         "version": "What versions change", "paper": "What a paper prints"}
_TEXT = {"type": "string", "minLength": 1}
SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["answer"],
    "properties": {
        "answer": _TEXT,
        "lessons": {"type": "array", "items": {
            "type": "object", "additionalProperties": False, "required": ["kind", "title", "text"],
            "properties": {"kind": {"enum": list(KINDS)}, "title": _TEXT, "text": _TEXT}}}}}
_GLUE = re.compile(r"\{([a-z0-9-]+)(:verdict)?\}")
_UP = "../"


def page(found: dict[str, list[dict]]) -> str:
    """Markdown of the whole page but its heading. found: {study: outcomes.of_study}. InputError for a
    findings.yml that does not fit its schema or names an unknown claim."""
    if not found:
        return "No papers yet.\n"
    findings = {study: _findings(study) for study in found}
    parts = [raw(_counts(found)), "## The answers", raw(_answers(found, findings)),
             "## Claims that did not hold", raw(_did_not_hold(found)),
             "## What another machine says", raw(_machines(found)), "## What was learned about replicating",
             *_lessons(found, findings)]
    return "\n\n".join(parts)


def _findings(study) -> dict:
    """findings.yml of a study; an empty answer without that file."""
    file = paths.papers(study) / "findings.yml"
    if not file.is_file():
        return {"answer": "", "lessons": []}
    data = load_yaml(file)
    check(data, SCHEMA, file)
    return {"lessons": []} | data


def _counts(found) -> str:
    papers = [one for rows in found.values() for one in rows if one["owner"] == "paper"]
    decided = [one for one in papers if one["verdict"] in outcomes.DECIDED]
    held = sum(one["verdict"] == outcomes.DECIDED[0] for one in decided)
    return (f'<p class="lb-bar-line"><strong>{counted(papers)} of {len(found)} papers</strong>{bar(papers)}</p>'
            f"<p>Of the {len(decided)} that are decided, {held} held and {len(decided) - held} did not.</p>")


def _answers(found, findings) -> str:
    return '<div class="labbook-cards">' + "".join(
        f'<section class="labbook-card"><h3><a href="{_UP}notebooks/{study}.html">{escape(title(study))}</a></h3>'
        f'<p>The paper{_year(study)}: {opening.about(study).get("claim", "")}</p>'
        f"<p>{_glued(study, rows, findings[study]['answer'])}</p>"
        f'{bar([one for one in rows if one["owner"] == "paper"], "small")}</section>'
        for study, rows in found.items()) + "</div>"


def _year(study) -> str:
    year = opening.about(study).get("year")
    return f" ({year})" if year else ""


def _did_not_hold(found) -> str:
    papers = (one for rows in found.values() for one in rows if one["owner"] == "paper")
    if not any(one["verdict"] in outcomes.DECIDED for one in papers):
        return "<p>Nothing is decided yet.</p>"
    lists = []
    for study, rows in found.items():
        failed = [one for one in rows if one["owner"] == "paper" and one["verdict"] == outcomes.DECIDED[1]]
        if failed:
            items = "".join(f"<li>{_linked(study, one)} {escape(brief(one))}{_published(one)}</li>" for one in failed)
            lists.append(f"<details><summary>{escape(title(study))}: {counted(failed)}</summary>"
                         f"<ul>{items}</ul></details>")
    return "".join(lists) or "<p>All decided claims of the papers held.</p>"


def _machines(found) -> str:
    pairs = [pair for study in found for pair in _between_machines(study)]
    if not pairs:
        return "<p>No claim is measured on two kinds of machine yet.</p>"
    unlike = [pair for pair in pairs if pair.change == compare.REVERSED]
    items = "".join(f"<li>{_linked(pair.study, {'id': pair.id, 'statement': pair.statement})} "
                    f"{badge(pair.a['verdict'])} {escape(brief(pair.a))}; "
                    f"{badge(pair.b['verdict'])} {escape(brief(pair.b))}</li>"
                    for pair in unlike)
    details = f"<p>Decided differently:</p><ul>{items}</ul>" if unlike else "<p>None was decided differently.</p>"
    return (f"<p>Published sets of different kinds of machine: {escape(compare.agreement(pairs))}. "
            f'<a href="compare.html">All of them beside each other</a>.</p>{details}')


def _between_machines(study) -> list:
    """The claims that two published sets of a study have both measured."""
    sets = published_verdicts.by_machine(study)
    return [pair for one, other in combinations(sets.values(), 2)
            for pair in compare.pairs({study: one}, {study: other})]


def _lessons(found, findings) -> list[str]:
    """Markdown: a heading a kind, and below it each lesson."""
    parts = []
    for kind, heading in KINDS.items():
        entries = "".join(
            f'<dt>{escape(one["title"])}</dt><dd>{_glued(study, rows, one["text"])} '
            f'<a class="lb-faint" href="{_UP}notebooks/{study}.html">{escape(title(study))}</a></dd>'
            for study, rows in found.items() for one in findings[study]["lessons"] if one["kind"] == kind)
        parts += [f"### {heading}", raw(f'<dl class="labbook-lessons">{entries}</dl>')] if entries else []
    return parts


def _glued(study, rows, text) -> str:
    """The text as HTML with each claim's value or verdict in its place."""
    by_id = {one["id"]: one for one in rows}
    parts, at = [], 0
    for found in _GLUE.finditer(text):
        name, wants_verdict = found.groups()
        if name not in by_id:
            raise InputError(f"no claim {name!r}{did_you_mean(name, by_id)}", file=paths.papers(study) / "findings.yml",
                             key=found.group(), allowed="an id of claims.yml")
        one = by_id[name]
        parts += [escape(text[at:found.start()]), badge(one["verdict"]) if wants_verdict else _value(study, one)]
        at = found.end()
    return "".join(parts) + escape(text[at:])


def _value(study, one) -> str:
    """The measured value without its interval, which is where the link leads."""
    value = brief(one).partition(" (")[0] or "(not measured)"
    return f'<a href="board.html#claim-{study}-{escape(one["id"])}">{escape(value)}</a>{_published(one)}'


def _published(one) -> str:
    """A mark where the page of a run here has the verdict that was published; else empty."""
    return f" {faint('published')}" if one["from_set"] and one["verdict"] != NOT_RUN else ""


def _linked(study, one) -> str:
    return f'<a href="board.html#claim-{study}-{escape(one["id"])}">{escape(one["statement"])}</a>'
