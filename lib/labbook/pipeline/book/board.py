"""Tables over all studies, as HTML that pages include: the board of claims, when and on what it ran,
the state of the notebooks. All text is escaped; labelled cells stack on a phone.
"""

import json

from labbook.claims import claims
from labbook.claims.verdict import badge, earlier, faint, here, on_disk, tendency_words
from labbook.pipeline.book.markup import cells, escape, raw, row, table
from labbook.pipeline.executing import pages
from labbook.pipeline.executing.progress import duration
from labbook.pipeline.publishing import outcomes
from labbook.pipeline.running.status import machine_words, state_words
from labbook.pipeline.sources import notebooks
from labbook.study.publication import published, published_verdicts

_UP = "../"  # from a page in book/ to notebooks/


HEADS = ("Claim", "Paper", "Here", "Verdict")
FILTERS = '<div class="labbook-filters" hidden></div>'  # board.js makes the controls


def board(found, texts) -> str:
    """Markdown: every claim, folded by study. found: {study: outcomes.of_study}; texts: {study:
    its staged notebook, as JSON}, to link into."""
    parts = [_study(study, rows, texts[study]) for study, rows in found.items() if rows]
    if not parts:
        return "No claims yet.\n"
    every = [one for rows in found.values() for one in rows]
    machines = {machine: _machine_name(one["study"], machine) for one in every for machine in one["machines"]}
    return raw(f'<div class="labbook-board" data-machines="{escape(json.dumps(machines))}">{FILTERS}'
               f'<p class="labbook-found" role="status">{counted(every)}</p>{"".join(parts)}</div>\n'
               '<script src="../_static/js/board.js" defer></script>')


def search_index(found) -> str:
    """A script with what the search page looks claims up in: [study, id, statement, verdict, page's title]."""
    entries = [[study, one["id"], one["statement"], one["verdict"] or outcomes.NOT_JUDGED, name]
               for study, rows in found.items() for name in [title(study)] for one in rows]
    return f"window.labbookClaims = {json.dumps(entries, ensure_ascii=False)};\n"


def _study(study, rows, text) -> str:
    link = f"{_UP}notebooks/{study}.html"
    body = "".join(_claim(study, one, link, text) for one in rows)
    return (f'<details class="labbook-study" open data-study="{study}"><summary><strong>{escape(title(study))}'
            f'</strong> {bar(rows, "small")}</summary>'
            f'<p><a href="{link}">Open its page</a></p>'
            f'{table(f"Claims of {title(study)}", HEADS, body, "labbook-claims")}</details>')


def _claim(study, one, link, text) -> str:
    place = f"claim-{one['id']}"
    anchor = f"#{place}" if json.dumps(f'id="{place}"')[1:-1] in text else ""
    kind = kind_of(one["verdict"])
    star = ('<span class="lb-headline" title="headline claim">★<span class="lb-unseen"> headline</span></span> '
            * bool(one["headline"]))
    ours = ' <span class="lb-owner">ours</span>' * (one["owner"] == "ours")
    lines = [faint(part) for part in (one["compared"] if one.get("n") else "",
                                      outcomes.machines_words(one["machines"])) if part]
    lines += [on_disk(one["conditions"])] * bool(one.get("n") and on_disk(one["conditions"]))
    texts = (f'{star}<a href="{link}{anchor}">{escape(one["statement"])}</a>{ours}',
             escape(claims.paper_words(one["paper"])),
             "<br/>".join([escape(here(one)), *lines] if here(one) else lines), answer(one))
    return (f'<tr id="claim-{study}-{escape(one["id"])}" data-verdict="{kind}" data-owner="{one["owner"]}" '
            f'data-headline="{"yes" if one["headline"] else "no"}" data-run="{_run(one)}" '
            f'data-machines="{escape(" ".join(one["machines"]))}">{cells(HEADS, texts)}</tr>')


def answer(one) -> str:
    """A verdict as HTML, with the tendency of an open claim, and whose it is if not this run's."""
    lean = tendency_words(one)
    parts = [badge(one["verdict"]), faint(lean)]
    if one["from_set"]:
        link = published_verdicts.address(one["study"], one["from_set"])
        day = (one["conditions"].get("to") or "")[:10]
        where = published_verdicts.words(one["study"], one["from_set"]).partition(",")[0]
        parts.append(faint(f"published: {day}, {where}", link))
    if one["beside"]:
        link = published_verdicts.address(one["study"], one["beside"]["set"])
        parts.append(faint(
            f"published: {one['beside']['verdict']} ({outcomes.agreement(one['verdict'], one['beside']['verdict'])})",
            link))
    return "<br/>".join(part for part in parts if part)


def _machine_name(study, machine) -> str:
    """A kind of machine for readers; this machine's, of which nothing is published, as its folder would be named."""
    return published_verdicts.words(study, machine) if machine in published.sets(study) else machine


def _run(one) -> str:
    """Whose verdict a row shows, for a filter: that of the last run "here", a "published" one, or "none"."""
    if outcomes.has_no_verdict(one):
        return "none"
    return "published" if one["run"] == "published" else "here"


def bar(rows, size="") -> str:
    """A bar of verdicts by their share, with the counts in words."""
    counts = outcomes.counts(rows)
    summary = ", ".join(f"{count} {word}" for word, count in counts.items())
    pieces = "".join(f'<span class="lb-bar-{kind_of(word)}" style="flex-grow:{count}"></span>'
                     for word, count in counts.items())
    return (f'<span class="labbook-bar {size}"><span class="lb-bar-pieces" aria-hidden="true">{pieces}</span>'
            f'<span class="lb-faint">{escape(summary) or "no claims"}</span></span>')


def counted(rows) -> str:
    """"1 claim", "7 claims"."""
    return f"{len(rows)} claim{'s' * (len(rows) != 1)}"


def kind_of(word) -> str:
    """A verdict as a part of a CSS class: replicated, not-replicated, open, not-testable, not-run."""
    kinds = {"not testable here": "not-testable", None: "not-judged-yet"}
    return kinds.get(word, str(word).replace(" ", "-"))


def ran(studies) -> str:
    """Markdown: when and on what machines the points of each study's verdicts were measured."""
    heads = ("Paper", "Measured", "On", "Profile", "Points", "Code")
    rows = []
    for study in studies:
        found = conditions(study)
        if found:
            rows.append(row(heads, (
                f'<a href="{_UP}notebooks/{study}.html">{escape(title(study))}</a>',
                escape(f"{found['from'][:16]} to {found['to'][:16]}"),
                escape(_on(found)), escape(found["profile"]),
                escape(_points(found)), escape(found["commit"]))))
    return (raw(table("When and on what it ran", heads, "".join(rows))) if rows
            else "Nothing has been measured here yet.\n")


def _on(found) -> str:
    """This machine, or the hosts of a lab elsewhere."""
    kinds = found.get("hosts") or {"": found}
    return "; ".join(f"{names}: " * bool(names) + f"{machine_words(one)}, {one['system']}"
                     for names, one in kinds.items())


def _points(found) -> str:
    stale = f", {found['stale']} of them by {earlier(found)}" if found["stale"] else ""
    return f"{found['points']}{stale}"


def conditions(study: str) -> dict:
    """Conditions of all verdicts of a study: those of the latest, with the first start, the last end
    and all points. {} if nothing was measured."""
    judged = [v for v in claims.verdicts(study) if v["conditions"]]
    if not judged:
        return {}
    experiments, found = ({one["id"]: one.get("experiment") for one in claims.load(study)},
                          [v["conditions"] for v in judged])
    different = {(experiments.get(v["id"]), v["conditions"]["from"], v["conditions"]["to"]): v["conditions"]
                 for v in judged}.values()
    return max(found, key=lambda c: c["to"]) | {
        "from": min(c["from"] for c in found), "to": max(c["to"] for c in found),
        "points": sum(c["points"] for c in different),
        "stale": sum(c["stale"] for c in different)}


def status(rows) -> str:
    """Markdown: the state of each notebook's last run."""
    heads = ("Notebook", "State", "Last run", "Took", "Points", "Profile", "Machine")
    body = "".join(row(heads, _status_cells(one)) for one in rows)
    return raw(table("State of the notebooks", heads, body))


def _status_cells(one):
    counted = one["points"] or {}
    error = f"<br/>{escape(one['error']['message'][:300])}" if one["error"] else ""
    source = ", from published summaries" if one["published"] else ""
    return (f'<a href="{_UP}notebooks/{one["study"]}.html">{escape(one["study"])}</a>',
            escape(state_words(one) + source) + error,
            escape((one["started"] or "")[:16].replace("T", " ")),
            escape(duration(one["seconds"]) if one["seconds"] else ""),
            escape(f"{counted['done']} of {counted['total']}" if counted.get("total") else ""),
            escape(one["profile"] or ""),
            escape(machine_words(one["machine"]) if one["machine"] else ""))


def title(study: str) -> str:
    """The heading of a study's page."""
    from labbook import paths

    path = pages.page(study) if pages.page(study).is_file() else paths.notebook(study)
    return notebooks.title(notebooks.read(path)) or study
