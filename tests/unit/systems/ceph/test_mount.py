"""Files of a mount, and what it refuses before anything starts."""

from types import SimpleNamespace

import pytest
from here import here_host

from labbook.errors import InputError, LabError
from labbook.lab.host import fuse
from labbook.systems import find
from labbook.systems.ceph.mount import CephMount

CLUSTER = SimpleNamespace(
    address="10.0.0.1", client_keyring="[client.admin]\n\tkey = k\n",
    client_config=lambda **options: "\n".join(f"{k} = {v}" for k, v in options.items()))


def test_settings_are_checked(tmp_path):
    host = here_host(tmp_path, "c1")
    for wrong in ({"name": "Client 1"}, {"name": "../c"}, {"cache_inodes": 0}, {"cache": 1}):
        with pytest.raises(InputError, match="settings of ceph_mount"):
            CephMount(host, CLUSTER, **wrong)


def test_it_is_a_system_with_needs():
    assert find("ceph_mount") is CephMount and "ceph-fuse" in CephMount.needs().packages


def test_its_files_hold_the_settings_and_lie_outside_the_mounted_folder(tmp_path):
    host = here_host(tmp_path, "c1")
    mount = CephMount(host, CLUSTER, name="second", cache_inodes=500)
    mount.deploy()
    text = (tmp_path / "c1/ceph_mount-second/ceph.conf").read_text()
    assert "client_cache_size = 500" in text and "admin_socket = socket" in text
    keyring = tmp_path / "c1/ceph_mount-second/keyring"
    assert keyring.read_text() == CLUSTER.client_keyring and keyring.stat().st_mode & 0o077 == 0
    assert mount.path == host.root / "mounts/second" and mount.home not in mount.path.parents
    assert str(mount.path) == mount.command().split()[-1]


def test_by_default_the_cache_keeps_cephs_size(tmp_path):
    mount = CephMount(here_host(tmp_path, "c1"), CLUSTER)
    assert "client_cache_size" not in mount._options()


LOOKUP = {"path": "#0x1/sample-tree-0", "mds": 1, "op": "lookup"}
GETATTR = {"path": "#0x10000000219", "mds": 0, "op": "getattr"}


@pytest.mark.parametrize("answer, waiting", [
    ({}, []), ({"request": {"path": "", "mds": 0}}, []),
    ({"request": LOOKUP}, [{"rank": 1, "ino": 1, "name": "sample-tree-0"}]),
    ({"request": [LOOKUP, GETATTR]}, [{"rank": 1, "ino": 1, "name": "sample-tree-0"},
                                      {"rank": 0, "ino": 0x10000000219, "name": ""}])])
def test_waiting_requests_name_the_rank_that_they_wait_for(tmp_path, monkeypatch, answer, waiting):
    mount = CephMount(here_host(tmp_path, "c1"), CLUSTER)
    monkeypatch.setattr(mount, "ask", {"mds_requests": answer}.get)
    assert mount.unanswered() == waiting


def test_nothing_is_made_without_permission(tmp_path):
    host = here_host(tmp_path, "c1")
    host.allow = frozenset({"limits"})
    with pytest.raises(LabError, match="c1: .* not allowed") as refusal:
        CephMount(host, CLUSTER).up()
    assert "allow: [fuse]" in refusal.value.remedy and not list((tmp_path / "c1").iterdir())


def test_nothing_is_made_without_the_device(tmp_path, monkeypatch):
    monkeypatch.setattr(fuse, "DEVICE", "/dev/no-fuse")
    with pytest.raises(LabError, match="no /dev/no-fuse"):
        CephMount(here_host(tmp_path, "c1"), CLUSTER).up()
    assert not list((tmp_path / "c1").iterdir())
