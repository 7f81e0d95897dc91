"""Mounts of a Ceph file system: shared metadata, hung mounts, bonnie++ on a mount."""

import subprocess
import sys
from pathlib import Path

import pytest
from listeners import check_listeners
from small_labs import new_id, swept

from labbook.errors import LabError, SystemFailure
from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.ceph.cluster import Ceph
from labbook.workloads.files.bonnie import bonnie
from labbook.workloads.machines.bonnie_csv import FILES

HERE = Path(__file__).parent
SITES = {"sites": ["room"], "hosts": {
    "mon": {"site": "room", "role": "mon"}, "osd[1-2]": {"site": "room", "role": "osd"},
    "mds1": {"site": "room", "role": "mds"},
    "client[1-2]": {"site": "room", "role": "client", "limits": {"fuse": True}}}}
DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
import os, signal, test_ceph_mount as here
lab = here.Lab.up(here.lab(), here.Environment("local"), sys.argv[2])
ceph = here.Ceph(lab.hosts.values()).up()
mount = ceph.mount(lab.host("client1")).up()
ceph.kill(0)
print(mount.call("touch new", 1), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def lab():
    return LabDescription.parse(SITES)


@pytest.fixture(scope="module")
def there():
    """(lab, cluster)."""
    with Lab.up(lab(), Environment("local"), new_id()) as made:
        yield made, Ceph(made.hosts.values()).up()


@pytest.fixture
def mounts(there):
    """A function that makes mounts, which are removed after the test even if the cluster is dead."""
    made, (lab, ceph) = [], there

    def mount(host, **settings):
        made.append(ceph.mount(lab.host(host), **settings))
        return made[-1]

    yield mount
    for each in made:
        each.destroy()
        assert not each.mounted()
    if not ceph.mdss["mds1"].process.alive():
        ceph.up()   # a restarted MDS would wait for killed clients for a minute


def output(mount, command):
    done = mount.call(command, 20)
    assert done is not None and done.exit_code == 0, done
    return done.stdout


def test_a_client_sees_another_clients_files(there, mounts):
    first, second = mounts("client1").up(), mounts("client2").up()
    output(first, "mkdir -p a/b && touch a/b/file && ln -s file a/b/link && chmod 640 a/b/file && "
                "touch -d @1000000000 a/b/file")
    look = "stat -c '%n %i %f %u %g %h %s %Y %Z' a a/b a/b/file a/b/link; ls -a a/b"
    assert output(second, look) == output(first, look)
    assert "a/b/file" in output(second, look) and "1000000000" in output(second, look)
    output(second, "rm -r a")
    assert output(first, "ls") == ""
    assert first.sessions() == {0: "open"} and not first.blocklisted()
    number, address = first.identity()
    check_listeners([first.host, second.host], "ceph_mount")
    listed, = (one for one in there[1].ask("mds1", "session ls") if one["id"] == number)
    assert address in listed["inst"]
    first.end()
    assert not first.mounted() and second.alive()


def test_mounts_of_one_host_have_separate_caches(there, mounts):
    small, large = mounts("client1", name="small", cache_inodes=50).up(), mounts("client1").up()
    output(large, "mkdir many && cd many && touch $(seq 300)")
    for mount in (small, large):
        output(mount, "ls -l many")
    there[0].host("client1").wait_for(lambda: small.cached() <= 50, "the small cache's limit", 30)
    assert large.cached() > 300
    assert small.facts()["cache_inodes"] == 50 and small.facts()["version"].startswith("1")
    output(small, "rm -r many")


def test_a_hung_mount_ends_and_so_do_its_callers(there, mounts):
    made, ceph = there
    waiting, resting = mounts("client1").up(), mounts("client2").up()
    ceph.kill(0)
    assert waiting.call("touch after", 1) is None and not waiting.alive(1)
    assert waiting.ask("mds_requests") and waiting.mounted()     # the admin socket answers all the same
    waiting.end(1)
    resting.end(1)
    for mount in (waiting, resting):
        assert not mount.mounted() and not mount.process.alive()
    host = made.host("client1")
    host.wait_for(lambda: not host.run("pgrep -x touch", check=False).stdout, "touch to end", 10)
    with pytest.raises(SystemFailure, match="to answer at .*: (not within 2 s|.* ended with exit code)"):
        mounts("client1").up(2)


def test_bonnie_measures_and_hangs_no_longer_than_allowed(there, mounts):
    made, ceph = there
    mount = mounts("client1").up()
    load = bonnie(made.host("client1"), mount.path, directories=4, files=256, seconds_at_most=300)
    assert list(load.rows.phase) == list(FILES) and (load.rows.files == 1024).all()
    assert (load.rows.seconds > 0).all() and load.rows.started_s.is_monotonic_increasing
    assert all(load.metrics[f"by_clock_{phase}_per_s"] > 0 for phase in FILES)
    own = load.rows[load.rows.told_per_s > 0]      # its own clock and ours agree
    times = own.seconds * own.told_per_s / own.files    # a sync of all of the machine's files may lengthen some
    assert own.empty or times.min() < 2 and times.max() > 0.5
    ceph.kill(0)
    with pytest.raises(SystemFailure, match="bonnie.. to end"):
        bonnie(made.host("client1"), mount.path, directories=4, files=256, seconds_at_most=1)
    mount.end(1)
    host = made.host("client1")
    host.wait_for(lambda: not host.run("pgrep -f bonnie[+]", check=False).stdout, "its end", 10)


def test_nothing_starts_without_fuse(there):
    made, ceph = there
    host, mount = made.host("client2"), ceph.mount(made.host("client2"), name="nobody")
    host.allow = frozenset()
    try:
        with pytest.raises(LabError, match="client2: .* not allowed"):
            mount.up()
    finally:
        host.allow = None
    host.run("touch no-device && mount --bind no-device /dev/fuse")
    try:
        with pytest.raises(LabError, match="client2: no /dev/fuse"):
            mount.up()
    finally:
        host.run("umount /dev/fuse")
    assert mount.process is None


def test_the_next_command_clears_a_killed_drivers_hung_mount():
    lab_id = new_id()
    driver = subprocess.run([sys.executable, "-c", DRIVER, HERE, lab_id], capture_output=True,
                            text=True, timeout=200)
    assert driver.stdout == "None\n", driver.stderr
    assert swept(lab_id)
    assert not Path("/run/labbook", lab_id).exists()
