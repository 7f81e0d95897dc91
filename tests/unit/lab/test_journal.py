import os
import subprocess

from labbook.lab import kernel
from labbook.lab.journal import Journal, append_command
from labbook.lab.local import unmake


def test_a_line_cut_short_is_of_a_thing_never_made(tmp_path):
    journal = Journal(tmp_path)
    journal.write("lab", boot=kernel.boot_id())
    journal.write("link", name="lb-x")
    with open(journal.path, "a") as file:
        file.write('{"made": "proc')
    assert [e["made"] for e in journal.entries()] == ["lab", "link"]
    assert journal.this_boot()


def test_a_process_of_another_start_time_is_not_ended(tmp_path):
    journal, problems = Journal(tmp_path), []
    journal.write("process", pid=os.getpid(), start=1, name="not me")
    unmake._end(journal, problems, float("inf"))
    assert problems == []  # and this test is still running


def test_things_of_an_earlier_boot_are_not_touched_but_its_folder(tmp_path):
    home = tmp_path / "labs" / "t1"
    home.mkdir(parents=True)
    journal = Journal(tmp_path)
    journal.write("lab", boot="another")
    journal.write("process", pid=os.getpid(), start=kernel.start_time(os.getpid()), name="me")
    journal.write("folder", path=str(home))
    assert unmake.unmake(journal) == []
    assert not home.exists()


def test_an_entry_after_a_line_that_was_cut_short_is_kept(tmp_path):
    """As a full disk leaves it: what is made once there is room again must be found."""
    (tmp_path / "journal").write_text('{"made": "lab"}\n{"made": "di')
    Journal(tmp_path).write("cgroup", folder="/g")
    assert [entry["made"] for entry in Journal(tmp_path).entries()] == ["lab", "cgroup"]


def test_so_is_one_that_a_shell_appends_which_it_does_once(tmp_path):
    file = tmp_path / "journal"
    file.write_text('{"made": "lab"}\n{"made": "ch')
    for _ in range(2):
        subprocess.run(["sh", "-c", append_command({"made": "chain", "chain": "it's"}, file)], check=True)
        assert Journal(tmp_path).entries() == [{"made": "lab"}, {"made": "chain", "chain": "it's"}]


def test_an_entry_is_on_disk_before_the_thing_is_made(tmp_path, monkeypatch):
    """The file is synced for each entry, and the folder for the first."""
    synced, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (
        synced.append((os.readlink(f"/proc/self/fd/{handle}"), (tmp_path / "journal").read_text())),
        sync(handle)))
    journal = Journal(tmp_path)
    journal.write("lab")
    journal.write("link")
    one, two = '{"made": "lab"}\n', '{"made": "lab"}\n{"made": "link"}\n'
    file = str(tmp_path / "journal")
    assert synced == [(file, one), (str(tmp_path), one), (file, two)]
