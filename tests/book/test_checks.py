"""The checks of pages find what is wrong with a bad one."""

import pytest
from browser import PHONE, visit
from links import broken, foreign

BAD = """<!doctype html><title>x</title><meta name=viewport content="width=device-width">
<script src="http://127.0.0.1:9999/a.js"></script><script>console.error("oh")</script>
<img src="data:image/png;base64,AAAA"><div style="width:900px">wide</div>
<a href="gone.html">a</a><a href="#nowhere">b</a><a href="#here">c</a><p id=here></p>"""


@pytest.fixture
def bad(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text(BAD)
    return page


def test_a_bad_page_is_found_out(driver, bad):
    seen = visit(driver, bad.as_uri(), PHONE)
    assert any("oh" in c for c in seen.complaints)
    assert seen.abroad == ["http://127.0.0.1:9999/a.js"]
    assert [(p["alt"], p["loaded"]) for p in seen.pictures] == [(None, False)]
    assert seen.overflow["width"] > seen.overflow["room"]


def test_bad_links_are_found_out(bad):
    assert broken([bad], bad.parent) == ["bad.html: gone.html", "bad.html: #nowhere"]
    assert foreign(bad) == ["http://127.0.0.1:9999/a.js"]
