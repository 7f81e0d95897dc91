"""The client of OpenStack, over HTTP with a stand-in for its APIs; tests/lab has a real one."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from cloud_stand_ins import LabWith
from openstack_stand_in import PASSWORD, Refused, openstack

from labbook.errors import InputError, LabbookError, LabError, SystemFailure
from labbook.lab.environment.clouds import OwnCloud
from labbook.systems.cloud import cloud as cloud_module
from labbook.systems.cloud import ledger as cloud_ledger
from labbook.systems.cloud import waits as cloud_waits
from labbook.systems.cloud.model import ERROR, GONE, IN_USE, READY, RUNNING, STARTING, Flavor
from labbook.systems.cloud.user_cloud import own_cloud, sweep

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")    # raised inside the SDK

CLOUDS = """clouds:
  example:
    region_name: RegionOne
    auth: {{auth_url: {url}/v3, username: u, password: {password}, project_name: p,
            user_domain_name: Default, project_domain_name: Default}}
"""


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(cloud_ledger, "INTERVAL_S", 0.02)
    monkeypatch.setattr(cloud_waits, "INTERVAL_S", 0.02)
    with openstack() as there:
        yield there


def entry(folder, url, password=PASSWORD, **more) -> OwnCloud:
    file = folder / "clouds.yaml"
    file.write_text(CLOUDS.format(url=url, password=password))
    file.chmod(0o600)
    return OwnCloud("newer", "openstack", str(file), profile="example", file="clouds.yml", **more)


@pytest.fixture
def own(there, tmp_path):
    return entry(tmp_path, there.url)


@pytest.fixture
def cloud(own):
    cloud = own_cloud(LabWith(own), "newer")
    yield cloud
    cloud.destroy()


def image(cloud, tmp_path, **how):
    path = tmp_path / "guest.img"
    path.write_bytes(b"x" * 1000)
    return cloud.upload_image(path, **how)


def started(cloud, tmp_path, n=2, flavor="m1.small"):
    return cloud.run(n, image(cloud, tmp_path), cloud.flavor(flavor), None)


def test_servers_of_one_request_have_their_moments(cloud, there, tmp_path):
    there.slow_boot = 2
    made = started(cloud, tmp_path, 3)
    assert there.calls.count(("POST", "/compute/v2.1/servers")) == 1
    assert len(made) == 3 and {server.state for server in made} == {STARTING}
    cloud.await_running(made, 30, 0.02)
    assert [server.state for server in made] == [RUNNING] * 3
    for server in made:
        assert server.address == "192.0.2.5"    # the floating address
        assert server.moments["called"] <= server.moments["returned"] <= server.moments["running"]
        assert server.moments["launched"] == 1795309323.0
    request = next(body["server"] for body in there.bodies if isinstance(body, dict) and "server" in body)
    assert (request["min_count"], request["max_count"], request["networks"]) == (3, 3, [{"uuid": "n1"}])
    assert request["metadata"] == {"labbook": "labbook-t1"}


def test_only_the_studys_servers_are_listed(cloud, there, tmp_path):
    there.servers["x"] = {"id": "x", "name": "foreign", "metadata": {}, "status": "ACTIVE", "looks": 0,
                          "huge": False, "addresses": {}}
    made = started(cloud, tmp_path)
    assert {server.id for server in cloud.servers()} == {server.id for server in made}
    cloud.destroy()
    assert list(there.servers) == ["x"] and not there.images


def test_a_deleted_server_that_is_still_listed_is_left_out(cloud, there, tmp_path):
    gone, left = started(cloud, tmp_path)
    there.servers[gone.id]["status"] = "DELETED"
    assert [server.id for server in cloud.servers()] == [left.id]


def test_an_image_names_its_kernel_and_ramdisk(cloud, there, tmp_path):
    kernel = image(cloud, tmp_path, disk_format="aki")
    whole = image(cloud, tmp_path, kernel=kernel)
    stored = there.images[whole.id]
    assert (stored["kernel_id"], stored["disk_format"], stored["container_format"]) == (kernel.id, "raw", "bare")
    assert there.images[kernel.id]["disk_format"] == "aki" and stored["labbook"] == "labbook-t1"
    assert (whole.state, whole.size_bytes) == (READY, 1000)


def test_a_volume_is_attached_and_detached(cloud, tmp_path):
    server, = started(cloud, tmp_path, 1)
    volume = cloud.create_volume(3)
    cloud.attach(server, volume, "/dev/vdx")
    assert (volume.state, volume.server, volume.device) == (IN_USE, server.id, "/dev/vdx")
    cloud.detach(volume)
    assert (volume.state, volume.server) == (READY, None)
    cloud.delete_volume(volume)
    assert volume.state == GONE and cloud.volumes() == []


@pytest.mark.parametrize("hard, kind", [(True, "HARD"), (False, "SOFT")])
def test_several_servers_are_rebooted(cloud, there, tmp_path, hard, kind):
    made = started(cloud, tmp_path, 3)
    cloud.reboot(made, hard)
    actions = [path for method, path in there.calls if path.endswith("/action")]
    assert {path.split("/")[-2] for path in actions} == {server.id for server in made}
    assert [body for body in there.bodies if isinstance(body, dict) and "reboot" in body] == [
        {"reboot": {"type": kind}}] * 3


def test_a_snapshot_is_an_image(cloud, tmp_path):
    server, = started(cloud, tmp_path, 1)
    made = cloud.snapshot(server, "plain")
    assert made.state == READY and made.name.endswith("-plain")
    assert made.id in {one.id for one in cloud.images()}


@pytest.mark.parametrize("listed", [True, False])
def test_servers_without_room_on_a_host(cloud, there, tmp_path, listed):
    there.limits = {}
    there.lists_faults = listed
    made = cloud.await_running(started(cloud, tmp_path, 2, "huge"), 30, 0.02)
    assert {server.state for server in made} == {ERROR}
    with pytest.raises(LabError, match=r"no host of the cloud has room for 2 of 2 servers of huge "
                                       r"\(16 cores, 1048576 MB, 2 GB disk\): No valid host"):
        cloud.require_running(made)


def test_a_quota_is_checked_before_anything_is_made(cloud, there, tmp_path):
    with pytest.raises(LabError, match=r"11 servers of m1.small .* quota of servers: 11 more, 0 of 10") as refused:
        started(cloud, tmp_path, 11)
    assert refused.value.refused, "a result, as where the cloud itself says so"
    with pytest.raises(LabError, match=r"quota of cores: 32 more, 0 of 20"):
        started(cloud, tmp_path, 2, "huge")
    assert not there.servers and cloud.quota()["memory_mb"].limit is None


def test_a_quota_reported_by_the_call(cloud, there, tmp_path):
    there.limits["enforce"], cloud.quota = True, dict
    with pytest.raises(LabError, match="quota does not let us start 2 servers of huge"):
        started(cloud, tmp_path, 2, "huge")
    assert [left.kind for left in cloud.ledger.left()] == ["image"]   # no server was made


@contextmanager
def refusing(there, code, *calls):
    """The cloud answers these calls (method, part of the path) with this code."""
    answer = there.answer

    def answers(method, path, *rest):
        if any(method == verb and part in path for verb, part in calls):
            raise Refused(code, "not now")
        return answer(method, path, *rest)

    there.answer = answers
    try:
        yield
    finally:
        there.answer = answer


@pytest.mark.parametrize("code", [401, 403, 429])
def test_servers_that_may_not_be_listed_are_removed_all_the_same(cloud, there, tmp_path, code):
    """They ran on, since the ledger had that none was made."""
    guest, flavor = image(cloud, tmp_path), cloud.flavor("m1.small")
    with refusing(there, code, ("GET", "/servers/detail")), pytest.raises(LabbookError):
        cloud.run(2, guest, flavor, None)
    assert len(there.servers) == 2 and [left.kind for left in cloud.ledger.left()] == ["image", "server"]
    cloud.destroy()
    assert not there.servers


def test_servers_that_are_not_listed_yet_are_removed_all_the_same(cloud, there, tmp_path, monkeypatch):
    guest, flavor = image(cloud, tmp_path), cloud.flavor("m1.small")
    with monkeypatch.context() as slow:
        listed = cloud.api.servers
        slow.setattr(cloud.api, "servers", lambda **which: listed(**which)[:1])
        first, = cloud.run(2, guest, flavor, None)
    cloud.terminate([first])
    cloud.destroy()
    assert not there.servers


def test_an_image_whose_file_is_refused_is_removed_all_the_same(cloud, there, tmp_path):
    with refusing(there, 403, ("PUT", "/file"), ("DELETE", "/images")), pytest.raises(LabbookError):
        image(cloud, tmp_path)
    assert len(there.images) == 1
    cloud.destroy()
    assert not there.images


def test_a_snapshot_that_may_not_be_looked_at_is_removed_all_the_same(cloud, there, tmp_path):
    server, = started(cloud, tmp_path, 1)
    with refusing(there, 403, ("GET", "/image/v2/images")), pytest.raises(LabbookError):
        cloud.snapshot(server)
    assert len(there.images) == 2
    cloud.destroy()
    assert not there.images


def test_the_error_for_an_image_that_does_not_boot_has_the_console(cloud, tmp_path):
    made = cloud.await_running(started(cloud, tmp_path, 1), 30, 0.02)

    def silent(address, port, timeout):
        raise TimeoutError

    cloud.await_answers(made, silent, 0.2)
    with pytest.raises(SystemFailure, match="1 of 1 servers never came up") as error:
        cloud.require_answers(made)
    assert error.value.log == "a\nKernel panic"


def test_a_server_that_stays_in_transition(cloud, there, tmp_path):
    there.slow_boot = 10 ** 6
    made = cloud.await_running(started(cloud, tmp_path, 1), 0.2, 0.02)
    assert made[0].state == STARTING
    with pytest.raises(SystemFailure, match="1 of 1 servers do not run.*it is starting"):
        cloud.require_running(made)


def test_refused_credentials_name_the_file_and_the_key(there, tmp_path):
    with pytest.raises(InputError, match=r"clouds.yml: clouds.newer.credentials: the cloud refuses "
                                         r"profile 'example' of .*clouds.yaml: .*requires auth") as error:
        own_cloud(LabWith(entry(tmp_path, there.url, password="wrong-one")), "newer")
    assert "wrong-one" not in str(error.value)
    assert not any((tmp_path / "labbook" / "clouds").iterdir())


def test_a_cloud_that_does_not_answer(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(LabError, match=r"clouds.yml: clouds.newer does not answer"):
        own_cloud(LabWith(entry(tmp_path, "http://127.0.0.1:9")), "newer")


def test_a_cloud_without_a_service(cloud, monkeypatch):
    from keystoneauth1.exceptions import EndpointNotFound

    def missing(*_, **__):
        raise EndpointNotFound("no block-storage")

    monkeypatch.setattr(cloud.api, "_cloud", SimpleNamespace(
        block_storage=SimpleNamespace(volumes=missing)))
    with pytest.raises(SystemFailure, match="could not list volumes: it has no such service"):
        cloud.volumes()
    monkeypatch.undo()


def test_what_could_not_be_removed_is_left_to_the_next_labbook_down(own, there, tmp_path, monkeypatch):
    """The lock stayed with this process, so that every other one skipped the folder."""
    lab = LabWith(own)
    started(own_cloud(lab, "newer"), tmp_path, 1)
    with monkeypatch.context() as broken:
        broken.setattr(cloud_module, "remove", lambda api, ledger: ["server x stays"])
        with pytest.raises(LabError, match="stays"):
            lab.undo[0]()
    assert [one.cloud for one in sweep()] == ["newer"] and not there.servers


def test_facts_have_no_address(cloud):
    assert cloud.facts() == {"cloud": "newer", "api": "openstack", "compute_version": "2.96"}


def test_the_network_is_the_only_one_or_named(there, own, tmp_path):
    there.networks.append({"id": "n3", "name": "other", "router:external": False})
    cloud = own_cloud(LabWith(own), "newer")
    with pytest.raises(InputError, match=r"clouds.newer.network: the project sees 2 networks"):
        started(cloud, tmp_path, 1)
    cloud.destroy()
    cloud = own_cloud(LabWith(replace(own, network="other")), "newer")
    started(cloud, tmp_path, 1)
    assert [body["server"]["networks"] for body in there.bodies
            if isinstance(body, dict) and "server" in body] == [[{"uuid": "n3"}]]
    cloud.destroy()


def test_a_forbidden_call_names_the_profile(cloud, there, monkeypatch):
    def refuse(*_, **__):
        raise Refused(403, "Policy doesn't allow it to be performed.")

    monkeypatch.setattr(there, "answer", refuse)
    with pytest.raises(InputError, match="clouds.newer.profile: the cloud does not let this user "
                                         "make the flavour tiny"):
        cloud.make_flavor(Flavor("", "tiny", 1, 64, 1))
    monkeypatch.undo()
    assert cloud.ledger.left() == []
