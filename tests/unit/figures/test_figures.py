"""Figures: what is drawn, said in words and left out."""

import re
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest

from labbook import figures
from labbook.errors import InputError
from labbook.figures import canvas, numbers, plots, repeats
from labbook.figures.canvas import Picture
from labbook.lab.description import LabDescription


@pytest.fixture(autouse=True)
def names(tmp_path):
    paper = tmp_path / "names.yml"
    paper.write_text("names: {cassandra: Cassandra, mysql: MySQL, read: Read, write: Write}\n")
    figures.use_names(paper)


def summary(counts=(1, 10), repeat_times=(1.0, 2.0, 4.0), limited=()):
    """Mean times rise with the clients; `limited` holds (store, clients) that clients limited."""
    return pd.DataFrame([
        dict(store=store, op=op, clients=count, repeat=i, mean_ms=time * count * slow,
             rate_per_s=1000 / (time * slow), client_limited=float((store, count) in limited))
        for store, slow in (("cassandra", 2.0), ("mysql", 1.0)) for op in ("read", "write")
        for count in counts for i, time in enumerate(repeat_times, 1)])


def html(shown):
    return shown._repr_html_()


def test_a_picture_is_whole_svg_with_words_for_those_who_cannot_see_it():
    picture = figures.time_over_clients(summary())
    assert len(picture.panels) == 2
    for panel in picture.panels:
        assert ElementTree.fromstring(panel.svg).tag.endswith("svg")
        assert "http" not in re.sub(rb'xmlns(:\w+)?="[^"]*"|<!DOCTYPE.*?>|rdf:resource="[^"]*"', b"",
                                    panel.svg, flags=re.S).replace(b"https://matplotlib.org/", b"").decode()
    assert picture.panels[0].alt == (
        "Line chart, Read: mean time of a request over clients. Cassandra: 4.00 ms at 1, "
        "40.0 ms at 10; MySQL: 2.00 ms at 1, 20.0 ms at 10.")
    assert html(picture).count("<img ") == html(picture).count('alt="Line chart') == 2


def test_the_same_data_give_the_same_bytes():
    first, second = (figures.time_over_clients(summary()).panels[0].svg for _ in range(2))
    assert first == second


def test_the_band_is_the_interval_of_the_median_and_says_how_sure_that_is():
    spread = repeats.over_repeats(summary(), ["store", "op", "clients"], "mean_ms")
    row = spread[(spread.store == "mysql") & (spread.op == "read") & (spread.clients == 10)].iloc[0]
    assert (row.n, row["low"], row["median"], row["high"]) == (3, 10.0, 20.0, 40.0)
    assert row.level == 0.75
    assert "3 repeats" in figures.time_over_clients(summary()).caption
    assert "75 %" in figures.time_over_clients(summary()).caption
    assert "one repeat" in figures.time_over_clients(summary(repeat_times=(1.0,))).caption


def test_client_limited_points_are_hollow_and_named(monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "draw_repeats", lambda axes, rows, *_: drawn.append(rows))
    picture = figures.time_over_clients(summary(limited={("mysql", 10)}))
    assert "6 measurements of 24 limited by the clients" in picture.caption
    assert sum(repeats.client_limited(rows).sum() for rows in drawn) == 6
    assert "limited" not in figures.time_over_clients(summary()).caption


def test_hollow_points_have_a_face_of_their_own():
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    rows = summary(limited={("mysql", 10)})
    plots.draw_repeats(axes, rows[rows.store == "mysql"], "clients", "mean_ms", "#D55E00", "s")
    solid, hollow = axes.collections
    assert (len(solid.get_offsets()), len(hollow.get_offsets())) == (6, 6)
    assert solid.get_facecolor().tolist() != hollow.get_facecolor().tolist()


def test_a_summary_without_the_metric_has_no_limited_points():
    plain = summary().drop(columns="client_limited")
    assert not repeats.client_limited(plain).any()
    figures.time_over_clients(plain)


def test_rates_stand_beside_the_ceiling():
    ceiling = summary(repeat_times=(0.5,))
    picture = figures.rate_over_clients(summary(), ceiling)
    assert "from 70% of it" in picture.caption
    assert "Ceiling of the clients: Cassandra 1,000 to 1,000, MySQL 2,000 to 2,000" in picture.panels[0].alt


def test_colours_stay_with_their_value_and_the_callers_settings_come_back():
    import matplotlib

    assert canvas.styles(["mysql", "cassandra"]) == canvas.styles(["cassandra", "mysql", "mysql"])
    before = matplotlib.rcParams["font.size"], matplotlib.rcParams["font.family"]
    figures.time_over_clients(summary())
    assert (matplotlib.rcParams["font.size"], matplotlib.rcParams["font.family"]) == before


DESCRIPTION = {
    "sites": ["a", "b", "c"],
    "hosts": {"db[1-5]": {"site": "a", "role": "db", "limits": {"cores": 2, "memory": "2G"}},
              "lone": {"site": "b", "role": "client", "limits": {"cores": 1, "quota": 0.5}},
              "far": {"site": "c", "role": "client",
                      "limits": {"disk": {"size": "4G", "iops": 200}}}},
    "links": [{"between": ["a", "b"], "rtt_ms": 100, "rate_mbit": 50},
              {"between": ["a", "c"], "rtt_ms": 300, "loss": 0.01}],
    "systems": [{"name": "mysql", "host": "lone", "settings": {"version": "5.5.9"}}],
}


def test_a_topology_shows_hosts_limits_systems_and_links():
    picture = figures.topology(LabDescription.parse(DESCRIPTION))
    assert picture.panels[0].alt == (
        "Drawing of the lab. Site a with db1 … db5: db, 5 hosts, 2 cores, 2 GB memory. "
        "Site b with lone: client, 1 core, 50% of its time, MySQL 5.5.9. "
        "Site c with far: client, disk 4 GB, 200 IOPS. "
        "Link between a and b: RTT 100 ms, 50 Mbit/s. Link between a and c: RTT 300 ms, 1.00% lost.")


def test_dots_stand_beside_one_another_with_the_words_of_paper_yml():
    found = summary(counts=(1,), limited={("mysql", 1)})
    picture = figures.dot_chart(found, y="clients", hue="store")
    assert [p.alt for p in picture.panels] == [
        f"Dot chart, {op}: mean time of a request, ms. 1, Cassandra: 4.00; 1, MySQL: 2.00."
        for op in ("Read", "Write")]
    assert picture.caption == ("Mean time of a request, ms; dots: the repeats; line: median of 3 "
                               "repeats; bar: interval of the median at a level of 75 %. 6 of 12 "
                               "limited by the clients: hollow.")


@pytest.mark.parametrize("draw", [
    figures.time_over_clients, lambda found: figures.rate_over_clients(found, summary()),
    lambda found: figures.dot_chart(found, y="clients", hue="store")])
def test_what_a_profile_leaves_out_is_said_where_it_would_be_drawn(draw):
    left_out = pd.DataFrame(columns=["point", "op", "store", "clients", "repeat"])
    assert draw(left_out) == Picture((), "Not measured in this profile.")


def test_ratios_are_paired_by_repeat_and_leave_out_what_the_clients_limited():
    table = figures.ratios(summary(limited={("mysql", 10)}), "mean_ms", [
        ("stores", {"store": "cassandra"}, {"store": "mysql"}, {"op": "read", "clients": count})
        for count in (1, 10)])
    assert table.rows == (("stores", "2.00 times (2.00 to 2.00)"), ("stores", "not measured"))


def paper():
    return pd.DataFrame([("read", "MacMini", "cassandra", 1.372), ("read", "MacMini", "mysql", 0.594)],
                        columns=["op", "server", "store", "value"])


def test_the_papers_numbers_stand_beside_ours():
    table = figures.paper_table(paper(), summary(counts=(1,)).assign(server="ours"), rows="op",
                                columns="store")
    assert table.rows == (("Read", "MacMini", "1.37", "0.594", "2.31"),
                          ("Read", "ours", "4.00 (2.00 to 8.00)", "2.00 (1.00 to 4.00)", "2.00"))
    assert 'data-label="MySQL, ms"' in html(table)


def test_a_point_that_was_not_measured_says_so_and_has_no_ratio():
    ours = summary(counts=(1,), limited={("cassandra", 1)}).assign(server="ours")
    table = figures.paper_table(paper(), ours[ours.store == "cassandra"], rows="op", columns="store")
    assert table.rows[1][2:] == ("4.00 (2.00 to 8.00) limited by the client", "not measured", "–")


def test_differences_are_filled_in_from_what_was_run(tmp_path):
    lab = LabDescription.parse({
        "sites": ["a"], "hosts": {"one": {"site": "a", "role": "db", "limits": {"memory": "3G"}}},
        "systems": [{"name": "mysql", "host": "one", "settings": {"version": "5.5.9"}}]})
    file = tmp_path / "paper.yml"
    file.write_text("setup:\n- {what: Server, paper: 4 GB, matters: cache,\n"
                    "   ours: '{one[memory]}, MySQL {mysql[version]}, {requests} requests'}\n")
    table = figures.differences(file, lab, requests=200)
    assert table.rows == (("Server", "4 GB", "3 GB, MySQL 5.5.9, 200 requests", "cache"),)
    with pytest.raises(InputError, match=r"paper.yml: setup.0.ours: .*allowed: mysql, one, rows"):
        figures.differences(file, lab, rows=1)


def test_tables_escape_what_they_are_given():
    assert "<b>" not in html(figures.Table(("a", "<b>"), (("<b>", "<b>"),), caption="<b>"))


@pytest.mark.parametrize("value, text", [
    (0.0123, "0.0123"), (0.594, "0.594"), (1.0, "1.00"), (9.999, "10.0"), (12.56, "12.6"),
    (999.6, "1,000"), (1234.5, "1,230"), (0, "0"), (float("nan"), "–")])
def test_numbers_have_three_figures(value, text):
    assert numbers.number(value) == text


def test_numbers_for_prose_have_their_interval_and_leave_limited_points_out():
    frame = summary(limited={("mysql", 10)})
    at = dict(op="read", clients=1)
    assert figures.measured(frame, "mean_ms", "ms", store="mysql", **at) == "2.00 ms (1.00 to 4.00)"
    assert figures.times(frame, "mean_ms", {"store": "cassandra"}, {"store": "mysql"}, **at) == (
        "2.00 times (2.00 to 2.00)")
    assert figures.measured(frame, "mean_ms", "ms", store="mysql", op="read", clients=10) == "not measured"
    assert figures.times(frame.iloc[:0], "mean_ms", {"store": "cassandra"}, {"store": "mysql"}) == (
        "not measured")


def test_conditions_are_told_in_words():
    table = figures.conditions({"cpu": "Some CPU", "cores": 2, "steal": 0.013})
    assert table.rows == (("Processor", "Some CPU"), ("Cores", "2"),
                          ("Largest share of a measurement's time taken by other virtual machines", "1%"))


def test_conditions_of_hosts_elsewhere_are_theirs_and_not_the_drivers():
    kind = {"cpu": "Big CPU", "cores": 8, "memory_gib": 31.3, "kernel": "6.1", "system": "Debian 12"}
    mine = {"cpu": "My CPU", "cores": 1, "memory_gib": 4.0, "kernel": "6.5", "system": "Debian 13"}
    table = figures.conditions({"hosts": {"small, large": kind, "client": mine}, **mine,
                                "python": "3.12", "steal": 0.5})
    big = "Big CPU, 8 cores, 31.3 GiB of memory, Linux 6.1, Debian 12"
    my = "My CPU, 1 core, 4.0 GiB of memory, Linux 6.5, Debian 13"
    assert table.columns[1] == "On these hosts"
    assert table.rows == (("Hosts small, large", big), ("Host client", my), ("Driven from", my),
                          ("Python", "3.12"))
