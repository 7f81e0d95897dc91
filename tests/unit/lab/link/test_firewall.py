"""Rules of a link's ends on real hosts: which packets they take in hand, and how they go again."""

import subprocess
from types import SimpleNamespace

import pytest

from labbook.errors import LabError
from labbook.lab.journal import append_command, parse
from labbook.lab.link import firewall
from labbook.lab.link.endpoints import ends
from labbook.lab.link.firewall import ALL_QUEUES, Chain, free_queue
from labbook.lab.link.link import Link

CHAIN = Chain("t1", "b", "10.0.0.1", ("10.0.0.2", "10.0.0.3"))


def host(name, site, data, control=None, port=22):
    login = SimpleNamespace(address=control or data, port=port)
    return SimpleNamespace(name=name, site=site, role="db", address=data, login=login)


def lab_of(*hosts):
    return SimpleNamespace(id="t1", routers={}, site=lambda s: [h for h in hosts if h.site == s])


def added(rules):
    return [line for line in rules.splitlines() if line.startswith("-A")]


def test_only_packets_between_lab_hosts_are_held_and_they_fail_closed():
    rules = CHAIN.rules(30000, cut=False)
    assert added(rules) == [
        "-A lb-t1-b -s 10.0.0.2 -d 10.0.0.1 -j NFQUEUE --queue-num 30000",
        "-A lb-t1-b -s 10.0.0.3 -d 10.0.0.1 -j NFQUEUE --queue-num 30000"]
    assert rules.startswith("*mangle\n:lb-t1-b ") and rules.endswith("COMMIT\n")


def test_a_cut_drops_the_same_packets_and_those_that_are_held():
    assert [rule.replace("DROP", "NFQUEUE --queue-num 7") for rule in
            added(CHAIN.rules(7, cut=True))] == added(CHAIN.rules(7, cut=False))
    cut, healed = CHAIN.commands(7, True), CHAIN.commands(7, False)
    assert any("-I INPUT -j lb-t1-b" in c for c in cut)
    assert "-D INPUT -j lb-t1-b" in healed[0], "gone before the chain sends packets to the queue"


def test_nothing_asked_is_no_rule_at_all():
    assert CHAIN.commands(None, False) == firewall.undo(CHAIN.entry)
    assert not any(" -I " in c or " -A " in c for c in firewall.undo(CHAIN.entry))


def test_names_fit_the_kernel():
    assert len(Chain("x" * 11, "y" * 12, "10.0.0.1", ()).name) <= 28


def test_ssh_on_the_data_network_is_never_held():
    jump, behind = host("a1", "a", "10.0.0.1"), host("b1", "b", "10.0.0.2", port=2222)
    (near,), (far,) = ends(lab_of(jump, behind), "a", "b"), ends(lab_of(jump, behind), "b", "a")
    assert added(near._chain.rules(7, cut=True)) == [
        "-A lb-t1-b -s 10.0.0.2 -d 10.0.0.1 -p tcp --dport 22 -j RETURN",
        "-A lb-t1-b -s 10.0.0.2 -d 10.0.0.1 -p tcp --sport 2222 -j RETURN",
        "-A lb-t1-b -s 10.0.0.2 -d 10.0.0.1 -j DROP"]
    assert "--dport 2222 -j RETURN" in far._chain.rules(7, cut=True)


def test_with_a_control_network_of_its_own_ssh_between_data_addresses_is_data():
    one = host("a1", "a", "10.0.0.1", "192.0.2.1")
    other = host("b1", "b", "10.0.0.2", "192.0.2.2")
    assert firewall.ssh_exemptions(one, [other]) == []
    named = host("b1", "b", "10.0.0.2", "b1.example.org")    # may be the same address
    assert firewall.ssh_exemptions(one, [named]) == [("10.0.0.2", "-p tcp --sport 22")]


def test_a_real_host_that_is_several_of_the_lab_is_one_end():
    lab = lab_of(host("a1", "a", "10.0.0.1"), host("a2", "a", "10.0.0.1"),
                 host("a3", "a", "10.0.0.3"), host("b1", "b", "10.0.0.9"))
    assert [end.host.name for end in ends(lab, "a", "b")] == ["a1", "a3"]
    (far,) = ends(lab, "b", "a")
    assert far._chain.peers == ("10.0.0.1", "10.0.0.3")


def test_what_crosses_between_hosts_of_a_users_own_is_not_counted():
    link = Link(lab_of(host("a1", "a", "10.0.0.1"), host("b1", "b", "10.0.0.2")), "a", "b")
    assert link.traffic() == {"a>b": None, "b>a": None}


OUTPUT = """programs
30000    316     0 1     0     0     0       10  1
{proc}
notes
{notes}
rules
-A PREROUTING -p udp -j NFQUEUE --queue-num {iptables}
-A INPUT -p tcp --dport 443 -j NFQUEUE --queue-balance 30001:30003
\t\tudp dport 53 queue flags bypass to 30004-30006
\t\tqueue num {nft}
"""


def test_a_queue_that_nothing_uses():
    output = OUTPUT.format(proc="30007  9 0 1 0 0 0 1 1", notes="30008\n30009", iptables=30010,
                           nft=30011)
    assert free_queue(output) == 30012
    assert free_queue("programs\nnotes\nrules\n") == ALL_QUEUES[0]


def test_what_asks_for_queues_in_use_is_read_by_what_it_says(tmp_path):
    (tmp_path / "queue-c").write_text("30000\n")
    done = subprocess.run(["sh", "-c", firewall.QUEUES_IN_USE], capture_output=True, text=True,
                          cwd=tmp_path)
    assert done.returncode == 0 and free_queue(done.stdout) > 30000


def test_a_chain_is_in_the_journal_once(tmp_path):
    journal = tmp_path / "journal"
    journal.write_text('{"made": "lab"}\n')
    for _ in range(2):
        subprocess.run(["sh", "-ec", append_command(CHAIN.entry, journal)], check=True)
    assert parse(journal.read_text()) == [{"made": "lab"}, {"made": "chain", "chain": "lb-t1-b"}]


@pytest.mark.parametrize("act", [lambda link: link.shape(rtt_ms=5), Link.cut, Link.heal])
def test_a_link_is_left_alone_where_rules_are_not_allowed(act):
    """Other things may be, so that there is sudo. No host is asked: these have nothing to run it."""
    first, second = host("h1", "a", "10.0.0.1"), host("h2", "b", "10.0.0.2")
    first.may, second.may = {"shape"}.__contains__, {"packages", "limits"}.__contains__
    with pytest.raises(LabError, match="h2: .*shape"):
        act(Link(lab_of(first, second), "a", "b"))


@pytest.mark.parametrize("rules, fails", [("-P INPUT ACCEPT", False), ("-N lb-t1-b", True), ("-N lb-t1-bb", False)])
def test_undo_fails_where_the_chain_stays_or_cannot_be_seen(tmp_path, rules, fails):
    """`set -e` does not end a script for a command after `!`, so a chain that stayed had counted as gone."""
    tool = tmp_path / "iptables"
    tool.write_text(f"#!/bin/sh\ncase \"$*\" in '-w -t mangle -S') echo '{rules}';; *) exit 1;; esac\n")
    tool.chmod(0o755)
    script = "set -e\n" + "\n".join([*firewall.undo(CHAIN.entry), "true"])
    done = subprocess.run(["sh", "-c", script], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True)
    assert (done.returncode != 0) == fails and ("lb-t1-b stays" in done.stderr) == fails
    tool.write_text("#!/bin/sh\nexit 1\n")
    assert subprocess.run(["sh", "-c", script], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}).returncode
