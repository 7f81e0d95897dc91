"""OpenStack on a lab host: it comes up, its functions work, and nothing is left. In the newer release;
LABBOOK_RELEASES="2026.2 zed" tests both. Making the databases takes minutes."""

import http.client
import os
import re
import subprocess
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from listeners import check_listeners
from small_labs import new_id

from labbook.errors import LabError, SystemFailure
from labbook.lab import Environment, Lab, LabDescription, kernel
from labbook.lab.cache.push import push
from labbook.papers.cloud_platforms.clocks import Clocks
from labbook.systems.cloud.model import Flavor
from labbook.systems.openstack import config, guest, services
from labbook.systems.openstack.config import HERE
from labbook.systems.openstack.guest_packages import packages
from labbook.systems.openstack.lab_cloud import OpenStack
from labbook.systems.openstack.releases import PORTS, RELEASES
from labbook.workloads.clouds import functions
from labbook.workloads.clouds.functions import cloud_function
from labbook.workloads.clouds.guests import Guests
from labbook.workloads.clouds.testbed import Testbed

pytestmark = pytest.mark.timeout(1800)      # may have to make a guest's image and the databases
LAB = {"sites": ["room"], "hosts": {"cloud": {"site": "room", "role": "cloud", "limits": {"disk": {"size": "16G"}}},
                                    "store": {"site": "room", "role": "store"},
                                    "stranger": {"site": "room", "role": "client"}}}
SEEN = {"processes": "ps -eo comm=", "mounts": "cat /proc/mounts", "links": "ip -o link | cut -d: -f2",
        "files": "ls"}
PROGRAMS = "mpirun bonnie++ tar timeout mkfs.ext4 ssh"


@pytest.fixture(scope="module", params=os.environ.get("LABBOOK_RELEASES", "2026.2").split())
def platform(request):
    with Lab.up(LabDescription.parse(LAB), Environment("local"), new_id()) as lab:
        hosts = [lab.host("cloud"), lab.host("store")]
        before = [seen(host) for host in hosts]
        spaces = {host.run("readlink /proc/self/ns/pid").stdout.strip() for host in hosts}
        made = OpenStack(hosts, release=request.param).up()
        made.stranger = lab.host("stranger")
        yield made
        if request.param == "2026.2":
            made.destroy()
            for host, was in zip(hosts, before):
                now = seen(host)
                assert {what: now[what] - was[what] for what in SEEN if what != "files"} == {
                    "processes": set(), "mounts": set(), "links": set()}
                assert not {"openstack", "mariadb"} & now["files"]
    # the other release goes down with its lab while guests run, as after a kill
    assert not spaces & pid_namespaces()


def seen(host) -> dict[str, set]:
    """Processes, mounts, links and files of a host."""
    return {what: set(host.run(command).stdout.splitlines()) for what, command in SEEN.items()}


def pid_namespaces() -> set[str]:
    """PID namespaces of this machine's processes, without zombies."""
    found = set()
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            where = os.readlink(one / "ns/pid")
            found |= {where} if kernel.start_time(int(one.name)) else set()
    return found


@pytest.fixture
def stranger(platform):
    """A host of the lab that is no part of the platform."""
    return platform.stranger


@pytest.fixture(scope="module")
def ground(platform):
    cloud, via = platform.cloud, platform.host
    key = via.root / "key"
    via.run(f"ssh-keygen -q -t ed25519 -N '' -f {key}")

    return Testbed(cloud, cloud.image("guest"), cloud.flavor("m1.small"),
                  cloud.make_key(via.run(f"cat {key}.pub").stdout), 
                  Guests(cloud, via, str(key)).reach, via.dial)


def test_content_of_a_new_cloud(platform):
    cloud = platform.cloud
    assert {"guest", "guest-0.5gb", "guest-1gb", "guest-2gb"} <= {one.name for one in cloud.images()}
    assert cloud.flavor("c1.xlarge").cores == 4 and cloud.flavor("c1.xlarge").memory_mb == 2048
    facts = cloud.facts()
    assert facts["platform"] == f"OpenStack {platform.settings.release}"
    assert facts["compute_machines"] == 1 and facts["volume_way"] == "NBD over TCP from host store"
    versions = platform.facts()["versions"]
    assert set(versions) == {"keystone", "glance", "openstack-placement", "nova", "neutron", "cinder"}


def test_guests_boot_from_a_kernel_of_ones_own_and_one_that_does_not_boot_is_refused(platform, tmp_path, monkeypatch):
    """With emulation in the place of KVM, which few machines offer that are guests themselves."""
    debs, own = packages(), tmp_path / "kernel"
    subprocess.run(["dpkg-deb", "-x", debs / "kernel.deb", own], check=True)
    next((own / "boot").glob("vmlinuz-*")).rename(own / "vmlinuz")
    (own / "lib/modules").rename(own / "modules")
    monkeypatch.setattr(guest, "packages", lambda: debs)
    monkeypatch.setattr(guest, "KVM", ("/dev/null", "tcg", "max"))
    monkeypatch.setattr(guest, "boots", partial(guest.boots, seconds=120))
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path / "cache"))
    made = guest.make(platform.host, (0.5,), kernel=str(own))
    assert made.name != platform.guest.name
    there, broken = push(platform.host, made.folder), platform.host.root / "broken"
    assert guest.accelerated(platform.host, made, there, str(own))
    platform.host.run(f"mkdir {broken} && ln -s {there}/ramdisk {there}/guest-0.5gb.raw {broken} && "
                      f"echo none > {broken}/vmlinuz")
    with pytest.raises(LabError, match="programs.kernel, does not reach its first process"):
        guest.accelerated(platform.host, SimpleNamespace(name="broken"), broken, str(own))
    platform.host.run(f"rm -r {broken}")


def test_secrets_are_in_no_command_line(platform):
    """Of running services, including nova-compute's helpers."""
    for host in (platform.host, platform.platform.store):
        processes = host.run("ps -eo args=").stdout
        assert "nova-" in processes or "cinder-" in processes
        assert platform.platform.secrets.password not in processes


ONE_LOCK_FOR_TWO_THREADS = """
import os
import threading
from oslo_config import cfg
from oslo_log import log

conf = cfg.ConfigOpts()
log.register_options(conf)
conf([])
log.setup(conf, "x")
post_worker_init(None)

held, give_up, got = threading.Event(), threading.Event(), threading.Event()


def first():
    with logging._lock:
        held.set()
        give_up.wait(1)     # meanwhile the second one comes to wait


def second():
    held.wait()
    with logging._lock:
        got.set()


for one in (first, second):
    threading.Thread(target=one, daemon=True).start()
print("got it" if got.wait(10) else "waits for ever", flush=True)
os._exit(0)     # the end of `logging` wants the lock, too
"""


def test_two_threads_of_a_service_may_log_at_once():
    """With Zed's oslo.log, once eventlet is imported, unless the services put the lock right."""
    release = RELEASES["zed"]
    conf = services.gunicorn_files(release, config.Layout(Path("/srv/x"), HERE, "secret", "python"))["etc/keystone/gunicorn.conf.py"]
    for rights, expected in ((conf, "got it"), (conf.replace("logging._lock = ", "ignored = "), "waits for ever")):
        ran = subprocess.run(["/usr/bin/python3", "-c", f"import eventlet\n{rights}\n{ONE_LOCK_FOR_TWO_THREADS}"],
                             capture_output=True, text=True, timeout=120)
        assert ran.stdout.strip() == expected, ran.stderr


def test_an_idle_connection_is_kept(platform):
    """gunicorn as shipped ends it after two seconds, perhaps just as a client sends on it."""
    port = PORTS["nova"]
    connection = http.client.HTTPConnection(HERE, port)
    connection.auto_open, connection.sock = False, platform.host.dial(HERE, port)
    for idle_s in (0, 4):
        time.sleep(idle_s)
        connection.request("GET", "/")
        connection.getresponse().read()
    connection.close()


def test_only_the_clouds_host_reaches_the_volumes(platform, stranger):
    """Their server asks for no password; the store itself may control it."""
    volumes = f"bash -c '< /dev/tcp/{platform.platform.store.address}/10809'"
    ended = [host.run(f"timeout {seconds} {volumes}", check=False).exit_code
             for host, seconds in ((platform.host, 30), (platform.platform.store, 30), (stranger, 3))]
    assert ended == [0, 0, 124]


@pytest.mark.parametrize("name", ["reboot_several", "attach_usual_name", "write_volume", "detach",
                                  "snapshot_fresh", "snapshot_two_clients", "terminate"])
def test_a_function_of_the_client(ground, name, platform, monkeypatch):
    monkeypatch.setattr(functions, "SEVERAL", 2)    # servers, of an emulated processor
    load = cloud_function(name, ground)
    assert load.metrics["works"] == 1, load.metrics["evidence"]
    check_listeners([platform.host, platform.platform.store], "openstack")


def test_a_server_has_the_benchmarks_programs(ground):
    server, = ground.servers(1)
    assert ground.ask(server, f"for one in {PROGRAMS}; do command -v $one; done | wc -l") == "6"
    assert ground.ask(server, "nproc") == "1"
    until = time.monotonic() + 120
    while "/swap" not in ground.ask(server, "cat /proc/swaps"):
        assert time.monotonic() < until
    assert "labbook: up at" in ground.cloud.console(server)


def test_a_servers_kernel_is_told_the_rate_of_its_counter_and_its_clock_goes_right(ground):
    server, = ground.servers(1)
    if not ground.cloud.facts()["accelerated"]:
        assert re.search(r" tsc_early_khz=\d{6,8}\b", ground.ask(server, "cat /proc/cmdline"))
    clocks = Clocks([ground.reach(server)])
    ground.ask(server, "sleep 3")
    clocks.check()


def test_guests_disks_bypass_the_page_cache_as_set(ground, platform):
    ground.servers(1)
    output = platform.host.run("ps -eo args= | grep '^[^ ]*qemu-system-x86_64 -name'").stdout
    assert '"cache":{"direct":true' in output


def test_a_vm_type_without_room_on_a_host(ground):
    cloud, key = ground.cloud, ground.key
    made = cloud.run(1, ground.image, cloud.make_flavor(Flavor("", "all", 1, 100_000_000, 2)), key)
    with pytest.raises(LabError, match="no host of the cloud has room for 1 of 1 servers"):
        cloud.require_running(cloud.await_running(made, 300))
    cloud.terminate(made)


def test_an_image_that_does_not_boot(ground, tmp_path):
    empty, cloud = tmp_path / "empty.raw", ground.cloud
    empty.write_bytes(bytes(8 << 20))
    image = cloud.upload_image(empty)
    made = cloud.await_running(cloud.run(1, image, ground.flavor, ground.key))
    cloud.require_running(made)
    with pytest.raises(SystemFailure, match="1 of 1 servers never came up.*does its image boot"):
        cloud.require_answers(cloud.await_answers(made, ground.dial, 5))
    cloud.terminate(made)
    cloud.delete_image(image)


def test_a_server_of_four_cores_may_be_larger_than_the_machine(ground):
    """Of the report's largest type, whose disk of 20 GB is larger than the host's."""
    server, = ground.only(1, ground.cloud.flavor("c1.xlarge"))
    assert ground.ask(server, "nproc") == "4"
