"""What bonnie++ 2.00 printed, and what it becomes; how far it came when it does not end."""

import json
import math

import pandas as pd
import pytest
from here import here_host

from labbook.errors import InputError, LabError, SystemFailure
from labbook.workloads.files import bonnie as bonnie_load
from labbook.workloads.files.bonnie import _metrics, bonnie
from labbook.workloads.files.on_host.bonnie_progress import Phases
from labbook.workloads.machines import bonnie_csv

# On a Ceph file system, and in memory, where all was too fast for it.
CSV = ("1.98,2.00a,lab,1,1795298365,,,,,,,,,,,,,,,,,8,,,,8,1110,8,3653,9,1258,3,1053,6,4600,5,1175,6,"
       ",,,,,,211ms,140ms,249ms,181ms,46677us,139ms")
FAST = ("1.98,2.00a,lab,1,1795298557,,,,,,,,,,,,,,,,,8,,,,8,+++++,+++,+++++,+++,+++++,+++,+++++,+++,"
        "+++++,+++,+++++,+++,,,,,,,160us,154us,3931us,4954us,1068us,2518us")
PRINTED = f"""Version 2.00a       ------Sequential Create------ --------Random Create--------
lab                 -Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--
              files  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
                8/8  1110   8  3653   9  1258   3  1053   6  4600   5  1175   6
Latency               211ms     140ms     249ms     181ms   46677us     139ms
{CSV}
"""
PROGRESS = """Using uid:0, gid:0.
Create files in sequential order...done.
Stat files in sequential order...done.
Delete files in sequential order...done.
Create files in random order...done.
Stat files in random order...done.
Delete files in random order...done.
"""
RATES = {"sequential_create": 1110, "sequential_stat": 3653, "sequential_delete": 1258,
         "random_create": 1053, "random_stat": 4600, "random_delete": 1175}


def test_rates_are_read_from_its_line():
    assert bonnie_load.parse_rates(bonnie_csv.line(PRINTED)) == RATES


def test_what_was_too_fast_for_it_is_missing_and_no_zero():
    assert all(math.isnan(rate) for rate in bonnie_load.parse_rates(FAST).values())
    one = CSV.replace(",3653,9,", ",+++++,+++,")
    found = bonnie_load.parse_rates(one)
    assert math.isnan(found.pop("sequential_stat"))
    assert found == {phase: rate for phase, rate in RATES.items() if phase != "sequential_stat"}


@pytest.mark.parametrize("printed", ["", CSV.replace("1.98", "1.97"), CSV[:40], CSV + "\n" + CSV])
def test_another_format_is_refused(printed):
    with pytest.raises(ValueError, match="1.98"):
        bonnie_csv.line(printed)


def test_phases_begin_and_end_when_it_says_so_however_its_words_come():
    rows = []
    phases = Phases(lambda **row: rows.append(row))
    for at_s, char in enumerate(PROGRESS):
        phases.feed(char, at_s)
    assert [each["phase"] for each in rows] == list(RATES)
    begins = [PROGRESS.index(line) + len(line) - 6 for line in PROGRESS.splitlines()[1:]]
    assert [each["began_s"] for each in rows] == begins
    assert all(each["ended_s"] == each["began_s"] + 4 for each in rows)     # "done"


def test_of_what_was_cut_short_the_phases_that_ended_are_kept():
    log = json.dumps({"phase": "sequential_create", "began_s": 1, "ended_s": 2}) + '\n{"phase": "seq'
    phases, last = bonnie_load.parse_log(log)
    assert [each["phase"] for each in phases] == ["sequential_create"] and last is None


def test_root_must_say_who_it_is_and_others_must_not():
    arguments = bonnie_load.command("/mnt/x", 16, 1024, "root")
    assert arguments[arguments.index("-n") + 1] == "16:0:0:16" and arguments[-2:] == ["-u", "root"]
    assert bonnie_load.command("/mnt/x", 8, 128)[-1] == "1:0:0:8"


@pytest.mark.parametrize("directories, files", [(3, 100), (0, 1024), (8, 0)])
def test_what_it_cannot_make_is_refused(tmp_path, directories, files):
    with pytest.raises(InputError, match="1024"):
        bonnie(here_host(tmp_path, "c1"), "/x", directories=directories, files=files,
               seconds_at_most=5)


@pytest.fixture
def acting(tmp_path, monkeypatch):
    """A host whose bonnie++ does what a script says."""
    def script(text):
        program = tmp_path / "bonnie++"
        program.write_text(f"#!/bin/sh\n{text}")
        program.chmod(0o755)
        monkeypatch.setattr(bonnie_csv, "PROGRAM", str(program))
        return here_host(tmp_path, "c1")
    return script


def bonnie_script(progress=PROGRESS, printed=PRINTED):
    lines = "\n".join(f"printf '%s...' '{line.split('...')[0]}' >&2; sleep 0.1; echo done. >&2"
                      if "..." in line else f"echo '{line}' >&2" for line in progress.splitlines())
    return f"{lines}\ncat <<'END'\n{printed}END\n"


def test_a_phase_that_takes_no_time_by_the_clock_has_no_rate_by_it():
    rows = pd.DataFrame({"phase": ["sequential_stat"], "told_per_s": [5.0], "files": [1024], "started_s": [0.0],
                         "seconds": [0.0]})
    assert math.isnan(_metrics(rows)["by_clock_sequential_stat_per_s"])


def test_a_run_is_a_row_a_phase_with_both_clocks(acting):
    host = acting(bonnie_script(printed=PRINTED.replace(",3653,9,", ",+++++,+++,")))
    load = bonnie(host, "/mnt/x", directories=8, seconds_at_most=10)
    assert list(load.rows.phase) == list(RATES) and (load.rows.files == 8192).all()
    assert load.rows.started_s.iloc[0] == 0 and (load.rows.seconds >= 0.01).all()
    assert load.metrics["random_delete_per_s"] == 1175
    assert math.isnan(load.metrics["sequential_stat_per_s"])
    assert 0 < load.metrics["by_clock_sequential_stat_per_s"] < 8192 / 0.01
    assert 0 < load.metrics["clients_cpu_s"] < 10
    assert load.csv.startswith("1.98,2.00a,lab") and load.started > 1e9


def test_its_start_is_by_our_clock(acting):
    host, more = acting(bonnie_script()), dict(directories=8, seconds_at_most=10)
    here = bonnie(host, "/mnt/x", **more).started
    assert bonnie(host, "/mnt/x", **more, clock_offset_s=1000).started - here < -900


@pytest.mark.parametrize("text, seconds, message", [
    ("echo 'no space' >&2; exit 1", 20, "failed in /mnt/x"),
    (bonnie_script(printed="Version 1.97\n1.97,1.97,lab\n"), 20, "printed no rates"),
    (bonnie_script(progress="\n".join(PROGRESS.splitlines()[:3])), 20, "went through other phases"),
    ("printf 'Create files in sequential order...' >&2; sleep 60", 1, "to end in /mnt/x: not within")])
def test_what_goes_wrong_is_reported_with_its_words(acting, text, seconds, message):
    with pytest.raises(SystemFailure, match=message):
        bonnie(acting(text), "/mnt/x", directories=8, seconds_at_most=seconds)


def test_without_it_what_to_install_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(bonnie_csv, "PROGRAM", "/nowhere/bonnie++")
    with pytest.raises(LabError, match="no bonnie") as refusal:
        bonnie(here_host(tmp_path, "c1"), "/x", directories=8, seconds_at_most=5)
    assert "apt-get install bonnie++" in refusal.value.remedy
