"""A host's own disk: every request traced and told apart, settings kept and given back, seeks timed;
and nothing left, whatever is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from small_labs import describe, new_id, swept
from traces_left import instances

from labbook.errors import InputError, LabError
from labbook.lab import Environment, Lab, io_class
from labbook.lab.disk import loop_device
from labbook.lab.disk.trace import Trace
from labbook.papers.cassandra_elasticity.disk import attribute_requests, request_statistics

HERE = Path(__file__).parent
LOCAL = Environment("local")
LIMITS = {"memory": "256M", "disk": {"size": "512M", "trace": True}}
GROUPS = {who: f"^{who}$" for who in ("sequential", "random")}


@pytest.fixture(scope="module")
def lab():
    with Lab.up(describe({"h1": LIMITS, "bare": {}}), LOCAL, new_id()) as made:
        host = made.host("h1")
        host.put(HERE / "disk_readers.py", "readers.py")
        host.run(f"{reader(host)} make file 64")
        yield made


@pytest.fixture
def disk(lab):
    return lab.disk("h1")


def reader(host):
    return f"{host.python} -I -S readers.py"


def traced(lab, *who):
    """(the trace's frame, bytes that each reader had read)."""
    host = lab.host("h1")
    host.run("sync")        # no write of an earlier test's comes late
    with lab.disk("h1").trace() as trace:
        output = host.run(f"{reader(host)} read file 400 {' '.join(who)}").stdout
    assert trace.facts["lost"] == 0 and trace.facts["full_s"] is None
    return trace.requests, json.loads(output)


def of(frame, who):
    return request_statistics(attribute_requests(frame), GROUPS).set_index("group").loc[who]


def asked_bytes(frame, who):
    mine = frame[(frame["thread"] == who) & (frame["event"] == "queue") & ~frame["write"]]
    return mine["size_bytes"].sum()


def test_a_sequential_and_a_random_reader_are_distinguished(lab):
    began = time.time()
    frame, bytes_read = traced(lab, "sequential")
    alone = of(frame, "sequential")
    assert frame["t_s"].between(began, time.time()).all() and frame["t_s"].is_monotonic_increasing
    assert asked_bytes(frame, "sequential") == bytes_read["sequential"] == alone["bytes"] == 400 << 16
    assert alone["sequential_on_disk"] > 0.95 and alone["run_bytes"] > 2 << 20
    assert alone["size_mean_bytes"] == 64 << 10

    frame, bytes_read = traced(lab, "random")
    found = of(frame, "random")
    assert asked_bytes(frame, "random") == bytes_read["random"] == found["bytes"] == 400 << 12
    assert found["sequential_share"] < 0.05 and found["run_requests"] < 1.1
    assert found["seek_median_bytes"] > 4 << 20

    frame, bytes_read = traced(lab, "sequential", "random")
    stream = of(frame, "sequential")
    assert asked_bytes(frame, "sequential") == bytes_read["sequential"] == stream["bytes"]
    assert stream["sequential_share"] > 0.95, "by itself it goes on as before"
    assert stream["sequential_on_disk"] < alone["sequential_on_disk"] - 0.1, "but it is cut up"


def test_only_its_own_disk_is_traced(lab, disk):
    with disk.trace() as trace, NamedTemporaryFile(dir="/var/tmp") as other:
        other.write(os.urandom(1 << 20))
        other.flush()
        os.sync()
    assert trace.requests["size_bytes"].sum() < 1 << 20


def test_writes_are_reported(lab, disk):
    with disk.trace() as trace:
        lab.host("h1").run("dd if=/dev/zero of=written bs=64k count=32 oflag=direct status=none")
    written = trace.requests[trace.requests["write"] & (trace.requests["thread"] == "dd")]
    assert written[written["event"] == "queue"]["size_bytes"].sum() == 32 << 16


def test_every_scheduler_and_read_ahead_is_set_and_read_back(disk):
    was = disk.facts()
    assert was["direct_io"] and was["size_bytes"] == 512 << 20 > was["free_bytes"] > 64 << 20
    for scheduler in disk.schedulers():
        disk.set(scheduler=scheduler)
        assert disk.facts()["scheduler"] == scheduler
    for read_ahead_kb in (32, 1024):
        disk.set(read_ahead_kb=read_ahead_kb)
        assert disk.facts()["read_ahead_kb"] == read_ahead_kb
        assert disk.facts()["scheduler"] == disk.schedulers()[-1], "the other one stays"
    disk.set(scheduler=was["scheduler"])
    assert disk.facts()["read_ahead_kb"] == 1024
    with pytest.raises(InputError, match="no scheduler 'elevator' on h1 .allowed: .*none"):
        disk.set(scheduler="elevator")


def test_what_was_set_does_not_stay_for_the_next_disk(tmp_path):
    with Lab.up(describe({"h1": LIMITS}), LOCAL, new_id()) as lab:
        disk, host = lab.disk("h1"), lab.host("h1")
        was = disk.facts()
        loop = host.run(f"basename $(readlink -f /sys/dev/block/{disk.number})").stdout.strip()
        other, = [name for name in disk.schedulers() if name != was["scheduler"]][:1]
        disk.set(scheduler=other, read_ahead_kb=64)
        queue = Path("/sys/block", loop, "queue")
        assert f"[{other}]" in (queue / "scheduler").read_text()
    assert f"[{was['scheduler']}]" in (queue / "scheduler").read_text()
    with Lab.up(describe({"h1": LIMITS}), LOCAL, new_id()) as lab:
        assert lab.disk("h1").facts()["read_ahead_kb"] == was["read_ahead_kb"] == loop_device.READ_AHEAD_KB, (
            "whatever the kernel set when a file was attached or detached")


def test_a_host_without_a_disk_of_its_own_has_none(lab):
    with pytest.raises(LabError, match="bare has no disk of its own"):
        lab.disk("bare")


def test_a_read_ahead_decides_the_sizes_of_reads(lab, disk):
    host, sizes = lab.host("h1"), {}
    for read_ahead_kb in (32, 256):
        disk.set(scheduler="none", read_ahead_kb=read_ahead_kb)
        host.run(f"{host.python} -I -S -c 'import os; "
                 'os.posix_fadvise(os.open("file", os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)\'')
        with disk.trace() as trace:
            host.run("dd if=file of=/dev/null bs=4k count=4096 status=none")
        reads = trace.requests.query("event == 'queue' and not write and thread == 'dd'")
        assert reads["size_bytes"].sum() >= 16 << 20 and reads["ahead"].any()
        sizes[read_ahead_kb] = reads["size_bytes"].max()
    assert sizes == {32: 32 << 10, 256: 256 << 10}


def test_an_io_class_reaches_the_disk(lab, disk):
    host = lab.host("h1")
    disk.set(scheduler="none")      # which lets both at the disk, and still reports their classes
    process = host.start("readers", f"{reader(host)} read file {10**9} sequential random")
    try:
        with io_class(process, "^sequential$", "idle") as given, disk.trace() as trace:
            time.sleep(0.5)
            assert {row["name"]: row["klass"] for row in given.now()}["random"] == "none"
    finally:
        process.kill()
    frame = trace.requests[trace.requests["event"] == "issue"]
    if set(frame["io_class"]) == {""}:
        pytest.skip("this kernel does not trace a request's class")
    # 64 KB are the one's, 4 KB the other's, whoever carried them
    for size, klass in ((64 << 10, "idle"), (4 << 10, "be")):
        mine = frame[(frame["size_bytes"] == size) & ~frame["write"]]
        assert len(mine) and set(mine["io_class"]) == {klass}


def test_what_a_seek_costs(lab, disk):
    found = disk.seek_cost(seconds=0.8)
    assert found["sequential_ms"] > 0 and len(found["ratios"]) == 2
    assert found["ratio"] == pytest.approx(found["random_ms"] / found["sequential_ms"])
    assert lab.host("h1").run("ls seek-cost", check=False).exit_code != 0


def test_requests_for_which_there_was_no_room_are_counted_and_reported(lab, disk, monkeypatch, capsys):
    with_less(monkeypatch, "--buffer-kb=8")
    host, trace = lab.host("h1"), disk.trace().begin()
    tracer = host.process("trace")
    tracer.signal("STOP")
    host.run(f"{reader(host)} read file 400 random")
    tracer.signal("CONT")
    frame = trace.end()
    assert trace.facts["lost"] > 100 and len(frame) == trace.facts["requests"] > 0
    assert f"lacks {trace.facts['lost']} events" in capsys.readouterr().err


def test_a_full_file_ends_it_and_is_reported(lab, disk, monkeypatch, capsys):
    with_less(monkeypatch, "--most-mb=0.000001")
    host, trace = lab.host("h1"), disk.trace().begin()
    for _ in range(3):
        host.run(f"{reader(host)} read file 400 random")
    trace.end()
    assert trace.facts["full_s"] <= time.time() and "was full" in capsys.readouterr().err


def with_less(monkeypatch, option):
    whole = Trace._command
    monkeypatch.setattr(Trace, "_command", lambda trace, instance: whole(trace, instance).replace(
        "--device=", f"{option} --device="))


def test_a_kernel_that_refuses_is_reported_with_its_message(disk, monkeypatch):
    with_less(monkeypatch, "--instance=no/such")
    with pytest.raises(LabError, match="(?s)the tracer.*No such file.*labbook doctor"):
        disk.trace().begin()


def test_a_tracer_that_was_killed_is_reported_and_the_next_one_works(lab, disk):
    trace = disk.trace().begin()
    lab.host("h1").process("trace").kill()
    assert instances(f"labbook-{lab.id}-")
    with pytest.raises(LabError, match="h1: the tracer ended early"):
        trace.end()
    frame, bytes_read = traced(lab, "random")
    assert asked_bytes(frame, "random") == bytes_read["random"]
    assert not instances(f"labbook-{lab.id}-")


def test_another_trace_of_the_same_disk_ends_the_first(lab, disk):
    disk.trace().begin()
    frame, bytes_read = traced(lab, "random")
    assert asked_bytes(frame, "random") == bytes_read["random"]


def test_an_error_in_the_block_ends_it(lab, disk):
    with pytest.raises(ZeroDivisionError), disk.trace():
        1 / 0
    assert not instances(f"labbook-{lab.id}-") and not lab.host("h1").process("trace").alive()


DRIVER = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from small_labs import *
from labbook.lab import Environment, Lab
where = Environment.load(sys.argv[3]) if len(sys.argv) > 3 else Environment("local")
lab = Lab.up(describe({"h1": {"disk": {"size": "64M", "trace": True}}}), where, sys.argv[1])
lab.disk("h1").trace().begin()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_driver_s_trace_goes_with_the_next_command():
    lab_id = new_id()
    done = subprocess.run([sys.executable, "-c", DRIVER, lab_id, HERE])
    assert done.returncode == -signal.SIGKILL     # by itself, once the trace was on
    assert swept(lab_id)
    assert not instances(f"labbook-{lab_id}-")


def test_down_with_a_trace_on_leaves_nothing():
    with Lab.up(describe({"h1": LIMITS}), LOCAL, new_id()) as lab:
        lab.disk("h1").trace().begin()
        assert instances(f"labbook-{lab.id}-")
    assert not instances(f"labbook-{lab.id}-")
