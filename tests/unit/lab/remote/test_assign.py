"""Which real host becomes which lab host, and what is refused before any of them is asked."""

import pytest

from labbook.errors import InputError
from labbook.lab.description import LabDescription
from labbook.lab.environment.environment import Environment
from labbook.lab.remote.assign import match
from labbook.lab.remote.needs import host_requests, require_allowed


def lab(hosts, sites=("lan",), **more):
    return LabDescription.parse({"sites": list(sites), "hosts": hosts, **more}, name="stores")


def host(role, site="lan", **limits):
    return {"site": site, "role": role, "limits": limits}


def rack(hosts, **top):
    """{name: (site, roles)} or {name: (site, roles, allow)} as an environment."""
    entries = {name: {"address": f"192.0.2.{i + 1}", "site": site, "roles": roles,
                      **({"allow": allow[0]} if allow else {})}
               for i, (name, (site, roles, *allow)) in enumerate(hosts.items())}
    return Environment.parse({"provider": "ssh", "user": "op", "key": "~/k", "root": "/home/op/lab",
                              "hosts": entries, "shared_address": True, **top}, file="rack.yml", keys=False)


def names(matched):
    return {name: real.name for name, real in matched.items()}


def test_a_host_serves_once_for_each_of_its_roles_in_the_order_of_the_files():
    study = lab({"small": host("small"), "large": host("large"), "node[1-2]": host("node"),
                 "client": host("client")})
    there = rack({"r1": ("lan", ["small", "large", "node"]), "r2": ("lan", ["node", "client"]),
                  "r3": ("lan", ["client", "small"])})
    assert names(match(study, there)) == {
        "small": "r1", "large": "r1", "node1": "r1", "node2": "r2", "client": "r2"}


TWO = {"a1": host("db", "a"), "b1": host("db", "b"), "c": host("client", "b")}


@pytest.mark.parametrize("there, wanted", [
    # each in the site of its own name, whatever the order of the file
    ({"x": ("b", ["db", "client"]), "y": ("a", ["db"])}, {"a1": "y", "b1": "x", "c": "x"}),
    # a has no namesake: it leaves b's to b
    ({"x": ("b", ["db", "client"]), "y": ("u", ["db", "client"])}, {"a1": "y", "b1": "x", "c": "x"}),
    # the namesake lacks a client, so that b goes elsewhere
    ({"x": ("b", ["db"]), "y": ("a", ["db"]), "z": ("u", ["db", "client"])},
     {"a1": "y", "b1": "z", "c": "z"}),
    # a must give up the first place that fits it, which alone fits b
    ({"x": ("u", ["db", "client"]), "y": ("v", ["db"])}, {"a1": "y", "b1": "x", "c": "x"}),
    # and even its namesake
    ({"x": ("a", ["db", "client"]), "y": ("b", ["db"])}, {"a1": "y", "b1": "x", "c": "x"}),
])
def test_sites_of_the_study_are_placed_in_sites_of_their_own(there, wanted):
    assert names(match(lab(TWO, "ab"), rack(there))) == wanted


@pytest.mark.parametrize("there, expected", [
    ({"x": ("lan", ["node", "node2"])},
     ["study stores needs 3 hosts of role node in one site (its lan)", "lan here has 1, 2 too few",
      "1 host of role client", "has 0, 1 too few"]),
    ({"x": ("lan", ["node", "client"]), "y": ("lan", ["node"]), "z": ("else", ["node"])},
     ["lan here has 2, 1 too few"]),
])
def test_missing_roles_are_counted(there, expected):
    study = lab({"node[1-3]": host("node"), "client": host("client")})
    with pytest.raises(InputError) as error:
        match(study, rack(there))
    assert str(error.value).startswith("rack.yml: hosts: ")
    assert all(part in str(error.value) for part in expected)


def test_a_misspelt_role_is_guessed():
    with pytest.raises(InputError, match="1 too few, did you mean 'clinet'"):
        match(lab({"c": host("client")}), rack({"x": ("lan", ["clinet"])}))


def test_two_sites_are_never_one():
    with pytest.raises(InputError, match="sites a, b, each needing a site of its own.*in u"):
        match(lab(TWO, "ab"), rack({"x": ("u", ["db", "client"]), "y": ("u", ["db"])}))


LIMITED = {"small": host("small", cores=1, quota=0.2, memory="3G"),
           "large": host("large", cores_of=["small", "client"], memory="1G"),
           "client": host("client", cores=1),
           "idle": host("ceiling"), "store": host("store", disk={"size": "2G"})}
ALL = ["small", "large", "ceiling", "store"]


def test_what_a_lab_asks_of_each_real_host_is_summed():
    there = rack({"r1": ("lan", ALL), "r2": ("lan", ["client"])})
    asks = host_requests(lab(LIMITED), match(lab(LIMITED), there))
    assert (asks["r1"].cores, asks["r1"].memory_bytes, asks["r1"].disk_bytes) == (2, 3 << 30, 2 << 30)
    assert asks["r1"].of == {"limits": ["small (cores, quota, memory)", "large (cores, memory)"],
                             "disk": ["the disk of store"]}
    assert (asks["r2"].cores, asks["r2"].of) == (1, {"limits": ["client (cores)"]})


def test_a_trace_of_a_disk_asks_for_leave_of_its_own():
    traced = lab({"store": host("store", disk={"size": "2G", "trace": True}),
                  "client": host("client", disk={"size": "2G", "trace": False})})
    there = rack({"r1": ("lan", ["store"]), "r2": ("lan", ["client"])}, allow=["disk"])
    asks = host_requests(traced, match(traced, there))
    assert asks["r1"].of == {"disk": ["the disk of store"], "trace": ["the disk of store"]}
    assert asks["r2"].of == {"disk": ["the disk of client"]}
    with pytest.raises(InputError, match="hosts.r1.allow: .* asks for trace: record the requests"):
        require_allowed(traced, match(traced, there), there)


def test_file_systems_of_programs_ask_for_leave():
    mounting = lab({"client": host("client", fuse=True), "store": host("store", fuse=False)})
    there = rack({"r1": ("lan", ["client"]), "r2": ("lan", ["store"])})
    asks = host_requests(mounting, match(mounting, there))
    assert asks["r1"].of == {"fuse": ["client"]} and asks["r2"].of == {}
    with pytest.raises(InputError, match="hosts.r1.allow: .* asks for fuse: mount"):
        require_allowed(mounting, match(mounting, there), there)


def test_all_that_is_not_allowed_is_reported_at_once():
    there = rack({"r1": ("lan", ALL, ["disk"]), "r2": ("lan", ["client"])})
    with pytest.raises(InputError) as error:
        require_allowed(lab(LIMITED), match(lab(LIMITED), there), there)
    text = str(error.value)
    assert text.startswith("rack.yml: hosts.r1.allow: study stores asks for limits: control groups")
    assert "small (cores, quota, memory)" in text and "hosts.r2.allow: " in text
    assert "now disk; add what you agree to, of packages, software, limits" in text
    assert "the disk of store" not in text


def test_a_link_with_settings_asks_both_its_sites_and_one_without_none():
    study = lab({**TWO, "d": host("db", "c")}, "abc", links=[
        {"between": ["a", "b"], "rtt_ms": 100}, {"between": ["b", "c"], "rtt_ms": 0}])
    there = rack({"x": ("a", ["db"]), "y": ("b", ["db", "client"]), "z": ("c", ["db"])})
    asks = host_requests(study, match(study, there))
    assert asks["x"].of == asks["y"].of == {"shape": ["link a - b"]} and asks["z"].of == {}
    with pytest.raises(InputError, match="delay and cut links"):
        require_allowed(study, match(study, there), there)


def test_what_is_allowed_is_not_reported():
    there = rack({"r1": ("lan", ALL), "r2": ("lan", ["client"])}, allow=["limits", "disk"])
    require_allowed(lab(LIMITED), match(lab(LIMITED), there), there)
