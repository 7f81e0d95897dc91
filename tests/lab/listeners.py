"""What listens on a lab's hosts: only what SECURITY.md lists, on loopback and on data addresses.

    check_listeners(lab.hosts.values(), "galera", "haproxy")

A test calls it while systems run, with the names of all that run there. tests/unit/test_listeners.py
checks that a test does so for each system, and that SECURITY.md says the same as OPENS.
"""

import ipaddress
import re

LISTEN = "ss -Hltunp"   # TCP sockets that listen, and UDP sockets without a peer
LINE = re.compile(r'(?P<kind>tcp|udp) .*? (?P<address>\S+):(?P<port>\d+) +\S+:\S+(?: +users:\(\("(?P<who>[^"]+))?')
SSH = 22
# By system: ports at data addresses. Ceph's daemons take the first free ones of theirs.
CASSANDRA, CEPH = {7000, 9042, 9160}, set(range(6800, 7569))
OPENS = {
    "cassandra": CASSANDRA, "cassandra_ring": CASSANDRA, "elastic_ring": CASSANDRA,
    "ceph": {3300, 6789} | CEPH, "ceph_mon": {3300, 6789}, "ceph_osd": CEPH, "ceph_mds": CEPH,
    "ceph_mount": set(),
    "galera": {3306, 4444, 4567, 4568}, "mariadb": {3306}, "mysql": {3306}, "haproxy": {3306},
    "keystone": {5000}, "keystone_cloud": {3306, 4444, 4567, 4568, 5000},
    "openstack": {3306, 5672, 10809}, "wiki": {8000}, "null": {9199},
}


def check_listeners(hosts, *systems: str, crew: bool = False, more=()) -> None:
    """Fail with every listener that none of these systems may have, and where one has none.

    `crew`: a crew's controller runs, which listens at its host's control address. more: further ports, which SECURITY.md
    has in words.
    """
    found = {host.name: parse(host.run(LISTEN).stdout) for host in hosts}
    ports = set(more).union(*(OPENS[name] for name in systems))
    wrong = [f"{host.name}: {one}" for host in hosts for one in found[host.name]
             if not allowed(one, host, ports, crew)]
    assert not wrong, "\n".join(wrong)
    open_ports = {port for host in hosts for _, address, port, _ in found[host.name]
                  if address == host.address}
    silent = [name for name in systems if OPENS[name] and not OPENS[name] & open_ports]
    assert not silent, f"no listener of {silent}: {found}"


def allowed(listener: tuple, host, ports: set[int], crew: bool) -> bool:
    kind, address, port, who = listener
    if ipaddress.ip_address(address).is_loopback:
        return True
    if address == host.address:
        return kind == "tcp" and port in ports
    return address == host.control_address and (
        (port, who) == (SSH, "sshd") or crew and who.startswith("python"))


def parse(listing: str) -> list[tuple[str, str, int, str]]:
    """(tcp or udp, address, port, program) of each line of LISTEN's output."""
    found = []
    for line in filter(None, listing.splitlines()):
        one = LINE.match(line)
        assert one, f"not understood: {line!r}"
        address = one["address"].strip("[]").partition("%")[0].replace("*", "0.0.0.0")
        found.append((one["kind"], address.removeprefix("::ffff:"), int(one["port"]), one["who"] or ""))
    return found
