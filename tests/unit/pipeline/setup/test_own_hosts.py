"""Studies on hosts of the user's own: what doctor, run and --dry-run make of a look at them."""

import json

import pytest

from labbook import paths
from labbook.cli import main
from labbook.errors import InputError, LabError
from labbook.lab.environment import key_files
from labbook.lab.environment.environment import Environment
from labbook.lab.finding import Finding
from labbook.lab.remote import preflight
from labbook.pipeline.running import run
from labbook.pipeline.setup import doctor, install, own_hosts

LAB = """sites: [lan]
hosts:
  server: {site: lan, role: db, limits: {cores: 1}}
  node[1-2]: {site: lan, role: node}
  client: {site: lan, role: client}
systems: [{name: mysql, host: server}, {name: "null", host: client}]
needs: {packages: [bonnie++], disk: 1G}
"""
RACK = """provider: ssh
user: op
key: /k/lab
root: /home/op/labbook
allow: [limits, packages]
shared_address: true
hosts:
  rack1: {address: 192.0.2.11, roles: [db, node]}
  rack2: {address: 192.0.2.12, roles: [client, node], allow: [software]}
"""
LACKS = Finding("hosts.rack2.address", "reachable", False, "SSH goes there", "no answer", "Turn it on")
HAS = Finding("hosts.rack1.address", "reachable", True, "SSH goes there", "op, Linux 6.1")


@pytest.fixture
def rack(book, monkeypatch):
    """A study and an environment whose hosts are as HAS and LACKS say, and a bare machine; the calls of examine."""
    book.study("wan", "1")
    book.write("data/papers/wan/lab.yml", LAB)
    book.write("environments/rack.yml", RACK)
    monkeypatch.setattr(key_files, "key_problem", lambda path: None)
    monkeypatch.setenv("HOME", str(book.root))
    book.write(".ssh/known_hosts", "")
    calls = []

    def examine(description, environment, needs=None, profile="quick"):
        calls.append((description.name, environment.name, needs, profile))
        return [HAS, LACKS]

    monkeypatch.setattr(preflight, "examine", examine)
    monkeypatch.setattr(install, "versions", lambda names: dict.fromkeys(names, "1.0"))
    monkeypatch.setattr(install, "is_here", lambda artifact: True)
    monkeypatch.setattr(install, "as_root", lambda: pytest.fail("root was asked for here"))
    monkeypatch.setattr(doctor, "_probes", lambda names: pytest.fail("this kernel was tried"))
    return calls


def test_a_study_needs_of_each_host_what_its_systems_do(rack):
    needs = own_hosts.needs("wan")
    assert {"bonnie++", "zlib1g"} <= set(needs["server"].packages)
    assert needs["server"].folders == {"mysql-5.5.9": "mysql is in it"}
    # any of the systems may come to run on any host, but for the clients'
    assert needs["node1"].folders == needs["server"].folders
    assert needs["node1"].programs and not needs["server"].programs
    assert "zlib1g" not in needs["client"].packages and "ss" in needs["client"].commands


def test_the_doctor_looks_at_the_hosts_and_not_at_this_machine(rack, capsys):
    assert main(["doctor", "-v", "--environment", "environments/rack.yml"]) == 1
    output = capsys.readouterr().out
    assert "hosts.rack1, of environments/rack.yml" in output and "1 missing" in output
    at = output.index("hosts.rack2, of")
    assert "MISSING  reachable" in output[at:] and "-> Turn it on" in output[at:]
    assert "openssh-client" in output and "openssh-server" not in output and "iproute2" not in output
    assert rack[0][:2] == ("wan", "rack") and "server" in rack[0][2]
    main(["doctor", "--json", "--environment", "environments/rack.yml"])
    found = json.loads(capsys.readouterr().out)
    assert found["environment"] == "environments/rack.yml"
    assert [f["key"] for f in found["findings"] if not f["ok"]] == ["hosts.rack2.address"]


def test_nothing_starts_on_hosts_that_are_not_ready(rack):
    jobs = {"wan": {"environment": "environments/rack.yml"}}
    run.check_files(jobs)
    with pytest.raises(LabError, match="rack.yml: these hosts cannot.*\n.*rack2.address: reachable"):
        run.check_needs(jobs)


@pytest.mark.parametrize("change, message", [
    (("[db, node]", "[node]"), "hosts: study wan needs 1 host of role db"),
    (("[limits, packages]", "[]"), "hosts.rack1.allow: study wan asks for limits"),
    (("[db, node]", "[db, node], alow: []"), "hosts.rack1.alow"),
])
def test_no_host_is_asked_when_the_file_is_wrong(rack, book, change, message, capsys):
    book.write("environments/rack.yml", RACK.replace(*change))
    with pytest.raises(InputError) as error:
        run.check_files({"wan": {"environment": "environments/rack.yml"}})
    assert message in str(error.value) and "rack.yml" in str(error.value)
    assert main(["up", "wan", "--environment", "environments/rack.yml"]) == 2
    assert message in capsys.readouterr().err and not rack


def test_a_host_of_one_experiment_is_asked_of_runs_that_measure_it(rack, book, capsys):
    book.study("wan", "1", parameters="flush = dict(repeats=0)", full="flush: {repeats: 6}\n")
    book.write("data/papers/wan/lab.yml", LAB.replace(
        "systems:", "  spindle: {site: lan, role: disk, experiments: [flush], limits: {disk: {size: 1G, model: hdd_2010}}}\nsystems:"))
    quick, full = ({"environment": "environments/rack.yml"} | more for more in ({}, {"flush": {"repeats": 6}}))
    run.check_files({"wan": quick})
    with pytest.raises(InputError, match="study wan needs 1 host of role disk"):
        run.check_files({"wan": full})
    assert main(["doctor", "wan", "--environment", "environments/rack.yml"]) == 1 and len(rack) == 1
    assert main(["doctor", "wan", "--environment", "environments/rack.yml", "--profile", "full"]) == 1
    assert "spindle" not in rack[0][2] and "spindle" in rack[1][2]
    book.write("environments/rack.yml", RACK.replace("[client, node]", "[client, node, disk]"))
    with pytest.raises(InputError, match="allow: study wan asks for disk"):
        run.check_files({"wan": full})


def test_hosts_are_looked_at_for_the_profile_of_the_run(rack):
    for profile in ("quick", "full"):
        main(["doctor", "wan", "--environment", "environments/rack.yml", "--profile", profile])
    assert [call[3] for call in rack] == ["quick", "full"]


def test_a_dry_run_lists_what_is_done_on_each_host(rack, book, capsys):
    environment = Environment.load(book.root / "environments/rack.yml")
    text = "\n".join(own_hosts.plan("wan", environment))
    one, two = text.split("  rack2 (op@192.0.2.12) as ")
    assert one.startswith("  rack1 (op@192.0.2.11) as server, node1\n")
    assert "written: below /home/op/labbook, taken away" in one and "copied there" not in one
    assert "as root: limits: server (cores)" in one and "as root: packages, those that are missing of " in one
    assert two.startswith("node2, client\n") and "as root" not in two.partition("missing: ")[0]
    assert "copied there: mysql-5.5.9, the library" in two
    assert "missing: hosts.rack2.address: reachable (no answer)" in two
    book.study("wan", "import os\nfrom labbook.errors import Stopped\nraise Stopped('planned')")
    book.write("data/papers/wan/lab.yml", LAB)
    assert main(["run", "--dry-run", "--environment", "environments/rack.yml"]) == 0
    output = capsys.readouterr().out
    assert text in output and "namespaces" not in output and "to install first" not in output


def test_no_page_tells_addresses_users_or_keys(rack, book, monkeypatch, capsys):
    """A page with an error on it shows what the error says."""
    monkeypatch.setattr(run, "check_needs", lambda *_: None)
    monkeypatch.setattr(run, "sweep_labs", lambda: None)
    book.study("wan", "print('ask 192.0.2.12')", "raise OSError('op@192.0.2.11 refused /k/lab')")
    assert main(["run", "wan", "--environment", "environments/rack.yml"]) == 1
    pages = paths.build_dir() / "pages"
    text = (pages / "wan.ipynb").read_text() + (pages / "wan.json").read_text()
    assert "ask rack2" in text and "rack1 refused KEY" in text
    assert "192.0.2" not in text and "/k/lab" not in text and "op@" not in text
    assert "op@192.0.2.11 refused" in capsys.readouterr().err     # who ran it may know
