"""OpenStack whose servers are containers: they boot, are native, and leave nothing, also of a lab whose driver was
killed. In the newer release; LABBOOK_RELEASES="2026.2 zed" tests both. Making the databases takes minutes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_labs import backing_files, new_id, swept

from labbook.errors import InputError
from labbook.lab import Environment, Lab, LabDescription
from labbook.lab.local import cgroups
from labbook.systems.openstack import containers
from labbook.systems.openstack.lab_cloud import OpenStack
from labbook.workloads.clouds.guests import Guests
from labbook.workloads.clouds.testbed import Testbed

pytestmark = [
    pytest.mark.timeout(1800),      # may have to make a guest's image and the databases
    pytest.mark.skipif(not containers.possible(), reason="containers need control groups of version 1, and a freezer")]
LAB = {"sites": ["room"], "hosts": {"cloud": {"site": "room", "role": "cloud", "limits": {"disk": {"size": "8G"}}}}}
HERE = Path(__file__).parent
# Boots a container, says so, and hangs.
CHILD = """
import sys, time
sys.path.insert(0, sys.argv[1])
from test_containers import LAB, testbed
from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.openstack.lab_cloud import OpenStack

lab = Lab.up(LabDescription.parse(LAB), Environment("local"), sys.argv[2])
testbed(OpenStack([lab.host("cloud")], servers="containers").up()).servers(1)
print("now", flush=True)
time.sleep(600)
"""


def testbed(platform) -> Testbed:
    cloud, via = platform.cloud, platform.host
    key = via.root / "key"
    via.run(f"ssh-keygen -q -t ed25519 -N '' -f {key}")
    return Testbed(cloud, cloud.image("guest"), cloud.flavor("m1.small"),
                   cloud.make_key(via.run(f"cat {key}.pub").stdout), Guests(cloud, via, str(key)).reach, via.dial)


testbed.__test__ = False


@pytest.fixture(scope="module", params=os.environ.get("LABBOOK_RELEASES", "2026.2").split())
def ground(request):
    lab_id = new_id()
    with Lab.up(LabDescription.parse(LAB), Environment("local"), lab_id) as lab:
        host = lab.host("cloud")
        before = seen(host)
        platform = OpenStack([host], release=request.param, servers="containers").up()
        made = testbed(platform)
        made.lab_id = lab_id
        yield made
        made.only(1, made.flavor)       # one that runs when the platform ends
        platform.destroy()
        assert of_containers(lab_id) == set()
        assert [now - was for now, was in zip(seen(host), before)] == [set()] * len(before)
    assert groups(lab_id) == set()


def seen(host) -> list[set]:
    """Processes, mounts and links of a host, and the machine's loop devices on files below its root."""
    commands = ("ps -eo comm=", "cat /proc/mounts", "ip -o link | cut -d: -f2")
    return [*(set(host.run(one).stdout.splitlines()) for one in commands), loops(host.root)]


def loops(root) -> set[str]:
    return {one.strip() for one in backing_files() if one.startswith(f"{root}/")}


def groups(lab_id: str) -> set[str]:
    """Names of control groups in a lab's, in any hierarchy."""
    return {one.name for one in cgroups.ROOT.glob(f"*/labbook-{lab_id}/**") if one.is_dir()}


def of_containers(lab_id: str) -> set[str]:
    return {name for name in groups(lab_id) if ".libvirt-lxc" in name}


def test_a_server_runs_on_the_machines_kernel_within_its_memory_and_leaves_nothing(ground):
    server, = ground.only(1, ground.flavor)
    assert ground.ask(server, "cat /proc/version") == Path("/proc/version").read_text().strip()
    assert ground.ask(server, "cat /proc/1/comm") == "init"
    assert ground.ask(server, "sed -n 's/MemTotal: *//p' /proc/meminfo") == f"{ground.flavor.memory_mb << 10} kB"
    assert ground.ask(server, "hostname").startswith(server.name)
    assert ground.ask(server, "cat /proc/swaps | wc -l") == str(len(Path("/proc/swaps").read_text().splitlines()))
    assert "labbook: up at" in ground.cloud.console(server)
    assert len(loops("/srv/labbook")) == 1 and of_containers(ground.lab_id)
    ground.clear()
    assert loops("/srv/labbook") == set() and of_containers(ground.lab_id) == set()


def test_servers_reach_each_other_and_programs_run_in_parallel(ground):
    one, other = ground.only(2, ground.flavor)
    assert ground.ask(one, f"timeout 10 bash -c '< /dev/tcp/{other.address}/22' && echo yes") == "yes"
    assert ground.ask(one, "mpirun --allow-run-as-root --oversubscribe -np 2 hostname | wc -l") == "2"


def test_a_server_is_rebooted_by_the_switch(ground):
    server, = ground.only(1, ground.flavor)
    ground.ask(server, "touch /run/before")
    ground.cloud.reboot([server], hard=True)
    ground.cloud.await_running_and_answers([server], ground.dial, 120)
    assert ground.ask(server, "until ! test -e /run/before; do sleep 0.5; done; echo gone") == "gone"


def test_what_containers_cannot_do_is_refused_before_anything_is_asked_of_the_cloud(ground):
    server, = ground.only(1, ground.flavor)
    with pytest.raises(InputError, match="containers cannot be rebooted by themselves"):
        ground.cloud.reboot([server])
    with pytest.raises(InputError, match="containers cannot have images made"):
        ground.cloud.snapshot(server)
    assert ground.ask(server, "echo still here") == "still here"


def test_containers_of_a_killed_driver_go_with_its_lab():
    lab_id, before = new_id(), set(backing_files())
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(HERE), lab_id], stdout=subprocess.PIPE, text=True,
                             env={**os.environ, "PYTHONPATH": str(HERE)})
    try:
        assert child.stdout.readline() == "now\n"
        assert of_containers(lab_id)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        gone = swept(lab_id)
    assert gone and groups(lab_id) == set() and set(backing_files()) <= before
