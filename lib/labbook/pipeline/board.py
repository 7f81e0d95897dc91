"""Tables over all studies, as HTML that pages include: the board of claims, when and on what it ran,
the state of the notebooks. All text is escaped; labelled cells stack on a phone.
"""

import html

from labbook.claims import claims
from labbook.claims.verdict import badge, earlier, here
from labbook.pipeline import notebooks, pages
from labbook.pipeline.progress import duration
from labbook.pipeline.status import machine_words, state_words

_UP = "../"  # from a page in book/ to notebooks/


def board(studies, texts) -> str:
    """Markdown: every claim of the studies; `texts`: {study: its staged notebook}, to link into."""
    heads = ("Claim", "Paper", "Here", "Verdict")
    bodies = [_claims_of(study, texts[study], heads) for study in studies if claims.load(study)]
    return _table("The board of claims", heads, bodies) if bodies else "No claims yet.\n"


def _claims_of(study, text, heads) -> str:
    link = f"{_UP}notebooks/{study}.html"
    rows = [f'<tr><th colspan="{len(heads)}" scope="rowgroup"><a href="{link}">'
            f"{_escape(title(study))}</a></th></tr>"]
    for claim in claims.board(study):
        place = f"claim-{claim['id']}"
        anchor = f"#{place}" if place in text else ""
        rows.append(_row(heads, (
            f'<a href="{link}{anchor}">{_escape(claim["statement"])}</a>',
            _escape(claims.paper_words(claim["paper"])),
            _escape(here(claim)),
            badge(claim["verdict"]))))
    return "".join(rows)


def ran(studies) -> str:
    """Markdown: when and on what machines the points of each study's verdicts were measured."""
    heads = ("Paper", "Measured", "On", "Profile", "Points", "Code")
    rows = []
    for study in studies:
        found = conditions(study)
        if found:
            rows.append(_row(heads, (
                f'<a href="{_UP}notebooks/{study}.html">{_escape(title(study))}</a>',
                _escape(f"{found['from'][:16]} to {found['to'][:16]}"),
                _escape(_on(found)), _escape(found["profile"]),
                _escape(_points(found)), _escape(found["commit"]))))
    return (_table("When and on what it ran", heads, ["".join(rows)]) if rows
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
    found = [v["conditions"] for v in claims.verdicts(study) if v["conditions"]]
    if not found:
        return {}
    different = {(c["from"], c["to"]): c for c in found}.values()
    return max(found, key=lambda c: c["to"]) | {
        "from": min(c["from"] for c in found), "to": max(c["to"] for c in found),
        "points": sum(c["points"] for c in different),
        "stale": sum(c["stale"] for c in different)}


def status(rows) -> str:
    """Markdown: the state of each notebook's last run."""
    heads = ("Notebook", "State", "Last run", "Took", "Points", "Profile", "Machine")
    body = "".join(_row(heads, _status_cells(row)) for row in rows)
    return _table("State of the notebooks", heads, [body])


def _status_cells(row):
    counted = row["points"] or {}
    error = f"<br>{_escape(row['error']['message'][:300])}" if row["error"] else ""
    source = ", from published summaries" if row["published"] else ""
    return (f'<a href="{_UP}notebooks/{row["study"]}.html">{_escape(row["study"])}</a>',
            _escape(state_words(row) + source) + error,
            _escape((row["started"] or "")[:16].replace("T", " ")),
            _escape(duration(row["seconds"]) if row["seconds"] else ""),
            _escape(f"{counted['done']} of {counted['total']}" if counted.get("total") else ""),
            _escape(row["profile"] or ""),
            _escape(machine_words(row["machine"]) if row["machine"] else ""))


def title(study: str) -> str:
    """The heading of a study's page."""
    from labbook import paths

    path = pages.page(study) if pages.page(study).is_file() else paths.notebook(study)
    return notebooks.title(notebooks.read(path)) or study


def _row(heads, cells) -> str:
    return "<tr>" + "".join(f'<td data-label="{head}">{cell}</td>'
                            for head, cell in zip(heads, cells)) + "</tr>"


def _table(label, heads, bodies) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "\n".join(f"<tbody>{rows}</tbody>" for rows in bodies)
    return (f'```{{raw}} html\n<div class="labbook-scroll" role="region" tabindex="0" '
            f'aria-label="{label}">\n<table class="labbook-table"><thead><tr>{head}</tr></thead>\n'
            f"{body}</table></div>\n```\n")


def _escape(text) -> str:
    return html.escape(str(text), quote=True).replace("\n", " ")
