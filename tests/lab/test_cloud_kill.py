"""After a kill at any moment, the next command removes everything of the study from the cloud. Over HTTP
with moto's server."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import cloud_stand_ins
import pytest
from cloud_stand_ins import LabWith, ec2_cloud, moto

from labbook.commands import lab as commands
from labbook.errors import InputError, LabError
from labbook.pipeline.executing import driver
from labbook.systems.cloud import ledger
from labbook.systems.cloud import user_cloud
from labbook.systems.cloud.user_cloud import api_of, own_cloud

# Makes resources on the cloud and hangs right before or after it writes the given line of the journal.
CHILD = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from cloud_stand_ins import LabWith
from labbook.lab.environment.clouds import OwnCloud
from labbook.systems.cloud.ledger import JournaledLedger
from labbook.systems.cloud.user_cloud import own_cloud

own, stop, at = OwnCloud(**json.loads(sys.argv[2])), int(sys.argv[3]), sys.argv[4]
write, count = JournaledLedger._write, 0

def hang():
    print("now", flush=True)
    time.sleep(600)

def writing(self, *words, **facts):
    global count
    count += 1
    if count == stop and at == "before":
        hang()
    write(self, *words, **facts)
    if count == stop:
        hang()

JournaledLedger._write = writing
cloud = own_cloud(LabWith(own), own.name)
volume = cloud.create_volume(1)
image = next(one for one in cloud.api._ec2.describe_images()["Images"])
from labbook.systems.cloud.model import Flavor, Image
servers = cloud.run(2, Image(image["ImageId"], "", "ready"), Flavor("t2.nano", "t2.nano", 1, 512), None)
cloud.attach(servers[0], volume)
cloud.snapshot(servers[1])
hang()
"""
HERE = Path(cloud_stand_ins.__file__).parent
LINES = 7   # cloud; volume, known; server, known; image, known


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with moto(tmp_path_factory.mktemp("moto")) as url:
        yield url


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(ledger, "INTERVAL_S", 0.02)
    monkeypatch.setattr(ledger, "LOOK_S", 0.2)
    monkeypatch.setattr(driver, "LABS", ())


@pytest.fixture
def own(url, tmp_path):
    return ec2_cloud(url, tmp_path)


def hung(own, line, at="after"):
    """A process that waits at this line."""
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(HERE),
                              json.dumps(own.facts()), str(line), at], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "now\n", child.wait()
    return child


def killed(own, line, at="after"):
    child = hung(own, line, at)
    child.kill()
    child.wait()
    child.stdout.close()


def there(own) -> list[str]:
    return cloud_stand_ins.there(api_of(own, "")._ec2, "labbook-t1")


def snapshots(own) -> set[str]:
    """All snapshots of the account: those of images do not carry the study's id."""
    return {one["SnapshotId"] for one in api_of(own, "")._ec2.describe_snapshots()["Snapshots"]}


def folders(tmp_path):
    return list((tmp_path / "labbook" / "clouds").iterdir())


@pytest.mark.parametrize("line, at, made", [
    (2, "after", 0), (3, "before", 1), (4, "after", 1), (5, "before", 5), (7, "before", 6)])
def test_the_next_command_removes_what_was_made(own, tmp_path, line, at, made):
    """`made`: number of resources: a volume, two servers with a disk each, an image and its snapshot."""
    before = snapshots(own)
    killed(own, line, at)
    assert len(there(own)) == made and (snapshots(own) != before) == (made == 6)
    driver.sweep_labs()
    assert there(own) == [] and folders(tmp_path) == [] and snapshots(own) == before


def test_labbook_down_removes_it_and_says_so(own, tmp_path, monkeypatch, capsys):
    killed(own, LINES)
    assert [(left.cloud, left.study, left.resources) for left in user_cloud.leftovers()] == [
        ("older", "cloud_platforms", 3)]
    monkeypatch.setattr(commands, "_labs_down", lambda given: 0)
    assert commands.down(SimpleNamespace()) == 0
    assert "removed from cloud older what a run of cloud_platforms left there" in capsys.readouterr().out
    assert there(own) == [] and folders(tmp_path) == []
    assert commands.down(SimpleNamespace()) == 0 and capsys.readouterr().out == ""


def test_the_same_lab_starts_clean(own, tmp_path):
    killed(own, LINES)
    cloud = own_cloud(LabWith(own), "older")
    assert there(own) == [] and cloud.servers() == []
    cloud.destroy()
    assert folders(tmp_path) == []


def test_resources_of_a_running_process_are_left_alone(own, tmp_path):
    child = hung(own, LINES)
    try:
        made = there(own)
        assert made and user_cloud.sweep() == [] and there(own) == made
        with pytest.raises(LabError, match=f"in use by process {child.pid}"):
            own_cloud(LabWith(own), "older")
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert len(user_cloud.sweep()) == 1 and there(own) == []


def test_an_unreachable_cloud_is_reported_and_tried_again(own, tmp_path, monkeypatch, capsys):
    killed(own, LINES)
    away = api_of(own, "labbook-t1")

    def find(*_):
        raise LabError("it does not answer")

    monkeypatch.setattr(away, "find", find, raising=False)
    monkeypatch.setattr(user_cloud, "api_of", lambda *_: away)
    driver.sweep_labs()
    output = capsys.readouterr().err
    assert "not all could be removed from cloud older" in output and "does not answer" in output and "rm -r" in output
    assert len(folders(tmp_path)) == 1
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert len(user_cloud.sweep()) == 1 and there(own) == []


def test_missing_credentials_are_reported(own, tmp_path):
    killed(own, LINES)
    Path(own.credentials).rename(tmp_path / "elsewhere")
    with pytest.raises(LabError, match="clouds.older.credentials: .*no such file"):
        user_cloud.sweep()
    (tmp_path / "elsewhere").rename(own.credentials)
    assert len(user_cloud.sweep()) == 1 and there(own) == []


def test_an_unknown_cloud_is_refused_with_the_known_names(own):
    with pytest.raises(InputError, match=r"no cloud 'oldr', did you mean 'older'\? \(allowed: older\)"):
        own_cloud(LabWith(own), "oldr")


def test_it_is_removed_with_the_lab(own, tmp_path):
    lab = LabWith(own)
    cloud = own_cloud(lab, "older")
    cloud.create_volume(1)
    assert there(own)
    for undo in lab.undo:
        undo()
    assert there(own) == [] and folders(tmp_path) == []
