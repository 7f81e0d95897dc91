"""From the book's one long page to a PDF: links inside it, and a clear word without Chromium."""

import pytest

from labbook.errors import LabError
from labbook.pipeline.book import pdf

IDS = '<span id="document-book/how"></span><span id="document-notebooks/cms"></span><tr id="claim-cms-faster">'


@pytest.mark.parametrize("address, becomes", [
    ("../notebooks/cms.html", "#document-notebooks/cms"), ("how.html", "#document-book/how"),
    ("board.html#claim-cms-faster", "#claim-cms-faster"), ("../notebooks/cms.html#gone", "#document-notebooks/cms"),
    ("#claim-cms-faster", "#claim-cms-faster"), ("https://doi.org/10.1/x", "https://doi.org/10.1/x")])
def test_links_lead_inside_the_page_or_abroad(address, becomes):
    assert f'<a class="x" href="{becomes}">' in pdf.within(f'{IDS}<a class="x" href="{address}">')


@pytest.mark.parametrize("address", ["../_downloads/1/a.csv", "gone.html"])
def test_a_link_to_a_file_of_the_book_names_no_path(address):
    assert '<a class="x">' in pdf.within(f'{IDS}<a class="x" href="{address}">')


def test_styles_keep_their_addresses():
    assert 'href="_static/a.css"' in pdf.within('<link rel="stylesheet" href="_static/a.css">')


def test_without_chromium_the_message_says_what_to_type(monkeypatch):
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    with pytest.raises(LabError, match="apt-get install chromium"):
        pdf.program()
