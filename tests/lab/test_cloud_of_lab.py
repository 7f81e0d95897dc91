"""Clouds and a real lab: a connection through a lab host's SSH, and a user's own cloud that is cleaned
with its lab. The clouds are stand-ins that boot nothing."""

from pathlib import Path

import cloud_stand_ins
import openstack_stand_in
import pytest
from cloud_stand_ins import ec2_cloud, moto
from small_labs import describe, new_id

from labbook.lab import Environment, Lab
from labbook.paths import clouds_dir
from labbook.systems.cloud import ledger
from labbook.systems.cloud.cloud import Cloud
from labbook.systems.cloud.ledger import Ledger
from labbook.systems.cloud.model import RUNNING
from labbook.systems.cloud.openstack import OpenStackApi
from labbook.systems.cloud.openstack_session import connect_through
from labbook.systems.cloud.user_cloud import own_cloud

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")    # raised inside the SDK
PORT = 5000


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(ledger, "INTERVAL_S", 0.02)


def test_an_openstack_in_the_lab_is_reached_through_ssh_only(pair, tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")      # must not be used
    far, near = pair.host("h1"), pair.host("h2")
    program = Path(openstack_stand_in.__file__)
    far.put(program, far.root / program.name)
    process = far.start("stand-in", f"{far.python} {far.root}/{program.name} {far.address} {PORT}")
    far.wait_for(lambda: far.run(f"ss -Hltn 'sport = :{PORT}'").stdout, "the stand-in", 20, process)
    connection = connect_through(
        near, auth_url=f"http://{far.address}:{PORT}/v3", username="u", project_name="p",
        password=openstack_stand_in.PASSWORD, user_domain_name="Default", project_domain_name="Default")
    cloud = Cloud(OpenStackApi(connection, "labbook-x"), Ledger("labbook-x"))
    image = tmp_path / "guest.img"
    image.write_bytes(bytes(3 << 20))
    made = cloud.run(3, cloud.upload_image(image), cloud.flavor("m1.small"), None)
    assert [server.state for server in cloud.await_running(made, 30, 0.05)] == [RUNNING] * 3
    cloud.reboot(made, hard=True)
    assert near.tunnels and cloud.images()[0].size_bytes == 3 << 20
    cloud.destroy()
    assert cloud.servers() == [] and cloud.images() == []
    process.stop()


def test_a_users_own_cloud_is_cleaned_with_its_lab(tmp_path):
    with moto(tmp_path) as url:
        own = ec2_cloud(url, tmp_path)
        entry = {key: value for key, value in own.facts().items() if value and key not in ("name", "file")}
        environment = Environment.parse({"provider": "namespaces", "clouds": {"older": entry}},
                                        file="clouds.yml")
        lab = Lab.up(describe({"client": {}}), environment, new_id())
        try:
            assert lab.clouds == {"older": environment.clouds[0]}
            cloud = own_cloud(lab, "older")
            cloud.create_volume(1)
            mark = f"labbook-{lab.id}"
            assert len(cloud_stand_ins.there(cloud.api._ec2, mark)) == 1
        finally:
            lab.down()
        assert cloud_stand_ins.there(cloud.api._ec2, mark) == [] and not list(clouds_dir().iterdir())


def test_a_lab_goes_down_even_if_its_cloud_cannot_be_cleaned(tmp_path):
    from labbook.errors import LabError

    lab, done = Lab.up(describe({"h1": {}}), Environment("local"), new_id()), []

    def refuse():
        raise LabError("the cloud is away")

    lab.before_down(lambda: done.append("first made, last undone"))
    lab.before_down(refuse)
    with pytest.raises(LabError, match="the cloud is away"):
        lab.down()
    assert done and not lab.folder.exists()
    lab.down()
