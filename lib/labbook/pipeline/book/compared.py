"""The book's page of what labbook is set beside: from data/benchmarks, as tables and a figure in HTML."""

import json
import math
import statistics
from dataclasses import dataclass

from labbook import paths
from labbook.checks import load_yaml
from labbook.pipeline.book import markup
from labbook.pipeline.book.markup import escape, raw, table

FOLDER, ROWS = "benchmarks", "rows.yml"
OF_ASKED = " of what was asked"
HEADS = ("what is measured", "labbook", "the other side", "times as good")
WIDTH, LABELS, LINE, MARGIN = 760, 390, 22, 12
LEAST_WIDTH = 700       # px on a page, with letters of 11 px; a narrower page scrolls
TICKS = (0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000)


@dataclass(frozen=True)
class Row:
    """One line: `labbook` and `other` are medians; `ratio` (`low` to `high`) how many times as good labbook is, of
    `rounds`; None of all these where it was not measured, and `absent` ends the sentence that says so."""

    what: str
    against: str
    unit: str
    better: str
    behind: str
    labbook: float | None = None
    other: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    machine: str = ""
    date: str = ""
    versions: tuple = ()
    absent: str = ""

    @property
    def is_behind(self) -> bool:
        """Whether labbook is worse for certain; where the other side is what was asked for, off by more than 1 %."""
        if self.ratio is None:
            return False
        return self.high < 1 if self.better != "equal" else not (self.low <= 1.01 and self.high >= 0.99)

    @property
    def seems_behind(self) -> bool:
        """Whether it is worse in the middle, so that the page says why."""
        return self.is_behind or self.better != "equal" and self.ratio is not None and self.ratio < 1


def read() -> dict[str, tuple[dict, list[Row]]]:
    """{benchmark: (what rows.yml says of it, its rows)} of the checkout; {} where it has none."""
    folder = paths.checkout() / "data" / FOLDER
    if not (folder / ROWS).is_file():
        return {}
    found = {}
    for name, described in load_yaml(folder / ROWS).items():
        file = folder / f"{name}.json"
        measured = json.loads(file.read_text())["rows"] if file.is_file() else {}
        found[name] = described, [row_of(about, measured.get(key, {})) for key, about in described["rows"].items()]
    return found


def row_of(about: dict, measured: dict) -> Row:
    """A row from what rows.yml says of it and what a file of rounds, or a summary of them, has."""
    own = {"what": about["what"], "against": about["other"], "unit": about["unit"], "better": about["better"],
           "behind": about.get("behind", "")}
    about_it = {"machine": measured.get("machine", ""), "date": measured.get("date", ""),
                "versions": tuple(measured.get("versions", {}).items())}
    if rounds := measured.get("rounds"):
        ratios = [as_good(ours, other, about["better"]) for ours, other in rounds]
        ours, other = (statistics.median(side) for side in zip(*rounds))
        return Row(**own, **about_it, labbook=ours, other=other, ratio=statistics.median(ratios), low=min(ratios),
                   high=max(ratios), rounds=len(rounds))
    if summary := measured.get("summary"):
        return Row(**own, **about_it, **summary)
    return Row(**own, absent=f", {measured['absent']}" if "absent" in measured else " yet")


def as_good(ours: float, other: float, better: str) -> float:
    """How many times as good as the other's our figure is; where it should be equal, our share of it."""
    return other / ours if better == "less" else ours / other


def page() -> str:
    """Markdown: a figure of all ratios, then a table for each benchmark."""
    found = read()
    if not found:
        return "No benchmarks yet.\n"
    rows = [row for _, of_one in found.values() for row in of_one]
    return raw(summary(rows) + figure([row for row in rows if row.ratio and row.better != "equal"])) + "\n".join(
        _section(described, of_one) for described, of_one in found.values())


def summary(rows: list[Row]) -> str:
    compared = [row for row in rows if row.ratio and row.better != "equal"]
    ahead, behind = (sum(map(which, compared)) for which in (lambda row: row.low > 1, lambda row: row.is_behind))
    return (f"<p>Of {len(compared)} comparisons that were measured, labbook is ahead in {ahead}, behind in {behind}, "
            f"and in {len(compared) - ahead - behind} the rounds say neither.</p>")


def _section(described: dict, rows: list[Row]) -> str:
    notes = "".join(f"<li>{_note(row)}</li>" for row in rows if row.seems_behind and row.behind)
    return (f"## {described['title']}\n\n{described['text'].strip()}\n\n" + raw(
        table(described["title"], HEADS, "".join(map(_row, rows)), "numbers") + (f"<ul>{notes}</ul>" if notes else "")
        + f'<p class="lb-faint">{escape(_conditions(rows))}</p>'))


def _note(row: Row) -> str:
    """By how much it is behind, and why."""
    return f"{_code(row.what)}, beside {_code(row.against)}: {_code(_how_much(row))} {_code(row.behind)}"


def _row(row: Row) -> str:
    what = _code(row.what)
    if row.ratio is None:
        return (f'<tr><th scope="row">{what}</th><td colspan="3">{_code(row.against)}: not measured{_code(row.absent)}'
                "</td></tr>")
    side = _code(row.against)
    texts = (what, _number(row.labbook, row.unit), f"{_number(row.other, row.unit)} ({side})",
             f"{_short(row.ratio)} ({_short(row.low)} to {_short(row.high)})" + OF_ASKED * (row.better == "equal"))
    return markup.row(HEADS, texts)


def _how_much(row: Row) -> str:
    if row.better == "equal":
        return f"{abs(row.ratio - 1) * 100:.1f} % {'more' if row.ratio > 1 else 'less'} than asked."
    return f"{_short(row.ratio)} times as good."


def _conditions(rows: list[Row]) -> str:
    """Machine, date, versions and numbers of rounds, in words."""
    by_machine = {}
    for row in rows:
        if row.ratio is not None:
            by_machine.setdefault((row.machine, row.date), ([], set()))[0].append(row.rounds)
            by_machine[row.machine, row.date][1].update(row.versions)
    parts = []
    for (machine, date), (rounds, versions) in by_machine.items():
        several = f"{min(rounds)} to {max(rounds)}" if min(rounds) != max(rounds) else f"{rounds[0]}"
        named = "".join(f"; {name} {version}" for name, version in sorted(versions))
        parts.append(f"{several} rounds, {machine}, {date}{named}.")
    return " ".join(parts)


def figure(rows: list[Row]) -> str:
    """An SVG: for each row a line from the least to the largest ratio with a mark at the median, on a logarithmic
    axis; "" without rows."""
    if not rows:
        return ""
    low, high = min(min(row.low for row in rows), 0.5), max(max(row.high for row in rows), 2)
    height = LINE * (len(rows) + 1) + 2 * MARGIN

    def x(ratio):
        share = (math.log(ratio) - math.log(low)) / (math.log(high) - math.log(low))
        return LABELS + MARGIN + share * (WIDTH - LABELS - 3 * MARGIN)

    ticks = [tick for tick in TICKS if low <= tick <= high]
    axis = "".join(_tick(tick, x(tick), height) for tick in ticks)
    lines = "".join(_mark(row, x, MARGIN + LINE * (number + 0.5)) for number, row in enumerate(rows))
    summary = "; ".join(f"{row.what} beside {row.against}: {_short(row.ratio)}" for row in rows)
    return ('<figure><div class="labbook-scroll" role="region" tabindex="0" aria-label="Ratios of all comparisons">'
            f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(_plain(summary))}" '
            f'style="width:100%;min-width:{LEAST_WIDTH}px;max-width:{WIDTH}px;font-size:12px;fill:currentColor">'
            f"{axis}{lines}</svg></div><figcaption>How many times as good "
            "as the other side labbook is, of all rounds; the mark is the median. Right of 1 is ahead. Logarithmic."
            "</figcaption></figure>")


def _tick(ratio: float, x: float, height: float) -> str:
    colour = "ink, #222222" if ratio == 1 else "grid, #dddddd"
    return (f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{MARGIN}" y2="{height - LINE - MARGIN}" '
            f'style="stroke:var(--lb-fig-{colour})"/>'
            f'<text x="{x:.1f}" y="{height - MARGIN}" text-anchor="middle">{ratio:g}</text>')


def _mark(row: Row, x, y: float) -> str:
    colour = ("green, #009e73" if row.low > 1 else "vermilion, #d55e00" if row.high < 1 else "faint, #59636e")
    title = escape(_plain(f"{row.what} beside {row.against}: {_short(row.ratio)} ({_short(row.low)} to "
                         f"{_short(row.high)})"))
    label = escape(_plain(f"{row.what} / {row.against}"))
    return (f'<g><title>{title}</title><text x="{LABELS}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
            f'<line x1="{x(row.low):.1f}" x2="{x(row.high):.1f}" y1="{y:.1f}" y2="{y:.1f}" '
            f'style="stroke:var(--lb-fig-{colour});stroke-width:3"/>'
            f'<circle cx="{x(row.ratio):.1f}" cy="{y:.1f}" r="4" style="fill:var(--lb-fig-{colour})"/></g>')


def _number(value: float, unit: str) -> str:
    if unit == "s" and value < 0.1:
        value, unit = value * 1000, "ms"
    return f"{_short(value)} {escape(unit)}"


def _short(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _plain(text: str) -> str:
    return text.replace("`", "")


def _code(text: str) -> str:
    """Escaped, with what is between backquotes as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
