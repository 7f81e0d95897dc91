"""Figures and tables are numbered in the order in which a reader meets them."""

import re

from labbook import figures
from labbook.claims.verdict import Verdicts
from labbook.figures.canvas import Panel, Picture
from labbook.pipeline.book import numbering

DRAWN = Picture((Panel(b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><g/></svg>', "a line", 4.0),), "Time of a call.")


def code(*objects, tags=(), glued=None):
    metadata = {"scrapbook": {"name": glued}} if glued else {}
    return {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": "x",
            "outputs": [{"output_type": "display_data", "metadata": metadata, "data": {"text/html": one._repr_html_()}}
                        for one in objects]}


def text(source):
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def html(cells):
    numbering.number(cells)
    return [output["data"]["text/html"] for cell in cells for output in cell.get("outputs", [])]


def table(rows=2, caption=""):
    return figures.Table(("a", "b"), (("1", "2"),) * rows, label="some numbers", caption=caption)


def test_a_glued_figure_has_the_number_of_its_place_in_the_text():
    first, second = html([text("# T\n\n```{glue} key\n```\n"), code(DRAWN), code(DRAWN, glued="key", tags=["remove-cell"])])
    assert '<figcaption><a class="lb-number" href="#figure-2">Figure 2</a>: Time of a call.</figcaption>' in first
    assert '<figure class="labbook-figure" id="figure-1">' in second and ">Figure 1</a>" in second


def test_tables_have_their_own_numbers_in_their_captions():
    outputs = html([code(table(), table(caption="Medians."), table(rows=12), DRAWN)])
    assert '<caption><a class="lb-number" href="#table-1">Table 1</a>: some numbers</caption>' in outputs[0]
    assert '<caption><a class="lb-number" href="#table-2">Table 2</a>: Medians.</caption>' in outputs[1]
    assert "<summary>Table 3, 12 rows: some numbers</summary>" in outputs[2] and 'id="table-3"' in outputs[2]
    assert ">Figure 1</a>" in outputs[3]


def test_what_was_not_drawn_is_no_figure_and_verdicts_are_no_table():
    outputs = html([code(Picture((), "Not measured."), Verdicts("speed", []))])
    assert not re.search(r"Figure \d|Table \d", "".join(outputs))


def test_text_of_figures_stays_as_it_was():
    before = DRAWN._repr_html_()
    after, = html([code(DRAWN)])
    assert re.sub(r' id="figure-1"|<a class="lb-number"[^>]*>Figure 1</a>: ', "", after) == before


def test_text_refers_to_a_figure_by_its_cell_or_by_its_glued_name_and_gets_its_number():
    cells = [text("# T\n\n```{glue} key\n```\n[The next](#late) and [the first](#key), [a section](#method)."),
             code(DRAWN, glued="key", tags=["remove-cell"]), code(table(), DRAWN) | {"id": "late"}]
    numbering.number(cells)
    assert cells[0]["source"].endswith('<a href="#table-1">Table 1</a> and <a href="#figure-1">Figure 1</a>, '
                                       "[a section](#method).")


def test_a_reference_to_what_was_not_made_is_its_words():
    cells = [text("See [the figure](#late)."), code(Picture((), "Not measured.")) | {"id": "late"}]
    numbering.number(cells)
    assert cells[0]["source"] == "See the figure."
