"""A host's own disk: what its folder of /sys says, what may be set, and what a seek costs."""

import json
import os
import subprocess

import pytest
from here import here_host

from labbook.errors import InputError, LabError
from labbook.lab.disk import disk as module
from labbook.lab.disk import loop_device
from labbook.lab.disk.disk import Disk


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """The disk of a host that is this machine, with files in the place of the kernel's."""
    host = here_host(tmp_path, "h1")
    host.limits = {"disk": {"size": 1 << 30}}
    number = os.stat(host.root).st_dev
    place = tmp_path / f"devices/{os.major(number)}:{os.minor(number)}"
    (place / "queue").mkdir(parents=True)
    (place / "loop").mkdir()
    monkeypatch.setattr(module, "DEVICES", tmp_path / "devices")
    fill(place, scheduler="[none] mq-deadline kyber bfq", read_ahead_kb=128, rotational=0)
    (place / "size").write_text(f"{(1 << 30) // 512}\n")
    (place / "loop/dio").write_text("1\n")
    found = Disk(host, None)
    found.place = place
    return found


def fill(place, **settings):
    for name, text in settings.items():
        (place / "queue" / name).write_text(f"{text}\n")


def test_a_host_without_a_disk_of_its_own_is_refused(tmp_path):
    with pytest.raises(LabError, match="h1 has no disk of its own.*limits: {disk:"):
        Disk(here_host(tmp_path, "h1"), None)


def test_its_schedulers_are_what_the_kernel_has(disk):
    assert disk.schedulers() == ["none", "mq-deadline", "kyber", "bfq"]


def test_a_scheduler_that_would_be_loaded_is_one(disk, monkeypatch):
    fill(disk.place, scheduler="noop deadline [cfq]")
    monkeypatch.setattr(module, "OFFERED", "cat queue/scheduler; echo kyber-iosched")
    assert disk.schedulers() == ["noop", "deadline", "cfq", "kyber"]
    assert disk.facts()["scheduler"] == "cfq"


@pytest.mark.parametrize("settings, message", [
    ({"scheduler": "cfq"}, "scheduler: no scheduler 'cfq' on h1 .allowed: none, mq-deadline"),
    ({"scheduler": "bfq; reboot"}, "no scheduler"),
    ({"read_ahead_kb": 30}, "read_ahead_kb: 30 is no read-ahead .allowed: multiples of 4"),
    ({"read_ahead_kb": -4}, "no read-ahead"), ({"read_ahead_kb": "128"}, "no read-ahead"),
    ({"read_ahead_kb": True}, "no read-ahead"), ({"read_ahead_kb": 1 << 30}, "no read-ahead")])
def test_what_cannot_be_set_is_refused_with_what_can(disk, settings, message):
    before = (disk.place / "queue/scheduler").read_text()
    with pytest.raises(InputError, match=message):
        disk.set(**settings)
    assert (disk.place / "queue/scheduler").read_text() == before
    assert disk.facts()["read_ahead_kb"] == 128


def test_a_disk_that_is_not_the_labs_is_not_changed(disk):
    """A host had started anew: its folder lay on its own disk, whose scheduler was set as root and never restored."""
    (disk.place / "loop/dio").unlink()
    (disk.place / "loop").rmdir()
    with pytest.raises(LabError, match="no loop device of the lab"):
        disk.set(read_ahead_kb=32)
    assert (disk.place / "queue/read_ahead_kb").read_text() == "128\n"


def test_what_is_not_given_stays(disk):
    disk.set(read_ahead_kb=32)
    assert disk.facts()["read_ahead_kb"] == 32 and disk.facts()["scheduler"] == "none"
    disk.set()
    assert disk.facts()["read_ahead_kb"] == 32


def test_a_kernel_that_does_not_keep_it_is_reported(disk):
    with pytest.raises(LabError, match="scheduler bfq was set and is none"):
        disk.set(scheduler="bfq")       # these files have no brackets for what was chosen


def test_tags_that_the_kernel_does_not_take_are_an_error(disk):
    tags = disk.place / "queue/nr_requests"
    tags.write_text("128\n")
    disk.set(tags=8)
    assert tags.read_text() == "8\n"
    tags.unlink()
    tags.mkdir()    # takes no number, from root neither
    with pytest.raises(LabError):
        disk.set(tags=4)


def test_facts_have_the_disk_below_where_its_file_can_be_seen(disk, tmp_path):
    facts = disk.facts()
    assert facts["size_bytes"] == 1 << 30 and facts["direct_io"] and not facts["rotational"]
    assert facts["free_bytes"] == pytest.approx(os.statvfs(tmp_path).f_bavail * 4096, rel=0.2)
    assert "below" not in facts
    (disk.place / "loop/backing_file").write_text(f"{tmp_path / 'gone'} (deleted)\n")
    assert "below" not in disk.facts()
    (tmp_path / "h1.disk").touch()      # on the same file system, whose folder stands for its disk
    (disk.place / "loop/backing_file").write_text(f"{tmp_path / 'h1.disk'}\n")
    assert disk.facts()["below"] == {"scheduler": "none", "read_ahead_kb": 128,
                                     "rotational": False}


def test_its_busy_time_is_that_with_requests_under_way(disk):
    (disk.place / "stat").write_text("   50  4  7216  25  4  0  32  3  0  1234  28  0  0  0  0  0  0\n")
    assert disk.busy_s() == 1.234


def test_below_a_partition_is_its_disk(disk, tmp_path):
    (tmp_path / "h1.disk").touch()
    (disk.place / "loop/backing_file").write_text(f"{tmp_path / 'h1.disk'}\n")
    found = module.LOOK.replace("@PLACE@", str(tmp_path)).replace(
        "@DEVICES@", str(tmp_path / "partitions"))
    part = tmp_path / "partitions" / disk.number
    part.mkdir(parents=True)
    (part.parent / "queue").mkdir()
    for name, text in (("scheduler", "none [bfq]"), ("read_ahead_kb", 64), ("rotational", 1)):
        (part.parent / "queue" / name).write_text(str(text))
    done = subprocess.run(["sh", "-c", found], cwd=disk.place, capture_output=True, text=True)
    assert "below_scheduler\tnone [bfq]" in done.stdout, done.stderr


def test_a_seek_s_cost_takes_fio_and_room(disk, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere:/bin:/usr/bin")
    monkeypatch.setattr(module, "LEAST_BYTES", 1 << 60)
    run = disk.host.run
    monkeypatch.setattr(disk.host, "run", lambda command, **options: run(
        command.replace("command -v fio", "false"), **options))
    with pytest.raises(LabError, match="no fio there.*packages: .fio."):
        disk.seek_cost()
    monkeypatch.setattr(disk.host, "run", lambda command, **options: run(
        command.replace("command -v fio", "true"), **options))
    with pytest.raises(LabError, match="are needed to find out what a seek costs"):
        disk.seek_cost()


def test_the_file_is_large_but_half_of_what_is_free_at_most():
    assert module.seek_file_bytes(1 << 40) == 1 << 30
    assert module.seek_file_bytes((400 << 20) + 5) == 200 << 20


def test_fio_reads_a_written_file_past_caches_both_ways_in_turns():
    command = module.seek_command("/srv/x y", 1 << 30, 3)
    assert "'--filename=/srv/x y'" in command and "--direct=1" in command
    order = [word for word in command.split() if word.startswith(("--name", "--rw"))]
    assert order[1::2] == ["--rw=write", *["--rw=read", "--rw=randread"] * 2]
    assert command.count("--runtime=750ms") == 4 and command.count("--stonewall") == 4


def fio_output(**ms):
    return json.dumps({"jobs": [{"jobname": "layout", "read": {"lat_ns": {"mean": 0}}}] + [
        {"jobname": f"{kind}-{i}", "read": {"lat_ns": {"mean": value * 1e6}}}
        for kind, values in ms.items() for i, value in enumerate(values)]})


def test_the_ratio_is_of_the_means():
    found = module.seek_times("fio: this is not JSON\n" + fio_output(sequential=[1, 1], random=[9, 11]))
    assert found == {"sequential_ms": 1, "random_ms": 10, "ratio": 10, "ratios": [9, 11]}


@pytest.mark.parametrize("output, message", [
    ("", "nothing"), ("fio: no space", "no space"), ("{}", "no times"),
    (fio_output(sequential=[1, 1], random=[0, 0]), "read nothing")])
def test_fio_that_did_not_read_is_reported(output, message):
    with pytest.raises(LabError, match=message):
        module.seek_times(output)


def test_a_loop_device_s_settings_are_read_and_given_back(tmp_path, monkeypatch):
    (tmp_path / "queue").mkdir()
    fill(tmp_path, scheduler="none [bfq]", read_ahead_kb=128, rotational=0, nr_requests=256)
    monkeypatch.setattr(loop_device, "_queue", lambda device: tmp_path / "queue")
    was = loop_device.queue("/dev/loop7")
    assert was == {"scheduler": "bfq", "read_ahead_kb": 128, "rotational": "0", "tags": 128}
    loop_device.tune("/dev/loop7", {"scheduler": "kyber", "read_ahead_kb": 4, "rotational": 1})
    loop_device.tune("/dev/loop7", was)
    assert loop_device.SETTINGS[-1] == "read_ahead_kb"      # the kernel changes it along with the others
    assert loop_device.queue("/dev/loop7")["rotational"] == "0"
    assert (tmp_path / "queue/read_ahead_kb").read_text() == "128"
    fill(tmp_path, read_ahead_kb=2560)  # a device keeps what the kernel once set for another disk
    assert loop_device.queue("/dev/loop7")["read_ahead_kb"] == 128
    fill(tmp_path, scheduler="none")     # a disk that takes no scheduler
    assert loop_device.queue("/dev/loop7")["scheduler"] == "none"


@pytest.mark.parametrize("wrong, key", [(dict(scheduler="bqf"), "scheduler"), (dict(read_ahead_kb=3), "read_ahead_kb"),
                                        (dict(tags=1), "tags"), (dict(order="random"), "order")])
def test_a_setting_that_is_none_changes_no_other(disk, monkeypatch, wrong, key):
    monkeypatch.setattr(disk, "schedulers", lambda: ["none", "bfq"])
    for name in ("_here", "_set_order"):
        monkeypatch.setattr(disk, name, lambda *_, **__: pytest.fail("it was changed"))
    with pytest.raises(InputError) as refused:
        disk.set(**{"order": "fcfs", "tags": 4, "scheduler": "bfq", "read_ahead_kb": 128} | wrong)
    assert refused.value.key == key
