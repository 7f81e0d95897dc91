"""What is made first on hosts of a user's own, and what a late command makes; this machine's sh stands in for a host."""

import subprocess
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest

from labbook.errors import LabError
from labbook.lab import LabDescription
from labbook.lab.environment.inventory import RealHost
from labbook.lab.journal import Journal
from labbook.lab.remote import claim, make
from labbook.lab.ssh import transfer


def description(*names):
    return LabDescription.parse({"sites": ["a"], "hosts": {name: {"site": "a", "role": "db"} for name in names}})


class WorkHere(make._Work):
    """This machine's sh stands in for the host."""

    furnished = []

    def __init__(self, *given):
        super().__init__(*given)
        self.looked = claim.Looked(boot=self.name)
        self.host.run = self._run

    def _run(self, command):
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        if done.returncode:
            raise LabError(f"{self.name}: {done.stderr}")

    def look(self):
        pass

    def take(self, folder):
        pass

    def furnish(self):
        self.furnished.append(self.name)


def real_in(root, name="r1"):
    return RealHost(name, "10.0.0.1", 22, "op", "/k", "/known", data="10.0.0.1", root=PurePosixPath(root))


def work_in(root):
    return WorkHere("l1", description("h1"), real_in(root), ["h1"])


def test_hosts_that_share_a_root_folder_are_refused_before_anything_else_is_made(tmp_path, monkeypatch):
    """Its journal has the boot and the mark of one host; what the other has made would never go."""
    (tmp_path / "in-use").write_text(claim.claim_text("l1", "now") + "\n")
    monkeypatch.setattr(make, "_Work", WorkHere)
    monkeypatch.setattr(make, "match", lambda *_: {name: real_in(tmp_path, name) for name in ("r1", "r2")})
    monkeypatch.setattr(make.preflight, "require", lambda *_: None)
    with pytest.raises(LabError, match="^r[12]: another host has this root folder too: give each its own"):
        make.make("l1", description("r1", "r2"), None, tmp_path)
    assert WorkHere.furnished == []


def test_folders_are_made_again_after_a_lost_connection(tmp_path):
    (tmp_path / "in-use").write_text(claim.claim_text("l1", "now") + "\n")
    work = work_in(tmp_path)
    for _ in range(2):
        work.make_folders()
    entry, = Journal(tmp_path / "l1").entries()
    assert entry["mark"] == work.mark
    assert sorted(path.name for path in (tmp_path / "l1").iterdir()) == ["h1", "journal", "stays-up"]


@pytest.mark.parametrize("mark, made", [(claim.claim_text("l1", "now"), True), (None, False),
                                        (claim.claim_text("l2", "now"), False)])
def test_a_late_command_of_a_killed_driver_makes_no_folder_once_the_lab_is_down(
        tmp_path, mark, made):
    """A stray one would be in the way of all labs of this id."""
    root = tmp_path / "labs"
    root.mkdir()
    if mark:
        (root / "in-use").write_text(mark + "\n")
    work = work_in(root)
    if made:
        work.make_folders()
    else:
        with pytest.raises(LabError, match="taken down meanwhile"):
            work.make_folders()
    assert (root / "l1" / "journal").exists() is made and (root / "l1").exists() is made


def test_nor_do_later_ones_of_it(tmp_path):
    """A folder for temporary files, and copies of software."""
    work = work_in(tmp_path)
    with pytest.raises(LabError, match="l1/h1"):
        make._Work.furnish(work)
    host = SimpleNamespace(name="r1", run=lambda command, timeout: work.host.run(command))
    with pytest.raises(LabError, match="l1"):
        transfer.send(host, tmp_path, PurePosixPath(tmp_path) / "l1" / "software" / "site")
    assert list(tmp_path.iterdir()) == []
