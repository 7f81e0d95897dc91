"""A point through time, by made-up series."""

import pandas as pd
import pytest

from labbook.figures import point_series
from labbook.figures.point_series import ended_at, page, point_view

META = {"label": "calls: clients=2 repeat 1", "key": "k", "setup": {}, "vary": {}, "load_starts": [1001.0],
        "provenance": {"during": {"started": 1000.0, "ended": 1004.0}}}
ROWS = pd.DataFrame({"started_s": [0.0, 1.0, 2.0], "seconds": [0.5, 0.5, 0.5], "ok": [True, False, True]})


def hosts(names=("h1", "h2")):
    rows = []
    for second in (1, 2, 3, 4):
        rows += [{"at_s": 1000.0 + second, "seconds": 1.0, "host": name, "cpu_cores": 0.5, "user_cores": 0.4,
                  "system_cores": 0.1, "pressure_cpu": 0.1, "memory_bytes": 2e6, "written_bytes_per_s": 1e6,
                  "rx_bytes_per_s_data0": 3e6, "tx_bytes_per_s_data0": 1e6, "rx_bytes_per_s_ctl0": 9e9} for name in names]
        rows += [{"at_s": 1000.0 + second, "seconds": 1.0, "host": "(machine)", "cpu_cores": 1.5, "user_cores": 1.0,
                  "steal_cores": 0.2}, {"at_s": 1000.0 + second, "seconds": 1.0, "host": "router-a",
                                        "rx_bytes_per_s_data0": 1.0}]
    return pd.DataFrame(rows).astype({"host": "category"})


def test_a_panel_for_each_thing_that_was_measured():
    view = point_view(META, hosts(), ROWS)
    alts = [panel.alt for panel in view.picture.panels]
    for start in ("Operations a second over time: 2 came out, 1 failed", "processor, cores, over time: h1 at most 0.5; h2",
                  "waiting for a processor", "memory, MB", "disk, MB a second, over time: h1 at most 1",
                  "network, both ways, MB a second, over time: h1 at most 4", "Cores of the machine"):
        assert any(alt.startswith(start) for alt in alts), start
    assert not any(alt.startswith("waiting for a disk") or "router" in alt for alt in alts)
    assert "stolen by other machines 0.20" in alts[-1]


def test_the_table_has_means_and_totals():
    table = point_view(META, hosts(), ROWS).table
    first = dict(zip(table.columns, table.rows[0]))
    assert first == {"Host": "h1", "Cores, mean": "0.500", "Cores, most": "0.50", "In system": "20%",
                     "Waits for CPU": "10.0%", "Waits for disk": "", "Memory, most MB": "2", "Read MB": "",
                     "Written MB": "4.0", "Received MB": "12.0", "Sent MB": "4.0"}
    assert [row[0] for row in table.rows] == ["h1", "h2", "(machine)"]


def test_what_is_not_known_for_a_while_adds_nothing():
    """The next second was stretched over the gap."""
    rows = hosts(["h1"])
    rows.loc[rows.at_s.isin([1002.0, 1003.0]), "written_bytes_per_s"] = float("nan")
    table = point_view(META, rows, ROWS).table
    assert dict(zip(table.columns, table.rows[0]))["Written MB"] == "2.0"


def test_more_hosts_than_colours_and_one_interval_are_drawn():
    names = [f"h{i}" for i in range(20)]
    series = hosts(names)
    assert "h19 at most" in point_view(META, series[series.at_s == 1001.0], ROWS).picture.panels[1].alt


def test_its_page_needs_no_other_file():
    text = page(point_view(META, hosts(), ROWS), "p { color: red }")
    assert text.count("<svg") == 7 and "<h1>calls: clients=2 repeat 1</h1>" in text and "color: red" in text
    assert "<script" not in text and "http-equiv" not in text and "src=" not in text


def test_operations_stand_where_their_load_began():
    assert ended_at(META, ROWS).tolist() == [1001.5, 1002.5, 1003.5]
    assert ended_at(META | {"load_starts": []}, ROWS).tolist() == [1002.0, 1003.0, 1004.0], "with the point's end"
    late = META | {"load_starts": [1000.5, 1001.2, 1003.9]}
    assert ended_at(late, ROWS).tolist()[0] == pytest.approx(1001.7), "a start after which it could not end is another's"


def test_slices_are_each_of_their_own_load():
    rows = pd.DataFrame({"started_s": [0.0, 0.0], "seconds": [1.0, 0.5], "ok": True, "store": ["a", "b"], "slice": [1, 1]})
    paired = META | {"paired": {"store": ["a", "b"]}, "load_starts": [1000.5, 1002.0]}
    assert ended_at(paired, rows).tolist() == [1001.5, 1002.5]


@pytest.mark.parametrize("rows", [pd.DataFrame(), pd.DataFrame({"score": [1.0]})])
def test_rows_without_times_have_no_operations(rows):
    assert ended_at(META, rows) is None
    assert point_view(META, hosts(), rows).picture.panels[0].alt.startswith("processor")


def test_times_of_the_clock_are_taken_as_they_are():
    rows = pd.DataFrame({"started_s": [2e9], "seconds": [1.0]})
    assert ended_at(META, rows).tolist() == [2e9 + 1] and point_series._ok(rows).tolist() == [True]
