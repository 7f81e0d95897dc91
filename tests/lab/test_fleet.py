"""Machines that are hosts with labs of their own measure a study together; one is slow and reboots in the middle,
one is full, the disk of one fills in the middle. An ipyparallel cluster that is there already is interrupted, and
goes on; one whose engine was started over SSH decides a claim."""

import json
import signal
import socket
import time
from collections import Counter

import ipyparallel
import pytest
from fleet_machines import (
    BOOK,
    SERVED,
    Driver,
    install,
    left,
    lent,
    measured,
    write_book,
    write_fleet,
)
from foreign import USER, foreign_hosts
from traitlets.config import Config

from labbook.claims import claims
from labbook.pipeline.executing import pages
from labbook.study.records.record import read_meta

SECONDS, ENDING_S = 600, 60      # at most
RECORDS = f"{BOOK}/data/records"


def wait_for(true, driver, process):
    until = time.monotonic() + SECONDS
    while not true():
        assert process.poll() is None and time.monotonic() < until, driver.output()
        time.sleep(0.1)


def verdict() -> dict:
    one, = claims.verdicts("tiny")
    return {name: one[name] for name in ("id", "verdict", "measured", "low", "high", "n", "repeats_needed")}


@pytest.fixture
def machines(tmp_path):
    """Four of them, of which the third is full and the last has little room, with the driver of a run."""
    book = write_book(tmp_path / "book", repeats=3)
    with foreign_hosts(["m1", "m2", "m3", "m4"], lent=lent()) as place:
        for name in place.names:
            install(place, name, book)
        for name, seconds in {"m1": 3, "m2": 1, "m4": 2}.items():
            place.inside(name, f"echo {seconds} > {BOOK}/slow")
        for name, size in {"m3": "1m", "m4": "80m"}.items():
            place.inside(name, f"mkdir -p {RECORDS} && mount -t tmpfs -o size={size} small {RECORDS}")
        yield place, Driver(book, write_fleet(place, tmp_path / "fleet.yml"))


def test_a_reboot_and_a_disk_that_fills_lose_nothing_and_nothing_is_measured_twice(machines, monkeypatch):
    place, driver = machines
    process = driver.start()
    wait_for(lambda: measured(place, "m4"), driver, process)
    place.inside("m4", f"head -c 100m /dev/zero > {RECORDS}/filler 2>/dev/null || true")
    wait_for(lambda: len(measured(place, "m2")) > 1, driver, process)     # its ceiling, and one more has begun
    place.reboot("m2")
    place.inside("m1", f"rm {BOOK}/slow")
    assert process.wait(SECONDS) == 0, driver.output()
    assert "m3 does not measure tiny: its disk is full" in driver.output() and not measured(place, "m3")
    assert "m4 gets nothing more to measure: the disk is full" in driver.output()
    times = Counter([*measured(place, "m1"), *measured(place, "m2")])
    records = {meta["label"]: meta["provenance"]["machine"]["id"] for meta in map(read_meta, driver.records())}
    assert len(records) == 12, "three repeats of four points"
    assert sum(times[label] for label in records) <= 12 + 1, "but for the point that the reboot cut short"
    by_repeat = {repeat: {machine for label, machine in records.items() if label.endswith(f"repeat {repeat}")}
                 for repeat in (1, 2, 3)}
    assert all(len(each) == 1 for each in by_repeat.values()), by_repeat
    assert times["ceilings: clients=1 repeat 1"] == 2, "a ceiling is each machine's own"
    until = time.monotonic() + ENDING_S     # an engine ends once it sees that its session has
    while found := [one for name in place.names for one in left(place, name)]:
        assert time.monotonic() < until, found
        time.sleep(0.2)
    monkeypatch.setenv("LABBOOK_ROOT", str(driver.root))
    assert len(claims.verdicts("tiny")) == 1 and pages.note("tiny")["state"] == "ok"


def ssh_launcher(place, name: str, folder) -> Config:
    """What ipyparallel's own SSH launcher needs to start an engine on a machine."""
    write_fleet(place, folder / "fleet.yml")
    options = ["-i", str(folder / "fleet_key"), "-o", f"UserKnownHostsFile={folder / 'fleet_known_hosts'}",
               "-o", "BatchMode=yes"]
    config = Config()
    config.SSHEngineSetLauncher.update(
        engines={f"{USER}@{place.address(name)}": 1}, ssh_args=options, scp_args=options,
        remote_python=f"{BOOK}/.venv/bin/python", remote_profile_dir=f"/home/{USER}/profile",
        environment={"LABBOOK_ROOT": BOOK})
    return config


def address_towards(other: str) -> str:
    """Our address on the way there; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((other, 9))
        return probe.getsockname()[0]


def test_an_engine_that_ipyparallels_ssh_launcher_started_measures_until_the_claim_is_decided(tmp_path, monkeypatch):
    """Its labs have a null server and clients."""
    driver = Driver(write_book(tmp_path / "book", repeats=1, notebook=SERVED), tmp_path, "cluster-rack")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("LABBOOK_ROOT", str(driver.root))
    with foreign_hosts(["m1"], lent=lent()) as place:
        install(place, "m1", driver.root)
        with ipyparallel.Cluster(
                profile="rack", cluster_id="", n=1, log_level=40, engines="ssh", config=ssh_launcher(place, "m1", tmp_path),
                controller_ip=address_towards(place.address("m1")),
                controller_args=["--IPController.enable_curve=True"]):
            process = driver.start("--cluster", "rack", "--until-decided", "--claims", "all", "--for", "9m")
            assert process.wait(SECONDS) == 0, driver.output()
        assert verdict()["verdict"] == "replicated" and verdict()["n"] == 6, driver.output()
        began = Counter(label for label in measured(place, "m1") if label.startswith("sleeps"))
        assert len(began) == 12 == len(driver.records()) and set(began.values()) == {1}
        until = time.monotonic() + ENDING_S
        while found := left(place, "m1"):
            assert time.monotonic() < until, found
            time.sleep(0.2)


def test_a_cluster_of_a_profile_is_interrupted_and_goes_on(tmp_path, monkeypatch):
    driver = Driver(write_book(tmp_path / "book", repeats=1), tmp_path, "cluster-rack")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("LABBOOK_ROOT", str(driver.root))
    monkeypatch.setenv("LABBOOK_SHARE_CORES", "1")
    (driver.root / "slow").write_text("0.5")
    log = driver.root / "measured.log"
    with ipyparallel.Cluster(profile="rack", cluster_id="", n=2, log_level=40,
                             controller_args=["--IPController.enable_curve=True"]):     # two engines of one machine
        process = driver.start("--cluster", "rack")
        wait_for(lambda: log.exists() and len(log.read_text().splitlines()) > 2, driver, process)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130, driver.output()
        done = {read_meta(path)["label"] for path in driver.records()}
        began = log.read_text().splitlines()
        assert driver.start("--cluster", "rack").wait(SECONDS) == 0, driver.output()
    again = log.read_text().splitlines()[len(began):]
    assert done and not done & set(again), "a finished point was measured twice"
    assert len(driver.records()) == 4 and "not encrypted" not in driver.output()
    assert json.loads(pages.page("tiny").with_suffix(".json").read_text())["fleet"] == "cluster-rack"
    together = verdict()
    assert driver.start("--profile", "quick").wait(SECONDS) == 0, driver.output()
    assert not json.loads(pages.page("tiny").with_suffix(".json").read_text())["fleet"]
    assert verdict() == together, "of one machine alone"
