"""Each of the twelve tests does what its definition says, as often as it says."""

import json
import math
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from here import here_host

from labbook.workloads.machines import unixbench
from labbook.workloads.machines.unixbench import FLAGS, TESTS, build, facts

SOURCES = Path(unixbench.__file__).parent / "sources" / "unixbench"
pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not there")
SECONDS = "0.02"
BESIDE_BYTES = 17           # by which a copy tells the program that it is ready, and its result


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build(here_host(tmp_path_factory.mktemp("unixbench"), "c1"))


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    library = tmp_path_factory.mktemp("counting") / "counting.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", library,
                    Path(__file__).with_name("counted_calls.c"), "-ldl"], check=True)
    return library


@pytest.fixture
def counted(program, counting, tmp_path):
    """Runs one test: (its results, how many program images, what each of its processes called)."""
    def run(test, copies=1):
        printed = subprocess.run([program, test, SECONDS, str(copies)], cwd=tmp_path, check=True,
                                 env=os.environ | {"LD_PRELOAD": str(counting), "COUNTED": str(tmp_path)},
                                 capture_output=True, text=True).stdout
        calls = [json.loads(path.read_text()) for path in tmp_path.glob("of-*")]
        return json.loads(printed), len((tmp_path / "images").read_text()), calls
    return run


def compiled_alone(source, folder) -> str:
    """What a source prints that is a program by itself."""
    subprocess.run(["gcc", "-O2", "-DALONE", SOURCES / source, "-o", folder / "alone", "-lm"],
                   check=True)
    return subprocess.run([folder / "alone"], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("test", [test.name for test in TESTS])
def test_every_test_counts_in_each_of_its_copies(program, tmp_path, test):
    done = subprocess.run([program, test, SECONDS, "2"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["test"] == test and results["copies"] == len(results["counts"]) == len(results["took_s"]) == 2
    assert min(results["took_s"]) >= float(SECONDS)
    assert min(results["counts"]) > 0
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_dhrystone_has_the_published_number_of_statements(tmp_path):
    assert compiled_alone("dhrystone.c", tmp_path).split() == ["52", "33", "17"]


def test_whetstones_modules_come_to_what_their_formulas_say(tmp_path):
    found = [float(word) for word in compiled_alone("whetstone.c", tmp_path).split()]
    assert found == pytest.approx(whetstone(), rel=1e-12)


# What a repetition of a module cannot do without on x86-64, and how often: so that a module is
# noticed whose outcome the compiler has found by itself, and which then does nothing.
REPEATED = {"elements": (r"(?:add|sub)sd", 12), "mix": (r"(?:add|sub)sd", 12), "jumps": (r"set|cmov|j(?!mp)", 4),
            "integers": (r"imul", 5), "angles": (r"call", 8), "round_": (r"call", 9)}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its instructions are looked for")
@pytest.mark.parametrize("module", REPEATED)
def test_the_compiler_takes_no_work_away(tmp_path, module):
    subprocess.run(["gcc", *FLAGS, "-S", SOURCES / "whetstone.c", "-o", tmp_path / "s"], check=True)
    text = (tmp_path / "s").read_text()
    code = text[text.index(f"\n{module}:"):text.index(f"\t.size\t{module},")]
    again = re.search(r"^(\.L\d+):.*?\tj\w+\t\1$", code, re.M | re.S)
    assert again, "no loop"
    instruction, least = REPEATED[module]
    part = code if module == "round_" else again[0]
    assert len(re.findall(rf"^\t(?:{instruction})", part, re.M)) >= least


def whetstone():
    """The published modules once more, each in the words of its formula."""
    t, t1, t2 = 0.499975, 0.50025, 2.0

    def mix(e, times, last):
        for _ in range(times):
            for place, signs in enumerate(((1, 1, 1, -1), (1, 1, -1, 1), (1, -1, 1, 1), (-1, 1, 1, 1))):
                total = sum(sign * value for sign, value in zip(signs, e))
                e[place] = total * t if place < 3 else last(total)
        return e

    e = mix([1.0, -1.0, -1.0, -1.0], 12, lambda total: total * t)
    p = mix(list(e), 14 * 6, lambda total: total / t2)
    x = y = 0.5
    for _ in range(32):
        both = math.cos(x + y) + math.cos(x - y) - 1
        x = t * math.atan(t2 * math.sin(x) * math.cos(x) / both)
        both = math.cos(x + y) + math.cos(x - y) - 1
        y = t * math.atan(t2 * math.sin(y) * math.cos(y) / both)
    called = t * 2
    z = (called + t * (called + 1)) / t2
    f = 0.75
    for _ in range(93):
        f = math.sqrt(math.exp(math.log(f) / t1))
    return [*e, *p, 345 % 2 and 0, 6, 6, x, y, z, 3, 2, 3, f]


def test_execl_replaces_the_process_each_time(counted):
    results, images, _ = counted("execl")
    assert images == 1 + results["counts"][0]      # and the one that started it


def test_pipe_throughput_is_of_512_bytes_written_and_read(counted):
    results, _, calls = counted("pipe")
    work = max(calls, key=lambda call: call["written"])
    assert work["read"] == 512 * results["counts"][0]
    assert work["written"] == 512 * results["counts"][0] + BESIDE_BYTES


def test_context_switching_is_there_and_back(counted):
    results, _, calls = counted("context")
    work = max(calls, key=lambda call: call["writes_of_8"])
    assert work["writes_of_8"] == results["counts"][0]
    assert work["read"] == 8 * results["counts"][0]


@pytest.mark.parametrize("test, at_once", [("spawn", 1), ("shell_1", 1), ("shell_8", 8)])
def test_processes_are_made_as_often_as_reported(counted, test, at_once):
    results, _, calls = counted(test)
    assert max(call["forks"] for call in calls) == at_once * results["counts"][0]


def test_five_system_calls_count_as_one(counted):
    results, _, calls = counted("syscall")
    assert 0 <= max(call["calls"] for call in calls) - 5 * results["counts"][0] < 5


@pytest.mark.parametrize("test, size, blocks", [
    ("copy_1024", 1024, 2000), ("copy_256", 256, 500), ("copy_4096", 4096, 8000)])
def test_files_are_copied_in_blocks_of_that_size(counted, test, size, blocks):
    results, _, calls = counted(test)
    work = max(calls, key=lambda call: call["written"])
    copied = results["counts"][0] * 1024
    assert copied % size == 0 and work["read"] == copied
    assert work["written"] == copied + size * blocks + BESIDE_BYTES


@pytest.mark.parametrize("arguments", [
    ["fork", "1", "1"], ["pipe", "0", "1"], ["pipe", "1", "0"], ["pipe", "1"], ["pipe", "x", "1"]])
def test_what_it_is_not_made_for_is_refused(program, tmp_path, arguments):
    done = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "usage" in done.stderr and not done.stdout


def test_a_copy_that_fails_is_no_result(program, tmp_path):
    done = subprocess.run(["sh", "-c", f"ulimit -f 100; exec {program} copy_4096 {SECONDS} 1"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "0 of 1 copies" in done.stderr and not done.stdout


def test_a_copy_that_cannot_begin_is_not_waited_for(program, tmp_path):
    (tmp_path / "copy-1").write_text("in the place of its folder")
    done = subprocess.run([program, "pipe", SECONDS, "3"], cwd=tmp_path, capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 2 and "2 of 3 copies" in done.stderr and not done.stdout


def test_a_script_that_fails_is_no_result(program, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(Path(program).parent, broken)
    (broken / "script.sh").write_text("exit 1\n")
    done = subprocess.run([broken / "unixbench_style", "shell_8", SECONDS, "1"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 2 and "script.sh" in done.stderr and not done.stdout


def test_the_compiler_is_known(tmp_path):
    host = here_host(tmp_path, "c1")
    assert facts(host) == {}
    build(host)
    assert "gcc" in facts(host)["unixbench_compiler"] and facts(host)["unixbench_flags"].startswith("-O2")
