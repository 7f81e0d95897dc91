"""Pictures: whole SVG with a text for each panel, one theme, colours that stay with their value."""

import io
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib
from figure_stand_ins import names, store_summary  # noqa: F401 (a fixture)
from matplotlib import font_manager
from matplotlib.figure import Figure

from labbook import figures
from labbook.figures import canvas, inline_svg

CURVE = (1, 10, 100)


def test_a_picture_is_whole_svg_with_words_for_those_who_cannot_see_it():
    picture = figures.time_over_clients(store_summary(CURVE))
    assert len(picture.panels) == 2
    for panel in picture.panels:
        assert ElementTree.fromstring(panel.svg).tag.endswith("svg")
        assert "http" not in re.sub(rb'xmlns(:\w+)?="[^"]*"|<!DOCTYPE.*?>|rdf:resource="[^"]*"', b"",
                                    panel.svg, flags=re.S).replace(b"https://matplotlib.org/", b"").decode()
    assert picture.panels[0].alt == (
        "Line chart, Read: mean time of a request over clients. Cassandra: 4.00 ms at 1, "
        "40.0 ms at 10, 400 ms at 100; MySQL: 2.00 ms at 1, 20.0 ms at 10, 200 ms at 100.")
    assert len(pictures(picture)) == 2 and pictures(picture)[0].get("aria-label") == picture.panels[0].alt


def pictures(picture) -> list:
    """The pictures of a picture's HTML, which has no namespaces."""
    return ElementTree.fromstring(picture._repr_html_()).findall(".//svg[@role='img']")


def test_a_figure_is_text_that_can_be_searched_in_colours_of_the_page():
    (first, _) = pictures(figures.time_over_clients(store_summary(CURVE)))
    assert {"clients", "Cassandra", "MySQL"} <= {text.text for text in first.iter("text")}
    styles = " ".join(one.get("style", "") for one in first.iter())
    assert not set(re.findall(r"[^,] (#\w{6})", styles)), "a colour that the page cannot change"
    assert f"var(--lb-fig-ink, {canvas.INK})" in styles and "Verdana" in styles


def test_all_fonts_come_with_matplotlib():
    """One that a machine lacked gave thousands of warnings when the book was built."""
    with canvas.theme():
        families = matplotlib.rcParams["font.family"]
    folder = Path(matplotlib.get_data_path(), "fonts", "ttf")
    assert set(families) <= {font_manager.get_font(str(file)).family_name for file in folder.glob("*.ttf")}


def test_an_image_in_a_figure_keeps_its_data():
    """Dots that are drawn as an image were lost: its data were taken for a reference in the figure."""
    figure = Figure()
    figure.subplots().plot([1, 2], [3, 4], "o", rasterized=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="svg")
    text = inline_svg.inline(drawn.getvalue(), "dots", "", {}, {})
    images, references = re.findall(r'<image[^>]* href="([^"]*)"', text), re.findall(r'<use[^>]* href="([^"]*)"', text)
    assert images and all(one.startswith("data:image/png;base64,") for one in images)
    ids = set(re.findall(r' id="([^"]*)"', text))
    assert references and {one[1:] for one in references} <= ids


def test_each_repeat_says_its_value_on_hover():
    (first, _) = pictures(figures.time_over_clients(store_summary(CURVE)))
    rows = store_summary(CURVE).query("op == 'read'")
    titles = [title.text for title in first.iter("title")]
    assert len(titles) == len(rows) and "MySQL at 10: 20.0" in titles


def test_ids_of_two_figures_on_a_page_differ():
    ids = [one.get("id") for svg in pictures(figures.time_over_clients(store_summary(CURVE))) for one in svg.iter()
           if one.get("id")]
    assert ids and len(set(ids)) == len(ids)
    (first, _) = pictures(figures.time_over_clients(store_summary(CURVE)))
    own = {one.get("id") for one in first.iter()}
    assert {one.get("href")[1:] for one in first.iter("use")} <= own


def test_html_of_a_figure_has_no_style_for_the_whole_page_and_no_empty_line():
    html = figures.time_over_clients(store_summary(CURVE))._repr_html_()
    assert "<style" not in html and "\n" not in html


def test_the_same_data_give_the_same_bytes():
    first, second = (figures.time_over_clients(store_summary(CURVE)).panels[0].svg for _ in range(2))
    assert first == second


def test_colours_stay_with_their_value_and_the_callers_settings_come_back():
    import matplotlib

    assert canvas.styles(["mysql", "cassandra"]) == canvas.styles(["cassandra", "mysql", "mysql"])
    before = matplotlib.rcParams["font.size"], matplotlib.rcParams["font.family"]
    figures.time_over_clients(store_summary(CURVE))
    assert (matplotlib.rcParams["font.size"], matplotlib.rcParams["font.family"]) == before


def test_more_values_than_colours_differ_by_their_markers():
    """The eighth had the colour and the marker of the first."""
    assert len(set(canvas.styles(range(40)).values())) == 40
