"""What axe-core finds on each page that readers with a disability cannot use, in the light and in the dark,
at a desk and on a phone."""

import re
from importlib import resources

import pytest
import selenium_axe_python
from browser import DESK, PHONE, open_page

AXE = (resources.files(selenium_axe_python) / "axe-core" / "axe.min.js").read_text()
RUN = """const [rules, without, but, done] = arguments;
    const run = rules ? {runOnly: rules} : {rules: Object.fromEntries(but.map(one => [one, {enabled: false}]))};
    axe.run(without.length ? {exclude: without} : document, {...run, resultTypes: ['violations']}).then(found => done(found.violations.map(
        one => [one.id, one.nodes.length, one.nodes[0].html.slice(0, 200), one.nodes[0].failureSummary])))"""
THEME = """const still = document.createElement('style');
    still.textContent = '* {transition: none !important}';      // half-way colours are nobody's
    document.head.append(still);
    document.documentElement.dataset.mode = document.documentElement.dataset.theme = arguments[0]"""
# Long tables, lists, figures and programs repeat what is alike, so three of a kind stay. Of a kind are elements
# with the same classes and styles, the same attributes, and text or none, and so are all within them. `together`: three
# of all that are within the same tags, classes and styles, and the first of each parent, without which a table would
# have no cells.
THIN = """const together = arguments[0], within = {};
    const place = node => node ? place(node.parentElement) + '>' + node.tagName
        + (node.getAttribute('class') ?? '') + (node.getAttribute('style') ?? '') : '';
    const kinds = new WeakMap(), telling = ['class', 'style', 'role', 'scope', 'tabindex', 'lang'];
    const attribute = one => telling.includes(one.name) ? one.name + one.value : one.value.trim() ? one.name : '';
    const kind = node => {
        if (!kinds.has(node)) kinds.set(node, [node.tagName, node.textContent.trim() !== '',
            ...[...node.attributes].map(attribute), ...[...node.children].map(kind)].join('|'));
        return kinds.get(node);
    };
    for (const parent of document.querySelectorAll('tbody, ul, ol, pre, svg, svg g')) {
        const seen = together ? (within[place(parent)] ??= {}) : {};
        for (const child of [...parent.children]) {
            const own = kind(child);
            seen[own] = (seen[own] ?? 0) + 1;
            if (seen[own] > 3 && !(together && child === parent.firstElementChild)) child.remove();
        }
    }"""
OF_A_THEME = ["color-contrast"]     # all else is the same in the dark
OF_A_LAYOUT = ["scrollable-region-focusable"]       # what is emptied would not scroll
GENERATED = {"genindex.html", "search.html"}     # the theme's own pages
# What the theme puts around each page's own text is the same on all of them, and so is what it shows and hides on a
# phone: one page of each kind is tried with it, and on a phone by all rules.
AROUND = [".bd-header", ".bd-header-article", ".bd-sidebar-primary", ".bd-footer"]
KINDS = ("index.html", "board.html", "how.html", "wan_keystone.html")


def violations(driver, theme: str, rules=None, without=(), together=False) -> list:
    """Of the page that is open, but for the elements of these selectors; `together`: see THIN, but for the rules of a
    layout."""
    driver.execute_script(THIN, together)
    driver.execute_script(THEME, theme)
    if not driver.execute_script("return !!window.axe"):
        driver.execute_script(AXE)
    return driver.execute_async_script(RUN, rules, list(without), OF_A_LAYOUT if together else [])


def in_both_themes(driver, address: str, width_height, without=()) -> list:
    open_page(driver, address, width_height)
    return (violations(driver, "light", OF_A_LAYOUT, without) + violations(driver, "light", None, without, together=True)
            + violations(driver, "dark", OF_A_THEME, without, together=True))


@pytest.fixture
def ours(driver, pages):
    driver.set_script_timeout(120)
    return [page for page in pages if page.name not in GENERATED]


def test_no_page_has_what_some_readers_cannot_use(driver, ours):
    found = {page.name: in_both_themes(driver, page.as_uri(), DESK, () if page.name in KINDS else AROUND)
             for page in ours}
    assert not {name: seen for name, seen in found.items() if seen}


def test_a_page_of_each_kind_can_be_used_on_a_phone(driver, ours):
    tried = {page.name: page for page in ours if page.name in KINDS and page.parent.name in ("book", "notebooks")}
    assert set(tried) == set(KINDS)
    found = {name: in_both_themes(driver, page.as_uri(), PHONE) for name, page in tried.items()}
    assert not {name: seen for name, seen in found.items() if seen}


def test_no_pages_layout_on_a_phone_is_in_a_readers_way(driver, ours):
    found = {}
    for page in ours:
        open_page(driver, page.as_uri(), PHONE)
        found[page.name] = violations(driver, "light", OF_A_LAYOUT)
    assert not {name: seen for name, seen in found.items() if seen}


def test_what_axe_would_say_of_a_bad_page(driver, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text('<html lang="en"><title>bad</title><main><h1>Bad</h1><img src="data:image/png;base64,AAAA">'
                   '<p style="color:#ccc;background:#fff">pale</p></main></html>')
    open_page(driver, bad.as_uri())
    assert {"color-contrast", "image-alt"} <= {one[0] for one in violations(driver, "light")}
    assert [one[0] for one in violations(driver, "dark", OF_A_THEME)] == OF_A_THEME


def test_what_is_bad_is_found_beside_what_is_left_out(driver, tmp_path):
    bad = tmp_path / "page.html"
    bad.write_text('<html lang="en"><title>page</title><header class="bd-header"><img src="data:image/png;base64,AAAA">'
                   '</header><main><h1>Page</h1><p style="color:#ccc;background:#fff">pale</p></main></html>')
    open_page(driver, bad.as_uri())
    assert [one[0] for one in violations(driver, "light", None, AROUND)] == ["color-contrast"]


def test_what_is_bad_is_found_behind_what_is_alike(driver, tmp_path):
    page = tmp_path / "list.html"
    good = '<li><img src="data:image/png;base64,AAAA" alt="a dot"> <a href="#top">up</a></li>' * 5
    page.write_text(f'<html lang="en"><title>list</title><main id="top"><h1>List</h1><ul>{good}'
                    + good[:len(good) // 5].replace(' alt="a dot"', "") + good[:len(good) // 5].replace(">up<", "><")
                    + "</ul></main></html>")
    open_page(driver, page.as_uri())
    assert {"image-alt", "link-name"} == {one[0] for one in violations(driver, "light")}
    assert driver.execute_script("return document.querySelectorAll('li').length") == 5     # three alike, and both bad


def test_what_is_bad_is_found_behind_what_is_alike_elsewhere(driver, tmp_path):
    page = tmp_path / "tables.html"
    row = '<tr><th scope="row">{}</th><td><a href="#top">up</a></td></tr>'
    table = '<table class="{}"><thead><tr><th scope="col">a</th><th scope="col">b</th></tr></thead><tbody>{}</tbody></table>'
    good = table.format("plain", (row * 2).format(*"xy")) * 4
    bad = table.format("plain", row.format("z").replace(">up<", "><")) + table.format("other", row.format("z"))
    page.write_text(f'<html lang="en"><title>tables</title><main id="top"><h1>Tables</h1>{good}{bad}</main></html>')
    assert [one[0] for one in in_both_themes(driver, page.as_uri(), DESK)] == ["link-name"]
    rows = "return [...document.querySelectorAll('tbody')].map(one => one.children.length)"
    assert driver.execute_script(rows) == [2, 1, 1, 1, 1, 1]


def test_the_version_of_axe_is_not_an_old_one():
    assert tuple(map(int, re.match(r"/\*! axe v(\d+)\.(\d+)", AXE).groups())) >= (4, 9)
