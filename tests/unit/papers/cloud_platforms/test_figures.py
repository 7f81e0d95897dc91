"""Tables and figures of the cloud report's page that the common ones do not have."""

import math

import pandas as pd
import pytest

from labbook import figures as common
from labbook import paths
from labbook.papers.cloud_platforms import figures


@pytest.fixture(autouse=True)
def names():
    common.use_names(paths.papers("cloud_platforms") / "paper.yml")


def boots(**more):
    rows = [{"release": release, "image_gb": 0.5, "at_once": 1, "until": "ssh", "repeat": repeat, "block": repeat, "returned_s": 1.0,
             "all_launched_s": 3.0, "all_running_s": 4.0, "all_ssh_s": 9.0, **more}
            for release in ("older", "newer") for repeat in (1, 2)]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("more, parts, absent", [
    ({}, ["the call", "until started", "until reported", "until ssh"], ""),
    ({"all_ssh_s": math.nan}, ["the call", "until started", "until reported"], "until ssh"),
    ({"all_launched_s": math.nan}, ["the call", "until ssh"], "nothing")])
def test_a_boots_time_is_split_as_far_as_it_was_waited_for(more, parts, absent):
    text = repr(figures.boot_parts(boots(**more)))
    assert all(part in text for part in parts) and not (absent and absent in text)


def test_boots_that_wait_until_servers_answer_are_pooled_with_no_others():
    running = boots(until="running", all_ssh_s=math.nan)
    both = pd.concat([running, boots(all_running_s=8.0).assign(repeat=lambda f: f["repeat"] + 2)], ignore_index=True)
    pd.testing.assert_frame_equal(figures.of_one_end(both), running)
    text = repr(figures.boot_parts(both))
    assert all(f"older release, 0.5 GB, 1, until {end}" in text for end in ("running", "ssh")), text
    assert text.count("until ssh ") == 2, "one a release: no bar has a part that was not waited for"
    table = figures.boot_medians(both)
    assert len(table.rows) == 4 and {row[3] for row in table.rows} == {"running", "ssh"}, table.rows


def test_twins_are_shown_with_each_test():
    rows = [{"release": "newer", "place": "vm", "repeat": repeat, "block": repeat, "index": 10.0, "pipe_index": 5.0,
             "twin_index_ratio": 1.02, "twin_pipe_index_ratio": 0.97} for repeat in (1, 2)]
    table = figures.unixbench_twins(pd.DataFrame(rows))
    assert table.columns[1:] == (common.name("index"), common.name("pipe")) and table.rows[0][1].startswith("1.02")


def test_the_processors_share_is_shown_by_what_bonnie_names():
    rows = [{"release": "newer", "volume": "local", "repeat": repeat, "block": repeat, "put_block_kib_per_s": 5.0,
             "put_block_cpu_percent": 12.0, "seeks_per_s": 80.0, "seeks_cpu_percent": 1.0} for repeat in (1, 2)]
    table = figures.disk_cpu(pd.DataFrame(rows))
    assert table.columns[2:] == (common.name("put_block_kib_per_s"), common.name("seeks_per_s"))
    assert table.rows[0][2].startswith("12")


@pytest.mark.parametrize("conditions, text", [
    ({}, "not measured"), ({"points": 3}, "not modelled"), ({"disk_models": ["hdd_82_seeks"]}, "modelled (hdd_82_seeks)")])
def test_the_page_says_whose_disks_it_shows(conditions, text):
    assert figures.disks_are(conditions).startswith(text)


def test_the_reports_tables_stand_beside_ours():
    folder = paths.papers("cloud_platforms")
    types, tests = figures.report_types(folder), figures.report_tests(folder)
    assert all(printed == ours for _, printed, ours in types.rows) and len(types.rows) == 5
    assert [row[0] for row in tests.rows if row[1] != row[2]] == [
        "Shell Scripts (1 concurrent)", "Shell Scripts (8 concurrent)"]
    assert len(figures.report_set_up(folder).rows) == 20 and len(figures.report_fields(folder).rows) == 12
