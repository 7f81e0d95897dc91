import os

from labbook.lab.local import kernel, unmake
from labbook.lab.local.journal import Journal


def test_a_line_cut_short_is_of_a_thing_never_made(tmp_path):
    journal = Journal(tmp_path)
    journal.write("lab", boot=kernel.boot_id())
    journal.write("link", name="lb-x")
    with open(journal.path, "a") as file:
        file.write('{"made": "proc')
    assert [e["made"] for e in journal.entries()] == ["lab", "link"]
    assert journal.this_boot()


def test_a_process_of_another_start_time_is_not_ended(tmp_path):
    problems = []
    unmake._end([{"pid": os.getpid(), "start": 1, "name": "not me"}], problems)
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
