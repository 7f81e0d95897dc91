"""labbook book: what is missing is reported before anything is made. labbook archive: of which studies."""

import pytest

from labbook import cli
from labbook.errors import LabError
from labbook.pipeline.book import build, pdf
from labbook.pipeline.publishing import archive
from labbook.pipeline.running import run


def test_that_chromium_is_missing_is_reported_before_any_page_is_made(book, monkeypatch, capsys):
    def lacks():
        raise LabError("no Chromium", remedy="Type this")

    monkeypatch.setattr(pdf, "program", lacks)
    monkeypatch.setattr(run, "run", lambda *_: pytest.fail("ran"))
    monkeypatch.setattr(build, "build", lambda: pytest.fail("built"))
    assert cli.main(["book", "--published", "--pdf"]) == 1
    assert "no Chromium. Type this" in capsys.readouterr().err


def test_archives_of_all_studies_leave_out_those_of_which_nothing_is_published(book, monkeypatch, capsys):
    """After `labbook new` the command had failed."""
    for study in ("made", "new", "other"):
        book.study(study)
    for study in ("made", "other"):
        book.write(f"data/published/{study}/epyc/run.json", "{}")
    with monkeypatch.context() as patched:
        patched.setattr(archive, "archive", lambda study: f"labbook-{study}.zip")
        assert cli.main(["archive"]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == ["labbook-made.zip", "labbook-other.zip"]
    assert printed.err == "new: nothing is published of it, so there is no archive\n"
    assert cli.main(["archive", "new"]) == 2 and "nothing is published" in capsys.readouterr().err
