"""labbook book: what is lacking is said before anything is made."""

import pytest

from labbook import cli
from labbook.errors import LabError
from labbook.pipeline.book import build, pdf
from labbook.pipeline.running import run


def test_that_chromium_is_missing_is_said_before_any_page_is_made(book, monkeypatch, capsys):
    def lacks():
        raise LabError("no Chromium", remedy="Type this")

    monkeypatch.setattr(pdf, "program", lacks)
    monkeypatch.setattr(run, "run", lambda *_: pytest.fail("ran"))
    monkeypatch.setattr(build, "build", lambda: pytest.fail("built"))
    assert cli.main(["book", "--published", "--pdf"]) == 1
    assert "no Chromium. Type this" in capsys.readouterr().err
