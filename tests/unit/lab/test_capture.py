"""Which packets a capture takes."""

from types import SimpleNamespace

import pytest

from labbook.errors import InputError, LabError
from labbook.lab.capture import COUNTED, LISTENING, Capture, expression_of


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


def test_on_a_users_own_host_with_several_of_the_labs_only_packets_to_other_machines_are_taken():
    of = lab(is_remote=True)
    of.hosts["h2"].address = "10.0.0.1"
    assert expression_of(of, of.hosts["h1"], None, "") == "(host 10.0.0.1 and (host 10.0.1.2))"
    of.hosts["h3"].address = "10.0.0.1"
    with pytest.raises(LabError, match="h1: the lab has hosts on this machine alone"):
        of.hosts["h1"].name = "h1"
        expression_of(of, of.hosts["h1"], None, "")


def with_tcpdump(messages, packets=(b"",)):
    """A lab whose tcpdump prints these messages and writes these packets."""
    left = list(packets)
    channel = SimpleNamespace(recv=lambda size: left.pop(0), recv_stderr=lambda size: messages.pop(0),
                              close=lambda: None, shutdown_write=lambda: None)
    of = lab()
    of.host = lambda name: SimpleNamespace(name=name, address="10.0.0.1", is_remote=False, may=lambda what: True,
                                           open=lambda program, root: channel)
    return of


def test_a_file_that_cannot_be_written_is_an_error_and_the_rest_is_taken_off_tcpdump():
    of = with_tcpdump([b"tcpdump: listening on data0\n", b"2 packets captured\n", b""], [b"a", b"b", b""])
    with pytest.raises(LabError, match="the disk is full: full could not be written to /dev"):
        with Capture(of, "h1", "/dev/full") as capture:
            assert capture.wait(20)
    assert capture.packets is None


def test_what_a_disk_takes_in_parts_is_written_whole(tmp_path):
    class Slow:
        def __init__(self):
            self.written = b""

        def write(self, part):
            self.written += part[:2]
            return len(part[:2])

        def close(self):
            pass

    of, slow = with_tcpdump([b"tcpdump: listening on data0\n", b"1 packet captured\n", b""], [b"packet", b""]), Slow()
    capture = Capture(of, "h1", tmp_path / "some.pcap")
    capture._open = lambda: setattr(capture, "_out", slow)
    with capture:
        assert capture.wait(20)
    assert slow.written == b"packet" and capture.packets == 1


def test_a_filter_that_is_none_leaves_an_earlier_file_as_it_is(tmp_path):
    (tmp_path / "before.pcap").write_text("packets")
    of = with_tcpdump([b"tcpdump: can't parse filter expression: syntax error\n", b""])
    with pytest.raises(InputError, match="syntax error"), Capture(of, "h1", tmp_path / "before.pcap", expression="tpc"):
        pass
    assert (tmp_path / "before.pcap").read_text() == "packets"


def test_what_tcpdump_says_is_understood():
    text = ("tcpdump: listening on data0, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n"
            "1 packet captured\n1 packet received by filter\n0 packets dropped by kernel\n")
    assert LISTENING.search(text)[1] == "data0" and COUNTED.search(text)[1] == "1"


def test_a_filter_does_not_end_what_keeps_it_to_the_labs_own_packets():
    for given in ("tcp) or (udp", ")", "(tcp)) or udp"):
        with pytest.raises(InputError, match="filter: .*closes a parenthesis"):
            expression_of(SimpleNamespace(hosts={}), SimpleNamespace(is_remote=False), None, given)
