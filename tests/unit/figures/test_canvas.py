"""Pictures: whole SVG with a text for each panel, one theme, colours that stay with their value."""

import re
import xml.etree.ElementTree as ElementTree

from figure_stand_ins import names, store_summary  # noqa: F401 (a fixture)

from labbook import figures
from labbook.figures import canvas


def test_a_picture_is_whole_svg_with_words_for_those_who_cannot_see_it():
    picture = figures.time_over_clients(store_summary())
    assert len(picture.panels) == 2
    for panel in picture.panels:
        assert ElementTree.fromstring(panel.svg).tag.endswith("svg")
        assert "http" not in re.sub(rb'xmlns(:\w+)?="[^"]*"|<!DOCTYPE.*?>|rdf:resource="[^"]*"', b"",
                                    panel.svg, flags=re.S).replace(b"https://matplotlib.org/", b"").decode()
    assert picture.panels[0].alt == (
        "Line chart, Read: mean time of a request over clients. Cassandra: 4.00 ms at 1, "
        "40.0 ms at 10; MySQL: 2.00 ms at 1, 20.0 ms at 10.")
    assert picture._repr_html_().count("<img ") == picture._repr_html_().count('alt="Line chart') == 2


def test_the_same_data_give_the_same_bytes():
    first, second = (figures.time_over_clients(store_summary()).panels[0].svg for _ in range(2))
    assert first == second


def test_colours_stay_with_their_value_and_the_callers_settings_come_back():
    import matplotlib

    assert canvas.styles(["mysql", "cassandra"]) == canvas.styles(["cassandra", "mysql", "mysql"])
    before = matplotlib.rcParams["font.size"], matplotlib.rcParams["font.family"]
    figures.time_over_clients(store_summary())
    assert (matplotlib.rcParams["font.size"], matplotlib.rcParams["font.family"]) == before
