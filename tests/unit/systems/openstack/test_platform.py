"""Files of a platform on its hosts."""

import stat
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from here import here_host

from labbook.errors import SystemFailure
from labbook.systems.keystone.config import Secrets
from labbook.systems.openstack import platform, seed
from labbook.systems.openstack.config import Layout
from labbook.systems.openstack.releases import RELEASES

LAYOUT = Layout(PurePosixPath("/srv/here"), "198.18.0.9", "a-password", "python")


def files_with(folder, secret: str) -> list[Path]:
    return [file for file in Path(folder).rglob("*") if file.is_file() and secret in file.read_text()]


def mode(path) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def test_only_the_owner_can_read_the_services_files(tmp_path):
    host, secrets = here_host(tmp_path, "cloud"), Secrets()
    layout = replace(LAYOUT, home=host.root / "openstack", password=secrets.password)
    platform.put_files(host, RELEASES["zed"], layout, secrets)
    for secret in vars(secrets).values():
        found = files_with(layout.home, secret)
        assert found and {mode(file) for file in found} == {0o600}
    assert mode(layout.home) == mode(layout.home / "keys" / "fernet") == 0o700


def test_the_services_password_is_not_shown():
    assert LAYOUT.password not in repr(LAYOUT)


@pytest.mark.parametrize("release", RELEASES)
def test_a_seed_is_of_one_version_of_the_database(monkeypatch, release):
    """A database of 2026.2 that an older MariaDB had made was taken for that of a newer one."""
    monkeypatch.setattr(seed, "build_once", lambda name, fill: name)
    monkeypatch.setattr(seed, "owners_alone", lambda folder: folder)

    def name(version):
        host = SimpleNamespace(run=lambda command: SimpleNamespace(stdout=f"mariadbd {version}"))
        return seed.databases(SimpleNamespace(host=host, release=RELEASES[release], secrets=Secrets(*"abc"),
                                              layout=LAYOUT), SimpleNamespace(name="guest")).folder

    assert name("10.11.6") == name("10.11.6") != name("11.8.2")


def test_a_worker_that_has_ended_is_named_at_once():
    """It was waited for until the time was up, and its end was not said."""
    ended = SimpleNamespace(alive=lambda: False, exit_code=lambda: 1, log_tail=lambda: "No module named nova")
    host = SimpleNamespace(name="cloud", process=lambda name: ended)
    worker = SimpleNamespace(name="nova-compute", process="openstack-nova-compute")
    there = SimpleNamespace(compute=SimpleNamespace(services=list), block_storage=SimpleNamespace(services=list))
    with pytest.raises(SystemFailure, match="cloud: nova-compute ended with exit code 1") as failure:
        seed.await_workers(SimpleNamespace(host=host, services=lambda: [(host, worker)], computes=[],
                                           layout=SimpleNamespace(node="cloud")), there, since=0)
    assert "No module" in failure.value.log


def test_only_the_owner_can_read_the_brokers_password(tmp_path, monkeypatch):
    program = tmp_path / "rabbitmq_server-3" / "sbin" / "rabbitmq-server"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setattr(platform, "RABBITMQ", str(tmp_path))
    host, started = here_host(tmp_path, "cloud"), []
    monkeypatch.setattr(host, "start", lambda name, command, **_: started.append(command))
    platform.Broker(host, replace(LAYOUT, home=host.root / "openstack")).begin()
    assert started == [str(program)]
    (file,) = files_with(host.root, LAYOUT.password)
    assert file.name == "rabbitmq.conf" and mode(file) == 0o600


def test_the_broker_listens_on_the_data_network_and_to_its_own_hosts_nodes():
    listening = [line for line in platform.rabbitmq_conf("198.18.0.9", "secret").splitlines()
                 if line.startswith("listeners.")]
    assert listening == ["listeners.tcp.1 = 198.18.0.9:5672"]
    variables = platform.rabbitmq_environment(Path("/srv/here"))
    assert variables["ERL_EPMD_ADDRESS"] == "127.0.0.1"
    assert "inet_dist_use_interface {127,0,0,1}" in variables["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"]


def test_volumes_of_the_same_host_are_served_on_loopback():
    one, other = (SimpleNamespace(address=f"198.18.0.{i}", root=PurePosixPath("/srv"),
                                  limits={"memory": 1 << 30}) for i in (1, 2))

    def served(store):
        return platform.Platform(one, store, RELEASES["zed"], Secrets()).volumes_address

    assert served(one) == "127.0.0.1" and served(other) == "198.18.0.2"


def test_words_are_added_to_the_command_line_of_images_that_boot_from_a_kernel():
    images = [SimpleNamespace(id="kernel", os_command_line=None), SimpleNamespace(id="guest", os_command_line="quiet")]
    changed = []
    cloud = SimpleNamespace(image=SimpleNamespace(
        images=lambda: images, update_image=lambda one, **more: changed.append((one.id, more))))
    seed.add_words(cloud, "virtio_net.csum=0")
    assert changed == [("guest", {"os_command_line": "quiet virtio_net.csum=0"})]


def test_images_boot_as_containers_without_what_machines_need():
    images = [SimpleNamespace(id="kernel", os_command_line=None), SimpleNamespace(id="guest", os_command_line="quiet")]
    changed = []
    cloud = SimpleNamespace(image=SimpleNamespace(images=lambda: images, patch=lambda url, json, headers: changed.append(
        (url, headers["Content-Type"], {(one["op"], one["path"]) for one in json}))))
    seed.without_devices(cloud)
    (url, kind, changes), = changed
    assert url == "/images/guest" and kind.endswith("json-patch") and {op for op, _ in changes} == {"remove"}
    assert {"/kernel_id", "/ramdisk_id", "/os_command_line", "/hw_cdrom_bus", "/hw_scsi_model"} <= {
        path for _, path in changes}


@pytest.mark.parametrize("in_containers, virt_type", [(True, "lxc"), (False, "qemu")])
def test_a_platform_with_containers_keeps_what_libvirt_makes(in_containers, virt_type, tmp_path, monkeypatch):
    """deploy() chose between emulation and KVM alone."""
    monkeypatch.setattr(platform, "put_files", lambda *_: None)
    monkeypatch.setattr(platform, "python_on", lambda *_: "python3")
    host = here_host(tmp_path, "cloud")
    host.run = lambda *_, **__: SimpleNamespace(stdout="2", exit_code=0)
    host.put = lambda *_: None
    one = platform.Platform(host, host, RELEASES["zed"], Secrets(), in_containers=in_containers)
    one.deploy()
    assert one.layout.virt_type == virt_type
    compute, = (service for _, service in one.services() if service.name == "nova-compute")
    assert ("openstack_plugin.containers:start" in compute.command) == in_containers
    assert type(one.hypervisors[0]).__name__ == ("Containers" if in_containers else "Hypervisor")


def test_a_platform_with_compute_hosts_computes_on_them_alone(tmp_path):
    """They are let in to its APIs and volumes, and no other host is."""
    cloud, *computes = (here_host(tmp_path, name) for name in ("cloud", "compute1", "compute2"))
    one = platform.Platform(cloud, cloud, RELEASES["zed"], Secrets(), computes=computes)
    one._layouts = {host.name: replace(one._layout(host, "python3"), home=host.root) for host in (cloud, *computes)}
    one.layout = one.store_layout = one._layouts["cloud"]
    where = [host.name for host, service in one.services() if service.name == "nova-compute"]
    assert where == ["compute1", "compute2"] == [one.host.name for one in one.hypervisors]
    relays = {host.name: service.command for host, service in one.services() if service.name == "relay"}
    assert f"{cloud.address}:8774=127.0.0.1:8774" in relays["cloud"]
    assert f"127.0.0.1:8774={cloud.address}:8774" in relays["compute2"]
