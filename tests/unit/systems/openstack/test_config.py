"""Configuration and command lines of OpenStack's services; parts of a guest."""

import configparser
import gc
import gzip
import ipaddress
import logging
import struct
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from here import here_host

from labbook.errors import InputError
from labbook.lab.environment.environment import BENCHMARK_RANGE
from labbook.systems.openstack import config
from labbook.systems.openstack import guest
from labbook.systems.openstack import hypervisor
from labbook.systems.openstack import paste
from labbook.systems.openstack import services
from labbook.systems.openstack.lab_cloud import ContainersApi, OpenStack
from labbook.systems.openstack.releases import PARTS, RELEASES

LAYOUT = config.Layout(PurePosixPath("/srv/here"), "198.18.0.9", "secret", "python")


def read(text):
    parser = configparser.RawConfigParser(delimiters=("=",), strict=True)
    parser.optionxform = str
    parser.read_string(text)
    return parser


@pytest.fixture(scope="module")
def files():
    return {name: read(text) for name, text in config.files(LAYOUT).items()}


@pytest.mark.parametrize("part", paste.FILES)
def test_each_filter_of_a_pipeline_is_defined_once_and_used(part):
    parts = paste.FILES[part][1]()
    defined = {name.split(":", 1)[1] for name in parts}
    used = set()
    for name, one in parts.items():
        for key, value in one.items():
            if key.startswith("/") or key in ("keystone", "pipeline"):
                used |= set(value.split())
    assert used <= defined
    assert len(defined - used) == 1     # the service's entry point


def test_each_service_has_its_files_and_nova_three_databases(files):
    assert {name.split("/")[1] for name in files} == set(PARTS)
    nova = files["etc/nova/nova.conf"]
    assert nova["database"]["connection"].endswith("@198.18.0.9:3306/nova")
    assert nova["api_database"]["connection"].endswith("/nova_api")
    assert nova["libvirt"]["disk_cachemodes"] == "file=none,network=none"
    assert nova["wsgi"]["api_paste_config"] == "/srv/here/etc/nova/api-paste.ini"
    for part in set(PARTS) - {"keystone"}:
        conf = files[f"etc/{part}/{config.CONF[part]}"]
        assert conf["keystone_authtoken"]["username"] == part
        assert conf["keystone_authtoken"]["service_token_roles_required"] == "true"


def test_cell_databases_follow_the_configurations_address():
    lines = [line for part in PARTS for line in services.making(LAYOUT, part)]
    assert any("{hostname}" in line for line in lines)
    assert not any("198.18.0.9" in line or "secret" in line for line in lines)


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_every_part_has_its_own_port(release, monkeypatch):
    apis = services.apis(release, LAYOUT)
    assert sorted(api.name for api in apis) == sorted(f"{part}-api" for part in PARTS)
    assert len({api.port for api in apis}) == len(PARTS)
    eventlets = threading.RLock()       # stands for the lock that oslo.log may put there
    for name, text in services.gunicorn_files(release, LAYOUT).items():
        namespace = {}
        exec(text, namespace)
        monkeypatch.setattr(sys, "argv", ["gunicorn", "-c", "x"])
        monkeypatch.setattr(logging, "_lock", eventlets)
        namespace["post_fork"](None, None)
        assert sys.argv == namespace["words"] and sys.argv[0].endswith("-api") and not gc.isenabled()
        namespace["post_worker_init"](None)
        assert gc.isenabled() and logging._lock is not eventlets
        assert namespace["keepalive"] > 600, "an idle connection's end may meet a request"
        assert namespace["worker_class"] == "gthread" and namespace["bind"].startswith("127.0.0.1:")
        assert any(f"-c /srv/here/{name}" in api.command for api in apis)


def test_a_service_that_needs_others_at_its_start_waits_for_them():
    awaited = {one.name: one.env.get("AWAIT", "").split()
               for one in (*services.workers(LAYOUT), *services.volumes(LAYOUT, "198.18.0.3"))}
    assert "127.0.0.1:5000" in awaited["nova-compute"] and "198.18.0.9:5672" in awaited["nova-compute"]
    assert f"{LAYOUT.home}/libvirt/libvirt-sock" in awaited["nova-compute"]
    assert config.libvirt_uri(LAYOUT).endswith(f"{LAYOUT.home}/libvirt/libvirt-sock")
    assert "198.18.0.3:10809" in awaited["cinder-volume"] and not awaited["nova-conductor"]


def test_volumes_are_served_to_the_clouds_host_alone():
    """Their server asks for no password, and they are writable."""
    server = services.volumes(LAYOUT, "198.18.0.3")[0].command
    assert "addr.host=198.18.0.3," in server and "0.0.0.0" not in server
    *_, let_in, drop = services.admission(["198.18.0.2"], services.NBD_PORT).split("; ")
    assert let_in.endswith("-I INPUT -p tcp --dport 10809 -s 198.18.0.2 -j ACCEPT"), "before what an earlier one drops"
    assert drop.endswith("-A INPUT -p tcp --dport 10809 -j DROP")


def test_volumes_bypass_the_page_cache_exactly_when_guests_disks_do():
    for mode, direct in (("none", "true"), ("writeback", "false")):
        layout = config.Layout(LAYOUT.home, "a", "b", "c", cache_mode=mode)
        assert config.nbd(layout, "198.18.0.3")["nbd"]["nbd_direct"] == direct


@pytest.mark.parametrize("cpus", [1, 2, 3, 7, 49, 96])
def test_sixteen_processors_fit_and_no_more_though_the_ratio_is_rounded(cpus):
    ratio = config.nova(replace(LAYOUT, cpus=cpus))["DEFAULT"]["cpu_allocation_ratio"]
    rounded, = struct.unpack("f", struct.pack("f", ratio))      # as the database keeps it
    assert 16 <= cpus * rounded < 17 and int(cpus * rounded) == 16


class Host:
    allow = None

    def __init__(self, role, name="h"):
        self.role, self.name, self.root, self.address = role, name, PurePosixPath("/srv/x"), "198.18.0.1"


@pytest.mark.parametrize("hosts, settings, message", [
    ([Host("client")], {}, "0 hosts of role cloud"),
    ([Host("cloud"), Host("cloud")], {}, "2 hosts of role cloud"),
    ([Host("cloud")], {"release": "essex"}, "essex"),
    ([Host("cloud")], {"cache_mode": "all"}, "all"),
])
def test_wrong_hosts_and_settings_are_refused(hosts, settings, message):
    with pytest.raises(InputError, match=message):
        OpenStack(hosts, **settings)


def test_needs_of_each_release():
    zed, newest = OpenStack.needs(release="zed"), OpenStack.needs(release="2026.2")
    assert "python3-nova" in zed.packages and not zed.artifacts
    assert "python3-nova" not in newest.packages and newest.artifacts[0].version == "2026.2"
    assert {"qemu-system-x86", "rabbitmq-server"} <= set(zed.packages) & set(newest.packages)


def test_containers_need_libvirts_driver_for_them_and_machines_do_not():
    driver = "libvirt-daemon-driver-lxc"
    assert driver in OpenStack.needs(servers="containers").packages and driver not in OpenStack.needs().packages


@pytest.mark.parametrize("kernel, settings", [("/a/kernel", {}), (None, {"plumbing": "ovs"})])
def test_containers_have_no_kernel_and_no_other_plumbing(kernel, settings):
    with pytest.raises(InputError, match="containers"):
        OpenStack([Host("cloud")], kernel, servers="containers", **settings)


@pytest.mark.parametrize("call", [
    lambda api: api.attach("server", "volume", None), lambda api: api.snapshot("server", "image"),
    lambda api: api.snapshot_by_other("server", "image"), lambda api: api.reboot(["server"], hard=False)])
def test_what_containers_cannot_do_is_refused(call):
    api = ContainersApi(None, "network", {"other_client": None}, None)
    with pytest.raises(InputError, match="servers that are containers cannot"):
        call(api)


def test_scripts_of_the_guest_are_valid_shell():
    for name in ("build.sh", "init.sh", "ramdisk.sh"):
        subprocess.run(["sh", "-n", str(guest.FILES / name)], check=True)


def test_modules_come_after_their_dependencies():
    needs = {"disk": ["ring", "bus"], "net": ["ring"], "ring": ["core"], "bus": ["core"], "core": []}
    order = guest.in_order(("disk", "net", "built_in"), needs)
    assert sorted(order) == sorted(needs)
    assert all(order.index(before) < order.index(name) for name in needs for before in needs[name])


def test_dependencies_of_a_module():
    assert guest.depends(b"x\0license=GPL\0depends=virtio,virtio-ring\0name=y\0") == [
        "virtio", "virtio_ring"]
    assert guest.depends(b"x\0depends=\0name=y\0") == []
    assert guest.depends(b"nothing") == []


def test_content_of_a_ramdisk(tmp_path):
    for name, needs in (("virtio_pci", "virtio-ring"), ("virtio-ring", ""), ("other", "")):
        (tmp_path / f"{name}.ko").write_bytes(b"\0depends=" + needs.encode() + b"\0")
    data = gzip.decompress(guest.make_ramdisk(b"#!x", b"box", tmp_path))
    assert len(data) % 4 == 0 and data.endswith(b"TRAILER!!!\0\0\0\0")
    found = entries(data)
    assert found["init"] == b"#!x" and found["bin/busybox"] == b"box"
    assert found["modules/order"] == b"virtio_ring virtio_pci"
    assert "modules/virtio_ring.ko" in found and "modules/other.ko" not in found


def entries(data):
    """{name: content} of a cpio archive."""
    found, at = {}, 0
    while True:
        fields = [int(data[at + 6 + 8 * n:at + 14 + 8 * n], 16) for n in range(13)]
        name = data[at + 110:at + 110 + fields[11] - 1].decode()
        at += 110 + fields[11] + (-(110 + fields[11]) % 4)
        if name == "TRAILER!!!":
            return found
        found[name] = data[at:at + fields[6]]
        at += fields[6] + (-fields[6] % 4)


def test_files_of_a_guest():
    one = guest.Guest(Path("/cache/guest-1"))
    assert one.image(0.5).name == "guest-0.5gb.raw" and one.image(2).name == "guest-2gb.raw"


WORDS = {"bridge": "guests", "gateway": "192.0.2.1", "home": "/srv/here", "mark": "labbook"}


def test_scripts_for_the_hypervisors_host_are_valid_shell():
    for script in (hypervisor.VIEW, hypervisor.NO_VIEW, hypervisor.NETWORK,
                   hypervisor.NO_NETWORK, hypervisor.BRIDGING):
        subprocess.run(["sh", "-n"], input=script.format(**WORDS), text=True, check=True)
    subprocess.run(["sh", "-n"], input=hypervisor.END_GUESTS, text=True, check=True)


def test_only_tap_devices_outside_a_bridge_are_added_to_it(tmp_path):
    """With an `ip` that lists four devices and records its other calls."""
    (tmp_path / "ip").write_text(f"""#!/bin/sh
[ "$2" = monitor ] || {{ echo "$@" >> {tmp_path}/calls; exit; }}
echo '7: tap1-a2: <BROADCAST> mtu 1500 state DOWN'
echo '8: eth0@if3: <BROADCAST> mtu 1500 state UP'
echo '9: tap3: <BROADCAST> mtu 1500 master guests state UP'
echo 'Deleted 10: tap4: <BROADCAST> mtu 1500 state DOWN'
""")
    (tmp_path / "ip").chmod(0o755)
    subprocess.run(["sh"], input=hypervisor.BRIDGING.format(**WORDS), text=True, check=True,
                   env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (tmp_path / "calls").read_text() == "link set tap1-a2 master guests up\n"


@pytest.mark.parametrize("plug, bridged", [("tap", True), ("bridge", False), ("ovs", False)])
def test_the_lab_adds_devices_only_for_releases_with_taps(tmp_path, plug, bridged):
    """Otherwise libvirt adds them, to a bridge of Linux or of Open vSwitch."""
    host, started, ran = here_host(tmp_path, "h1"), [], []
    host.run = lambda command, check=True: ran.append(command) or SimpleNamespace(exit_code=0)
    host.put = lambda *_: None
    host.start = lambda name, command: started.append(name) or SimpleNamespace(alive=lambda: True)
    hypervisor.Hypervisor(host, replace(LAYOUT, plug=plug)).up()
    assert ("openstack-bridging" in started) == bridged and "openstack-libvirtd" in started
    assert {"openstack-ovsdb", "openstack-vswitch"} <= {*started} if plug == "ovs" else len(started) == 1 + bridged
    assert any("add-br guests" in one for one in ran) == (plug == "ovs")
    assert any("type bridge" in one for one in ran) == (plug != "ovs")


def test_guests_addresses_gateway_and_prefix_agree():
    network = ipaddress.IPv4Network(hypervisor.SUBNET)
    assert network.prefixlen == guest.BITS
    assert next(network.hosts()) == ipaddress.IPv4Address(hypervisor.GATEWAY)
    assert all(ipaddress.IPv4Address(one) in network for one in hypervisor.POOL)
    assert not network.overlaps(ipaddress.IPv4Network(BENCHMARK_RANGE))     # the range of labs
