"""What runs libvirt's LXC driver on a host, as text."""

import ipaddress
import subprocess
from dataclasses import replace
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest
from here import here_host

from labbook.errors import LabError
from labbook.systems.openstack import config, containers, services
from labbook.systems.openstack.releases import WORKERS

MACHINES = config.Layout(PurePosixPath("/srv/here"), "198.18.0.9", "secret", "python")
LAYOUT = replace(MACHINES, virt_type="lxc", plug="macvlan")


def test_only_what_must_differs_in_the_services_files():
    """Nova's and Neutron's, in what the servers are."""
    before, now = config.files(MACHINES), config.files(LAYOUT)
    changed = {name: {*text.splitlines()} ^ {*now[name].splitlines()} for name, text in before.items()
               if text != now[name]}
    assert changed == {
        "etc/nova/nova.conf": {
            "virt_type = qemu", "virt_type = lxc",
            "connection_uri = qemu+unix:///system?socket=/srv/here/libvirt/libvirt-sock",
            "connection_uri = lxc+unix:///system?socket=/srv/here/libvirt/libvirt-sock"},
        "etc/neutron/neutron.conf": {"mechanism_drivers = labbook_tap", "mechanism_drivers = labbook_macvlan"}}


def test_nova_compute_alone_has_another_entry():
    entries = [{one.name: one.command for one in services.workers(layout)} for layout in (MACHINES, LAYOUT)]
    assert {name for name in entries[0] if entries[0][name] != entries[1][name]} == {"nova-compute"}
    assert WORKERS["nova-compute"][1] in entries[0]["nova-compute"]


def test_scripts_are_valid_shell():
    words = {"home": "/srv/here", "folder": "/srv/here/libvirt", "device": "guests0", "own": "guests",
             "gateway": "192.0.2.1"}
    for script in (containers.GROUPS, containers.SHARED, containers.NOT_SHARED, containers.NETWORK,
                   containers.NO_NETWORK):
        subprocess.run(["sh", "-n"], input=script.format(**words), text=True, check=True)


def test_the_first_process_does_what_a_machines_does_but_for_drive_and_swap():
    script = containers.init()
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    assert "/usr/sbin/sshd" in script and 'echo "labbook: up at' in script and "authorized_keys" in script
    assert "/dev/sr0" not in script and "swapon" not in script and "GUEST_BITS" not in script
    assert script.index("drive=/config/openstack/latest") < script.index("address=$(field")
    assert f"$address/{ipaddress.IPv4Network('192.168.211.0/24').prefixlen}" in script


def test_a_machine_without_the_groups_is_told_what_it_lacks(tmp_path):
    host = here_host(tmp_path, "cloud")
    host.run = lambda command, check=True: SimpleNamespace(exit_code=1, stdout="")
    with pytest.raises(LabError, match="control groups of version 1"):
        containers.Containers(host, LAYOUT).up()
