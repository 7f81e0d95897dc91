"""The built book in a real browser, from the disk: on a desk, on a phone, with a keyboard."""

import json
import re
from urllib.parse import quote

import pytest
from browser import DESK, PHONE, size, visit
from links import broken, foreign
from nbconvert.exporters import HTMLExporter
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from labbook import paths


@pytest.fixture(scope="module")
def visits(driver, pages):
    return [visit(driver, page.as_uri()) for page in pages]


def test_every_page_opens_with_a_title_and_no_complaint(visits):
    assert len(visits) > 4
    assert not [v.url for v in visits if "labbook" not in v.title]
    assert not [(v.url, v.complaints) for v in visits if v.complaints]


def test_no_page_asks_for_anything_outside_of_the_book(visits, pages):
    assert not [(v.url, v.abroad) for v in visits if v.abroad]
    assert not [(page, foreign(page)) for page in pages if foreign(page)]


def test_no_page_shows_a_number_as_a_program_writes_it(pages):
    """The first sentence about metadata servers had files in "np.int64(8)" directories."""
    assert not [(page.name, found) for page in pages
                if (found := re.findall(r"\bnp\.(?:int|float|bool|str)\w*\([^)]*\)", page.read_text()))]


def test_every_picture_is_there_and_has_words(visits):
    assert not [(v.url, p) for v in visits for p in v.pictures if p["shown"] and not p["loaded"]]
    assert not [(v.url, p) for v in visits for p in v.pictures if not p["alt"]]


def test_a_studys_figures_are_text_in_the_colours_of_the_page(driver, book):
    visit(driver, (book / "notebooks" / "wan_keystone.html").as_uri())
    colour = """document.documentElement.dataset.theme = arguments[0];
        const text = document.querySelector('.labbook-figure svg text');
        return [text.textContent, getComputedStyle(text).fill]"""
    (text, light), (_, dark) = (driver.execute_script(colour, theme) for theme in ("light", "dark"))
    assert text and light != dark


def test_a_studys_first_screen_has_a_verdict(driver, book):
    for page in sorted((book / "notebooks").glob("*.html")):
        visit(driver, page.as_uri())
        top = driver.find_element(By.CSS_SELECTOR, ".labbook-answer .verdict").rect
        assert top["y"] + top["height"] < DESK[1], page.name


def test_a_notebook_that_is_downloaded_needs_neither_myst_nor_a_style_sheet(driver, book, tmp_path):
    files = sorted(book.glob("_downloads/*/*.ipynb"))
    assert len(files) == len(list((book / "notebooks").glob("*.html")))
    for file in files:
        assert not re.search(r"\{(glue|doc|cite)|<svg", file.read_text()), file.name
    page = tmp_path / "plain.html"
    page.write_text(HTMLExporter(template_name="basic").from_filename(str(files[0]))[0])
    seen = visit(driver, page.as_uri())
    assert len(seen.pictures) > 4 and all(one["loaded"] and one["alt"] for one in seen.pictures)


def test_every_link_leads_somewhere(pages, book):
    assert broken(pages, book) == []


def test_pages_fit_a_phone(driver, pages):
    seen = [visit(driver, page.as_uri(), PHONE) for page in pages]
    assert not [(v.url, v.overflow) for v in seen if v.overflow["width"] > v.overflow["room"]]
    assert {v.overflow["room"] for v in seen} == {PHONE[0]}


def test_the_keyboard_reaches_contents_and_text(driver, book):
    visit(driver, (book / "book" / "index.html").as_uri())
    reached = []
    for _ in range(60):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(driver.execute_script("""const e = document.activeElement;
            return e.closest('.bd-sidebar-primary') ? 'contents' : e.closest('article') ? 'text' :
                   (e.getAttribute('href') || '').startsWith('#main') ? 'skip' : 'other'"""))
        if {"contents", "text"} <= set(reached):
            break
    assert {"skip", "contents", "text"} <= set(reached), reached


def test_the_skip_link_skips(driver, book):
    visit(driver, (book / "book" / "index.html").as_uri())
    driver.switch_to.active_element.send_keys(Keys.TAB)
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    driver.switch_to.active_element.send_keys(Keys.TAB)
    assert driver.execute_script("return !!document.activeElement.closest('main')")


def test_the_contents_open_on_a_phone(driver, book):
    visit(driver, (book / "book" / "index.html").as_uri(), PHONE)
    link = driver.find_element(By.CSS_SELECTOR, ".bd-sidebar-primary a[href*='cms_scalability']")
    assert not _in_sight(driver, link)
    driver.find_element(By.CSS_SELECTOR, "button.primary-toggle").click()
    WebDriverWait(driver, 60).until(lambda d: _in_sight(d, link))
    size(driver, DESK)


def _in_sight(driver, element):
    return driver.execute_script("""const box = arguments[0].getBoundingClientRect();
        return arguments[0].checkVisibility() && box.left >= 0 && box.width > 0""", element)


def test_the_search_finds_from_the_disk(driver, book):
    seen = visit(driver, (book / "search.html").as_uri() + "?q=Cassandra")
    WebDriverWait(driver, 60).until(
        lambda d: d.find_elements(By.CSS_SELECTOR, "#search-results li a[href*='cms_scalability']"))
    assert not seen.complaints and not seen.abroad
    assert not [e for e in driver.get_log("browser") if e["level"] == "SEVERE"]


def test_the_search_finds_claims_and_sections_with_all_words(driver, book):
    statement = _judged(book)[0]["statement"]
    query = " ".join(statement.rstrip(".").split()[:4])
    visit(driver, (book / "search.html").as_uri() + f"?q={quote(query)}")
    found = WebDriverWait(driver, 60).until(
        lambda d: d.find_elements(By.CSS_SELECTOR, ".labbook-search a[href*='board.html#claim-']"))
    assert statement in [link.text for link in found]
    visit(driver, (book / "search.html").as_uri() + "?q=clients+ceiling")
    WebDriverWait(driver, 60).until(
        lambda d: d.find_elements(By.CSS_SELECTOR, ".labbook-search a[href*='.html#']:not([href*='#claim-'])"))


def test_the_search_says_of_how_many_it_lists_the_first(driver, book):
    visit(driver, (book / "search.html").as_uri() + "?q=a")
    WebDriverWait(driver, 60).until(lambda d: d.find_elements(By.CSS_SELECTOR, ".labbook-search a[href*='#claim-']"))
    heads = {}
    for part in driver.find_elements(By.CSS_SELECTOR, ".labbook-search"):
        head = part.find_element(By.TAG_NAME, "h2").text
        name, listed, among = re.fullmatch(r"(\w+) \((\d+)(?: of (\d+))?\)", head).groups()
        assert len(part.find_elements(By.TAG_NAME, "li")) == int(listed)
        heads[name] = int(listed), int(among or listed)
    listed, among = heads["Claims"]
    assert listed < among


def test_the_board_has_its_filters_in_its_address(driver, book):
    visit(driver, board(book))
    Select(driver.find_element(By.NAME, "owner")).select_by_value("ours")
    assert "owner=ours" in driver.current_url
    visit(driver, board(book) + "?owner=ours&run=nonsense")
    assert Select(driver.find_element(By.NAME, "owner")).first_selected_option.get_attribute("value") == "ours"
    visible = driver.find_elements(By.CSS_SELECTOR, "tr[data-owner]:not([hidden])")
    assert visible and {row.get_attribute("data-owner") for row in visible} == {"ours"}


def test_a_link_into_a_folded_section_opens_it(driver, book):
    page = (book / "notebooks" / "wan_keystone.html").as_uri()
    visit(driver, page)
    parts = driver.find_elements(By.CSS_SELECTOR, "details.labbook-part")
    assert len(parts) > 3 and not any(part.get_attribute("open") for part in parts)
    inside = driver.find_element(By.CSS_SELECTOR, "details.labbook-part section").get_attribute("id")
    for anchor in (inside, "method"):
        visit(driver, f"{page}#{anchor}")
        assert driver.execute_script("""const place = document.getElementById(arguments[0]);
            return [...place.querySelectorAll(':scope > details')].every(one => one.open) &&
                   (!place.closest('details') || place.closest('details').open)""", anchor), anchor


def test_on_paper_nothing_is_folded(driver, book):
    visit(driver, board(book))
    closed = "return document.querySelectorAll('details:not([open])').length"
    before = driver.execute_script(closed)
    assert before
    driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert not driver.execute_script(closed)
    driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert driver.execute_script(closed) == before


def test_the_board_shows_every_judged_claim_and_links_to_it(driver, book):
    judged = _judged(book)
    visit(driver, board(book))
    driver.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    linked = {link.get_attribute("href").rpartition("/")[2]
              for link in driver.find_elements(By.CSS_SELECTOR, "a[href*='#claim-']") if link.is_displayed()}
    assert linked >= {f"{claim['study']}.html#claim-{claim['id']}" for claim in judged}


def _judged(book):
    judged = [claim for file in sorted((book.parent / "claims").glob("*.json"))
              for claim in _claims(json.loads(file.read_text()))]
    return judged or nothing_judged()


def nothing_judged(study="*"):
    """Skip the test of a checkout without published sets; beside such sets, there are verdicts."""
    if any((paths.checkout() / "data" / "published").glob(f"{study}/*/*.parquet")):
        pytest.fail("sets are published, and the book has no verdicts on them")
    pytest.skip("nothing has been judged in this checkout")


def board(book):
    return (book / "book" / "board.html").as_uri()


def rows_in_sight(driver):
    return driver.execute_script(
        "return [...document.querySelectorAll('tr[data-verdict]')].filter(row => row.checkVisibility()).length")


def test_the_board_is_filtered_by_study_verdict_owner_and_headline(driver, book):
    judged = _judged(book)
    seen = visit(driver, board(book))
    assert not seen.complaints and rows_in_sight(driver) == 0, "folded by study"
    for name in ("study", "verdict", "owner", "headline"):
        select = Select(driver.find_element(By.CSS_SELECTOR, f"select[name={name}]"))
        value = select.options[1].get_attribute("value")
        select.select_by_value(value)
        key = "closest('details').dataset" if name == "study" else "dataset"
        every = driver.execute_script(
            f"return [...document.querySelectorAll('tr[data-verdict]')].filter(row => row.{key}.{name} == '{value}').length")
        assert 0 < every == rows_in_sight(driver) < len(judged)
        found_text = driver.find_element(By.CSS_SELECTOR, ".labbook-found").text
        assert found_text.startswith(f"{every} of ")
        select.select_by_value("")
    fold = driver.find_element(By.CSS_SELECTOR, ".labbook-filters button")
    fold.click()
    assert rows_in_sight(driver) == 0
    fold.click()
    assert rows_in_sight(driver) == len(driver.find_elements(By.CSS_SELECTOR, "tr[data-verdict]"))


def test_a_link_into_the_board_unfolds_its_claim(driver, book):
    claim = _judged(book)[-1]
    visit(driver, f"{board(book)}#claim-{claim['study']}-{claim['id']}")
    assert driver.find_element(By.ID, f"claim-{claim['study']}-{claim['id']}").is_displayed()


def test_the_board_is_whole_without_scripts(driver, book):
    _judged(book)
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(board(book))
        rows = driver.find_elements(By.CSS_SELECTOR, "tr[data-verdict]")
        assert rows and rows[0].is_displayed() and rows[-1].is_displayed()
        assert not driver.find_element(By.CSS_SELECTOR, ".labbook-filters").is_displayed()
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_front_page_takes_six_screens_at_most(driver, book):
    visit(driver, (book / "book" / "index.html").as_uri())
    height = driver.execute_script("return document.documentElement.scrollHeight")
    assert height <= 6 * DESK[1]


def _claims(data):
    return data["claims"] if isinstance(data, dict) else data


def test_a_claims_place_shows_its_verdict(driver, book):
    if not (book.parent / "claims" / "cms_scalability.json").exists():
        nothing_judged("cms_scalability")
    page = book / "notebooks" / "cms_scalability.html"
    visit(driver, page.as_uri() + "#claim-one-client-read")
    place = driver.find_element(By.ID, "claim-one-client-read")
    badge = driver.execute_script("""const [from, below] = [arguments[0], 4];
        const behind = [...document.querySelectorAll('[id^=claim-]')].find(
            one => !from.contains(one) && (from.compareDocumentPosition(one) & below));
        return [...document.querySelectorAll('[id^=claim-] .verdict')].find(b => from.contains(b) || (
            (from.compareDocumentPosition(b) & below)
            && !(behind && (behind === b || behind.contains(b) || (behind.compareDocumentPosition(b) & below)))))?.innerText
        """, place)
    assert badge and any(word in badge for word in ("replicated", "open", "not testable", "not run"))
