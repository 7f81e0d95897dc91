"""The tracer's lines read, and what it copies; that it needs Python alone, and leave."""

import os
import subprocess
import sys
import zlib
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from labbook.errors import LabError
from labbook.lab.disk import trace as trace_module
from labbook.lab.disk import tracefs
from labbook.lab.disk.on_host import tracer
from labbook.lab.disk.trace import Trace
from labbook.lab.journal import Journal

TEXT = """\
           java-812     [001] d..1.    46.135001: block_rq_issue: 7,0 RA 131072 () 2048 + 256 be,0,4 [ReadStage:1]
  kworker/u8:1-events_unbound-34 [000] .....    46.134000: block_bio_queue: 7,0 WS 1024 + 8 [Streaming to /1]
CPU:1 [LOST 12 EVENTS]
          <...>-4000017 [001] d..1.    46.136: block_rq_issue: 7,0 WFS 4096 () 1024 + 8 none,0,0 [kworker/0:1H]
          <...>-812     [001] d..1.    46.137: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [jbd2/loop0-8]
          <...>-812     [001] d..1.    46.138: block_rq_issue: 7,0 D 4096 () 64 + 8 none,0,0 [fstrim]
       we [ird]-7       [001] dN.2.  1046.139: block_rq_issue: 7,0 R 512 () 99999999999 + 1 [we [ird] + 1]
          <...>-812     [001] d..1.    46.138: block_rq_comp"""


def read(text=TEXT, **more):
    return trace_module.frame(zlib.compress(text.encode()), **more)


def test_the_kernel_s_lines_are_rows_in_the_order_of_time():
    found = read()
    assert list(found["event"]) == ["queue", "issue", "issue", "issue"]
    assert list(found["t_s"]) == [46.134, 46.135001, 46.136, 1046.139]
    assert list(found["sector"]) == [1024, 2048, 1024, 99999999999]
    assert list(found["size_bytes"]) == [4096, 131072, 4096, 512]
    assert list(found["write"]) == [True, False, True, False]
    assert list(found["ahead"]) == [False, True, False, False]
    assert list(found["thread"]) == ["Streaming to /1", "ReadStage:1", "kworker/0:1H", "we [ird] + 1"]
    assert list(found["tid"]) == [34, 812, 4000017, 7]
    assert list(found["io_class"]) == ["", "be", "none", ""]


def test_the_clock_s_offset_is_added():
    assert read(offset_s=1.7e9)["t_s"].iloc[0] == pytest.approx(1.7e9 + 46.134, abs=1e-6)


def test_no_lines_are_no_rows_of_the_same_columns():
    assert len(read("")) == 0 and list(map(str, read("").dtypes)) == list(map(str, read().dtypes))
    assert read("")["thread"].dtype.categories.dtype == object


def test_pieces_are_put_together_at_lines(monkeypatch):
    whole = read(TEXT * 50)
    for size in (1, 7, 200, 5000):
        monkeypatch.setattr(trace_module, "CHUNK_BYTES", size)
        assert read(TEXT * 50).equals(whole)
    assert len(whole) == 200


def test_a_file_that_was_cut_short_gives_what_is_in_it():
    packed = zlib.compress((TEXT * 2000).encode())
    assert 0 < len(trace_module.frame(packed[:len(packed) // 2])) < 8000


@pytest.fixture
def pipe():
    out, into = os.pipe()
    os.set_blocking(out, False)
    yield out, into
    for end in (out, into):
        os.close(end)


def test_what_comes_is_copied_and_packed(tmp_path, pipe):
    with open(tmp_path / "t", "wb") as file:
        copy = tracer.Copy(pipe[0], file, 1e9)
        for part in (b"one\n", b"two\n"):
            os.write(pipe[1], part)
            copy.drain()
        copy.close()
    assert zlib.decompress((tmp_path / "t").read_bytes()) == b"one\ntwo\n" and not copy.full


def test_a_full_file_takes_no_more(tmp_path, pipe):
    with open(tmp_path / "t", "wb") as file:
        copy = tracer.Copy(pipe[0], file, 1)
        while not copy.full:
            os.write(pipe[1], os.urandom(4096))
            copy.drain()
        written = copy.written
        os.write(pipe[1], b"more")
        copy.drain()
        assert copy.written == written


def test_the_offset_takes_one_clock_to_the_other():
    import time
    earliest, now, latest = time.time(), time.monotonic() + tracer.offset_s(), time.time()
    assert earliest - 1 < now < latest + 1      # a machine is up for longer than that


def test_lost_events_of_all_processors_are_added_up(tmp_path):
    for cpu, lost in enumerate((3, 4)):
        (tmp_path / f"per_cpu/cpu{cpu}").mkdir(parents=True)
        (tmp_path / f"per_cpu/cpu{cpu}/stats").write_text(
            f"entries: 9\noverrun: {lost}\ncommit overrun: 0\nbytes: 7\noldest event ts:  1.2\n"
            f"now ts:  3.4\ndropped events: 10\nread events: 8\n")
    instance = tracer.Instance.__new__(tracer.Instance)
    instance.folder = tmp_path
    assert instance.lost() == 27


def test_what_cannot_be_set_up_is_reported_and_leaves_no_instance(tmp_path, monkeypatch):
    monkeypatch.setattr(tracer, "INSTANCES", tmp_path)
    (tmp_path / "x").mkdir()    # one that was left; a plain folder takes any file but these
    monkeypatch.setattr(tracer.Instance, "_set_up", lambda *_: tracer.Instance._set(
        SimpleNamespace(folder=tmp_path / "x"), "no/trace_clock", "mono"))
    with pytest.raises(OSError, match="no/trace_clock: No such file"):
        tracer.Instance("x", (7, 0), 64)
    assert not (tmp_path / "x").exists()


def test_it_needs_python_alone():
    done = subprocess.run([sys.executable, "-I", "-S", tracer.__file__, "--help"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and "--device" in done.stdout, done.stderr


def test_it_asks_for_leave_on_a_user_s_own_host():
    host = SimpleNamespace(name="rack1", may={"disk"}.__contains__)
    with pytest.raises(LabError, match="rack1: .*trace is not allowed.*`allow`"):
        Trace(host, "7:0", None).begin()


def test_the_file_never_lies_on_the_traced_disk():
    place = PurePosixPath("/home/op/labbook/lab1/h1")
    mine = SimpleNamespace(name="h1", is_remote=False, root=PurePosixPath("/srv/labbook"))
    yours = SimpleNamespace(name="h1", is_remote=True, root=place)
    assert str(Trace(mine, "7:0", None)._file) == "/tmp/trace"
    assert Trace(yours, "7:0", None)._file == place.parent / "h1.trace"


def test_an_error_while_it_traces_is_not_hidden_by_one_of_its_end(monkeypatch):
    def gone(*_):
        raise LabError("the host is gone")

    trace = Trace(SimpleNamespace(run=gone), "7:0", None)
    trace._process = SimpleNamespace(stop=gone)
    monkeypatch.setattr(Trace, "begin", lambda self: self)
    with pytest.raises(ValueError, match="first"), trace:
        raise ValueError("first")
    with pytest.raises(LabError, match="gone"), trace:
        pass


def test_an_instance_is_written_down_once_before_it_is_made(tmp_path):
    name = tracefs.instance("t1", "h1")
    for _ in range(2):
        assert tracefs.make(str(tmp_path), name) == {"instance": "labbook-t1-h1"}
    assert Journal(tmp_path).of(tracefs.KIND) == [{"made": "trace", "instance": name}]
