"""A modelled disk: requests take the model's time, its log lists them, and nothing is left or lost,
whatever is killed or full."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_labs import SUDO, backing_files, best_of, describe, new_id, small_machine, swept  # noqa: F401 (a fixture)

from labbook.errors import InputError, LabbookError, LabError
from labbook.lab import Environment, Lab
from labbook.lab.disk import loop_device, modelled
from labbook.lab.journal import Journal
from labbook.lab.local import unmake
from labbook.lab.local.provider import state_folder
from labbook.study.study import Study

LOCAL = Environment("local")
SIZE = 1 << 30
LIMITS = {"memory": "256M", "disk": {"size": "1G", "model": "hdd_2010", "order": "fcfs", "trace": True}}
# One reader at random places, past all caches of the host: its own requests are all that the disk gets.
READ = "fio --name=r --filename=data --size=256M --direct=1 --ioengine=psync --rw={way} --bs=64k --number_ios={count} " \
       "--norandommap --randseed=3 --output-format=json"


@pytest.fixture(scope="module")
def lab():
    volume = {"memory": "128M", "disk": {"size": "256M", "model": "network_volume"}}
    with Lab.up(describe({"h1": LIMITS, "bare": {}, "far": volume}), LOCAL, new_id()) as made:
        made.host("h1").run("fio --name=w --filename=data --size=256M --rw=write --bs=1M --direct=1 --end_fsync=1")
        made.host("h1").run("sync")
        yield made


@pytest.fixture
def disk(lab):
    return lab.disk("h1")


def served_during(disk, command):
    before = disk.served_so_far()["served"]
    disk.host.run(command, timeout=120)
    return disk.served(before)


def daemon(lab, host="h1") -> dict:
    """The journal's entry of a host's daemon."""
    return next(e for e in Journal(state_folder(lab.id)).of(modelled.KIND) if e["file"].endswith(f"/{host}.disk"))


def signal_daemon(lab, number) -> None:
    """It is root's."""
    subprocess.run([*SUDO, "kill", f"-{number:d}", str(daemon(lab)["pid"])], check=True)


def test_each_request_takes_what_the_model_says_and_the_daemon_slept_so_long(lab, disk):
    before = disk.served_so_far()
    disk.host.run(READ.format(way="randread", count=200), timeout=120)
    after, requests = disk.served_so_far(), disk.served(before["served"])
    requests = requests[requests["number"].between(before["served"], after["served"] - 1)].reset_index(drop=True)
    assert len(requests) >= 200 and (requests["seek_ms"] > 0).sum() > 150
    ends, model = requests["place"] + requests["size_bytes"], disk.model
    offset = disk.served_so_far()["offset_s"]
    for i in range(1, len(requests)):
        one = requests.loc[i]
        start_ms = (one["t_s"] - offset) * 1e3 + one["wait_ms"]
        expected = model.serve(one["place"], one["size_bytes"], ends[i - 1], start_ms, SIZE)
        assert one["seek_ms"] == pytest.approx(expected["seek_ms"], abs=1e-3)
        assert one["service_ms"] - one["rotation_ms"] == pytest.approx(
            expected["ended_ms"] - start_ms - expected["rotation_ms"], abs=1e-3)
        if expected["seek_ms"]:     # t_s is a float of the epoch's seconds: exact to a microsecond
            apart = abs(one["rotation_ms"] - expected["rotation_ms"])
            assert min(apart, model.turn_ms - apart) < 0.01
    total_ms = requests["service_ms"].sum()
    assert (after["modelled_ns"] - before["modelled_ns"]) / 1e6 == pytest.approx(total_ms)
    assert after["slept_ns"] - before["slept_ns"] >= after["modelled_ns"] - before["modelled_ns"]
    assert (requests["late_ms"] >= 0).all() and after["failed"] == 0


def test_a_fixed_time_follows_a_request_that_begins_elsewhere_than_the_last_one_ended(lab):
    far, read = lab.disk("far"), READ.replace("--size=256M", "--size=64M")
    with far.in_a_hurry():
        far.host.run("fio --name=w --filename=data --size=64M --rw=write --bs=1M --direct=1 --end_fsync=1")
    for way, later in (("read", False), ("randread", True)):
        requests = served_during(far, read.format(way=way, count=100))
        assert (requests["late_ms"].median() >= far.model.fixed_ms) == later


def test_random_reads_take_as_many_times_as_long_as_the_model_says(disk):
    model = disk.model

    def off():
        """How far the served requests' ratio is from the model's. fio's is smaller on a busy machine, where all
        requests wait longer."""
        before, found = disk.served_so_far()["served"], disk.seek_cost(3)
        block = found["block_bytes"]
        expected = model.random_ms(block, found["laid_out_bytes"], SIZE) / model.sequential_ms(block)
        reads = disk.served(before).query("not write and size_bytes == @block")
        took = reads.groupby(reads["seek_ms"] > 0)["service_ms"].mean()
        assert 2 < found["ratio"] < 1.2 * expected
        return abs(took[True] / took[False] / expected - 1)

    assert best_of(4, off, lambda share: share < 0.2) < 0.2


def test_the_kernel_takes_it_for_a_disk_that_turns_and_studies_see_its_model(lab, disk):
    facts = disk.facts()
    assert facts["model"] == "hdd_2010" and facts["order"] == "fcfs" and facts["rotational"]
    assert facts["size_bytes"] == SIZE and facts["direct_io"] and facts["failed"] == 0
    assert lab.facts()["hosts"]["h1"]["limits"]["disk"]["model"] == "hdd_2010"
    assert lab.broken_disks() == []


def test_the_order_of_waiting_requests_can_be_set_and_shows(disk):
    """Many readers at once: C-LOOK goes upwards but for its returns, first come goes to and fro."""
    command = READ.format(way="randread", count=400).replace("psync", "libaio --iodepth=16")
    upwards = {}
    for order in ("fcfs", "elevator"):
        disk.set(order=order)
        assert disk.facts()["order"] == order
        requests = served_during(disk, command)
        upwards[order] = (np.diff(requests["place"]) > 0).mean()
        assert requests["waiting"].max() > 8
    assert upwards["fcfs"] < 0.7 < upwards["elevator"]
    disk.set(order="fcfs")
    with pytest.raises(InputError, match="cfq.*fcfs, elevator"):
        disk.set(order="cfq")


def test_data_can_be_laid_out_in_a_hurry_and_the_model_counts_again(disk):
    command = READ.format(way="randread", count=200)
    with disk.in_a_hurry():
        began = disk.served_so_far()
        served_during(disk, command)
        hurried = disk.served_so_far()
    assert hurried["hurries"]
    assert hurried["slept_ns"] - began["slept_ns"] < (hurried["modelled_ns"] - began["modelled_ns"]) / 2
    served_during(disk, command)
    after = disk.served_so_far()
    assert not after["hurries"] and after["slept_ns"] - hurried["slept_ns"] > 0.9 * (after["modelled_ns"] - hurried["modelled_ns"])


def test_the_read_ahead_is_that_of_lab_yml_although_the_disk_turns(lab):
    with Lab.up(describe({"h1": {**LIMITS, "disk": LIMITS["disk"] | {"read_ahead_kb": 128}}}), LOCAL, new_id()) as other:
        facts = other.disk("h1").facts()
    assert facts["read_ahead_kb"] == 128 and facts["rotational"]


def test_few_tags_leave_the_kernel_s_scheduler_something_to_order_and_are_given_back(disk):
    command = READ.format(way="randread", count=400).replace("psync", "libaio --iodepth=32")
    upwards = {}
    for tags in (128, 4):
        disk.set(scheduler="mq-deadline", tags=tags)
        assert disk.facts()["scheduler"] == "mq-deadline"
        requests = served_during(disk, command)
        upwards[tags] = (np.diff(requests["place"]) > 0).mean()
        assert requests["waiting"].max() > 8 if tags > 8 else requests["waiting"].max() <= tags
    assert upwards[128] < 0.7 < upwards[4]
    device = loop_device.devices(str(modelled.served_file(Path(daemon_file(disk)))))[0]
    unmake.restore_queue({"file": str(modelled.served_file(Path(daemon_file(disk)))), "was": loop_device.queue(device)
                          | {"scheduler": "none"}})
    assert served_during(disk, command)["waiting"].max() > 8
    with pytest.raises(InputError, match="3 tags.*4 to 128"):
        disk.set(tags=3)


def daemon_file(disk) -> str:
    """The file of the disk of the module's lab."""
    number = disk.number.partition(":")[2]
    backing = Path(f"/sys/block/loop{number}/loop/backing_file").read_text().strip()
    return str(Path(backing).parent.with_suffix(".disk"))


def test_who_asked_is_shown_by_the_trace_and_not_by_the_disk(disk):
    """Above a loop device each request comes from a worker of the kernel's."""
    with disk.trace() as trace:
        requests = served_during(disk, READ.format(way="randread", count=50))
    asking = trace.requests[(trace.requests["event"] == "queue") & (trace.requests["thread"] == "fio")]
    assert len(asking) and len(requests) and not set(asking["tid"]) & set(requests["pid"])


def test_a_disk_without_a_model_says_so(lab):
    with Lab.up(describe({"h1": {"disk": {"size": "64M"}}}), LOCAL, new_id()) as plain:
        with pytest.raises(InputError, match="h1 has no model.*disk: {size: 4G, model: hdd_2010}"):
            plain.disk("h1").served()
        assert plain.disk("h1").model is None and "model" not in plain.disk("h1").facts()


def test_its_file_is_not_seen_from_hosts(lab):
    for host in lab.hosts.values():
        assert "labbook-disk" not in host.run("cat /proc/self/mountinfo").stdout


VERIFY = "fio --name=v --filename=check --size=32M --bs=64k --rw=randwrite --direct=1 --verify=crc32c --randseed=5 " \
         "--allrandrepeat=1 {more}"


def test_what_was_written_is_whole_after_the_host_s_processes_were_killed(lab):
    host = lab.host("h1")
    host.run(VERIFY.format(more="--do_verify=0 --end_fsync=1"), timeout=120)
    writer = host.start("writer", "fio --name=more --filename=more --size=64M --bs=64k --rw=randwrite --direct=1 "
                                  "--time_based --runtime=60")
    time.sleep(0.5)
    writer.kill()
    host.run(VERIFY.format(more="--verify_only"), timeout=120)
    assert lab.disk("h1").served_so_far()["failed"] == 0


def test_a_host_short_of_memory_writes_more_than_it_has_without_a_standstill():
    limits = {"memory": "64M", "disk": {"size": "512M", "model": "ssd_2010"}}
    with Lab.up(describe({"h1": limits}), LOCAL, new_id()) as small:
        host = small.host("h1")
        host.run("head -c 300M /dev/zero > data && sync && cmp -n 300M data /dev/zero", timeout=120)
        assert small.broken_disks() == [] and small.disk("h1").served_so_far()["failed"] == 0


def leftovers(lab_id) -> list[str]:
    """What a lab's disks have left, by the kernel."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f"/{lab_id}/" in line]
    loops = backing_files()
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(path.read_bytes().decode(errors="replace"))
        except OSError:
            pass
    return [*mounts, *(text for text in loops if lab_id in text),
            *(text for text in commands if f"/{lab_id}/" in text and "modelled-disk" in text),
            *(str(path) for path in (state_folder(lab_id), Path("/var/lib/labbook", lab_id)) if path.exists())]


DRIVER = """
import sys, time
sys.path[:0] = {paths!r}
from small_labs import describe
from labbook.lab import Environment, Lab
lab = Lab.up(describe({{"h1": {limits!r}}}), Environment("local"), {lab_id!r})
lab.host("h1").start("w", "fio --name=w --filename=data --size=64M --bs=4k --rw=randwrite --time_based --runtime=99")
print("up", flush=True)
time.sleep(100)
"""


def test_nothing_is_left_after_the_driver_was_killed_with_its_host_at_work():
    lab_id = new_id()
    script = DRIVER.format(paths=[str(Path(__file__).parent)], limits=LIMITS, lab_id=lab_id)
    driver = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert driver.stdout.readline() == "up\n"
    time.sleep(1)
    driver.kill()
    driver.wait()
    assert swept(lab_id)
    assert leftovers(lab_id) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_nothing_is_left_after_its_daemon_was_killed_or_stopped(number):
    lab = Lab.up(describe({"h1": LIMITS}), LOCAL, new_id())
    try:
        lab.host("h1").start("w", "fio --name=w --filename=data --size=64M --bs=64k --rw=randwrite --fsync=8")
        time.sleep(0.5)
        signal_daemon(lab, number)
        if number == signal.SIGKILL:
            assert len(lab.broken_disks()) == 1 and "the modelled disk of h1 has ended" in lab.broken_disks()[0]
    finally:
        lab.down()
    assert leftovers(lab.id) == []


LAB = "sites: [lan]\nhosts: {h1: {site: lan, role: db, limits: {disk: {size: 512M, model: ssd_2010}}}}\n"


@pytest.fixture
def study(tmp_path, monkeypatch):
    root = tmp_path / "book"
    for folder in ("notebooks", "environments", "data/papers/demo"):
        (root / folder).mkdir(parents=True)
    (root / "_toc.yml").touch()
    (root / "environments/local.yml").write_text("provider: namespaces\n")
    (root / "data/papers/demo/lab.yml").write_text(LAB)
    monkeypatch.setenv("LABBOOK_ROOT", str(root))
    monkeypatch.setenv("LABBOOK_RECORDS", str(tmp_path / "records"))
    return lambda: Study("demo")


def test_the_end_of_its_daemon_is_a_failed_point_with_a_clear_word(study):
    one = study()
    experiment = one.experiment("end", vary={"killed": [0, 1]})
    for point in experiment.remaining():
        with one.attempt(point) as attempt:
            attempt.lab.host("h1").run("echo data > data && sync")
            if point.killed:
                signal_daemon(attempt.lab, signal.SIGKILL)
            attempt.record(pd.DataFrame({"seconds": [1.0]}))
    with pytest.raises(LabbookError, match="the modelled disk of h1 has ended"):
        one.complete()
    assert list(experiment.summary()["killed"]) == [0]


def test_a_full_disk_below_it_is_reported_at_its_point(study, small_machine):
    Path(os.environ["LABBOOK_ROOT"], "environments/local.yml").write_text(
        f"provider: namespaces\nstate: {small_machine}\n")
    one = study()
    experiment = one.experiment("fill", vary={"mb": [1, 200]})
    for point in experiment.remaining():
        with one.attempt(point) as attempt:
            attempt.lab.host("h1").run(f"head -c {point.mb}M /dev/urandom > data && sync || true")
            attempt.record(pd.DataFrame({"seconds": [1.0]}))
    with pytest.raises(LabbookError, match="the disk below .*is full"):
        one.complete()
    assert list(experiment.summary()["mb"]) == [1]
    assert [path.name for path in small_machine.iterdir()] == [".programs"]


def test_the_full_disk_is_reported_by_its_daemon(small_machine):
    environment = Environment("local", state=str(small_machine))
    limits = {"disk": {"size": "512M", "model": "ssd_2010"}}
    with Lab.up(describe({"h1": limits}), environment, new_id()) as lab:
        with pytest.raises(LabError):
            lab.host("h1").run("fio --name=w --filename=d --size=300M --rw=write --bs=1M --direct=1 --output-format=json")
        assert lab.disk("h1").served_so_far()["full"]
        assert "failed" in lab.broken_disks()[0] and "the disk below it is full" in lab.broken_disks()[0]
    assert leftovers(lab.id) == []
