"""Points through time: a page for points of a study's headline claims, which the end of its page links.

They are of the run that the page shows, on this machine, as far as what the hosts did was recorded.
"""

import html
import re

from labbook import paths
from labbook.claims import claims
from labbook.claims.selection import matches
from labbook.pipeline.book.downloads import remembered
from labbook.pipeline.executing import pages

FOLDER, SERVED = "book/_assets/points", "../_static/points"     # in the stage, and from a study's page in the book
MOST = 6
_TITLE = re.compile(r"<title>(.*?)</title>")


def files(study: str, note: dict) -> dict[str, bytes]:
    """{file name: page} of a study's points; {} for published results and for a run that failed."""
    if note.get("state") != pages.OK or note.get("published") or not pages.page(study).is_file():
        return {}
    return remembered(f"{study}-points", note, paths.build_dir() / "stage" / FOLDER / study, lambda: _made(study, note))


def links(study: str, made: dict[str, bytes]) -> str:
    """Markdown: a list of the pages; empty without any."""
    if not made:
        return ""
    listed = "".join(f'<li><a href="{SERVED}/{study}/{name}">{_TITLE.search(page.decode())[1]}</a></li>'
                     for name, page in made.items())
    return ("Points of the headline claims through time, with what each host did (`labbook show` draws any point):\n\n"
            f"```{{raw}} html\n<ul>{listed}</ul>\n```")


def chosen(entries: list[dict], metas: dict[str, list[dict]]) -> list[dict]:
    """The metadata of at most MOST points with series: of each headline claim the first of each side of its rule.
    metas: {experiment: of the run's points}."""
    found = {}
    for claim in entries:
        if not claim.get("headline"):
            continue
        rule = claim.get("rule", {})
        for side in [rule[name] for name in ("of", "than") if isinstance(rule.get(name), dict)] or [{}]:
            wanted = {**(rule.get("where") or {}), **side}
            first = next((meta for meta in metas.get(claim.get("experiment"), ()) if _fits(meta, wanted)), None)
            if first is not None:
                found.setdefault(first["key"], first)
    return list(found.values())[:MOST]


def _fits(meta, wanted: dict) -> bool:
    """Whether a point has series, and those of the wanted values that are of its parameters."""
    from labbook.study.explorer.choosing import values_of
    from labbook.study.watcher import NAME

    known = values_of([meta])
    return NAME in meta.get("series", {}) and all(
        any(matches(one, want) for one in known[name]) for name, want in wanted.items() if name in known)


def _made(study, note) -> dict[str, bytes]:
    import labbook.figures  # noqa: F401 (it draws)
    from labbook.figures.point_series import page
    from labbook.study import Study
    from labbook.study.explorer import showing
    from labbook.study.publication import completed
    from labbook.study.records.record import grid_keys

    of = Study(study, note["environment"] or paths.LOCAL)
    of.run.fleet = note.get("fleet")
    metas = {}
    for grid in completed.grids(of.place, study, note["profile"]):
        each = map(of.records(grid.parent.name).meta, grid_keys(grid))
        metas[grid.parent.name] = [meta for meta in each if meta]
    found = chosen(claims.load(study), metas)
    return {f"{html.escape(meta['experiment'])}-{meta['key'][:8]}.html": page(
        showing.show(of.records(meta["experiment"]), meta)).encode() for meta in found}
