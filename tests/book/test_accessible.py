"""What axe-core finds on each page that readers with a disability cannot use, in the light and in the dark,
at a desk and on a phone."""

import re
from importlib import resources

import pytest
import selenium_axe_python
from browser import DESK, PHONE, visit

AXE = (resources.files(selenium_axe_python) / "axe-core" / "axe.min.js").read_text()
RUN = """const [rules, done] = arguments;
    const run = rules ? {runOnly: rules} : {};
    axe.run(document, {...run, resultTypes: ['violations']}).then(found => done(found.violations.map(
        one => [one.id, one.nodes.length, one.nodes[0].html.slice(0, 200), one.nodes[0].failureSummary])))"""
THEME = """const still = document.createElement('style');
    still.textContent = '* {transition: none !important}';      // half-way colours are nobody's
    document.head.append(still);
    document.documentElement.dataset.mode = document.documentElement.dataset.theme = arguments[0]"""
OF_A_THEME = ["color-contrast"]     # all else is the same in the dark
GENERATED = {"genindex.html", "search.html"}     # the theme's own pages


def violations(driver, address: str, size, theme: str) -> list:
    visit(driver, address, size)
    driver.execute_script(THEME, theme)
    driver.execute_script(AXE)
    return driver.execute_async_script(RUN, OF_A_THEME if theme == "dark" else None)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_no_page_has_what_some_readers_cannot_use(driver, pages, size, theme):
    driver.set_script_timeout(120)
    found = {page.name: violations(driver, page.as_uri(), size, theme)
             for page in pages if page.name not in GENERATED}
    assert not {name: seen for name, seen in found.items() if seen}


def test_what_axe_would_say_of_a_bad_page(driver, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text('<html lang="en"><title>bad</title><main><h1>Bad</h1><img src="data:image/png;base64,AAAA">'
                   '<p style="color:#ccc;background:#fff">pale</p></main></html>')
    assert {"color-contrast", "image-alt"} <= {one[0] for one in violations(driver, bad.as_uri(), DESK, "light")}


def test_the_version_of_axe_is_not_an_old_one():
    assert tuple(map(int, re.match(r"/\*! axe v(\d+)\.(\d+)", AXE).groups())) >= (4, 9)
