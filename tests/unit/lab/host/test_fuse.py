"""Whose file systems are ended, what may hang and is left behind, and that it is asked for."""

import os
import time

import pytest
from here import here_host

from labbook.lab import kernel
from labbook.lab.description import LabDescription
from labbook.lab.host import fuse
from labbook.lab.host.mount_point import run_or_abandon
from labbook.lab.journal import Journal
from labbook.pipeline.running import root_actions
from labbook.pipeline.setup import requirements

MOUNTS = r"""592 620 0:42 / / ro,relatime - ext4 /dev/vda rw
601 592 0:60 / /home/me/photos rw - fuse.sshfs me@there:/ rw,user_id=0
620 592 0:169 / /srv/labbook/mounts/c1 rw,nosuid - fuse.ceph-fuse ceph-fuse rw,user_id=0
621 592 0:170 / /srv/labbook/a\040b rw,nosuid shared:7 - fuse program rw,user_id=0
622 592 0:171 / /srv/labbookish rw - fuse program rw
623 592 0:172 / /srv/labbook/fusectl rw - fusectl fusectl rw
624 592 0:173 / /srv/labbook/tmp rw - tmpfs fuse rw
"""


def test_only_file_systems_of_programs_below_the_folder_count():
    assert fuse.mounted(MOUNTS, "/srv/labbook") == [169, 170]
    assert fuse.mounted(MOUNTS, "/srv/labbook/mounts") == [169]
    assert fuse.mounted(MOUNTS, "") == [60, 169, 170, 171]


def test_what_this_machine_has_itself_is_no_host_s():
    assert fuse.numbers(os.getpid(), "") == []      # whatever there is


def test_the_same_as_a_script_says_it(tmp_path):
    """Which real hosts run."""
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    host = here_host(tmp_path, "c1")
    done = host.run(fuse.BELOW.replace("/proc/self/mountinfo", str(table)) + "below /srv/labbook")
    assert done.stdout.split("\n")[:-1] == ["169 /srv/labbook/mounts/c1", "170 /srv/labbook/a b"]
    one = host.run(fuse.BELOW.replace("/proc/self/mountinfo", str(table)) + "below /srv/labbook/mounts/c1")
    assert one.stdout == "169 /srv/labbook/mounts/c1\n"


def test_connections_are_aborted_only_while_their_host_is_there(tmp_path, monkeypatch):
    journal, aborted = Journal(tmp_path), []
    monkeypatch.setattr(fuse, "abort", aborted.append)
    start = kernel.start_time(os.getpid())
    journal.write(fuse.KIND, pid=os.getpid(), start=start, numbers=[5, 6])
    journal.write(fuse.KIND, pid=os.getpid(), start=start - 1, numbers=[7])     # of an earlier one
    fuse.release(journal)
    assert aborted == [[5, 6]]


def test_what_ends_in_time_is_a_result(tmp_path):
    host = here_host(tmp_path, "c1")
    done = run_or_abandon(host, "echo 'it''s'\necho \"$PWD\" >&2; exit 3", 10)
    assert (done.stdout, done.stderr, done.exit_code) == ("its\n", f"{host.root}\n", 3)
    assert run_or_abandon(host, "true", 10).stdout == "" and os.listdir(host.root) == []


def test_what_does_not_end_is_left_behind_and_killed(tmp_path):
    host = here_host(tmp_path, "c1")
    assert run_or_abandon(host, "echo $$ > ../pid; sleep 60", 2) is None
    pid, until = int((tmp_path / "pid").read_text()), time.monotonic() + 10
    while kernel.start_time(pid) is not None:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert os.listdir(host.root) == []


LAB = {"sites": ["a"], "hosts": {"client": {"site": "a", "role": "client", "limits": {"fuse": True}},
                                 "db": {"site": "a", "role": "db", "limits": {"fuse": False}}}}


def test_it_is_asked_of_the_kernel_and_reported_before_a_run():
    lab = LabDescription.parse(LAB)
    assert requirements._features_used(lab) == {"hosts", "fuse"}
    assert dict(requirements._listed("features", "fuse")).keys() == {"fuse"}
    actions = "\n".join(root_actions.every(lab))
    assert "FUSE file systems, visible to client only" in actions
    assert "by db alone" not in actions and "control group of" not in actions


@pytest.mark.parametrize("number", [0, 1])
def test_a_try_says_what_is_missing(tmp_path, number):
    """Without root: the device is looked at first."""
    text = fuse.TRY.replace(fuse.DEVICE, str(tmp_path / "fuse"))
    if number:
        (tmp_path / "fuse").touch()     # as a shell makes one that is not there
    done = here_host(tmp_path, "c1").run(f"sh -ec {_quoted(text)}", check=False)
    assert done.exit_code == 1 and done.stderr == f"no {tmp_path}/fuse\n"


def _quoted(text):
    import shlex

    return shlex.quote(text)
