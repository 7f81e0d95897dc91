"""Text, rows and tables as the book's own pages have them, read back from their HTML."""

from xml.etree import ElementTree

from labbook.pipeline.book import markup

HEADS = ("Claim", "Verdict")


def test_a_text_is_escaped_also_between_quotes_and_has_one_line():
    text = 'a < b & "c" \'d\''
    assert ElementTree.fromstring(f'<p title="{markup.escape(text)}">{markup.escape(text)}</p>').attrib["title"] == text
    assert markup.escape("two\nlines") == "two lines" and markup.escape(3) == "3"


def test_a_row_has_a_header_and_each_other_cell_the_name_of_its_column():
    row = ElementTree.fromstring(markup.row(HEADS, iter(("<b>one</b>", "open"))))
    assert row.tag == "tr" and [cell.tag for cell in row] == ["th", "td"]
    assert row[0].attrib == {"scope": "row"} and row[1].attrib == {"data-label": "Verdict"}
    assert row[0].find("b").text == "one" and row[1].text == "open"


def test_a_table_scrolls_in_a_frame_that_a_screen_reader_names():
    frame = ElementTree.fromstring(markup.table("Claims of <MySQL>", HEADS, markup.row(HEADS, ("one", "open"))))
    assert frame.attrib == {"class": "labbook-scroll", "role": "region", "tabindex": "0",
                            "aria-label": "Claims of <MySQL>"}
    table = frame.find("table")
    assert table.attrib["class"] == "labbook-table"
    assert [head.text for head in table.findall("thead/tr/th[@scope='col']")] == list(HEADS)
    assert len(table.findall("tbody/tr")) == 1
    assert 'class="labbook-table numbers"' in markup.table("", HEADS, "", "numbers")


def test_markdown_includes_it_as_it_is():
    assert markup.raw("<p>*</p>") == "```{raw} html\n<p>*</p>\n```\n"
