"""A short run of every benchmark comes to its end and reports both sides; Ctrl-C leaves nothing."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from checkout_copy import CHECKOUT

from labbook.claims.schema import RULES
from labbook.pipeline.setup import install

FOLDER = CHECKOUT / "benchmarks"
NO_BENCHMARK = {"shared", "rounds", "scratch_book", "every", "ccm_ring"}
# Of these tests/unit/test_benchmarks.py reads what the other side prints, since a run takes too long here.
ELSEWHERE = {"kills", "keyvalue_load", "ring_up"}
SECONDS = 300       # at most
NUMBER = r"\d+(?:\.\d+)?"
RATIO = rf"{NUMBER} \({NUMBER} to {NUMBER}\)"
TIME = rf"{NUMBER} (?:ms|s)"
DURATION = r"(?:\d+ (?:h|min|s) ?){1,2}"
UNIT = r"(?:ms|s|µs|MB/s|Mbit/s|1/s)"
SIDES = rf" *{NUMBER} {UNIT} *{NUMBER} {UNIT}   {RATIO}"
# What each prints in a short run, line by line.
HEAD = r" +labbook +other   ratio \(range of 1 rounds\)"
COST = [f"CPU of a {op}, {protocol} / {driver}{SIDES}" for protocol, driver in (
    ("Thrift", "thriftpy2"), ("CQL", "cassandra-driver"), ("MySQL", "pymysql")) for op in ("read", "write")]
RULED = [name for name in RULES if name != "not_testable"]
LIMITED = ("greater", "equal_within", "grows_with", "scales_with", "proportional", "grows_less", "crosses_near",
           "differs_over", "above", "below")


def _rates(head, rules) -> list[str]:
    """A table of error rates by rule and kind of noise."""
    return [rf"{head} +normal +skewed +skewed down +heavy-tailed",
            *[rf"{rule} +{NUMBER}% +{NUMBER}% +{NUMBER}% +{NUMBER}%" for rule in rules]]


PROMISED = {
    "ceph_up": [HEAD, rf"Ceph with an active file system / vstart's way{SIDES}"],
    "client_cost": [HEAD, *COST],
    "cluster_up": [HEAD, rf"Galera nodes in sync / state transfer \(SST\){SIDES}", rf"3 nodes and Keystone, copied: {TIME}"],
    "error_rates": [r"wrong of 20 runs at any look up to 6 repeats; stated: 5%, by chance [0-9.]+%",
                    *_rates("rule", RULED), *_rates("limited", LIMITED)],
    "files_load": [HEAD, *(rf"{what} a second / bonnie\+\+{SIDES}" for what in (
        "files created", "stats", "files deleted"))],
    "fleet_simulated": [r"study +repeats +points +one machine +longest repeat +each machine, itself",
                        rf"\w+ +\d+ +\d+ +{DURATION} +{DURATION} +{DURATION}", "",
                        r"machines +time +times as fast +of them measure +their own ceilings",
                        *(rf" +{size} +{DURATION} +{NUMBER} +\d+% +\d+%" for size in (1, 2, 10)), "",
                        rf"The longest repeat takes {DURATION}: no number of machines is faster\."],
    "fleet_speed": [" +machines +seconds   times as fast as one", rf" +1 +{NUMBER}   {RATIO}", rf" +2 +{NUMBER}   {RATIO}"],
    "lab_up": [HEAD, f"9 hosts up and down / Mininet{SIDES}"],
    "link_error": [HEAD, *(f"{what} / asked{SIDES}" for what in (
        "round trip of 1 ms", "round trip of 10 ms", "round trip of 100 ms", "10 Mbit/s", "100 Mbit/s")),
        *(rf"{what} / netem(?:{SIDES}| +not measured: netem cannot be set here: .*)" for what in (
            "throughput with a delay of 10 ms", "error of 10 ms"))],
    "loading": [HEAD, *(f"{what} / {driver}{SIDES}" for what, driver in (
        (r"loading Cassandra 1\.0\.7", "thriftpy2"), (r"loading 1\.0\.7, a second of a core", "thriftpy2"),
        ("loaders alone, Thrift", "thriftpy2"), ("loaders alone, CQL", "cassandra-driver")))],
    "modelled_disk": [r" +fio / model   log / model   modelled / own disk   \(1 rounds\)", *[
        rf"hdd_2010 +{kind} +{RATIO}   {RATIO}   {RATIO}   \({NUMBER} ms\)" for kind in (
            "sequential read 128 KB", "random read 128 KB", "random read 4 KB", "sequential write 128 KB",
            "random write 4 KB")],
        rf"hdd_2010 +random / sequential read: fio {RATIO}, model {NUMBER}, own disk {RATIO}; late {NUMBER} %"],
    "noop_run": [rf"first run: {TIME}", rf"no-op run, studies: 1; {TIME}"],
    "notebook": [HEAD, f"a notebook that does nothing / papermill{SIDES}"],
    "remote_command": [HEAD, f"one command / ssh, control connection{SIDES}", f"one command / Fabric alone{SIDES}"],
    "sampler": [rf"{NUMBER} % of a core; a sample {NUMBER} ms; {NUMBER} KiB a minute",
                rf"sampler of 6 hosts, once a second: median {NUMBER} % of a core, {NUMBER} to {NUMBER} % in 1 rounds"],
}


def command(name: str, *words) -> list[str]:
    root = install.as_root() if name == "lab_up" else []
    return [*root, sys.executable, str(FOLDER / f"{name}.py"), *map(str, words)]


def test_every_benchmark_is_run_here_or_elsewhere():
    there = {path.stem for path in FOLDER.glob("*.py")} - NO_BENCHMARK
    assert set(PROMISED) <= there <= set(PROMISED) | ELSEWHERE


@pytest.mark.parametrize("name", PROMISED)
def test_a_short_run_reports_what_it_promises(name, tmp_path):
    done = subprocess.run(command(name, "--short", "--json", tmp_path / "samples"), cwd=tmp_path, text=True,
                          capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(PROMISED[name]), done.stdout
    for line, promised in zip(lines, PROMISED[name]):
        assert re.fullmatch(promised, line), (promised, line)
    samples = json.loads((tmp_path / "samples").read_text())
    assert samples.get("rows") or (samples["machine"]["cores"] and len(samples) > 1)
    assert [path.name for path in tmp_path.iterdir()] == ["samples"]


def ours() -> set[str]:
    """Labs that a benchmark has up."""
    return {path.name for path in Path("/run/labbook").glob("b??????")}


def mininets() -> set[str]:
    """Processes of Mininet's hosts, and its own."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command_line = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"mininet:" in command_line or b"\0/usr/bin/mn\0" in command_line:
            found.add(process.name)
    return found


@pytest.mark.parametrize("side", [ours, mininets])
def test_ctrl_c_ends_the_side_whose_turn_it_is(side, tmp_path):
    before = side()
    running = subprocess.Popen(command("lab_up", "--hosts", 50, "--json", tmp_path / "rounds"),
                               stdout=subprocess.DEVNULL, text=True, stderr=subprocess.PIPE)
    until(lambda: side() - before, running)
    running.send_signal(signal.SIGINT)
    assert running.wait(SECONDS) == 130 and running.stderr.read() == ""
    until(lambda: not side() - before)      # a killed process takes a moment to go


def until(true, process=None):
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, "waited too long"
        assert process is None or process.poll() is None, process.stderr.read()
        time.sleep(0.01)


def test_what_is_missing_is_named_with_the_command_that_installs_it(tmp_path):
    """As on a machine where dpkg knows no package."""
    (tmp_path / "dpkg-query").write_text("#!/bin/sh\n")
    (tmp_path / "dpkg-query").chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for name, package in {"lab_up": "mininet, bridge-utils", "cluster_up": "mariadb-server",
                          "loading": "openjdk"}.items():
        done = subprocess.run([sys.executable, FOLDER / f"{name}.py"], env=environment, capture_output=True,
                              text=True, timeout=SECONDS)
        assert done.returncode == 1 and done.stdout == ""
        assert re.match(rf"{name}: .*{package}.*not installed\. Type: .*labbook install --benchmarks\n$", done.stderr)
