import ipaddress
import itertools

import pytest

from labbook.lab import deadline
from labbook.lab.description import MOST_ADDRESSES, MOST_SITES
from labbook.lab.local.layout import (
    block_route,
    choose_block,
    is_for_benchmarks,
    layout,
    network_commands,
    shadow_file,
    share_cores,
    sshd_config,
    switch_commands,
    unblock_route,
)

PLAN = {
    "lab": "t1", "sites": ["a", "b", "c"], "links": [["a", "b"], ["b", "c"]],
    "hosts": [{"name": n, "site": s, "role": "db", "limits": {}}
              for n, s in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("c1", "c"))],
}


@pytest.fixture
def made():
    return layout(PLAN, "198.18.16.0/20")


def named(made):
    return {h["name"]: h for h in made["hosts"]}


def test_every_address_is_given_once_and_inside_the_block(made):
    block = ipaddress.IPv4Network("198.18.16.0/20")
    addresses = [h[key] for h in made["hosts"] for key in ("control", "address")]
    addresses += [w["address"].split("/")[0] for h in made["hosts"] for w in h["wires"]]
    assert len(set(addresses)) == len(addresses)
    assert all(ipaddress.IPv4Address(a) in block for a in addresses)


def test_control_and_data_networks_are_apart(made):
    control = ipaddress.IPv4Network(f"{made['gateway']}/24", strict=False)
    for host in made["hosts"]:
        assert ipaddress.IPv4Address(host["control"]) in control
        assert ipaddress.IPv4Address(host["address"]) not in control


def test_every_plan_that_a_description_may_ask_for_has_addresses_of_its_own():
    """14 sites, each linked to each, and as many hosts as then fit."""
    sites = [f"s{i}" for i in range(MOST_SITES)]
    links = [list(pair) for pair in itertools.combinations(sites, 2)]
    hosts = [{"name": f"h{i}", "site": "s0", "role": "db", "limits": {}}
             for i in range(MOST_ADDRESSES - MOST_SITES)]
    plan = {"lab": "t1", "sites": sites, "links": links, "hosts": hosts}
    made = layout(plan, "198.18.16.0/20")
    assert sum(len(host["wires"]) for host in made["hosts"]) == 2 * len(links)
    networks = [*map(ipaddress.IPv4Network, made["sites"].values()),
                ipaddress.IPv4Network(f"{made['gateway']}/24", strict=False),
                *{ipaddress.IPv4Interface(w["address"]).network for h in made["hosts"] for w in h["wires"]}]
    assert len(networks) == MOST_SITES + 1 + len(links)
    assert not any(a.overlaps(b) for a, b in itertools.combinations(networks, 2))
    ends = {w["address"].split("/")[0]: w["via"] for h in made["hosts"] for w in h["wires"]}
    assert all(ends[other] == mine for mine, other in ends.items())
    test_every_address_is_given_once_and_inside_the_block(made)
    with pytest.raises(ValueError, match="links, at most 128"):
        layout(plan | {"links": links * 2}, "198.18.16.0/20")


def test_hosts_know_only_linked_sites(made):
    hosts = named(made)
    assert [r["to"] for r in hosts["a1"]["routes"]] == [made["sites"]["b"]]
    assert {r["to"] for r in hosts["b1"]["routes"]} == {made["sites"]["a"], made["sites"]["c"]}


def test_a_router_has_a_wire_for_each_link(made):
    hosts = named(made)
    assert [w["name"] for w in hosts["router-b"]["wires"]] == ["w-a", "w-c"]
    assert "addr add" in network_commands(hosts["router-b"])


def test_no_host_has_a_way_out(made):
    for host in made["hosts"]:
        commands = network_commands(host)
        assert "unreachable default" in commands and "via default" not in commands


def test_each_wire_is_laid_once(made):
    for pid, host in enumerate(made["hosts"], 100):
        host["pid"] = pid
    wires = [line for line in switch_commands(made).splitlines()
             if line.startswith("link add w-")]
    assert len(wires) == 2


def test_cores_are_shared_out_without_overlap():
    hosts = [{"name": n, "limits": {"cores": c} if c else {}} for n, c in
             (("x", 2), ("y", None), ("z", 1))]
    assert share_cores(hosts, [0, 1, 4]) == {"x": [0, 1], "z": [4]}
    hosts[1]["limits"] = {"cores_of": ["z"]}
    assert share_cores(hosts, [0, 1, 4]) == {"x": [0, 1], "y": [4], "z": [4]}
    hosts[1]["limits"] = {"cores_of": ["z", "x"]}
    assert share_cores(hosts, [0, 1, 4])["y"] == [0, 1, 4]
    with pytest.raises(ValueError, match="ask for 3 cores, this machine has 2"):
        share_cores(hosts, [0, 1])


def test_a_block_that_is_taken_or_routed_is_passed_over():
    assert choose_block("198.18.0.0/15", [], []) == "198.18.0.0/20"
    assert choose_block("198.18.0.0/15", ["198.18.0.0/20"], ["198.18.20.0/24"]) == "198.18.32.0/20"
    vpn = ["0.0.0.0/1", "128.0.0.0/1"]  # a default route in two halves
    assert choose_block("198.18.0.0/15", [], vpn) == "198.18.0.0/20"
    with pytest.raises(OSError, match="no free addresses"):
        choose_block("10.0.0.0/20", [], ["10.0.0.0/8"])


def test_a_locked_root_may_log_in_to_a_host_and_no_hash_is_copied():
    machine = "root:!:19000:0:99999:7:::\nme:$y$j9T$secret:19000:0:99999:7:::\n"
    assert shadow_file(machine) == "root:*:::::::\nme:*:::::::\n"


def test_penalties_are_named_only_to_an_sshd_that_knows_them(made):
    host = made["hosts"][0] | {"library": "/a b/lib"}
    assert "Penalties" not in sshd_config(host, "/run/x")
    assert sshd_config(host, "/run/x", penalties=True).startswith("PerSourcePenalties no\nListen")
    assert '\nSetEnv "PYTHONPATH=/a b/lib"\n' in sshd_config(host, "/run/x")


def test_sshd_takes_keys_alone_and_listens_on_the_control_address_alone(made):
    """Anything wider lets whoever reaches this machine guess passwords of root."""
    host = made["hosts"][0] | {"library": "/lib"}
    lines = [line.split(None, 1) for line in sshd_config(host, "/run/x").splitlines()]
    assert [value for name, value in lines if name == "ListenAddress"] == [host["control"]]
    first = {}
    for name, value in lines:
        first.setdefault(name, value)   # sshd takes the first value of a keyword
    assert first["PasswordAuthentication"] == first["KbdInteractiveAuthentication"] == "no"
    assert first["UsePAM"] == "no" and first["PermitRootLogin"] == "prohibit-password"
    assert not {"HostbasedAuthentication", "PermitEmptyPasswords", "Match", "Include"} & set(first)


@pytest.mark.parametrize("whole, alone", [("198.18.0.0/15", True), ("198.19.0.0/16", True), ("10.0.0.0/8", False)])
def test_nobody_else_has_addresses_of_the_range_for_benchmarks(whole, alone):
    """All of 10.0.0.0/8 had been cut off until the next reboot."""
    assert is_for_benchmarks(whole) == alone


def test_a_block_is_routed_to_nowhere_and_no_longer(monkeypatch):
    ran, shown = [], ["unreachable 10.4.16.0/20 metric 4278198272\n", "\n"]
    monkeypatch.setattr(deadline, "run", lambda *words: ran.append(words) or (shown.pop(0) if "show" in words else ""))
    block_route("10.4.16.0/20")
    unblock_route("10.4.16.0/20")
    unblock_route("10.4.16.0/20")       # it is gone
    assert [words[1:5] for words in ran if "show" not in words] == [
        ("route", "replace", "unreachable", "10.4.16.0/20"), ("route", "delete", "unreachable", "10.4.16.0/20")]
