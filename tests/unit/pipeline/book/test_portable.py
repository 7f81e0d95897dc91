"""A page as a notebook for any viewer: what is glued stands in the text, figures are images."""

import base64
import copy
import json
import re
import xml.etree.ElementTree as ElementTree

from labbook import figures
from labbook.figures.canvas import Panel, Picture
from labbook.pipeline.book.portable import portable

DRAWN = Picture((Panel(b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><g><path style="fill: #0072b2"/></g></svg>',
                       'a "line" & more', 4.0),), "Time of a call.")


def record(name, **data):
    return {"output_type": "display_data", "metadata": {"scrapbook": {"name": name}}, "data": data}


def number(name, value):
    return record(name, **{"application/papermill.record/text/plain": [f"'{value}'"]})


def notebook(source, *outputs, **cell):
    return {"nbformat": 4, "metadata": {"papermill": {"output_path": "/somewhere/page.ipynb"}}, "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": source.splitlines(keepends=True)},
        {"cell_type": "code", "id": "drawing", "metadata": {"papermill": {"duration": 1}}, "source": "draw()",
         "outputs": list(outputs), **cell}]}


def text(page):
    return page["cells"][0]["source"]


def test_numbers_stand_in_the_text_and_are_no_output_any_more():
    page = portable(notebook("It took {glue:text}`long`, not {glue:text}`unknown`.", number("long", "3 s")))
    assert text(page) == "It took 3 s, not *not measured*." and page["cells"][1]["outputs"] == []


def test_a_glued_figure_is_an_image_in_the_text_with_its_number():
    page = portable(notebook("# T\n\n```{glue} key\n```\nAs [this](#key) shows.\n", record("key", **{"text/html": DRAWN._repr_html_()})))
    assert "<img " in text(page) and "Figure 1: Time of a call." in text(page) and "As Figure 1 shows." in text(page)
    assert "{glue" not in text(page) and "href" not in text(page)


def test_a_block_that_was_not_made_says_so():
    assert text(portable(notebook("# T\n\n```{glue} key\n```\n"))) == "# T\n\n*not measured*\n"


def test_a_figure_is_an_image_with_its_words_and_its_own_data():
    output = {"output_type": "display_data", "metadata": {}, "data": {"text/html": [DRAWN._repr_html_()]}}
    made = portable(notebook("", output))["cells"][1]["outputs"][0]["data"]["text/html"]
    assert "<svg" not in made and 'alt="a &quot;line&quot; &amp; more"' in made and 'width="440"' in made
    drawing = ElementTree.fromstring(base64.b64decode(re.search(r"base64,([^\"]+)", made)[1]))
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg" and drawing.get("viewBox") == "0 0 1 1"


def test_tables_stay_tables():
    table = figures.Table(("a", "b"), (("1", "2"),), label="some numbers")
    output = {"output_type": "display_data", "metadata": {}, "data": {"text/html": table._repr_html_()}}
    made = portable(notebook("", output))["cells"][1]["outputs"][0]["data"]["text/html"]
    assert '<th scope="row">1</th>' in made and "Table 1: some numbers" in made


def test_neither_paths_nor_progress_of_the_run_stay():
    progress = {"output_type": "stream", "name": "stderr", "text": "1 of 2"}
    page = portable(notebook("", progress))
    assert "papermill" not in json.dumps(page)
    assert page["cells"][1]["outputs"] == []


def test_the_page_itself_stays_as_it_was():
    before = notebook("{glue:text}`long`", number("long", "3 s"))
    copied = copy.deepcopy(before)
    portable(before)
    assert before == copied
