"""Metadata clients on a folder of this machine, all their processes included."""

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from here import HereCrew, here_host

from labbook.errors import InputError, SystemFailure
from labbook.workloads.clients.on_host import engine as clients_engine
from labbook.workloads.files import load as load_module
from labbook.workloads.files.load import PATTERNS, PHASES, begin_metadata, metadata
from labbook.workloads.files.on_host import runner as metadata_runner
from labbook.workloads.files.on_host.client import BLOCKED, Sheet

LOAD = dict(directories=3, files=20, seed=1, seconds_at_most=30)


@pytest.fixture
def crew(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    yield HereCrew(here_host(home, "client1"))
    clients_engine.clear()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_pattern_goes_through_its_phases(crew, tmp_path, pattern):
    fresh = [[tmp_path]] * sum(phase.endswith("reread") for phase in PHASES[pattern])
    load = metadata(crew, [tmp_path], pattern=pattern, clients=2, fresh=fresh, **LOAD)
    assert load.rows.ok.all() and set(load.rows.error) == {""}
    assert list(load.phases.phase) == list(PHASES[pattern])
    ends = list(load.phases.ended_s[:-1])
    assert (load.phases.started_s[1:].to_numpy() >= ends).all()   # one phase after the other
    assert load.rows.groupby("phase", observed=True).client.nunique().eq(2).all()
    assert all(load.metrics[f"{phase}_per_s"] > 0 for phase in PHASES[pattern])
    assert load.metrics["truncated"] == load.metrics["blocked"] == 0
    assert load.metrics["clients_cpu_us_per_call"] > 0
    assert bool(os.listdir(tmp_path)) == (pattern in ("mixed", "renames", "creates"))   # which delete nothing


def test_clients_leave_the_mount_in_which_they_wrote_before_they_read_again(crew, tmp_path):
    """Two names of one folder stand for two mounts: the first one is gone when the reading begins."""
    where, first, fresh = tmp_path / "files", tmp_path / "first", [tmp_path / "second", tmp_path / "third"]
    where.mkdir()
    for name in (first, *fresh):
        name.symlink_to(where)
    left = iter([first, fresh[0]])
    load = metadata(crew, [first], pattern="remount", clients=2, fresh=[[one] for one in fresh],
                    before_phase=lambda phase: phase.endswith("reread") and next(left).unlink(), **LOAD)
    assert load.rows.ok.all() and list(load.phases.phase) == list(PHASES["remount"]) and not os.listdir(where)
    again = load.rows[load.rows.phase == "random_reread"]
    assert (again.op == "stat").sum() == load.phases.set_index("phase").operations["random_reread"] == 2 * 60


def test_a_pattern_without_rereading_takes_no_fresh_mounts(crew, tmp_path):
    for pattern, fresh in (("bonnie", [[tmp_path]]), ("remount", [])):
        with pytest.raises(InputError, match="fresh mounts"):
            metadata(crew, [tmp_path], pattern=pattern, fresh=fresh, **LOAD)


def test_shared_directories_are_gone_after_the_last_client(crew, tmp_path):
    load = metadata(crew, [tmp_path], pattern="bonnie", clients=3, shared=True, **LOAD)
    assert load.rows.ok.all() and not os.listdir(tmp_path)


def test_a_phase_lasts_as_long_as_asked_and_counts_its_own_calls(crew, tmp_path):
    load = metadata(crew, [tmp_path], pattern="bonnie", phase_s=0.2, **LOAD)
    phases = load.phases.set_index("phase")
    for phase in ("sequential_create", "random_create", "sequential_stat", "random_stat"):
        assert phases.ended_s[phase] - phases.started_s[phase] >= 0.19
    made = load.rows[load.rows.phase == "sequential_create"]
    deleted = load.rows[load.rows.phase == "sequential_delete"]
    assert (made.op == "create").sum() == (deleted.op == "unlink").sum() >= 60
    assert phases.operations["sequential_delete"] == (deleted.op == "unlink").sum() < len(deleted)
    assert not [name for _, _, names in os.walk(tmp_path) for name in names]


def test_one_hot_directory_stays_one_however_long_a_phase_lasts(crew, tmp_path):
    """Each pass had made a directory of its own, so that clients were soon in different ones."""
    load = metadata(crew, [tmp_path], pattern="hot", clients=2, phase_s=0.2, **LOAD)
    made = load.rows[load.rows.phase.str.endswith("create") & (load.rows.op == "create")]
    assert load.rows.ok.all() and made.directory.nunique() == 1 and len(made) >= 2 * 20 and not os.listdir(tmp_path)


def test_the_time_limit_is_reported(crew, tmp_path):
    load = metadata(crew, [tmp_path], pattern="bonnie", phase_s=20, directories=2, files=10, seed=1,
                    seconds_at_most=0.5)
    assert load.metrics["truncated"] == 1 and list(load.phases.phase) == ["sequential_create"]
    assert load.metrics["random_stat_per_s"] != load.metrics["random_stat_per_s"]   # NaN
    assert load.rows.ok.all()


def test_a_stream_at_a_rate_until_it_is_ended(crew, tmp_path):
    stream = begin_metadata(crew, [[tmp_path / "a", tmp_path / "b"]], clients=2, rate_per_s=200,
                            **LOAD)
    time.sleep(1)
    load = stream.end()
    assert len(load.rows) <= 1 + 200 * (time.time() - load.started)
    assert stream.end() is load and load.metrics["truncated"] == 0
    late = load.rows.seconds - load.rows.service_s      # times count from when a call was due
    assert load.metrics["latest_s"] == pytest.approx(late.max()) and (late > -1e-9).all()
    turn = load.rows.groupby("client").cumcount()
    assert (load.rows.started_s - (load.rows.client + 2 * turn) / 200).abs().max() < 1e-9
    assert load.rows.ok.all()
    assert (tmp_path / "a" / load.folder).is_dir() and (tmp_path / "b" / load.folder).is_dir()


def test_a_stream_does_not_outlive_its_block(crew, tmp_path):
    with pytest.raises(KeyError), begin_metadata(crew, [tmp_path], **LOAD) as stream:
        raise KeyError
    assert clients_engine._running is None and len(stream.end().rows)


def test_phases_may_lie_apart(crew, tmp_path):
    load = metadata(crew, [tmp_path], pattern="bonnie", pause_s=0.3, **LOAD)
    gaps = load.phases.started_s.to_numpy()[1:] - load.phases.ended_s.to_numpy()[:-1]
    assert len(gaps) == 5 and (gaps > 0.3).all()


def test_failures_are_rows(crew, tmp_path):
    stream = begin_metadata(crew, [tmp_path], **LOAD)
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        for folder, _, names in os.walk(tmp_path):
            for name in names:
                with suppress(FileNotFoundError):   # a client was first
                    os.unlink(f"{folder}/{name}")
    load = stream.end()
    assert not load.rows.ok.all() and load.rows.ok.any()
    assert set(load.rows.error[~load.rows.ok]) == {"ENOENT"}
    assert load.metrics["errors"] == (~load.rows.ok).sum()


def test_a_call_that_does_not_come_back_is_a_row_and_its_client_is_left(crew, tmp_path, monkeypatch):
    hangs = tmp_path / "hangs"
    monkeypatch.setenv("HANGS", str(hangs))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setattr(metadata_runner, "__name__", "hanging_runner")
    stream = begin_metadata(crew, [tmp_path], clients=2, call_seconds=0.3, **LOAD)
    time.sleep(0.3)
    hangs.touch()
    time.sleep(0.5)
    load = stream.end()
    blocked = load.rows[load.rows.error == "blocked"]
    assert sorted(blocked.client) == [0, 1] and set(blocked.op) == {"stat"} and not blocked.ok.any()
    assert blocked.seconds.min() > 0.3 and load.metrics["blocked"] == 2
    assert load.metrics["longest_s"] == blocked.seconds.max()
    assert load.rows.ok.sum() > 0
    last = load.rows[load.rows.ok].groupby("client").started_s.max()
    assert (blocked.set_index("client").started_s[last.index] > last).all()


def test_a_client_that_fails_takes_the_load_with_it(crew, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeError, match="client 0: .*NotADirectory|client 0: .*FileExists"):
        metadata(crew, [tmp_path / "file"], pattern="hot", **LOAD)


@pytest.mark.parametrize("key, wrong", [
    ("pattern", {"pattern": "cold"}), ("clients", {"clients": 0}), ("files", {"files": 0}),
    ("directories", {"directories": 0}), ("phase_s", {"phase_s": -1}),
    ("seconds_at_most", {"seconds_at_most": 0})])
def test_what_cannot_be_is_refused(crew, tmp_path, key, wrong):
    with pytest.raises(InputError) as error:
        metadata(crew, [tmp_path], **{"pattern": "hot", **LOAD, **wrong})
    assert error.value.key == key


@pytest.mark.parametrize("paths", [[], ["a", "b"], "a", [[]]])
def test_each_host_has_its_paths(crew, paths):
    with pytest.raises(InputError, match="paths"):
        metadata(crew, paths, pattern="hot", **LOAD)


def test_a_stream_has_one_phase(crew):
    with pytest.raises(InputError, match="pattern.*mixed"):
        begin_metadata(crew, ["a"], pattern="bonnie", **LOAD)


def test_a_client_whose_sheet_is_full_fails_the_load(crew, tmp_path, monkeypatch):
    monkeypatch.setattr(load_module, "MOST_ROWS", 40)
    with pytest.raises(SystemFailure, match="stopped early, after 40 calls"):
        metadata(crew, [tmp_path], pattern="creates", **LOAD)


def test_a_sheet_keeps_the_call_that_is_under_way(tmp_path):
    sheet = Sheet(str(tmp_path / "sheet"), most_rows=2)
    assert sheet.rows(9.0) == b"" and sheet.at() is None
    sheet.busy(1.0, 7, 0, 3)
    blocked = sheet.rows(9.0)
    assert len(blocked) == 22 and sheet.at() == (1.0, 7, 0, 3)
    assert sheet.add(1.0, 0.5, 7, 0, 0, 3) and not sheet.add(2.0, 0.5, 7, BLOCKED, 0, 3)
    sheet.finish()
    assert sheet.count == 2 and sheet.done and len(sheet.rows(9.0)) == 44
