"""Hosts are looked at before anything starts, and are afterwards as they were before."""

import pytest
import yaml
from foreign import differences, foreign_hosts

from labbook.errors import InputError, LabError
from labbook.lab import Environment, LabDescription
from labbook.lab.remote import preflight

LAB = {"sites": ["lan"], "hosts": {
    "store": {"site": "lan", "role": "db", "limits": {"cores": 1, "quota": 0.5, "memory": "1G"}},
    "driver[1-2]": {"site": "lan", "role": "client"}}}
ROLES = {"h1": ["db"], "h2": ["client"], "h3": ["client"]}


@pytest.fixture(scope="module")
def place():
    with foreign_hosts(["h1", "h2", "h3"], jump="bastion") as made:
        yield made


@pytest.fixture
def environment(place, tmp_path):
    def write(spoil=None, **changes):
        file = place.environment(tmp_path / "rack.yml", roles=ROLES, **{"allow": ["limits"], **changes})
        if spoil:
            spoil(tmp_path / "foreign_known_hosts")
        return Environment.load(file)
    return write


def lab(**changes):
    return LabDescription.parse({**LAB, **changes}, name="stores")


def test_hosts_that_can_be_used_are_as_before_after_the_look(place, environment):
    before = place.snapshots()
    seen = preflight.require(lab(needs={"disk": "1M"}), environment(allow=["limits", "shape", "disk"]))
    assert all(one.ok for one in seen)
    assert {one.key.split(".")[1] for one in seen} == {"h1", "h2", "h3"}
    after = place.snapshots()
    assert not [d for name in before for d in differences(before[name], after[name])]


def test_everything_that_is_wrong_is_reported_at_once(place, environment, tmp_path):
    there = environment(hosts={
        "h1": {"python": "/opt/python", "root": "/srv/labs/mine", "data": "10.9.9.9"},
        "h2": {"port": 23}, "h3": {"user": "nobody"}})
    with pytest.raises(LabError) as error:
        preflight.require(lab(needs={"disk": "800T"}), there)
    text = str(error.value)
    assert text.startswith(f"{tmp_path}/rack.yml: study stores cannot run")
    for part in ("hosts.h1.python: Python", "hosts.h1.root: root folder /srv/labs/mine (op cannot",
                  "hosts.h1.data: data address 10.9.9.9 (its own are", "800 TB disk",
                  "hosts.h2.port: reachable (refused", "hosts.h3.user: reachable (login refused for"):
        assert part in text


def forget(file):
    file.write_text("")


def mistake(file):
    """Each host is known by the key of another."""
    lines = [line.split(maxsplit=1) for line in file.read_text().splitlines()]
    file.write_text("".join(f"{a} {key}\n" for (a, _), (_, key) in zip(lines, lines[1:] + lines[:1])))


@pytest.mark.parametrize("spoil, changes, expected", [
    (forget, {}, ["hosts.h1.known_hosts: reachable (its host key is not in", "ssh-keyscan -p 22",
                  "jumps.bastion.known_hosts"]),
    (mistake, {}, ["hosts.h1.known_hosts: reachable (another host key than", "ssh-keygen -f"]),
    (None, {"jumps": {"bastion": {"port": 24}}}, ["jumps.bastion.port: reachable (refused"]),
    (None, {"hosts": {"h3": {"port": 24}}}, ["hosts.h3.jump: reachable (bastion does not reach"]),
    (None, {"hosts": {"h2": {"address": "no-such-host.invalid"}}},
     ["hosts.h2.address: reachable (no such name"]),
])
def test_each_way_not_to_be_reached_is_distinguished(environment, spoil, changes, expected):
    seen = preflight.examine(lab(), environment(spoil, **changes))
    wrong = [one for one in seen if not one.ok]
    text = "\n".join(one.words() for one in wrong)
    assert all(part in text for part in expected), text
    assert len({one.key for one in wrong}) == len(wrong) <= 3, text


def test_a_host_that_is_off_is_reported_and_the_others_are_looked_at(place, environment):
    place.cut("h2")
    try:
        seen = preflight.examine(lab(), environment())
    finally:
        place.heal("h2")
    wrong = [one for one in seen if not one.ok]
    assert [one.key for one in wrong] == ["hosts.h2.address"] and "no answer" in wrong[0].found
    assert "hosts.h3.root" in {one.key for one in seen}


def test_data_addresses_that_do_not_meet_are_reported(place, environment):
    there = environment()
    block = f"iptables -I OUTPUT -d {place.addresses['h2']['data']} -j DROP"
    place.inside("h1", block)
    try:
        wrong = [one.words() for one in preflight.examine(lab(), there) if not one.ok]
    finally:
        place.inside("h1", block.replace("-I", "-D"))
    assert len(wrong) == 2      # one way is blocked, so that no answer comes the other way either
    assert "hosts.h2.data: data address" in wrong[0] and "from h1 (no answer" in wrong[0]
    assert "hosts.h1.data: data address" in wrong[1] and "from h2 (no answer" in wrong[1]


def test_a_root_folder_that_others_write_to_and_a_lab_that_has_the_host_are_reported(place, environment):
    place.inside("h1", "cd /home/op && mkdir labbook && chmod 777 labbook", user="op")
    place.inside("h2", "cd /home/op && mkdir labbook && echo '{}' > labbook/in-use", user="op")
    try:
        seen = preflight.examine(lab(), environment())
    finally:
        place.inside("h1", "rm -r /home/op/labbook", user="op")
        place.inside("h2", "rm -r /home/op/labbook", user="op")
    wrong = [one.words() for one in seen if not one.ok]
    assert len(wrong) == 1 and "hosts.h1.root: a root folder" in wrong[0]
    assert "can be written by everybody" in wrong[0]
    assert [one.key for one in seen if one.name == "in use"] == ["hosts.h2"]


def test_a_login_shell_that_speaks_is_reported(place, environment):
    place.inside("h1", "echo 'echo welcome' > /home/op/.bashrc", user="op")
    try:
        wrong = [one.words() for one in preflight.examine(lab(), environment()) if not one.ok]
    finally:
        place.inside("h1", "rm /home/op/.bashrc", user="op")
    assert len(wrong) == 1 and "it began with 'welcome'" in wrong[0] and "bashrc" in wrong[0]


def test_what_is_not_allowed_stops_before_any_host_is_asked(environment, monkeypatch):
    monkeypatch.setattr(preflight, "examine", lambda *_: pytest.fail("a host was asked"))
    with pytest.raises(InputError, match="hosts.h1.allow: study stores asks for limits"):
        preflight.require(lab(), environment(allow=[]))


def test_without_sudo_what_is_allowed_cannot_be_done(tmp_path):
    with foreign_hosts(["h1"], sudo=False) as place:
        file = place.environment(tmp_path / "rack.yml", roles=["db"], allow=["limits"])
        there = Environment.load(file)
        only = lab(hosts={"store": LAB["hosts"]["store"]})
        with pytest.raises(LabError, match="NOPASSWD: ALL"):
            preflight.require(only, there)
        file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"allow": []}))
        assert preflight.require(lab(hosts={"s": {"site": "lan", "role": "db"}}),
                                 Environment.load(file))
