"""The front page's summary, as HTML: all claims by verdict, and a card a paper."""

from labbook import paths
from labbook.claims import paper_file, rules
from labbook.pipeline.book import opening
from labbook.pipeline.book.board import bar, conditions, counted, title
from labbook.pipeline.book.markup import escape, raw
from labbook.pipeline.executing import pages
from labbook.pipeline.publishing import outcomes

_UP = "../"     # from a page in book/ to notebooks/


def summary(found) -> str:
    """Markdown: bars of the papers' claims and of ours, and how many verdicts may be wrong.
    found: {study: outcomes.of_study}."""
    every = [one for rows in found.values() for one in rows]
    owned = {owner: [one for one in every if one["owner"] == owner] for owner in ("paper", "ours")}
    lines = [f'<p class="lb-bar-line"><strong>{counted(rows)} {whose}</strong>{bar(rows)}</p>'
             for rows, whose in ((owned["paper"], "of the papers"), (owned["ours"], "of ours")) if rows]
    return raw(f'<div class="labbook-summary">{"".join(lines)}{_expected(every)}'
               f'<p><a href="board.html">The board of all {len(every)} claims</a>, with filters. '
               '<a href="what_held.html">What held after ten to sixteen years</a>. '
               '<a href="compare.html">Runs and machines compared</a>.</p></div>') if every else "No claims yet.\n"


def _expected(every) -> str:
    judged = [one for one in every if one["verdict"] in rules.JUDGED]
    if not judged:
        return ""
    decided, stand = (sum(map(which, judged)) for which in (
        lambda one: one["verdict"] in outcomes.DECIDED, lambda one: one["from_set"] is not None))
    published = f" The published verdict stands for {stand}, which the last runs did not measure." if stand else ""
    return (f'<p class="lb-faint">{decided} of {len(judged)} judged claims are decided; by chance, at most '
            f"{outcomes.expected_wrong(judged):.1f} are expected to be decided wrongly.{published}</p>")


def cards(found) -> str:
    """Markdown: a card a paper. found: {study: outcomes.of_study}."""
    return raw('<div class="labbook-cards">' + "".join(_card(study, rows) for study, rows in found.items())
               + "</div>") if found else "No papers yet.\n"


def _card(study, rows) -> str:
    link = f"{_UP}notebooks/{study}.html"
    claim = opening.about(study).get("claim", "")
    return (f'<section class="labbook-card"><h3><a href="{link}">{escape(title(study))}</a></h3>'
            f'<p class="lb-faint">{escape(_paper(study))}</p>{claim and f"<p>The paper: {claim}</p>"}'
            f'{opening.headlines(study, rows, "board.html", compared=False)}{bar(rows, "small")}'
            f'<p class="lb-faint">{escape(_where(study))}</p></section>')


def _paper(study) -> str:
    """Title and year of the paper."""
    file = paths.papers(study) / "paper.yml"
    about = paper_file.load(file) if file.is_file() else {}
    return ", ".join(str(about[key]) for key in ("translation", "title", "year")
                     if about.get(key) and not (key == "title" and about.get("translation")))


def _where(study) -> str:
    """Machine and date of the last run, and the published sets."""
    last, sets = conditions(study), "; ".join(outcomes.set_words(study))
    if last and pages.note(study).get("published"):
        return f"Published results, measured until {last['to'][:10]}: {sets}"
    parts = [f"{last['profile'].capitalize()} run here, {last['to'][:10]}, {last['cpu']}, "
             f"{last['cores']} cores"] if last else []
    return ". ".join(parts + [f"Published: {sets}"] * bool(sets))


def sets_line(study) -> str:
    """For the top of a page made from published summaries: which sets it shows."""
    machines = outcomes.set_words(study)
    if not machines:
        return ""
    rest = f" Settings that this set lacks are shown from: {'; '.join(machines[1:])}." if machines[1:] else ""
    return f"This page shows published results of {machines[0]}.{rest}"
