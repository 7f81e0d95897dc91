"""What hosts say of themselves, and what is made of it: no host is asked here."""

import errno
import platform
import shlex
import socket
import subprocess
import threading
from dataclasses import replace
from types import SimpleNamespace

import paramiko
import pytest
from paramiko.ssh_exception import NoValidConnectionsError

from labbook.errors import LabError
from labbook.lab.description import LabDescription
from labbook.lab.environment.environment import Environment
from labbook.lab.remote import preflight, probe
from labbook.lab.remote.checks import check_host
from labbook.lab.remote.diagnose import unreachable
from labbook.lab.remote.needs import HostNeeds, HostRequest
from labbook.lab.remote.probe import Found

OUTPUT = """labbook\tbegins
system\tLinux
arch\tx86_64
kernel\t6.1.0
user\top
uid\t1000
lacks\tss
python\t3.11.2
place\t/home/op
writable\tyes
free_kib\t1048576
options\trw,relatime,noexec
cores\t4
memory_kib\t2097152
address\t127.0.0.1
address\t192.0.2.11
ssh\t198.51.100.7 40022 192.0.2.11 22
debian\tdpkg-query
debian\tapt-get
folder\tstores-1
package\tinstalled procps 4.0
package\tconfig-files maven 3.8
root\tyes
controllers\tcpu cpuset blkio
loop\tyes
no_shape\tno such target
no_trace\tno event block_rq_issue
no_fuse\tno /dev/fuse
"""


def rack(**changes):
    data = {"provider": "ssh", "user": "op", "key": "/k/lab", "known_hosts": "/k/known_hosts",
            "root": "/home/op/labbook", "jumps": {"gate": {"address": "198.51.100.7"}},
            "hosts": {"rack1": {"address": "192.0.2.11", "roles": ["db"], "shared_address": True,
                                **changes}}}
    return Environment.parse(data, file="rack.yml", keys=False).hosts[0]


def test_what_a_host_says_is_understood():
    found = probe.parse(OUTPUT)
    assert (found.system, found.user, found.uid, found.lacks) == ("Linux", "op", 1000, {"ss"})
    assert (found.free_bytes, found.memory_bytes, found.cores) == (1 << 30, 2 << 30, 4)
    assert found.packages == {"procps": "4.0"} and found.addresses == ["127.0.0.1", "192.0.2.11"]
    assert found.ssh_address == "192.0.2.11"
    assert found.writable and found.root and found.loop and "noexec" in found.options
    assert found.controllers == {"cpu", "cpuset", "io"} and found.shape == "no such target"
    assert (found.trace, found.fuse) == ("no event block_rq_issue", "no /dev/fuse")
    assert found.folders == {"stores-1"}


@pytest.mark.parametrize("output, message", [("", "nothing"), ("Welcome!\n" + OUTPUT, "Welcome!")])
def test_a_login_that_prints_anything_is_refused(output, message):
    with pytest.raises(ValueError, match=message):
        probe.parse(output)


def test_the_script_runs_and_says_what_this_machine_is(tmp_path):
    real = rack(root=f"/var/{'x' * 20}/lab")
    wants = HostNeeds(packages={"no-such-package | dpkg": "w"}, commands={"no-such-command": "w"})
    done = subprocess.run(["sh", "-c", probe.script(real, wants)], capture_output=True, text=True)
    found = probe.parse(done.stdout)
    assert done.returncode == 0 and found.system == "Linux" and found.arch == platform.machine()
    assert found.lacks >= {"no-such-command"} and "sh" not in found.lacks
    assert found.place == "/var" and found.free_bytes > 0 and found.cores >= 1
    assert "127.0.0.1" in found.addresses and not found.root     # nothing is allowed: not asked


@pytest.mark.parametrize("allow, tried", [
    ([], set()), (["shape"], {"unshare --net"}), (["trace", "fuse"], {"tracing", "/dev/fuse"})])
def test_nothing_is_tried_as_root_that_is_not_allowed(allow, tried):
    text = probe.script(rack(allow=allow), HostNeeds(request=EVERYTHING))
    assert ("as_root true" in text) == bool(allow)
    pieces = {"unshare --net": probe.TRY_SHAPE, "tracing": probe.TRY_TRACE, "/dev/fuse": probe.TRY_FUSE}
    assert {name for name, piece in pieces.items() if piece in text} == tried


GOOD = dict(system="Linux", arch=platform.machine(), kernel="6.1", user="op", uid=1000,
            python="3.11.2", place="/home/op", writable=True, free_bytes=50 << 30, cores=4,
            memory_bytes=8 << 30, addresses=["192.0.2.11"], debian={"dpkg-query", "apt-get"},
            packages={"procps": "4.0"}, root=True, controllers={"cpu", "cpuset", "memory"}, loop=True)
EVERYTHING = HostRequest({"limits": ["db (cores)"], "shape": ["link a - b"], "disk": ["the disk of db"],
                    "trace": ["the disk of db"], "fuse": ["client"]}, 2, 4 << 30, 1 << 30)
ALL = ["packages", "software", "limits", "shape", "disk", "trace", "fuse"]


def seen(found=None, wants=None, **entry):
    needed = {"request": EVERYTHING, "packages": {"procps | ps": "needed"}, "folders": {"stores-1": "in it"},
              "python": True, "disk_bytes": 2 << 30, **(wants or {})}
    return check_host(rack(**{"allow": ALL, **entry}), Found(**{**GOOD, **(found or {})}), HostNeeds(**needed))


def problems(*args, **entry):
    return [one.words() for one in seen(*args, **entry) if not one.ok]


def test_a_host_that_has_everything_lacks_nothing():
    assert not problems()
    assert {"reachable", "3 GB disk", "2 cores", "4 GB memory", "root", "control groups",
            "loop devices", "the kernel's tracing of disks"} <= {one.name for one in seen()}


LACKS = {
    "another system": (dict(system="FreeBSD"), {}, {}, ["hosts.rack1: Linux (FreeBSD)"]),
    "tools": (dict(lacks={"ss", "mkfs.ext4"}), {}, {},
              ["without ss, mkfs.ext4", "apt-get install iproute2 e2fsprogs"]),
    "another's address": (dict(addresses=["10.0.0.1"]), {}, {},
                          ["hosts.rack1.data: data address 192.0.2.11 (its own are 10.0.0.1)"]),
    "SSH's own address by another name": (
        dict(ssh_address="192.0.2.11"), {}, dict(address="rack1.example.org", data="192.0.2.11",
                                                 shared_address=False),
        ["hosts.rack1.data: data address 192.0.2.11 (SSH arrives there too)", "shared_address: true"]),
    "no way to write": (dict(writable=False), {}, {}, [
        "hosts.rack1.root", "op cannot write to /home/op", "sudo chown op /home/op/labbook"]),
    "noexec": (dict(options={"noexec"}), {}, {}, ["hosts.rack1.root", "mounted noexec"]),
    "disk": (dict(free_bytes=1 << 30), {}, {}, ["hosts.rack1.root: 3 GB disk (1 GB)"]),
    "cores": (dict(cores=1), {}, {}, ["2 cores (1)", "larger host"]),
    "memory": (dict(memory_bytes=1 << 30), {}, {}, ["4 GB memory (1 GB)"]),
    "old Python": (dict(python="3.9.2"), {}, {}, ["hosts.rack1.python", "3.11 or newer (3.9.2)"]),
    "no Python": (dict(python=""), {}, dict(python="/opt/py"), ["/opt/py does not run"]),
    "packages, not allowed": (dict(packages={}), {}, dict(allow=ALL[1:]), [
        "hosts.rack1.allow: package procps | ps (missing)", "apt-get install procps; or allow"]),
    "packages without apt": (dict(packages={}, debian={"dpkg-query"}), {}, {}, ["package procps"]),
    "commands on another Linux": (dict(debian=set(), lacks={"java"}),
                                  dict(commands={"java": "cassandra"}), {},
                                  ["command java", "your distribution's way"]),
    "no sudo": (dict(root=False), {}, {}, [
        "hosts.rack1.allow: sudo without a password (op)", "op ALL=(root) NOPASSWD: ALL"]),
    "controllers": (dict(controllers={"cpu"}), {}, {}, ["control groups (no cpuset, memory)"]),
    "loop": (dict(loop=False), {}, {}, ["loop devices (no /dev/loop-control)"]),
    "no NFQUEUE": (dict(shape="no such target"), {}, {}, ["NFQUEUE) (no such target)"]),
    "software, not allowed": ({}, {}, dict(allow=ALL[:1] + ALL[2:]), [
        "hosts.rack1.allow: stores-1 (missing): in it. Allow software, or copy",
        "to /home/op/labbook/artifacts/stores-1 there"]),
    "another processor": (dict(arch="riscv64"), {}, {}, ["processor", "(riscv64)"]),
    "no tracing": (dict(trace="no event block_rq_issue"), {}, {}, [
        "hosts.rack1.allow: the kernel's tracing of disks (no event block_rq_issue)"]),
    "no FUSE": (dict(fuse="no /dev/fuse"), {}, {}, [
        "hosts.rack1.allow: file systems of programs (FUSE) (no /dev/fuse)"]),
    "no unshare": (dict(lacks={"unshare", "setsid"}), {}, {}, [
        "without setsid, unshare", "apt-get install util-linux"]),
    "not allowed": ({}, {}, dict(allow=["packages", "software", "limits", "shape", "trace", "fuse"]),
                    ["hosts.rack1.allow: disk (not allowed)", "the disk of db", "allow: [disk]"]),
}


@pytest.mark.parametrize("found, wants, entry, expected", LACKS.values(), ids=LACKS)
def test_what_a_host_lacks_is_reported_with_the_key_and_what_to_do(found, wants, entry, expected):
    reported = problems(found, wants, **entry)
    assert len(reported) == 1, reported
    assert all(part in reported[0] for part in expected), reported


def test_nothing_is_asked_that_a_study_does_not_need():
    bare = dict(python="", root=False, controllers=set(), loop=False, shape="x", trace="x", fuse="x",
                arch="riscv64", packages={}, memory_bytes=1, cores=1)
    assert not problems(bare, dict(request=HostRequest(), packages={}, folders={}, python=False))


def test_the_library_and_its_packages_are_no_matter_of_this_machines_processor():
    """There are packages for others, and which is looked at with the host's Python."""
    assert not problems(dict(arch="aarch64"), dict(folders={}, programs=True))


def test_what_may_be_installed_is_no_problem_and_takes_sudo_only_when_it_must():
    assert not problems(dict(packages={}))
    without = dict(root=False), dict(request=HostRequest())
    assert not problems(*without, allow=["packages", "software"])
    assert problems(without[0] | dict(packages={}), without[1], allow=["packages", "software"])


def key_of(kind):
    return paramiko.RSAKey.generate(1024) if kind == "rsa" else paramiko.ECDSAKey.generate()


def no_address():
    return NoValidConnectionsError({("192.0.2.11", 22): OSError(errno.EHOSTUNREACH, "No route")})


def refused():
    return NoValidConnectionsError({("192.0.2.11", 22): ConnectionRefusedError(111, "refused")})


GATE = "-o 'ProxyCommand=ssh -i /k/lab -p 22 op@198.51.100.7 -W 192.0.2.11:2222'"
CAUSES = {
    "no name": (lambda: socket.gaierror(-2, "Name or service not known"), "address",
                ["no such name"]),
    "refused": (refused, "port", ["refused at 192.0.2.11, port 2222"]),
    "no route": (no_address, "address", ["no answer from", "firewall"]),
    "silent": (lambda: TimeoutError("timed out"), "address", ["no answer from"]),
    "unknown host": (lambda: paramiko.SSHException("Server 'x' not found in known_hosts"),
                     "known_hosts", ["not in /k/known_hosts", "ssh-keyscan -p 2222 192.0.2.11 >> "]),
    "changed host": (lambda: paramiko.BadHostKeyException("x", key_of("rsa"), key_of("ecdsa")),
                     "known_hosts", ["another host key", "-R '[192.0.2.11]:2222'"]),
    "login": (lambda: paramiko.AuthenticationException("failed"), "user",
              ["login refused for op with the key /k/lab", f"ssh-copy-id -i /k/lab.pub {GATE} -p 2222 op@192.0.2.11"]),
    "no host key": (lambda: paramiko.SSHException("/k/known_hosts has a line that is no host key: x"), "known_hosts",
                    ["no host key: x", "Take the line out of /k/known_hosts"]),
    "no key": (lambda: paramiko.SSHException("/k/lab is no private key that can be used without a passphrase: x"), "key",
               ["without a passphrase", "ssh-keygen -t ed25519"]),
    "unreadable": (lambda: PermissionError(13, "Permission denied", "/k/known_hosts"), "known_hosts",
                   ["Permission denied", "you may read it"]),
    "no SSH": (lambda: paramiko.SSHException("Error reading SSH protocol banner"), "port",
               ["banner", f"ssh -v {GATE} -p 2222 op@192.0.2.11"]),
    "beyond": (lambda: paramiko.ChannelException(2, "Connect failed"), "jump",
               ["gate does not reach 192.0.2.11, port 2222 (Connect failed)"]),
    "forbidden": (lambda: paramiko.ChannelException(1, "Administratively prohibited"), "jump",
                  ["AllowTcpForwarding"]),
}


@pytest.mark.parametrize("make, key, expected", CAUSES.values(), ids=CAUSES)
def test_each_cause_of_a_lost_way_is_distinguished(make, key, expected):
    try:
        try:
            raise make()
        except (OSError, paramiko.SSHException):
            raise LabError("rack1 cannot be reached") from None
    except LabError as error:
        one = unreachable(rack(port=2222, jump="gate"), error)
    assert one.key == f"hosts.rack1.{key}" and not one.ok
    assert all(part in one.words() for part in expected), one.words()


def test_a_host_key_behind_a_jump_host_is_asked_for_there():
    one = unreachable(rack(jump="gate"), paramiko.SSHException("Server 'x' not found in known_hosts"))
    assert ("ssh -i /k/lab -p 22 op@198.51.100.7 ssh-keyscan -p 22 192.0.2.11 >> /k/known_hosts"
            in one.remedy)


def test_a_remedy_goes_through_every_jump_host():
    far = replace(rack(), jump=replace(rack(jump="gate").jump, name="inner", address="198.51.100.9",
                                       jump=rack(jump="gate").jump))
    remedy = unreachable(far, paramiko.SSHException("banner")).remedy
    command = shlex.split(remedy.split("`")[1])
    inner = shlex.split(command[3].removeprefix("ProxyCommand="))
    assert inner[-3:] == ["op@198.51.100.9", "-W", "192.0.2.11:22"]
    assert inner[4] == "ProxyCommand=ssh -i /k/lab -p 22 op@198.51.100.7 -W 198.51.100.9:22"


def test_packages_that_a_study_names_are_looked_for_on_all_its_hosts():
    lab = LabDescription.parse({"sites": ["a"], "needs": {"packages": ["bonnie++"]},
                                "hosts": {"h1": {"site": "a", "role": "db"}}})
    assert list(preflight._wants(lab, {"h1": rack()}, {})["rack1"].packages) == ["bonnie++"]


def test_a_profiles_disk_is_looked_for_on_all_its_hosts():
    lab = LabDescription.parse({"sites": ["a"], "needs": {"disk": {"quick": "1G", "full": "30G"}},
                                "hosts": {"h1": {"site": "a", "role": "db"}}})
    wanted = [preflight._wants(lab, {"h1": rack()}, {}, profile)["rack1"] for profile in ("quick", "full")]
    assert [wants.disk_bytes for wants in wanted] == [1 << 30, 30 << 30]


class Answering:
    """A host that answers to the probe and to `date`, and lets open a channel to its data address or raises."""

    name, connected = "rack1", True

    def __init__(self, output=OUTPUT, date="1700000000.5", channel=None):
        self.output, self.date, self.channel, self.transfers = output, date, channel, threading.RLock()

    def connection(self):
        files = SimpleNamespace(stat=lambda path: None)
        return SimpleNamespace(_sftp=files, transport=SimpleNamespace(open_channel=self._open_channel))

    def _open_channel(self, *_, **__):
        if self.channel:
            raise self.channel
        return SimpleNamespace(close=lambda: None)

    def run(self, command, check=True, **_):
        answer = self.date if command.startswith("date") else "" if check else self.output
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(stdout=answer)


def looked_at(**answers):
    """Whether commands can be run there, and the problems beyond those of a host that answers well."""
    _, usual = preflight._look(Answering(), rack(), HostNeeds())
    can_run, found = preflight._look(Answering(**answers), rack(), HostNeeds())
    return can_run, [one.words() for one in found if not one.ok and one not in usual]


def test_a_data_address_that_does_not_answer_is_reported_with_its_key():
    can_run, (problem,) = looked_at(channel=paramiko.SSHException("Timeout opening channel."))
    assert can_run and problem.startswith("hosts.rack1.data: data address 192.0.2.11, from rack1 (does not answer: ")
    assert looked_at(channel=paramiko.ChannelException(2, "Connect failed")) == (True, [])     # nothing listens there


def test_a_host_that_is_no_linux_is_asked_no_further():
    assert looked_at(output=OUTPUT.replace("Linux", "Darwin"), date="1700000000.N") == (
        False, ["hosts.rack1: Linux (Darwin): hosts are Linux. Name another host"])


@pytest.mark.parametrize("answers, reason", [
    (dict(date=LabError("rack1: connection lost")), "rack1: connection lost"),
    (dict(date="1700000000.N"), "could not convert string to float: '1700000000.N'"),
    (dict(channel=EOFError()), "EOFError")])
def test_a_host_that_stops_answering_is_a_finding_like_others(answers, reason):
    can_run, (problem,) = looked_at(**answers)
    assert not can_run and problem.startswith(f"hosts.rack1: answers to all checks ({reason})")
