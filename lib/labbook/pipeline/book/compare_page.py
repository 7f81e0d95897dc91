"""The book's page that sets runs and machines beside each other, as HTML."""

from itertools import combinations

from labbook.claims import claims
from labbook.claims.verdict import badge, disk_words, faint, ours
from labbook.pipeline.book.board import counted, title
from labbook.pipeline.book.markup import escape, raw, row, table
from labbook.pipeline.publishing import compare
from labbook.study.publication import machine_kind, published, published_verdicts

_UP = "../"


def page(studies) -> str:
    """Markdown: for each study the last run here beside the published set of this kind of machine, or
    else the first; the sets of several machines beside each other, and what each set says."""
    return raw("".join(map(_study, studies)) or "<p>No studies yet.</p>")


def _study(study) -> str:
    sets = published_verdicts.by_machine(study)
    named = {machine: published_verdicts.words(study, machine) for machine in sets}
    parts = []
    here = {one["id"]: one for one in claims.verdicts(study) if one.get("run") != "published"}
    if sets and here:
        nearest = _of_this_machine(here.values(), sets) or next(iter(sets))
        parts.append(_beside(study, "last run here", here, named[nearest], sets[nearest]))
    for one, other in combinations(sets, 2):
        parts.append(_beside(study, named[one], sets[one], named[other], sets[other]))
    parts += [_set(study, machine, each, named[machine]) for machine, each in sets.items()]
    body = "".join(parts) or "<p>Nothing is published of it yet.</p>"
    return f'<section><h2 id="of-{study}">{escape(title(study))}</h2>{body}</section>'


def _of_this_machine(here, sets) -> str | None:
    """The published set of the kind of machine that the last run here measured on."""
    kinds = [machine_kind.slug(machine_kind.kind(one["conditions"])) for one in here
             if isinstance(one["conditions"].get("cores"), int)]
    return next((kind for kind in kinds if kind in sets), None)


def _beside(study, a_name, a, b_name, b) -> str:
    found = compare.pairs({study: a}, {study: b})
    head = f"<h3>{escape(a_name)} beside {escape(b_name)}</h3>"
    if not found:
        return f"{head}<p>No claim is measured in both.</p>"
    changes = ", ".join(f"{count} {change}" for change, count in compare.counts(found).items())
    rows = sorted(found, key=lambda pair: compare.CHANGES.index(pair.change))
    heads = ("Claim", "A", "B", "Change", "B over A")
    body = "".join(row(heads, (
        f'<a href="{_UP}book/board.html#claim-{study}-{escape(pair.id)}">{escape(pair.statement)}</a>',
        _side(pair.a), _side(pair.b), escape(pair.change),
        escape(pair.move.words() if pair.move else ""))) for pair in rows)
    return (f"{head}<p>A: {escape(a_name)}; B: {escape(b_name)}. {escape(compare.agreement(found))}. "
            f"{escape(changes)}.</p>"
            f"{_folded('The claims', heads, body, any(p.change == compare.REVERSED for p in found))}")


def _set(study, machine, each, machine_name) -> str:
    measured = [one for one in each.values() if published_verdicts.is_measured(one)]
    heads = ("Claim", "Here", "Verdict")
    body = "".join(row(heads, (escape(one["statement"]), escape(ours(one)), badge(one["verdict"])))
                   for one in measured)
    summary = f"Published: {machine_name}, {published.points(study, machine)} points, {counted(measured)} measured"
    return f'<div id="{published_verdicts.anchor(study, machine)}">{_folded(summary, heads, body, False)}</div>'


def _side(one) -> str:
    return "<br/>".join(filter(None, (
        badge(one["verdict"]), faint(ours(one)), faint(disk_words(one.get("conditions"))))))


def _folded(summary, heads, body, opened) -> str:
    return (f'<details class="labbook-study"{" open" * opened}><summary>{escape(summary)}</summary>'
            f"{table(summary, heads, body)}</details>")
