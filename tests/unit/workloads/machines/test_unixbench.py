"""The suite as a whole: which runs it makes, and what becomes of their results."""

import math
import shutil
from pathlib import Path

import pytest
from here import here_host

from labbook.errors import InputError, LabError, SystemFailure
from labbook.workloads.machines import unixbench as module
from labbook.workloads.machines.machine import Machine
from labbook.workloads.machines.unixbench import TESTS, build, unixbench_style

# As UnixBench 5.1.3 ends its report, of one run.
REPORT = "\n".join([
    "   BYTE UNIX Benchmarks (Version 5.1.3)",
    "Dhrystone 2 using register variables       23340000.0 lps   (10.0 s, 7 samples)",
    "System Benchmarks Index Values               BASELINE       RESULT    INDEX",
    *(f"{test.title:<44}{test.baseline:>10.1f}{test.baseline * 20:>13.1f}{200:>9.1f}" for test in TESTS),
    " " * 67 + "========",
    "System Benchmarks Index Score" + f"{200:>46.1f}", ""])


def machine_that_says(tmp_path, script):
    """A machine whose program is a shell script."""
    host = here_host(tmp_path, "c1")
    program = Path(f"{host.root}/benchmarks/unixbench/unixbench_style")
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Machine.of(host)


SAYS = """echo '{"test": "'$1'", "copies": '$3', "counts": [30, 10], "took_s": [2, 2.5]}'"""


def test_the_worst_third_is_dropped_and_the_rest_is_a_geometric_mean():
    assert module.score([5.0]) == pytest.approx(5)
    assert module.score([2.0, 8.0]) == pytest.approx(4)
    assert module.score([2.0, 8.0, 1.0]) == pytest.approx(4)
    ten = [float(n) for n in range(1, 11)]      # 1, 2 and 3 go
    assert module.score(ten) == pytest.approx(math.prod(ten[3:]) ** (1 / 7))
    assert module.score([0.0, 0.0, 3.0]) == 0


def test_the_baseline_machine_is_rated_ten():
    found = module.metrics({test.name: test.baseline for test in TESTS})
    assert found["index"] == pytest.approx(10) and found["shell_8_index"] == pytest.approx(10)
    assert found["shell_8_lpm"] == 6 and found["whetstone_mwips"] == 55
    twice = {test.name: test.baseline for test in TESTS} | {"pipe": 2 * 12440}
    assert module.metrics(twice)["index"] == pytest.approx(10 * 2 ** (1 / 12))


def test_copies_are_added_up_and_scripts_are_counted_by_the_minute():
    pipe, shell = (next(t for t in TESTS if t.name == name) for name in ("pipe", "shell_1"))
    both = {"counts": [30, 10], "took_s": [2, 2.5]}
    assert pipe.rate(both) == 19 and shell.rate(both) == 19 * 60


def test_ten_passes_of_the_short_tests_are_three_of_the_long():
    often = {test.name for test in TESTS if test.often}
    assert often == {"dhrystone", "whetstone", "pipe", "context", "syscall"}
    assert {test.passes(10) for test in TESTS if test.often} == {10}
    assert {test.passes(10) for test in TESTS if not test.often} == {3}
    long = next(test for test in TESTS if not test.often)
    assert [long.passes(passes) for passes in (1, 3, 5, 8)] == [1, 1, 2, 3]


def test_every_pass_is_run_with_its_time_and_copies():
    runs = [words.split()[-3:] for words in module.command("/opt/u/unixbench_style", 4, 10, 0.5).split(" && ")
            if "unixbench_style " in words]
    assert runs.count(["pipe", "5", "4"]) == 10 and runs.count(["shell_8", "30", "4"]) == 3
    assert len(runs) == 5 * 10 + 7 * 3


def test_all_passes_become_rows_scores_and_an_index(tmp_path):
    load = unixbench_style(machine_that_says(tmp_path, SAYS), copies=2, passes=3, share_of_time=0.01)
    assert len(load.rows) == 5 * 3 + 7 and load.metrics["suite"] == "UnixBench-style"
    assert load.metrics["pipe_lps"] == pytest.approx(19)
    assert load.metrics["shell_1_lpm"] == pytest.approx(19 * 60)
    assert load.metrics["pipe_index"] == pytest.approx(190 / 12440)
    assert set(load.rows[load.rows.test == "pipe"].number) == {0, 1, 2}


@pytest.mark.parametrize("script, message", [
    ("[ $1 = spawn ] && { echo fork: no >&2; exit 2; }; " + SAYS, "exit code 2"),
    ("[ $1 = spawn ] || " + SAYS, "0 passes of spawn")])
def test_a_test_that_fails_is_no_result(tmp_path, script, message):
    with pytest.raises(SystemFailure, match=message):
        unixbench_style(machine_that_says(tmp_path, script), copies=1, passes=1)


def test_nothing_is_left_behind(tmp_path):
    machine = machine_that_says(tmp_path, "echo x > written; " + SAYS)
    unixbench_style(machine, copies=1, passes=1)
    assert [path.name for path in Path(machine.folder, "unixbench").iterdir()] == ["unixbench_style"]


@pytest.mark.parametrize("change, key", [
    ({"copies": 0}, "copies"), ({"passes": 11}, "passes"), ({"share_of_time": 0}, "share_of_time"),
    ({"share_of_time": 0.5, "programs": "/opt/unixbench"}, "share_of_time")])
def test_what_cannot_be_run_is_refused(tmp_path, change, key):
    with pytest.raises(InputError) as refusal:
        unixbench_style(Machine.of(here_host(tmp_path, "c1")), **{"copies": 1} | change)
    assert refusal.value.key == key


def test_without_its_program_what_to_do_is_reported(tmp_path):
    with pytest.raises(LabError, match="no program"):
        unixbench_style(Machine.of(here_host(tmp_path, "c1")), copies=1)


def test_an_upstream_copy_is_run_and_read(tmp_path):
    folder = tmp_path / "upstream"
    folder.mkdir()
    (folder / "Run").write_text(f"#!/bin/sh\necho \"$*\" > arguments\ncat <<'END'\n{REPORT}END\n")
    (folder / "Run").chmod(0o755)
    load = unixbench_style(Machine.of(here_host(tmp_path, "c1")), copies=2, passes=3,
                           programs=str(folder))
    assert (folder / "arguments").read_text().split() == ["-c", "2", "-i", "3"]
    assert load.metrics["suite"] == "UnixBench" and load.rows.empty
    assert load.metrics["index"] == pytest.approx(200)
    assert load.metrics["dhrystone_lps"] == pytest.approx(20 * 116700)


def test_a_report_without_all_tests_or_with_several_runs_is_refused():
    with pytest.raises(SystemFailure, match="0 results of Pipe Throughput"):
        module.upstream_scores(REPORT.replace("Pipe Throughput", "Pipe Something "))
    with pytest.raises(SystemFailure, match="2 results"):
        module.upstream_scores(REPORT + REPORT)


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not there")
def test_the_real_program_goes_through_all_of_it(tmp_path):
    host = here_host(tmp_path, "c1")
    build(host)
    load = unixbench_style(Machine.of(host), copies=1, passes=1, share_of_time=0.002)
    assert len(load.rows) == 12 and (load.rows.score > 0).all() and load.metrics["index"] > 0
