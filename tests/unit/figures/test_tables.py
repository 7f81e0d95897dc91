"""Tables: the paper's numbers beside ours, ratios, conditions, and what works and fails."""

import pandas as pd
import pytest
from figure_stand_ins import store_summary

from labbook import figures
from labbook.errors import InputError
from labbook.lab.description import LabDescription


@pytest.fixture(autouse=True)
def names(tmp_path):
    paper = tmp_path / "names.yml"
    paper.write_text("title: a\nnames: {older: old, newer: new, reboot: reboot servers, quota: tell the quota,\n"
                     "  cassandra: Cassandra, mysql: MySQL, read: Read, write: Write}\n")
    figures.use_names(paper)


PRINTED = pd.DataFrame([
    dict(release="older", size=2, seconds=106, cell="printed"),
    dict(release="older", size=20, seconds=None, cell="* in the table"),
    dict(release="newer", size=2, seconds=131, cell="printed"),
    dict(release="newer", size=20, seconds=2160, cell="printed")])
BY = dict(by={"size": "Size, GB"}, arm="release", metric="seconds", unit="s", label="times")


def measured(*sizes):
    return pd.DataFrame([dict(release=release, size=size, repeat=i, seconds=size * i)
                         for release in ("older", "newer") for size in sizes for i in (1, 2, 3)])


def test_printed_and_measured_stand_in_one_row_and_missing_cells_as_the_paper_marks_them():
    table = figures.paper_vs_measured(PRINTED, measured(0.5, 2), **BY)
    assert table.columns == ("Size, GB", "old, paper, s", "old, here, s", "new, paper, s", "new, here, s")
    assert table.rows == (("0.5", "", "1.00 (0.500 to 1.50 in 3 repeats)", "", "1.00 (0.500 to 1.50 in 3 repeats)"),
                          ("2", "106", "4.00 (2.00 to 6.00 in 3 repeats)", "131", "4.00 (2.00 to 6.00 in 3 repeats)"),
                          ("20", "*", "", "2,160", ""))


@pytest.mark.parametrize("summary", [measured(1).iloc[:0], pd.DataFrame()])
def test_where_nothing_was_measured_what_is_printed_stands_alone(summary):
    assert figures.paper_vs_measured(PRINTED, summary, **BY).rows[1] == ("20", "*", "", "2,160", "")


def test_what_fails_is_reported_with_all_that_was_seen_of_it():
    frame = pd.DataFrame([
        dict(function="reboot", release="newer", works=works, evidence=seen)
        for works, seen in ((1.0, "3 of 3"), (0.0, "1 of 3"), (0.0, "2 of 3"))]
        + [dict(function="reboot", release="older", works=1.0, evidence="3 of 3"),
           dict(function="quota", release="older", works=0.0, evidence="refused")])
    table = figures.evidence_table(frame, by="function", col="release", label="functions", head="Function")
    assert table.columns == ("Function", "old", "new")
    assert table.rows == (
        ("reboot servers", "works, 1 of 1: 3 of 3", "fails at times, 1 of 3: 1 of 3; 2 of 3"),
        ("tell the quota", "fails, 0 of 1: refused", "–"))
    quota = frame.assign(works=1.0, evidence="cores: 2 of 100, memory_mb: 256 of None")
    cells = figures.evidence_table(quota, by="function", col="release", label="quota", head="Function").rows[0][1:]
    assert any(cell.endswith("cores: 2 of 100, memory_mb: 256, no limit") for cell in cells)
    nothing = figures.evidence_table(frame.iloc[:0], by="function", col="release", label="f", head="Function")
    assert nothing.rows == (("Not measured in this profile.", "–"),)


def test_ratios_are_paired_by_repeat_and_leave_out_what_the_clients_limited():
    table = figures.ratios(store_summary(limited={("mysql", 10)}), "mean_ms", [
        ("stores", {"store": "cassandra"}, {"store": "mysql"}, {"op": "read", "clients": count})
        for count in (1, 10)])
    assert table.rows == (("stores", "2.00 times (2.00 to 2.00 in 3 repeats)"),
                          ("stores", "not known (the clients were the limit in some repeats)"))


def paper():
    return pd.DataFrame([("read", "MacMini", "cassandra", 1.372), ("read", "MacMini", "mysql", 0.594)],
                        columns=["op", "server", "store", "value"])


def test_the_papers_numbers_stand_beside_ours():
    table = figures.paper_table(paper(), store_summary(counts=(1,)).assign(server="ours"), rows="op",
                                columns="store")
    assert table.rows == (("Read", "MacMini", "1.37", "0.594", "2.31"),
                          ("Read", "ours", "4.00 (2.00 to 8.00)", "2.00 (1.00 to 4.00)", "2.00"))
    assert 'data-label="MySQL, ms"' in table._repr_html_()


def test_a_point_that_was_not_measured_says_so_and_has_no_ratio():
    ours = store_summary(counts=(1,), limited={("cassandra", 1)}).assign(server="ours")
    table = figures.paper_table(paper(), ours[ours.store == "cassandra"], rows="op", columns="store")
    assert table.rows[1][2:] == ("4.00 (2.00 to 8.00) limited by the client", "not measured", "–")


def test_differences_are_filled_in_from_what_was_run(tmp_path):
    lab = LabDescription.parse({
        "sites": ["a"], "hosts": {"one": {"site": "a", "role": "db", "limits": {"memory": "3G"}}},
        "systems": [{"name": "mysql", "host": "one", "settings": {"version": "5.5.9"}}]})
    file = tmp_path / "paper.yml"
    file.write_text("title: a\nsetup:\n- {what: Server, paper: 4 GB, matters: cache,\n"
                    "   ours: '{one[memory]}, MySQL {mysql[version]}, {requests} requests'}\n")
    table = figures.differences(file, lab, requests=200)
    assert table.rows == (("Server", "4 GB", "3 GB, MySQL 5.5.9, 200 requests", "cache"),)
    with pytest.raises(InputError, match=r"paper.yml: setup.0.ours: .*allowed: mysql, one, rows"):
        figures.differences(file, lab, rows=1)


def test_tables_escape_what_they_are_given():
    assert "<b>" not in figures.Table(("a", "<b>"), (("<b>", "<b>"),), caption="<b>")._repr_html_()


@pytest.mark.parametrize("rows, folded", [(9, False), (10, True)])
def test_a_long_table_is_folded(rows, folded):
    html = figures.Table(("a", "b"), (("1", "2"),) * rows, label="some <numbers>")._repr_html_()
    assert (f"<summary>Table of {rows} rows: some &lt;numbers&gt;</summary>" in html) == folded
    assert html.count("<tr>") == rows + 1


def test_conditions_are_reported_in_words():
    table = figures.conditions({"cpu": "Some CPU", "cores": 2, "steal": 0.013})
    assert table.rows == (("Processor", "Some CPU"), ("Cores", "2"),
                          ("Largest share of a measurement's time taken by other virtual machines", "1%"))


def test_conditions_list_the_changes_over_which_points_were_carried():
    changes = [{"on": "2026-11-27T03:27:17+00:00", "why": "values have other names"},
               {"on": "2026-11-28T01:00:00+00:00", "why": "a reset is noted"}]
    assert figures.conditions({"cores": 2, "changes": changes}).rows[1:] == (
        ("Change of the code on 2026-11-27, after some of these measurements", "values have other names"),
        ("Change of the code on 2026-11-28, after some of these measurements", "a reset is noted"))


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
