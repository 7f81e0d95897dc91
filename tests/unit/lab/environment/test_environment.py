import copy
import subprocess

import pytest

from labbook.errors import InputError
from labbook.lab.environment.environment import Environment
from labbook.paths import checkout


def test_the_local_environment_loads():
    environment = Environment.load(checkout() / "environments" / "local.yml")
    assert (environment.name, environment.provider) == ("local", "namespaces")


WRONG = {
    "no provider": ({}, "provider", "missing"),
    "unknown provider": ({"provider": "cloud"}, "provider", "namespaces, ssh"),
    "unknown key": ({"provider": "namespaces", "ranges": "x"}, "ranges", "did you mean 'range'"),
    "not a range": ({"provider": "namespaces", "range": "198.18.0.1/15"}, "range", "host bits"),
    "too large a range": ({"provider": "namespaces", "range": "128.0.0.0/1"}, "range", "/8 to"),
    "too small a range": ({"provider": "namespaces", "range": "198.18.0.0/24"}, "range", "/20"),
    "relative folder": ({"provider": "namespaces", "state": "var"}, "state", "absolute"),
    "folders in a home": ({"provider": "namespaces", "state": "/home/me"}, "state", "a user's home"),
    "folders in the system": ({"provider": "namespaces", "state": "/etc/labs"}, "state", "a folder of its own"),
    "hosts of another provider": ({"provider": "namespaces", "hosts": {}}, "hosts", "state"),
    "not a mapping": (["provider"], "environment.yml", "object"),
}


@pytest.mark.parametrize("data, key, expected", WRONG.values(), ids=WRONG)
def test_wrong_environment_files_name_file_key_and_what_is_allowed(data, key, expected):
    with pytest.raises(InputError) as error:
        Environment.parse(data, file="environment.yml")
    assert "environment.yml" in str(error.value)
    assert key in str(error.value) and expected in str(error.value)


RACK = {
    "provider": "ssh", "user": "op", "key": "~/.ssh/lab", "root": "/home/op/labbook",
    "jump": "bastion", "allow": ["limits"], "shared_address": True,
    "hosts": {
        "rack1": {"address": "192.0.2.11", "data": "10.0.0.11", "roles": ["db"], "port": 2222},
        "rack2": {"address": "192.0.2.12", "jump": None, "roles": ["client"], "user": "me",
                  "site": "b", "allow": []},
        "rack3": {"address": "192.0.2.13", "jump": "rack2", "roles": ["client"]}},
    "jumps": {"bastion": {"address": "gate.example.org"}},
}


def changed(**changes):
    """RACK with `hosts__rack1__port=0` and such set; None for a value takes the key away."""
    data = copy.deepcopy(RACK)
    for path, value in changes.items():
        *parents, last = path.split("__")
        entry = data
        for name in parents:
            entry = entry.setdefault(name, {})
        entry[last] = value
        if value is None:
            del entry[last]
    return data


def rack(**changes):
    return Environment.parse(changed(**changes), file="rack.yml", keys=False)


def test_hosts_take_what_they_do_not_say_from_the_top(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    one, two, three = rack().hosts
    assert (one.name, one.address, one.data, one.port) == ("rack1", "192.0.2.11", "10.0.0.11", 2222)
    assert (one.user, two.user, one.site, two.site, two.port) == ("op", "me", "lan", "b", 22)
    assert (one.allow, two.allow) == ({"limits"}, set()) and two.data == "192.0.2.12"
    assert one.key == "/home/me/.ssh/lab" and one.known_hosts == "/home/me/.ssh/known_hosts"
    assert str(one.root) == "/home/op/labbook" and one.python == "python3"
    assert one.jump == rack().jumps[0] and two.jump is None
    assert (three.jump.name, three.jump.user, three.jump.entry) == ("rack2", "me", "hosts.rack2")
    assert one.jump.port == 22 and one.jump.user == "op" and one.jump.entry == "jumps.bastion"


def test_a_host_that_is_everyones_jump_is_reached_straight():
    jump, other = rack(jump="rack2", hosts__rack2={"address": "192.0.2.12", "roles": ["client"]},
                       hosts__rack3=None).hosts[::-1]
    assert jump.jump is None and other.jump.name == "rack2"


WRONG_RACKS = {
    "no hosts": (dict(hosts=None), "rack.yml", "missing: hosts"),
    "empty hosts": (dict(hosts={}), "hosts", "one or more"),
    "unknown key at the top": (dict(usr="op"), "usr", "did you mean 'user'"),
    "unknown key of a host": (dict(hosts__rack1__adress="x"), "hosts.rack1.adress", "'address'"),
    "unknown key of a jump": (dict(jumps__bastion__roles=["x"]), "jumps.bastion.roles", "address"),
    "range": (dict(range="198.18.0.0/15"), "range", "unknown key"),
    "no address": (dict(hosts__rack1={"roles": ["db"]}), "hosts.rack1", "missing: address"),
    "no roles": (dict(hosts__rack1={"address": "192.0.2.1"}), "hosts.rack1", "missing: roles"),
    "empty roles": (dict(hosts__rack1__roles=[]), "hosts.rack1.roles", "one or more"),
    "role no list": (dict(hosts__rack1__roles="db"), "hosts.rack1.roles", "not of type array"),
    "no role's name": (dict(hosts__rack1__roles=["Db"]), "hosts.rack1.roles.0", "Db"),
    "role twice": (dict(hosts__rack1__roles=["db", "db"]), "hosts.rack1.roles", "non-unique"),
    "nobody to log in": (dict(user=None), "jumps.bastion.user", "missing, here and at the top"),
    "no key": (dict(key=None), "jumps.bastion.key", "a private key's file"),
    "no root": (dict(root=None), "hosts.rack1.root", "absolute path"),
    "relative key": (dict(key="lab"), "key", "absolute path, or one that begins with ~/"),
    "user with host": (dict(user="op@rack"), "user", "a login name"),
    "user as option": (dict(hosts__rack1__user="-oProxy"), "hosts.rack1.user", "a login name"),
    "address with port": (dict(hosts__rack1__address="op@x"), "hosts.rack1.address", "without user"),
    "port a text": (dict(hosts__rack1__port="22"), "hosts.rack1.port", "integer"),
    "port": (dict(port=0), "port", "1 to 65535"),
    "allow": (dict(hosts__rack1__allow=["root"]), "hosts.rack1.allow.0", "packages, software, limits"),
    "relative root": (dict(root="labbook"), "root", "absolute"),
    "root is /": (dict(root="/"), "root", "absolute"),
    "root is all of /": (dict(root="//."), "root", "folder of the system"),
    "root of the system": (dict(root="/usr/local/labbook"), "root", "folder of the system"),
    "root is a home": (dict(root="/home/op"), "root", "or a user's home"),
    "root climbs": (dict(root="/home/op/../.."), "root", "folder of its own"),
    "root at the top": (dict(hosts__rack1__root="/labbook"), "hosts.rack1.root", "of its own"),
    "blank in root": (dict(root="/home/op/my lab"), "root", "letters, digits"),
    "long root": (dict(root="/home/op/" + "x" * 60), "root", "at most 64"),
    "site": (dict(site="Site A"), "site", "a-z, 0-9"),
    "python": (dict(python="python3 -O"), "python", "a command such as python3"),
    "data no address": (dict(hosts__rack1__data="rack1"), "hosts.rack1.data", "IPv4"),
    "data as SSH": (dict(shared_address=False), "hosts.rack2.data", "shared_address: true"),
    "data as SSH, written down": (dict(hosts__rack1__data="192.0.2.11",
                                       hosts__rack1__shared_address=False),
                                  "hosts.rack1.data", "servers would listen at 192.0.2.11"),
    "data lacking": (dict(hosts__rack1={"address": "rack1.example.org", "roles": ["db"]}),
                     "hosts.rack1.data", "cannot stand in"),
    "host's name": (dict(hosts={"Rack 1": RACK["hosts"]["rack1"]}), "hosts.Rack 1", "a-z, 0-9"),
    "a number as name": (dict(hosts={1: RACK["hosts"]["rack1"]}), "hosts.1", "not a name"),
    "jump named as a host": (dict(jumps__rack1={"address": "x"}), "jumps.rack1", "another name"),
    "control address twice": (dict(hosts__rack3=RACK["hosts"]["rack2"]), "hosts.rack3.address",
                              "192.0.2.12, port 22, is rack2 already"),
    "data address twice": (dict(hosts__rack3__data="10.0.0.11"), "hosts.rack3.data", "of rack1"),
    "data address by default": (dict(hosts__rack3__address="10.0.0.11"), "hosts.rack3.data",
                                "data address of rack1"),
    "two ports, one address": (dict(hosts__rack3={"address": "192.0.2.12", "port": 23, "jump": None,
                                                  "roles": ["db"]}), "hosts.rack3.data", "rack2"),
    "unknown jump": (dict(jump="bastoin"), "jump", "did you mean 'bastion'"),
    "unknown jump of a host": (dict(hosts__rack1__jump="x"), "hosts.rack1.jump", "bastion, rack2"),
    "jump to itself": (dict(hosts__rack1__jump="rack1"), "hosts.rack1.jump", "circle: rack1 - rack1"),
    "jumps in a circle": (dict(hosts__rack2__jump="rack3"), "hosts.rack3.jump",
                          "circle: rack2 - rack3 - rack2"),
    "jumps' circle": (dict(jumps={"bastion": {"address": "b", "jump": "gate"},
                                  "gate": {"address": "g", "jump": "bastion"}}),
                      "jumps.gate.jump", "circle"),
    "password": (dict(hosts__rack1__password="x"), "hosts.rack1.password", "no secret"),
    "sudo password": (dict(sudo_pass="x"), "sudo_pass", "no secret"),
    "passphrase of a jump": (dict(jumps__bastion__key_passphrase="x"),
                             "jumps.bastion.key_passphrase", "no secret"),
}


@pytest.mark.parametrize("changes, key, expected", WRONG_RACKS.values(), ids=WRONG_RACKS)
def test_wrong_hosts_name_file_key_and_what_is_allowed(changes, key, expected):
    with pytest.raises(InputError) as error:
        rack(**changes)
    text = str(error.value)
    assert text.startswith(f"rack.yml: {key}: " if key != "rack.yml" else "rack.yml: "), text
    assert expected in text


def test_the_right_ones_have_none_of_these_faults():
    assert len(rack().hosts) == 3


@pytest.fixture
def keys(tmp_path, monkeypatch):
    """A home with a key and known hosts."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".ssh"
    folder.mkdir()
    _make_key(folder / "lab")
    (folder / "known_hosts").touch()
    return folder


def _make_key(path, *options, passphrase=""):
    subprocess.run(["ssh-keygen", "-q", "-N", passphrase, "-f", str(path), *options], check=True,
                   stdin=subprocess.DEVNULL)


def test_a_key_of_its_own_and_known_hosts_will_do(keys):
    (keys / "lab").chmod(0o400)
    assert Environment.parse(RACK, file="rack.yml").hosts[0].key == str(keys / "lab")


def _gone(folder):
    (folder / "lab").unlink()


def _open(folder):
    (folder / "lab").chmod(0o640)


def _public(folder):
    (folder / "lab").write_text((folder / "lab.pub").read_text())


def _other(folder):
    (folder / "lab").write_text("hello\n")


def _binary(folder):
    (folder / "lab").write_bytes(b"\xff\xfe")


def _locked(folder, *options):
    _gone(folder)
    _make_key(folder / "lab", *options, passphrase="secret words")


def _locked_pem(folder):
    _locked(folder, "-t", "rsa", "-b", "2048", "-m", "PEM")


def _unknown(folder):
    (folder / "known_hosts").unlink()


@pytest.mark.parametrize("spoil, key, expected", [
    (_gone, "key", "no such file (allowed: a private key without a passphrase, mode 0600"),
    (_open, "key", "others may read it (mode 0640) (allowed: mode 0600: chmod 600"),
    (_public, "key", "a public key"), (_other, "key", "not a private key"),
    (_binary, "key", "cannot be read"),
    (_locked, "key", "has a passphrase, and none is asked for"),
    (_locked_pem, "key", "has a passphrase"),
    (_unknown, "known_hosts", "ssh-keyscan -p 22 gate.example.org"),
])
def test_keys_that_cannot_be_used_are_reported_where_the_file_names_them(keys, spoil, key, expected):
    spoil(keys)
    with pytest.raises(InputError) as error:
        Environment.parse(RACK, file="rack.yml")
    text = str(error.value)
    assert text.startswith("rack.yml: ") and expected in text and "secret words" not in text
    assert f"{key}: {keys}" in text


def test_a_hosts_own_key_is_named_at_the_host(keys):
    with pytest.raises(InputError, match=r"rack.yml: hosts.rack2.key: .*no such file"):
        Environment.parse(changed(hosts__rack2__key="~/.ssh/other"), file="rack.yml")
