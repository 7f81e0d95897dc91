"""Which packets a capture takes."""

from types import SimpleNamespace

import pytest

from labbook.lab.capture import COUNTED, LISTENING, expression_of


def host(address, site, is_remote=False):
    return SimpleNamespace(address=address, site=site, is_remote=is_remote)


def lab(is_remote=False):
    hosts = {"h1": host("10.0.0.1", "a", is_remote), "h2": host("10.0.1.1", "b", is_remote),
             "h3": host("10.0.1.2", "b", is_remote)}
    return SimpleNamespace(hosts=hosts, site=lambda site: [one for one in hosts.values() if one.site == site])


@pytest.mark.parametrize("remote, link, given, expected", [
    (False, None, "", ""),
    (False, None, "icmp or arp", "(icmp or arp)"),
    (False, "b", "icmp", "(host 10.0.0.1 and (host 10.0.1.1 or host 10.0.1.2)) and (icmp)"),
    (True, None, "", "(host 10.0.0.1 and (host 10.0.1.1 or host 10.0.1.2))"),
])
def test_on_a_users_own_host_only_packets_of_the_lab_are_taken(remote, link, given, expected):
    of = lab(remote)
    assert expression_of(of, of.hosts["h1"], link, given) == expected


def test_what_tcpdump_says_is_understood():
    said = ("tcpdump: listening on data0, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n"
            "1 packet captured\n1 packet received by filter\n0 packets dropped by kernel\n")
    assert LISTENING.search(said)[1] == "data0" and COUNTED.search(said)[1] == "1"
