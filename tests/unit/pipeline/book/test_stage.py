import html
import json
import re

import pytest

from labbook.errors import InputError
from labbook.lab.disk import models
from labbook.pipeline.book import board, downloads, page_dress, stage
from labbook.pipeline.book.portable import portable
from labbook.pipeline.executing import pages

NOTE = {"study": "cms", "state": "ok", "key": {}, "profile": "quick", "parameters": {"repeats": 3},
        "environment": "environments/local.yml", "published": False, "seconds": 12.3,
        "started": "2026-01-02T03:04:05+00:00", "points": {"done": 4, "total": 4}, "error": None,
        "machine": {"cpu": "Some CPU", "cores": 2, "memory_gib": 7.8, "kernel": "6.1"}}
CLAIM = """- id: faster
  section: speed
  statement: A is faster than B & C.
  source: section 1
  paper: {value: 2.5, unit: times}
  experiment: clients
  metric: mean_ms
  rule: {name: greater, of: {store: a}, than: {store: b}}
"""
CONDITIONS = {"cpu": "Some CPU", "cores": 2, "memory_gib": 7.8, "kernel": "6.1", "system": "Debian",
              "profile": "quick", "points": 8, "commit": "abc", "stale": 0,
              "from": "2026-01-02 03:04+00:00", "to": "2026-01-02 03:09+00:00"}
VERDICT = {"study": "cms", "id": "faster", "statement": "A is faster than B & C.", "source": "s",
           "paper": {"value": 2.5, "unit": "times"}, "measured": 2.0, "unit": "times", "low": 1.8,
           "high": 2.2, "level": 0.75, "n": 3, "verdict": "replicated", "reason": "",
           "profile": "quick", "environment": "local", "conditions": CONDITIONS}


@pytest.fixture
def staged(book):
    """(book, text): stages afresh and returns the text of a staged file."""
    def text(name):
        return (stage.stage() / name).read_text()
    book.study("cms", "print(1)")
    return book, text


def test_every_model_of_a_disk_is_on_its_page_with_its_sources(staged):
    book, text = staged
    page = text("_generated/disk_models.md")
    for name, entry in models.described().items():
        assert f'<h3 id="{name}">' in page
        assert all(html.escape(figure["source"]) in page for key, figure in entry.items() if key != "is")


def test_the_board_names_the_modelled_disk_that_a_verdict_stands_on(staged):
    book, text = staged
    book.write("data/papers/cms/claims.yml", CLAIM + "  headline: true\n")
    book.write("build/claims/cms.json", json.dumps(
        [VERDICT | {"conditions": CONDITIONS | {"disk_models": ["hdd_2010"]}}]))
    assert "on a modelled disk" in text("_generated/cards.md")
    assert 'on a modelled disk: <a href="../book/modelled_disks.html#hdd_2010">' in text("_generated/board.md")


def executed(book, *, state="ok", outputs=(), error=None):
    """Put a page in place as if `print(1)` had been run."""
    page = json.loads((book.root / "notebooks/cms.ipynb").read_text())
    page["cells"][-1]["outputs"] = list(outputs)
    partial = book.write("build/pages/.cms.partial.ipynb", json.dumps(page))
    pages.accept("cms", partial, NOTE | {"state": state, "error": error})


def cells(text):
    return json.loads(text)["cells"]


def test_a_notebook_that_never_ran_is_in_the_book_and_says_so(staged):
    _, text = staged
    first = cells(text("notebooks/cms.ipynb"))[0]["source"]
    assert first.startswith("# Cms\n") and "has not been run" in first


def test_a_failed_page_says_why_on_top_and_keeps_what_it_printed(staged):
    book, text = staged
    output = {"output_type": "stream", "name": "stderr", "text": "said before"}
    executed(book, state="failed", outputs=[output],
             error={"name": "ValueError", "message": "odd ``` words", "cell": 1, "log": "x"})
    page = text("notebooks/cms.ipynb")
    first = cells(page)[0]["source"]
    assert "{error}" in first and "ValueError: odd ``` words" in first
    assert "said before" in page
    assert first.count("``````") == 2  # the error's own fence does not close the box


ERROR = {"name": "KernelDied", "message": "the notebook's process ended", "cell": None, "log": "x"}
PRINTED = {"output_type": "stream", "name": "stdout", "text": "said before"}


@pytest.mark.parametrize("printed, said", [([PRINTED], "It left no outputs: those below are of an earlier run."),
                                           ([], "It left no outputs.\n")])
def test_a_failed_run_that_left_no_page_does_not_pass_off_an_earlier_one(staged, printed, said):
    book, text = staged
    executed(book, outputs=printed)
    pages.write_note("cms", NOTE | {"state": "failed", "error": ERROR})
    first = cells(text("notebooks/cms.ipynb"))[0]["source"]
    assert f"The last run of this notebook failed. {said}" in first and "up to the failure" not in first


def test_a_run_that_was_stopped_after_a_failed_one_is_the_last(staged):
    book, text = staged
    executed(book, state="failed", outputs=[PRINTED], error=ERROR)
    pages.write_note("cms", pages.stopped("cms", {"state": "interrupted", "points": {"done": 1, "total": 4}}))
    first = cells(text("notebooks/cms.ipynb"))[0]["source"]
    assert "The last run was interrupted after 1 of 4 points; this page shows the run before it." in first
    assert "The run before it failed. The outputs up to the failure are below." in first
    assert first.index("interrupted") < first.index("process ended") and "The last run of this notebook" not in first


def test_a_good_page_folds_its_parameters_and_leaves_out_chatter(staged):
    book, text = staged
    executed(book, outputs=[
        {"output_type": "stream", "name": "stderr", "text": "chatter"},
        {"output_type": "stream", "name": "stdout", "text": "result"}])
    page = text("notebooks/cms.ipynb")
    assert "chatter" not in page and "result" in page
    tags = [c["metadata"].get("tags") for c in cells(page) if c["cell_type"] == "code"]
    assert tags == [["hide-input"], ["remove-input"]]
    ending = cells(page)[-1]["source"]
    assert "labbook run cms -p repeats 3" in ending and "Some CPU" in ending
    assert "{download}`cms.ipynb </_files/cms/cms.ipynb>`" in ending
    downloaded = json.loads((stage.stage() / "_files/cms/cms.ipynb").read_text())
    assert downloaded == portable(json.loads(pages.page("cms").read_text()))


@pytest.mark.parametrize("of, ends", [
    ({"board": {"which": "headline"}}, "labbook run cms"),
    ({"board": {"which": "a,b"}}, "labbook run cms --until-decided --claims a,b"),
    ({"board": {"which": "headline"}, "profile": "full", "parameters": {"repeats": 5}},
     "labbook run cms --profile full --until-decided --claims headline"),
    ({"board": {"which": "headline"}, "parameters": {"repeats": 3}},
     "labbook run cms --until-decided --claims headline -p repeats 3"),
    ({"board": None}, "labbook run cms")])
def test_the_command_of_a_page_asks_what_its_run_was_asked(staged, monkeypatch, of, ends):
    monkeypatch.setattr(downloads, "_lab", lambda study: {"quick": {"claims": "headline", "seconds": 60}})
    assert downloads.command("cms", NOTE | {"parameters": {}} | of) == ends


@pytest.mark.parametrize("lines, printed, own, tags", [
    (3, True, [], ["remove-input"]), (4, True, [], ["hide-input"]), (15, False, [], []), (16, False, [], ["hide-input"]),
    (16, True, ["show-input"], ["show-input"])])
def test_code_is_left_out_or_folded_where_its_output_is_what_is_read(lines, printed, own, tags):
    outputs = [{"output_type": "stream", "name": "stdout", "text": "x"}] * printed
    cell = {"cell_type": "code", "metadata": {"tags": own}, "source": "\n".join(["print(1)"] * lines), "outputs": outputs}
    page = page_dress.dressed({"metadata": {}, "cells": [cell]}, NOTE)
    assert page["cells"][0]["metadata"]["tags"] == tags


@pytest.mark.parametrize("heading, folded", [
    ("Method", True), ("The paper's set-up and ours", True), ("Appendix: what it says twice", True),
    ("Time of a call", False), ("Methodical notes", False)])
def test_sections_about_the_method_are_marked_to_be_folded(heading, folded):
    cell = {"cell_type": "markdown", "metadata": {}, "id": "a", "source": f"# T\n\n## {heading}\n\nText."}
    page = page_dress.dressed({"metadata": {}, "cells": [cell]}, NOTE)
    assert (f"## {heading}\n\n{page_dress.FOLDED}" in page["cells"][0]["source"]) == folded


def test_numbers_that_were_never_measured_are_named_so(staged):
    drawn = "```{glue} there\n```"
    notebook = {"metadata": {}, "cells": [
        {"cell_type": "markdown", "metadata": {}, "id": "a",
         "source": "# T\n{glue:text}`there:.2f` and {glue}`gone` and {glue:text}`gone:.1f`\n\n"
                   f"{drawn}\n\n```{{glue:figure}} gone\nWords.\n```\n"},
        {"cell_type": "code", "metadata": {}, "id": "b", "source": "", "outputs": [
            {"output_type": "display_data", "data": {},
             "metadata": {"scrapbook": {"name": "there"}}}]}]}
    source = page_dress.dressed(notebook, NOTE)["cells"][0]["source"]
    assert source == ("# T\n{glue:text}`there:.2f` and *not measured* and *not measured*\n\n"
                      f"{drawn}\n\n*not measured*\n")


def test_the_papers_own_code_is_there_for_its_page_to_link_to(staged):
    book, text = staged
    book.write("lib/labbook/papers/cms/experiments.py", "x = 1\n")
    assert text("lib/labbook/papers/cms/experiments.py") == "x = 1\n"


def test_only_what_differs_is_written_and_what_is_gone_goes(staged):
    book, text = staged
    text("_toc.yml")
    times = {p: p.stat().st_mtime_ns for p in stage.stage().rglob("*.md")}
    book.write("book/more.md", "# More\n")
    folder = stage.stage()
    assert (folder / "book/more.md").exists()
    assert {p: p.stat().st_mtime_ns for p in times} == times
    (book.root / "book/more.md").unlink()
    (folder / "stray.txt").write_text("x")
    stage.stage()
    assert not (folder / "book/more.md").exists() and not (folder / "stray.txt").exists()


def test_a_contents_entry_without_its_notebook_is_an_input_error(staged):
    book, _ = staged
    (book.root / "notebooks/cms.ipynb").unlink()
    with pytest.raises(InputError, match="_toc.yml"):
        stage.stage()


def test_the_board_shows_claims_before_and_after_they_are_judged(staged):
    book, text = staged
    book.write("data/papers/cms/claims.yml", CLAIM)
    before = text("_generated/board.md")
    assert "not judged yet" in before and "A is faster than B &amp; C." in before
    assert 'href="../notebooks/cms.html"' in before     # the page has no such place yet
    book.write("build/claims/cms.json", json.dumps([VERDICT]))
    executed(book, outputs=[{"output_type": "display_data", "metadata": {},
                             "data": {"text/html": '<div id="claim-faster">'}}])
    after = text("_generated/board.md")
    assert 'href="../notebooks/cms.html#claim-faster"' in after and 'id="claim-cms-faster"' in after
    assert 'data-verdict="replicated" data-owner="paper" data-headline="no"' in after
    assert "a / b, mean time (ms)" in after and ">1 machine<" in after
    assert '<span class="verdict verdict-replicated">replicated</span>' in after
    assert "2.5 times" in after and "2 times (1.8 to 2.2 in 3 repeats)" in after


def test_a_claim_links_to_its_own_place_and_to_no_other_that_begins_so(staged):
    book, text = staged
    book.write("data/papers/cms/claims.yml", CLAIM)
    executed(book, outputs=[{"output_type": "display_data", "metadata": {},
                             "data": {"text/html": '<div id="claim-faster-still">'}}])
    assert 'href="../notebooks/cms.html">A is faster' in text("_generated/board.md")


def test_the_front_page_has_a_card_a_paper_with_its_headline_claims(staged):
    book, text = staged
    assert "No claims yet" in text("_generated/summary.md")
    other = CLAIM.replace("faster", "slower").replace("A is", "B is")
    book.write("data/papers/cms/claims.yml", CLAIM + "  headline: true\n" + other + "  owner: ours\n")
    book.write("data/papers/cms/paper.yml", "title: 題\ntranslation: A study of stores\nyear: 2010\n")
    lean = {"tendency": {"verdict": "replicated", "level": 0.75}, "verdict": "open"}
    book.write("build/claims/cms.json", json.dumps([VERDICT | lean]))
    summary, cards = text("_generated/summary.md"), text("_generated/cards.md")
    assert "1 claim of the papers" in summary and "1 claim of ours" in summary and "1 open" in summary
    assert "0 of 1 judged claims are decided" in summary
    assert "A study of stores, 2010" in cards and "Quick run here, 2026-01-02, Some CPU" in cards
    assert "A is faster" in cards and "B is slower" not in cards, "no headline claim"
    assert "tendency: replicated (75 %)" in cards and "2 times (1.8 to 2.2)" in cards
    assert 'href="board.html#claim-cms-faster"' in cards


def test_a_page_opens_with_the_papers_claim_and_the_headline_verdicts(staged):
    book, text = staged
    assert "labbook-answer" not in text("notebooks/cms.ipynb"), "nothing is known"
    book.study("cms", "print(1)", heading="# Stores\n\nA. Author: **題**.\n\nOf all calls.")
    book.write("data/papers/cms/claims.yml", CLAIM + "  headline: true\n")
    book.write("data/papers/cms/paper.yml", "title: 題\nclaim: A < B.\nclaim_ja: AはBより速い。\n")
    book.write("build/claims/cms.json", json.dumps([VERDICT]))
    first = json.loads(text("notebooks/cms.ipynb"))["cells"][0]["source"]
    order = [first.index(part) for part in ("# Stores", "A. Author", "A &lt; B.", "A is faster", "Of all calls")]
    assert order == sorted(order) and ":description: A < B. Run again: 1 headline claim: 1 replicated." in first
    assert "1 headline claim: 1 replicated." in first and "1 of 1 judged claims are decided" in first
    assert re.search(r"by chance, at most \d\.\d are expected to be decided wrongly\.", first) and "件と見込まれる" in first
    assert "on Some CPU" in first and '<details lang="ja">' in first and "再現された1件" in first
    assert 'href="../book/board.html#claim-cms-faster"' in first


def test_a_run_stands_beside_the_published_set_of_its_kind_of_machine(book, monkeypatch):
    from labbook.pipeline.book import compare_page

    book.study("cms", "print(1)")
    book.write("data/papers/cms/claims.yml", CLAIM)
    book.write("build/claims/cms.json", json.dumps([VERDICT | {"verdict": "not replicated", "run": "quick"}]))
    sets = {"many-points": {"faster": VERDICT | {"measured": 3.0}}, "some-2-cores-linux-6.1": {"faster": VERDICT}}
    monkeypatch.setattr(compare_page.published_verdicts, "by_machine", lambda study: sets)
    monkeypatch.setattr(compare_page.published_verdicts, "words", lambda study, machine: machine.upper())
    monkeypatch.setattr(compare_page.published, "points", lambda study, machine: 7)
    page = compare_page.page(["cms"])
    assert "<h3>last run here beside SOME-2-CORES-LINUX-6.1</h3>" in page and "1 reversed" in page
    assert "<h3>MANY-POINTS beside SOME-2-CORES-LINUX-6.1</h3>" in page and "1 agree" in page
    assert 'id="set-cms-many-points"' in page and "Published: MANY-POINTS, 7 points, 1 claim measured" in page


def test_when_and_on_what_it_ran_covers_all_experiments(staged):
    book, text = staged
    assert "Nothing has been measured" in text("_generated/ran.md")
    book.write("data/papers/cms/claims.yml", CLAIM)
    later = CONDITIONS | {"from": "2026-01-02 03:10+00:00", "to": "2026-01-02 04:00+00:00"}
    book.write("build/claims/cms.json", json.dumps([VERDICT, VERDICT | {"conditions": later}]))
    ran = text("_generated/ran.md")
    assert "2026-01-02 03:04 to 2026-01-02 04:00" in ran and "Some CPU" in ran
    assert board.conditions("cms")["points"] == 16
    book.write("data/papers/cms/claims.yml", CLAIM + CLAIM.replace("id: faster", "id: fairer").replace(
        "experiment: clients", "experiment: other"))
    book.write("build/claims/cms.json", json.dumps([VERDICT, VERDICT | {"id": "fairer"}]))
    assert board.conditions("cms")["points"] == 16, "two experiments of the same minutes are two"


def test_every_row_of_the_books_tables_has_a_header(staged):
    book, text = staged
    book.write("data/papers/cms/claims.yml", CLAIM)
    book.write("build/claims/cms.json", json.dumps([VERDICT]))
    for name in ("board", "ran", "status", "disk_models"):
        bodies = re.findall(r"<tbody>(.*?)</tbody>", text(f"_generated/{name}.md"))
        rows = [row for body in bodies for row in body.split("</tr>") if row]
        assert rows and all(re.match(r'<tr[^>]*><th scope="row">', row) for row in rows), name


def test_every_cell_of_a_table_has_its_label_for_a_phone(staged):
    _, text = staged
    status = text("_generated/status.md")
    assert re.search(r'<td data-label="State">never run</td>', status)
    assert status.count("<td>") == 0
