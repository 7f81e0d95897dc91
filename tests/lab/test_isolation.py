"""No packet of a lab leaves the machine: up, with a host down, and when all is down."""

import ipaddress
import os
import socket
import struct
import threading
from pathlib import Path

import pytest
from paramiko import Transport
from paramiko.ssh_exception import BadAuthenticationType
from small_labs import describe, new_id

from labbook.errors import LabError
from labbook.lab import Environment, Lab
from labbook.lab.environment.environment import BENCHMARK_RANGE

# A host takes its interfaces down, so that it cannot tell the end of the command any more.
CUT_OFF = "ip link set data0 down; ip link set ctl0 down"
RANGE = ipaddress.IPv4Network(BENCHMARK_RANGE)
ALL = 0x0003


class Watch:
    """Counts packets with a lab's address on the machine's own interfaces."""

    def __enter__(self):
        names = [p.name for p in Path("/sys/class/net").iterdir()
                 if p.name != "lo" and not p.name.startswith(("lb-", "fh-"))
                 and int((p / "flags").read_text(), 16) & 1]  # those that are up
        self.seen, self._sockets = [], []
        for name in names:
            sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(ALL))
            sniffer.bind((name, ALL))
            sniffer.settimeout(0.2)
            self._sockets.append(sniffer)
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._read, args=(s,)) for s in self._sockets]
        [t.start() for t in self._threads]
        return self

    def _read(self, sniffer):
        """Runs in a thread for each interface, until the watch ends."""
        while not self._stop.is_set():
            try:
                data, (interface, protocol, *_) = sniffer.recvfrom(2048)
            except TimeoutError:
                continue
            for offset in {0x0800: (12, 16), 0x0806: (14, 24)}.get(protocol, ()):
                address = ipaddress.IPv4Address(struct.unpack_from("!I", data, offset)[0])
                if address in RANGE:
                    self.seen.append((interface, str(address)))

    def is_awake(self) -> bool:
        """Whether it looks at each interface until now. A machine without any sends nothing."""
        return all(thread.is_alive() for thread in self._threads)

    def __exit__(self, *_):
        self._stop.set()
        [t.join() for t in self._threads]
        [s.close() for s in self._sockets]


def knock(address):
    """Try to reach an address from the machine itself, in the ways a stray client would."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        try:
            udp.sendto(b"anyone?", (address, 9))
        except OSError:
            pass
    try:
        socket.create_connection((address, 9), timeout=0.3).close()
    except OSError:
        pass


@pytest.mark.skipif(os.geteuid(), reason="root itself")
def test_no_packet_leaves_while_up_with_a_host_down_and_after():
    with Watch() as watch:
        lab = Lab.up(describe({"a1": ("a", {}), "b1": ("b", {})},
                              links=[{"between": ["a", "b"]}]), Environment("local"), new_id())
        try:
            host, other = lab.host("a1"), lab.host("b1")
            targets = [other.address, other.control_address, host.address, str(RANGE[-2])]
            for target in ("192.0.2.1", "203.0.113.9", str(RANGE[-2])):
                assert host.run(f"ping -c1 -W1 {target}", check=False).exit_code != 0
            for target in targets:
                knock(target)
            with pytest.raises(LabError, match=f"^b1: `{CUT_OFF}` did not end within 2 s$"):
                other.run(CUT_OFF, timeout=2)
            for target in targets:
                knock(target)
        finally:
            lab.down()
        for target in targets:
            knock(target)
        assert watch.is_awake()
    assert watch.seen == []


@pytest.mark.skipif(os.geteuid(), reason="root itself")
def test_the_watch_itself_sees_what_leaves():
    """The same eyes on an interface that does carry lab packets."""
    with Lab.up(describe({"h1": {}}), Environment("local"), new_id()) as lab:
        watch = Watch()
        watch.__enter__()
        uplink = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(ALL))
        uplink.bind((f"lb-{lab.id}", ALL))
        uplink.settimeout(0.2)
        thread = threading.Thread(target=watch._read, args=(uplink,))
        thread.start()
        lab.host("h1").run("true")
        watch.__exit__()
        thread.join()
        uplink.close()
    assert watch.seen


def test_a_host_lets_nobody_in_by_password_and_listens_on_its_control_address_alone():
    with Lab.up(describe({"h1": {}}), Environment("local"), new_id()) as lab:
        host = lab.host("h1")
        listening = host.run("ss -Hltn").stdout.split("\n")
        assert [line.split()[3] for line in listening if line] == [f"{host.control_address}:22"]
        with Transport((host.control_address, 22)) as way:
            way.start_client(timeout=10)
            with pytest.raises(BadAuthenticationType) as refusal:
                way.auth_none("root")
        assert refusal.value.allowed_types == ["publickey"]
        assert host.run("touch /etc/labbook /usr/labbook /root/labbook", check=False).exit_code
        folder = lab.folder
        keys = [folder / "key", folder / "host_key"]
        assert [key.stat().st_mode & 0o777 for key in keys] == [0o600, 0o600]
