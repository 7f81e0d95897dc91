"""Which lab test sees what each system listens on, and that SECURITY.md says the same."""

import ast
import re
from types import SimpleNamespace

import pytest
from listeners import OPENS, allowed, check_listeners, parse

from labbook import paths, systems

LAB_TESTS = paths.checkout() / "tests/lab"
HOST = SimpleNamespace(name="h1", address="198.18.1.10", control_address="198.18.0.10")
LISTING = """\
tcp LISTEN 0      128    198.18.0.10:22         0.0.0.0:*    users:(("sshd",pid=7,fd=3))
tcp LISTEN 0      4096   198.18.1.10:9160       0.0.0.0:*    users:(("java",pid=12,fd=99),("java",pid=13,fd=99))
tcp LISTEN 0      50       127.0.0.1:7199       0.0.0.0:*    users:(("java",pid=12,fd=7))
udp UNCONN 0      0                *:68               *:*
tcp LISTEN 0      128           [::]:25672         [::]:*    users:(("beam.smp",pid=5,fd=1))
tcp LISTEN 0      128   [::ffff:127.0.0.1]:4369       *:*    users:(("epmd",pid=5,fd=1))
"""


def checked() -> dict[str, set[str]]:
    """{system: modules of tests/lab that check its listeners}."""
    found: dict[str, set[str]] = {}
    for file in LAB_TESTS.glob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == check_listeners.__name__:
                for word in ast.walk(node):
                    if isinstance(word, ast.Constant) and isinstance(word.value, str):
                        found.setdefault(word.value, set()).add(file.name)
    return found


def test_a_lab_test_sees_the_listeners_of_each_system():
    studies = [paper.name for paper in (paths.checkout() / "data/papers").iterdir() if paper.is_dir()]
    known = {*systems.names(), *(name for study in studies for name in systems.of_paper(study))}
    assert set(OPENS) == known
    assert not known - set(checked())


def test_the_security_page_lists_what_is_open():
    text = (paths.checkout() / "SECURITY.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines() if line.startswith("| `")]
    listed = {name: ports_in(row[1]) for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert listed == OPENS


def ports_in(cell: str) -> set[int]:
    found = set()
    for first, last in re.findall(r"(\d+)(?: to (\d+))?", cell):
        found |= set(range(int(first), int(last or first) + 1))
    return found


def test_the_listing_is_understood():
    assert parse(LISTING) == [
        ("tcp", "198.18.0.10", 22, "sshd"), ("tcp", "198.18.1.10", 9160, "java"),
        ("tcp", "127.0.0.1", 7199, "java"), ("udp", "0.0.0.0", 68, ""),
        ("tcp", "::", 25672, "beam.smp"), ("tcp", "127.0.0.1", 4369, "epmd")]


@pytest.mark.parametrize("listener, fine", [
    (("tcp", "198.18.0.10", 22, "sshd"), True), (("tcp", "198.18.1.10", 22, "sshd"), False),
    (("tcp", "0.0.0.0", 22, "sshd"), False), (("tcp", "198.18.0.10", 9160, "java"), False),
    (("tcp", "198.18.1.10", 9160, "java"), True), (("tcp", "198.18.1.10", 7199, "java"), False),
    (("tcp", "0.0.0.0", 9160, "java"), False), (("tcp", "::", 9160, "java"), False),
    (("udp", "198.18.1.10", 9160, "java"), False), (("tcp", "127.0.0.1", 7199, "java"), True),
])
def test_what_may_listen_where(listener, fine):
    assert allowed(listener, HOST, OPENS["cassandra"], False) == fine


def test_a_listener_too_many_and_one_too_few_are_named():
    def host(listing):
        return SimpleNamespace(**vars(HOST), run=lambda command: SimpleNamespace(stdout=listing))

    check_listeners([host(LISTING.splitlines()[1])], "cassandra")
    with pytest.raises(AssertionError, match="h1: .*'::', 25672, 'beam.smp'"):
        check_listeners([host(LISTING)], "cassandra")
    with pytest.raises(AssertionError, match=r"no listener of \['wiki'\]"):
        check_listeners([host(LISTING.splitlines()[1])], "cassandra", "wiki")
