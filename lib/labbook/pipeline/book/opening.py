"""The top of a study's page: what the paper claims, what was found here and how sure that is.

In English and, folded, in Japanese, since the papers and many of their readers are. The paper's claim is
`claim` and `claim_ja` in paper.yml; all else comes from the verdicts.
"""

import html

from labbook import paths
from labbook.claims import paper_file, rules
from labbook.claims.verdict import brief, faint, on_disk
from labbook.pipeline.book.board import answer, bar, counted
from labbook.pipeline.book.markup import escape, raw
from labbook.pipeline.publishing import outcomes

SHOWN = 6       # headline claims, at most
SHORT = 3       # claims of a paper without headline claims
JAPANESE = {"replicated": "再現された", "not replicated": "再現されなかった", "open": "未決",
            "not testable here": "この環境では検証できない", "not run": "未測定", outcomes.NOT_JUDGED: "未判定"}


def opening(study: str, rows: list[dict]) -> str:
    """Markdown of the top of a page; empty where nothing is known. rows: outcomes.of_study."""
    if not rows:
        return ""
    lines = [("The paper", about(study).get("claim")), ("Found here", _found(rows)), ("How sure", _sure(rows))]
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in lines if text)
    top = f'<div class="labbook-answer"><dl>{listed}</dl>{headlines(study, rows)}{_japanese(study, rows)}</div>'
    return _meta(study, rows) + raw(top) + _cited(study)


def _cited(study) -> str:
    """Markdown: the paper as a citation, which leads to its entry among the references."""
    return f"\nThe paper: {{cite:t}}`{study}`.\n" if (paths.papers(study) / "paper.yml").is_file() else ""


def _meta(study, rows) -> str:
    """Markdown: what searches and links show of the page."""
    claim = html.unescape(about(study).get("claim", ""))
    description = f"{claim} Run again: {_headline_words(rows)}.".strip()
    fields = {"description": description, "property=og:description": description, "property=og:type": "article"}
    return "```{eval-rst}\n.. meta::\n" + "".join(
        f"   :{name}: {text}\n" for name, text in fields.items()) + "```\n\n"


def about(study: str) -> dict:
    """What paper.yml says; empty without that file. Texts are escaped."""
    file = paths.papers(study) / "paper.yml"
    found = paper_file.load(file) if file.is_file() else {}
    return {key: escape(value) if isinstance(value, str) else value for key, value in found.items()
            if value is not None}


def chosen(rows) -> list[dict]:
    """The headline claims, or the first of the paper's where it has none."""
    return [one for one in rows if one["headline"]][:SHOWN] or [
        one for one in rows if one["owner"] == "paper"][:SHORT]


def headlines(study: str, rows, board: str = "../book/board.html", compared: bool = True) -> str:
    """HTML: a list of the headline claims, each with its verdict and what was measured; `compared`: and what is
    over what."""
    return '<ul class="labbook-headlines">' + "".join(
        f'<li><span><a href="{board}#claim-{study}-{escape(one["id"])}">{escape(one["statement"])}</a></span>'
        f"<span>{answer(one)}{_value(one, compared)}</span></li>" for one in chosen(rows)) + "</ul>"


def _value(one, compared) -> str:
    parts = (faint(brief(one)), faint(one.get("compared") if compared else ""),
             on_disk(one.get("conditions"))) if brief(one) else ()
    return "".join(f"<br/>{part}" for part in parts if part)


def _found(rows) -> str:
    return f"{_headline_words(rows)}. {counted(rows)} in all{_by_whom(rows)}: {bar(rows, 'small')}"


def _by_whom(rows) -> str:
    """Of how many verdicts the last run here is the source, where others are as published; else empty."""
    published = sum(one.get("from_set") is not None for one in rows)
    own = sum(not one.get("from_set") and one["verdict"] in rules.JUDGED for one in rows)
    return f", of which the last run here judged {own} and {published} are as published" if published and own else ""


def _headline_words(rows) -> str:
    """"5 headline claims: 4 replicated, 1 open"."""
    mine = chosen(rows)
    counts = ", ".join(f"{count} {word}" for word, count in outcomes.counts(mine).items())
    which = "headline claim" if any(one["headline"] for one in rows) else "claim"
    return f"{len(mine)} {which}{'s' * (len(mine) != 1)}: {counts}"


def _sure(rows) -> str:
    judged = [one for one in rows if one["verdict"] in rules.JUDGED]
    if not judged:
        return "Nothing is judged yet."
    text = (f"{_decided(judged)} of {len(judged)} judged claims are decided, at a level of 95 %; by chance, at most "
            f"{outcomes.expected_wrong(judged):.1f} are expected to be decided wrongly.")
    return f"{text} {_measured(judged)}".rstrip()


def _measured(judged) -> str:
    """"Measured until 2026-11-27 on Intel Xeon, 2 cores; until 2026-11-29 on AMD EPYC, 2 cores."; may be empty."""
    until = {}
    for where in (one.get("conditions") for one in judged):
        if where:
            machine = f"{escape(where['cpu'])}, {where['cores']} cores"
            until[machine] = max(until.get(machine, ""), where["to"][:10])
    words = "; ".join(f"until {day} on {machine}" for day, machine in sorted(zip(until.values(), until)))
    return f"Measured {words}." if words else ""


def _decided(judged) -> int:
    return sum(one["verdict"] in outcomes.DECIDED for one in judged)


def _japanese(study, rows) -> str:
    claim = about(study).get("claim_ja")
    if not claim:
        return ""
    judged = [one for one in rows if one["verdict"] in rules.JUDGED]
    counts = "、".join(f"{JAPANESE[word]}{count}件" for word, count in outcomes.counts(chosen(rows)).items())
    sure = (f"判定した{len(judged)}件の主張のうち{_decided(judged)}件が、信頼水準95 %で決着している。偶然に誤って判定される主張は"
            f"多くて{outcomes.expected_wrong(judged):.1f}件と見込まれる。") if judged else "まだ判定した主張はない。"
    return (f'<details lang="ja"><summary>日本語の要約</summary><dl><dt>論文の主張</dt><dd>{claim}</dd>'
            f"<dt>ここでの結果</dt><dd>主要な主張{len(chosen(rows))}件の内訳：{counts}。</dd>"
            f"<dt>確かさ</dt><dd>{sure}</dd></dl></details>")
