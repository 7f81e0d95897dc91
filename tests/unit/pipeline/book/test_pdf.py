"""From the book's one long page to a PDF: links inside it, and a clear word without Chromium."""

import json
import re
from collections import Counter

import pytest

from labbook.errors import LabError
from labbook.figures.canvas import Panel, Picture
from labbook.pipeline.book import build, pdf, stage
from labbook.pipeline.executing import pages

NOTE = {"state": "ok", "key": {}, "profile": "quick", "parameters": {}, "environment": None, "published": False, "seconds": 1.0,
        "started": "2026-01-02T03:04:05+00:00", "points": {"done": 0, "total": 0}, "error": None,
        "machine": {"cpu": "Some CPU", "cores": 2, "memory_gib": 7.8, "kernel": "6.1"}}

IDS = '<span id="document-book/how"></span><span id="document-notebooks/cms"></span><tr id="claim-cms-faster">'


@pytest.mark.parametrize("address, becomes", [
    ("../notebooks/cms.html", "#document-notebooks/cms"), ("how.html", "#document-book/how"),
    ("board.html#claim-cms-faster", "#claim-cms-faster"), ("../notebooks/cms.html#gone", "#document-notebooks/cms"),
    ("#claim-cms-faster", "#claim-cms-faster"), ("https://doi.org/10.1/x", "https://doi.org/10.1/x")])
def test_links_lead_inside_the_page_or_abroad(address, becomes):
    assert f'<a class="x" href="{becomes}">' in pdf.within(f'{IDS}<a class="x" href="{address}">')


def page(name, text):
    return f'<span id="document-{name}"></span><section id="method">{text}</section>'


def test_what_several_pages_call_alike_is_each_pages_own():
    """Each study has a first figure, and all links to one had led to the first paper's."""
    mark = '<defs><path id="f1-m"></path></defs><use x="1" href="#f1-m"></use><g clip-path="url(#f1-m)"></g>'
    figure = f'<figure id="figure-1"><a class="lb-number" href="#figure-1">Figure 1</a>{mark}</figure>'
    both = ''.join('<a href="../notebooks/%s.html#figure-1"></a><a href="#method"></a>' % one for one in ("cms", "wan"))
    other = '<a href="#only-here"></a><b id="only-here"></b><a href="index.html#figure-1"></a>'
    html = pdf.within(page("notebooks/cms", figure + both) + page("notebooks/wan", figure + both) + page("book/how", other))
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids)) and {"figure-1", "notebooks-wan-figure-1", "only-here"} < set(ids)
    cms, wan, how = html.split('<section id="')[1:]
    for part, own, method in ((cms, "", "method"), (wan, "notebooks-wan-", "notebooks-wan-method")):
        assert re.findall(r'<a[^>]* href="([^"]*)"', part) == [
            f"#{own}figure-1", "#figure-1", f"#{method}", "#notebooks-wan-figure-1", f"#{method}"]
        assert f'<path id="{own}f1-m">' in part and f'href="#{own}f1-m"' in part and f"url(#{own}f1-m)" in part
    assert re.findall(r'<a href="([^"]*)"', how) == ["#only-here", "#figure-1"]


@pytest.mark.parametrize("address", ["../_downloads/1/a.csv", "gone.html"])
def test_a_link_to_a_file_of_the_book_names_no_path(address):
    assert '<a class="x">' in pdf.within(f'{IDS}<a class="x" href="{address}">')


def test_styles_keep_their_addresses():
    assert 'href="_static/a.css"' in pdf.within('<link rel="stylesheet" href="_static/a.css">')


def test_without_chromium_the_message_says_what_to_type(monkeypatch):
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    with pytest.raises(LabError, match="apt-get install chromium"):
        pdf.program()


def test_no_id_occurs_twice_in_the_whole_books_long_page(book):
    """As Sphinx writes it, with the figures, tables and sections of two studies."""
    drawn = Picture((Panel(b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><g/></svg>', "a line", 4.0),), "Times.")
    for study in ("cms", "wan"):
        book.study(study, "draw()", heading=f"# {study}\n\n## Method\n\nAs [the figure](#cell-2) shows.\n\n## Data\n\nText.")
        page = json.loads((book.root / f"notebooks/{study}.ipynb").read_text())
        page["cells"][-1]["outputs"] = [{"output_type": "display_data", "metadata": {}, "data": {"text/html": drawn._repr_html_()}}]
        pages.accept(study, book.write(f"build/pages/.{study}.partial.ipynb", json.dumps(page)), NOTE | {"study": study})
    book.write("_config.yml", "title: A small book\nexecute: {execute_notebooks: 'off'}\nonly_build_toc_files: true\n")
    made = build.sphinx(stage.stage(), "singlepage", "--builder", "custom", "--custom-builder", "singlehtml")
    before = (made / "singlehtml/book/index.html").read_text()
    after = pdf.within(before)
    ids = re.findall(r'\sid="([^"]+)"', after)
    assert before.count('id="figure-1"') == 2 and len(ids) == len(set(ids)), Counter(ids).most_common(5)
    assert set(re.findall(r'<a[^>]* href="#([^"]+)"', after)) <= set(ids) | {""}
    wan = after.partition('<span id="document-notebooks/wan">')[2]
    assert wan.count('href="#notebooks-wan-figure-1"') == 2 and 'href="#figure-1"' not in wan
