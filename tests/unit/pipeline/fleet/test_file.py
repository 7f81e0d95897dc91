"""A fleet file: every mistake is named with file, key and what is allowed, before anything starts."""

import subprocess

import pytest
import yaml

from labbook.errors import InputError
from labbook.paths import checkout
from labbook.pipeline.fleet.file import ALLOW, SCHEMA, Fleet


@pytest.fixture
def written(tmp_path):
    """A file that is right, as data."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    (tmp_path / "known").touch()
    return {"user": "op", "key": str(key), "known_hosts": str(tmp_path / "known"), "checkout": "/home/op/labbook",
            "machines": {"rack1": {"address": "192.0.2.11"},
                         "desk": {"address": "192.0.2.12", "user": "me", "port": 2222}}}


def test_defaults_at_the_top_and_at_a_machine(written):
    fleet = Fleet.parse(written | {"name": "rack", "allow": ["code"]}, "environments/fleet.yml")
    rack, desk = fleet.machines
    assert (rack.login.user, desk.login.user, desk.login.port) == ("op", "me", 2222)
    assert rack.may("code") and not rack.may("packages") and rack.environment == "environments/local.yml"
    assert fleet.folder == "fleet-rack" and fleet.lost_after_s == 60 and rack.studies is None
    assert Fleet.parse(written, "environments/mine.yml").folder == "fleet-mine"


@pytest.mark.parametrize("change, key, allowed", [
    ({"machine": {}}, "machine", "machines"),
    ({"machines": {}}, "machines", "one or more"),
    ({"machines": {"rack1": {"adress": "192.0.2.11"}}}, "machines.rack1.adress", "did you mean"),
    ({"machines": {"rack1": {"address": "192.0.2.11", "roles": ["db"]}}}, "machines.rack1.roles", "address"),
    ({"machines": {"Rack 1": {"address": "192.0.2.11"}}}, "machines.Rack 1", "a-z"),
    ({"machines": {"rack1": {"address": "192.0.2.11", "jump": "gone"}}}, "machines.rack1.jump", ""),
    ({"allow": ["software"]}, "allow.0", "code, packages"),
    ({"checkout": "labbook"}, "checkout", "absolute"),
    ({"checkout": "/home"}, "machines.rack1.checkout", "folder of its own"),
    ({"checkout": "/home/op/../x"}, "machines.rack1.checkout", "folder of its own"),
    ({"lost_after_s": 1}, "lost_after_s", "3 to 3600"),
    ({"name": "a/b"}, "name", "letters, digits"),
    ({"provider": "ssh"}, "provider", "--environment"),
    ({"password": "x"}, "password", "key"),
    ({"studies": ["nothing"]}, "machines.rack1.studies", "cms_scalability"),
    ({"machines": {name: {"address": "192.0.2.11"} for name in ("a", "b")}}, "machines.b.address",
     "one entry a machine"),
    ({"key": "/no/such/key"}, "key", "private key"),
])
def test_mistakes_are_named(written, change, key, allowed):
    with pytest.raises(InputError) as error:
        Fleet.parse(written | change, "fleet.yml")
    assert error.value.file == "fleet.yml" and error.value.key == key
    assert allowed in str(error.value) or allowed in error.value.message


def test_a_file_whose_own_name_does_not_do_needs_another(written):
    with pytest.raises(InputError) as error:
        Fleet.parse(written, "environments/my fleet.yml")
    assert (error.value.file, error.value.key) == ("environments/my fleet.yml", "name")
    assert "'my fleet'" in error.value.message and "letters, digits" in error.value.allowed
    assert Fleet.parse(written | {"name": "mine"}, "environments/my fleet.yml").folder == "fleet-mine"


def test_a_checkout_is_named_somewhere(written):
    del written["checkout"]
    with pytest.raises(InputError, match="machines.rack1.checkout: missing"):
        Fleet.parse(written, "fleet.yml")


def test_the_example_has_every_key_and_its_comments_every_permission():
    text = (checkout() / "environments/fleet.example.yml").read_text()
    data = yaml.safe_load(text)
    of_machines = set().union(*data["machines"].values())
    assert set(SCHEMA["properties"]) - {"studies"} == set(data) and "studies" in of_machines
    assert all(f"#   {kind} " in text for kind in ALLOW)


def test_another_file_is_named_with_those_that_there_are():
    with pytest.raises(InputError, match=r"--fleet: no such fleet file \(allowed: .*environments/fleet.example.yml"):
        Fleet.load("no_such.yml")
