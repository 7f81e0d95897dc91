"""A cloud with EC2's API, over HTTP with moto's server, which boots nothing."""

import secrets
import socket
import threading
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from cloud_stand_ins import LabWith, ec2_cloud, moto, there

from labbook.errors import InputError, LabbookError, LabError, SystemFailure
from labbook.systems.cloud import ledger as cloud_ledger
from labbook.systems.cloud import waits as cloud_waits
from labbook.systems.cloud.ec2 import Ec2Api
from labbook.systems.cloud.model import ERROR, GONE, IN_USE, PAPER_FLAVORS, READY, RUNNING, Flavor
from labbook.systems.cloud.user_cloud import own_cloud

PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPFvzXzXSoJUmhjsK9lnqHyfdHF1AbW3zO2tBdKrNHBx x"
MEGA = 1 << 20


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with moto(tmp_path_factory.mktemp("moto")) as url:
        yield url


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(cloud_ledger, "INTERVAL_S", 0.02)
    monkeypatch.setattr(cloud_waits, "INTERVAL_S", 0.02)


@pytest.fixture
def own(url, tmp_path):
    return ec2_cloud(url, tmp_path)


@pytest.fixture
def lab(own):
    """With a new id each time, since terminated servers stay listed for a while."""
    return LabWith(own, id=f"t{secrets.token_hex(3)}")


@pytest.fixture
def cloud(lab, own):
    cloud = own_cloud(lab, own.name)
    yield cloud
    cloud.destroy()


# one of the thousand VM types that the cloud describes
SMALL = Flavor("t2.nano", "t2.nano", 1, 512)


def an_image(cloud, tmp_path, size=3 * MEGA):
    path = tmp_path / "guest.img"
    path.write_bytes(b"\1" * MEGA + bytes(size - MEGA))
    return cloud.image("guest", path)


def marked(ec2, lab):
    """(kind, id) of all resources with the study's id."""
    is_ours = [{"Name": "key", "Values": ["labbook"]}, {"Name": "value", "Values": [f"labbook-{lab.id}"]}]
    return [(tag["ResourceType"], tag["ResourceId"]) for tag in ec2.describe_tags(Filters=is_ours)["Tags"]]


def servers_of(cloud, tmp_path, n):
    return cloud.run(n, an_image(cloud, tmp_path), SMALL, cloud.make_key(PUBLIC))


def test_servers_of_one_call_have_their_moments(cloud, tmp_path):
    made = servers_of(cloud, tmp_path, 3)
    assert len({server.id for server in made}) == 3
    cloud.await_running(made, 30, 0.1)
    for server in made:
        assert server.state == RUNNING and server.address
        assert server.moments["called"] <= server.moments["returned"] <= server.moments["running"]
    assert {server.id for server in cloud.servers()} == {server.id for server in made}
    cloud.require_running(made)


def test_every_resource_carries_the_studys_id(cloud, lab, tmp_path):
    cloud.create_volume(1)
    servers_of(cloud, tmp_path, 1)
    ec2 = cloud.api._ec2
    marks = Counter(kind for kind, _ in marked(ec2, lab))
    assert marks["instance"] == 1 and marks["volume"] >= 1 and marks["snapshot"] == 1
    assert [key["KeyName"][:len(f"labbook-{lab.id}-")] for key in ec2.describe_key_pairs()[
        "KeyPairs"]] == [f"labbook-{lab.id}-"]


def test_a_volume_is_attached_under_the_chosen_name_and_detached(cloud, tmp_path):
    server, = servers_of(cloud, tmp_path, 1)
    volume = cloud.create_volume(2)
    assert (volume.state, volume.size_gb) == (READY, 2)
    cloud.attach(server, volume, "/dev/sdh")
    assert (volume.state, volume.server, volume.device) == (IN_USE, server.id, "/dev/sdh")
    cloud.detach(volume)
    assert (volume.state, volume.device) == (READY, None)
    cloud.delete_volume(volume)
    assert volume.state == GONE and volume.id not in {left.id for left in cloud.volumes()}


def test_several_servers_are_rebooted_in_one_call(cloud, tmp_path, monkeypatch):
    made, calls = servers_of(cloud, tmp_path, 2), []
    reboot = cloud.api._ec2.reboot_instances
    monkeypatch.setattr(cloud.api._ec2, "reboot_instances",
                        lambda **given: calls.append(given) or reboot(**given))
    cloud.reboot(made, hard=True)
    assert [set(call["InstanceIds"]) for call in calls] == [{server.id for server in made}]


def test_a_snapshot_is_an_image_to_start_servers_from(cloud, tmp_path):
    server, = servers_of(cloud, tmp_path, 1)
    image = cloud.snapshot(server, "after install")
    assert image.state == READY and image.name.endswith("-after-install")
    assert image.moments["called"] <= image.moments["ready"]
    again, = cloud.run(1, image, SMALL, None)
    cloud.terminate([server, again])
    assert server.state == again.state == GONE and cloud.servers() == []


def test_an_image_is_sent_without_zero_blocks(cloud, tmp_path):
    sent = []
    ebs = cloud.api._client("ebs")
    put = ebs.put_snapshot_block
    ebs.put_snapshot_block = lambda **given: sent.append(given["BlockIndex"]) or put(**given)
    assert an_image(cloud, tmp_path).state == READY
    assert sorted(sent) == [0, 1]   # of six blocks of 512 KiB


@pytest.mark.parametrize("service, call", [
    ("ebs", "put_snapshot_block"), ("ebs", "complete_snapshot"), ("ec2", "register_image")])
def test_the_snapshot_of_an_image_that_is_refused_later_is_removed(cloud, lab, tmp_path, monkeypatch, service, call):
    """It was forgotten, and the cloud went on billing it."""
    def refuse(**_):
        raise ClientError({"Error": {"Code": "ValidationException", "Message": "no"},
                           "ResponseMetadata": {"HTTPStatusCode": 400}}, call)

    monkeypatch.setattr(cloud.api._client(service), call, refuse)
    with pytest.raises(SystemFailure, match="could not take the image guest.img: no"):
        an_image(cloud, tmp_path)
    assert [kind for kind, _ in marked(cloud.api._ec2, lab)].count("snapshot")
    cloud.destroy()
    assert there(cloud.api._ec2, f"labbook-{lab.id}") == []


def test_an_image_is_named_by_the_environment_or_uploaded(url, tmp_path):
    known = ec2_cloud(url, tmp_path, images={"guest": "ami-12c6146b"}, flavors={"m1.small": "t2.nano"})
    cloud = own_cloud(LabWith(known), "older")
    assert cloud.image("guest", tmp_path / "not looked at").id == "ami-12c6146b"
    assert cloud.flavor("m1.small").name == "t2.nano"
    with pytest.raises(InputError, match=r"clouds.yml: clouds.older.images.other: image: the cloud has"):
        cloud.image("other")
    with pytest.raises(InputError, match=r"clouds.older.flavors.t2.nan: .*did you mean 't2.nano'"):
        cloud.flavor("t2.nan")
    cloud.destroy()


def test_a_cloud_without_uploads_names_the_remedy(own, tmp_path):
    cloud = own_cloud(LabWith(replace(own, blocks=None)), "older")
    with pytest.raises(InputError, match="clouds.older.images: the cloud accepts no uploaded image"):
        an_image(cloud, tmp_path)
    assert cloud.ledger.left() == []    # nothing was made, so there is nothing to remove
    cloud.destroy()


def test_flavors_are_the_clouds_or_else_the_reports(cloud, monkeypatch):
    assert cloud.flavor("t2.nano") == SMALL
    cloud.api._flavors = []
    monkeypatch.setattr(cloud.api._ec2, "get_paginator", lambda _: type(
        "None", (), {"paginate": lambda self: [{"InstanceTypes": []}]})())
    assert [f.name for f in cloud.flavors()] == [f.name for f in PAPER_FLAVORS]
    assert cloud.flavor("c1.xlarge").cores == 4


def test_a_list_of_flavors_that_breaks_off_is_asked_for_again(cloud, monkeypatch):
    """Its first page was the whole list from then on."""
    class Pages:
        broken = True

        def paginate(self):
            yield {"InstanceTypes": [one("a.small")]}
            if self.broken:
                raise EndpointConnectionError(endpoint_url="there")
            yield {"InstanceTypes": [one("a.large")]}

    def one(name):
        return {"InstanceType": name, "VCpuInfo": {"DefaultVCpus": 1}, "MemoryInfo": {"SizeInMiB": 512}}

    pages, cloud.api._flavors = Pages(), []
    monkeypatch.setattr(cloud.api._ec2, "get_paginator", lambda _: pages)
    with pytest.raises(LabbookError, match="does not answer"):
        cloud.flavors()
    pages.broken = False
    assert [one.name for one in cloud.flavors()] == ["a.small", "a.large"]


def test_deleting_what_does_not_exist_is_no_error(cloud):
    volume = cloud.create_volume(1)
    cloud.delete_volume(volume)
    cloud.delete_volume(volume)


def test_destroy_removes_the_studys_resources_only(lab, tmp_path):
    cloud = own_cloud(lab, "older")
    ec2 = cloud.api._ec2
    foreign = ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1)["Instances"][0]
    server, = servers_of(cloud, tmp_path, 1)
    cloud.attach(server, cloud.create_volume(1))
    cloud.snapshot(server)
    cloud.destroy()
    assert there(ec2, f"labbook-{lab.id}") == []
    states = {i["InstanceId"]: i["State"]["Name"] for r in ec2.describe_instances()["Reservations"]
              for i in r["Instances"]}
    assert states[server.id] == "terminated" and states[foreign["InstanceId"]] == "running"
    assert not any((tmp_path / "labbook" / "clouds").iterdir())
    cloud.destroy()


def test_the_error_for_a_silent_server_has_its_console(cloud, tmp_path):
    made = cloud.await_running(servers_of(cloud, tmp_path, 1), 30, 0.1)

    def nobody(address, port, timeout):
        raise ConnectionRefusedError

    assert cloud.await_answers(made, nobody, 0.3) == made
    with pytest.raises(SystemFailure, match="never answered on ssh: does its image boot") as error:
        cloud.require_answers(made)
    assert "Linux version" in error.value.log       # moto's sample


def test_a_server_that_greets_has_the_moment_answers(cloud, tmp_path):
    made = cloud.await_running(servers_of(cloud, tmp_path, 2), 30, 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def greet():
            for _ in made:
                listener.accept()[0].sendall(b"SSH-2.0-x\r\n")

        threading.Thread(target=greet, daemon=True).start()
        cloud.await_answers(made, lambda *_, timeout: socket.create_connection(
            listener.getsockname(), timeout), 20)
    assert all(server.moments["running"] <= server.moments["answers"] for server in made)
    cloud.require_answers(made)


def test_failed_servers_have_a_reason(cloud, tmp_path):
    made = servers_of(cloud, tmp_path, 2)
    made[0].state, made[0].fault = ERROR, "Server.InsufficientInstanceCapacity: no room"
    made[1].state = RUNNING
    with pytest.raises(LabError, match=r"no host of the cloud has room for 1 of 2 servers of t2.nano"):
        cloud.require_running(made)
    made[0].fault = "kernel panic"
    with pytest.raises(SystemFailure, match="1 of 2 servers do not run; .*kernel panic"):
        cloud.require_running(made)


def test_refused_calls(cloud, tmp_path):
    with pytest.raises(InputError, match="n: 0 servers"):
        cloud.run(0, None, None, None)
    with pytest.raises(InputError, match="no call to make the VM type m1.small"):
        cloud.make_flavor(PAPER_FLAVORS[0])
    with pytest.raises(SystemFailure, match="could not attach a volume.*NotFound"):
        cloud.api.attach("i-00000000000000000", "vol-00000000", None)


def test_wrong_credentials_are_refused(tmp_path, monkeypatch):
    with moto(tmp_path, INITIAL_NO_AUTH_ACTION_COUNT="0") as url:
        with pytest.raises(InputError, match="clouds.yml: clouds.older.credentials: the cloud refuses "
                                             "profile 'default' of .*AuthFailure") as error:
            own_cloud(LabWith(ec2_cloud(url, tmp_path, secret="hush-hush")), "older")
    assert "hush-hush" not in str(error.value)
    assert not any((tmp_path / "labbook" / "clouds").iterdir())
    with pytest.raises(LabError, match="clouds.yml: clouds.older does not answer"):
        own_cloud(LabWith(ec2_cloud(url, tmp_path)), "older")


def test_settings_of_the_users_shell_do_not_apply(own, tmp_path, monkeypatch):
    for name, value in {"AWS_PROFILE": "elsewhere", "AWS_ACCESS_KEY_ID": "other", "AWS_REGION": "x-1",
                        "AWS_SECRET_ACCESS_KEY": "other", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}.items():
        monkeypatch.setenv(name, value)
    cloud = own_cloud(LabWith(own), "older")
    client = cloud.api._ec2
    assert client._request_signer._credentials.access_key == "a"
    assert client.meta.endpoint_url == own.endpoint and client.meta.region_name == "us-east-1"
    cloud.destroy()


def test_an_image_that_is_still_being_made_is_not_deleted_without_its_snapshots():
    """Its snapshot was made all the same, and nobody knew of it."""
    did, image = [], {"State": "pending", "Name": "labbook-t1-1", "BlockDeviceMappings": []}
    client = SimpleNamespace(
        describe_images=lambda Filters: {"Images": [image]}, exceptions=SimpleNamespace(ClientError=OSError),
        create_tags=lambda **what: did.append("tags"), deregister_image=lambda ImageId: did.append("deregister"),
        delete_snapshot=lambda SnapshotId: did.append(SnapshotId))
    api = Ec2Api.__new__(Ec2Api)
    api._ec2, api._mark = client, "labbook-t1"
    with pytest.raises(SystemFailure, match="still being made"):
        api._delete_image("ami-1")
    assert not did
    image.update(State="available", BlockDeviceMappings=[{"Ebs": {"SnapshotId": "snap-1"}}])
    api._delete_image("ami-1")
    assert did == ["tags", "deregister", "snap-1"]
