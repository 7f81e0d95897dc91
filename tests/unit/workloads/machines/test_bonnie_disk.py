"""What bonnie++ 2.00 printed of disks, and what it becomes."""

import math
import shlex
from pathlib import Path

import pytest
from here import here_host

from labbook.errors import InputError, LabError, SystemFailure
from labbook.workloads.machines import bonnie_csv, bonnie_disk
from labbook.workloads.machines.machine import Machine

# What it printed in a lab: of 256 MB in 64 MB of memory, and past the page cache.
REAL = ("1.98,2.00a,lab,1,1795319253,256M,,8192,5,838,23,377665,16,147398,20,1473,27,+++++,+++,11318,75,"
        "1,,,,,+++++,+++,+++++,+++,+++++,+++,+++++,+++,+++++,+++,+++++,+++,217ms,78680us,28901us,76435us,"
        "16504us,26256us,6781us,38us,5467us,5384us,53us,3142us")
DIRECT = ("1.98,2.00a,lab,1,1795319112,256M,,8192,5,,,28928,3,116617,13,,,380143,7,7976,39,1,,,,,+++++,"
          "+++,+++++,+++,+++++,+++,+++++,+++,+++++,+++,+++++,+++,,71089us,75234us,,91824us,29056us,2287us,"
          "77us,4070us,8485us,4us,4101us")
# The report's numbers in a line of that form.
CSV = ("1.98,2.00a,lab,1,1795343000,256M,,8192,5,15412,23,15739,3,13231,0,43190,49,51952,0,77.2,0,"
       "16,,,,,68628,97,468595,102,108034,100,20617,25,426598,93,104917,99,"
       "563us,1183ms,1286ms,35us,21711us,1251ms,11081us,200us,410us,5000us,24us,511us")
BLOCKS = {"put_c": (15412, 23), "put_block": (15739, 3), "rewrite": (13231, 0),
          "get_c": (43190, 49), "get_block": (51952, 0), "seeks": (77.2, 0)}
ASKED = {"size_mb": 64, "byte_mb": 1, "seconds_at_most": 10}


def test_each_rate_stands_with_its_share_of_the_processor():
    assert bonnie_csv.numbers(bonnie_csv.line(f"words\n{CSV}\n"), bonnie_csv.BLOCKS) == BLOCKS
    files = bonnie_csv.numbers(CSV, bonnie_csv.FILES)
    assert files["sequential_create"] == (68628, 97) and files["random_delete"] == (104917, 99)


def test_what_was_too_fast_or_not_asked_for_is_missing_and_no_zero():
    found = bonnie_csv.numbers(CSV.replace("15739,3,", "+++++,+++,").replace("51952,0,", ",,"),
                               bonnie_csv.BLOCKS)
    for phase in ("put_block", "get_block"):
        assert all(math.isnan(number) for number in found.pop(phase))
    assert found == {phase: numbers for phase, numbers in BLOCKS.items() if phase in found}


def test_real_lines_are_read():
    found = bonnie_csv.numbers(bonnie_csv.line(REAL), bonnie_csv.BLOCKS | bonnie_csv.FILES)
    reported = {phase: numbers for phase, numbers in found.items() if not math.isnan(numbers[0])}
    assert reported == {"put_c": (838, 23), "put_block": (377665, 16), "rewrite": (147398, 20),
                        "get_c": (1473, 27), "seeks": (11318, 75)}
    found = bonnie_csv.numbers(bonnie_csv.line(DIRECT), bonnie_csv.BLOCKS)
    assert [phase for phase in found if math.isnan(found[phase][0])] == ["put_c", "get_c"]
    assert found["put_block"] == (28928, 3) and found["seeks"] == (7976, 39)


@pytest.mark.parametrize("printed", ["", CSV.replace("1.98", "1.97"), CSV[:80], f"{CSV}\n{CSV}"])
def test_another_format_is_refused(printed):
    with pytest.raises(ValueError, match="1.98"):
        bonnie_csv.line(printed)


def test_metrics_say_their_units():
    found = bonnie_disk.metrics(bonnie_disk.phases(CSV, 16))
    assert found["put_c_kib_per_s"] == 15412 and found["put_c_cpu_percent"] == 23
    assert found["put_c_kib_per_cpu"] == 15412 / 23 and math.isnan(found["rewrite_kib_per_cpu"])
    assert "seeks_kib_per_cpu" not in found
    assert found["seeks_per_s"] == 77.2 and found["random_stat_per_s"] == 426598
    without = bonnie_disk.metrics(bonnie_disk.phases(CSV, 0))
    assert without.keys() == found.keys() and math.isnan(without["sequential_create_per_s"]), "no files were asked for"


def test_its_command_line():
    arguments = bonnie_disk.command("/mnt/v", 512, 0, 0, True, "root")
    assert arguments[arguments.index("-s") + 1] == "512" and "-f" in arguments and "-D" in arguments
    assert arguments[arguments.index("-n") + 1] == "0" and arguments[-2:] == ["-u", "root"]
    plain = bonnie_disk.command("/mnt/v", 512, 20, 16, False, "")
    assert "-f20" in plain and "-D" not in plain and "-u" not in plain and plain[plain.index("-n") + 1] == "16"


@pytest.fixture
def acting(tmp_path, monkeypatch):
    """A machine whose bonnie++ does what a script says."""
    def script(text):
        program = tmp_path / "bonnie++"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        monkeypatch.setattr(bonnie_csv, "PROGRAM", str(program))
        host = here_host(tmp_path, "node")
        host.limits = {"memory": 32 << 20}
        return Machine.of(host)
    return script


SAYS = f"echo Writing a byte at a time...done >&2; echo Version; echo '{CSV}'"


def test_a_run_is_a_row_a_phase(acting, tmp_path):
    load = bonnie_disk.bonnie_disk(acting(SAYS), tmp_path / "a disk", **ASKED)
    assert load.rows.phase.tolist() == list(BLOCKS) and load.csv == CSV
    assert load.metrics["rewrite_kib_per_s"] == 13231 and load.metrics["wall_s"] > 0
    assert (tmp_path / "a disk").is_dir()


def test_what_fits_the_page_cache_is_refused_unless_it_is_passed_by(acting, tmp_path):
    machine = acting(SAYS)
    with pytest.raises(InputError, match="63 MB fit the page cache of node, which has 32 MB"):
        bonnie_disk.bonnie_disk(machine, tmp_path, **ASKED | {"size_mb": 63})
    bonnie_disk.bonnie_disk(machine, tmp_path, **ASKED | {"size_mb": 63, "byte_mb": 0}, direct=True)


def test_without_a_limit_the_machines_memory_counts(acting):
    machine = acting(SAYS)
    machine.via.limits = {}
    assert bonnie_disk.memory_mb(machine) > 100


@pytest.mark.parametrize("change", [{"size_mb": 8}, {"byte_mb": -1}, {"byte_mb": 65}, {"direct": True}, {"files": -1}])
def test_what_it_cannot_do_is_refused(acting, tmp_path, change):
    with pytest.raises(InputError):
        bonnie_disk.bonnie_disk(acting(SAYS), tmp_path, **ASKED | change)


@pytest.mark.parametrize("text, message", [
    ("echo 'no space' >&2; exit 1", "exit code 1"), ("echo Version", "printed no rates"),
    (f"echo '{CSV.replace('15412', 'many')}'", "printed no rates"), ("exec sleep 61", "not within 1 s")])
def test_what_goes_wrong_is_reported_and_its_files_are_gone(acting, tmp_path, text, message):
    disk = tmp_path / "disk"
    machine = acting(f"mkdir -p {shlex.quote(str(disk))}/Bonnie.1; {text}")
    with pytest.raises(SystemFailure, match=message):
        bonnie_disk.bonnie_disk(machine, disk, **ASKED | {"seconds_at_most": 1})
    assert "rates" in message or not list(disk.iterdir())


def test_without_it_what_to_install_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(bonnie_csv, "PROGRAM", "/nowhere/bonnie++")
    with pytest.raises(LabError, match="no bonnie") as refusal:
        bonnie_disk.bonnie_disk(Machine.of(here_host(tmp_path, "node")), Path("/x"),
                                **ASKED | {"size_mb": 1 << 30})
    assert "apt-get install bonnie++" in refusal.value.remedy
