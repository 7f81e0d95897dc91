"""The hosts that other tests take for a user's own: are they as foreign as they must be?"""

import os
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import yaml
from foreign import differences, foreign_hosts

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]


@pytest.fixture(scope="module")
def place():
    with foreign_hosts(["h1", "h2"], jump="bastion") as made:
        yield made


@pytest.fixture
def on_host(place, tmp_path):
    """Run a command on a host as its user, by OpenSSH's own client."""
    data = yaml.safe_load(place.environment(tmp_path / "hosts.yml").read_text())
    options = ["-F", "none", "-i", data["key"], "-o", f"UserKnownHostsFile={data['known_hosts']}",
               "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]

    def on_host(name, command, jump=place.jump):
        through = ["-o", f"ProxyCommand=ssh {' '.join(options)} -W %h:%p "
                         f"op@{place.address(jump)}"] if jump else []
        return subprocess.run(["ssh", *options, *through, f"op@{place.address(name)}", command],
                              capture_output=True, text=True)
    return on_host


def test_its_user_is_not_root_and_sudo_works(on_host):
    assert on_host("h1", "id -un; hostname").stdout.split() == ["op", "h1"]
    assert on_host("h1", "sudo -n id -u").stdout == "0\n"
    assert "denied" in on_host("h1", "ls /root").stderr


def test_only_the_jump_host_reaches_what_is_behind_it(place, on_host):
    assert on_host("h1", "true", jump=None).returncode == 0
    direct = on_host("h2", "true", jump=None)
    assert direct.returncode == 255 and "No route to host" in direct.stderr
    assert on_host("h2", "hostname").stdout == "h2\n"
    with pytest.raises(OSError):
        socket.create_connection((place.addresses["h1"]["data"], 22), timeout=3)
    assert on_host("h1", f"ping -c1 -W2 {place.addresses['h2']['data']}").returncode == 0


def test_nothing_of_this_checkout_is_there(on_host):
    """Nor of what it runs on: its environment, its caches, its user's programs."""
    hidden = {CHECKOUT, Path(sys.prefix), Path.home() / ".cache", Path("/usr/local/bin"),
              Path("/etc/pip.conf"), Path("/run/labbook"), Path("/var/lib/labbook")}
    assert on_host("h1", f"ls -A {' '.join(map(str, hidden))} 2> /dev/null | grep -v '^/.*:$' | "
                         "grep .").stdout == ""
    assert on_host("h1", "/usr/bin/python3 -c 'import labbook'").returncode != 0
    assert on_host("h1", "cat /proc/self/mountinfo").stdout.count(str(CHECKOUT)) == 0


def test_what_is_written_there_does_not_touch_this_machine(place, on_host):
    before = place.snapshot("h1")
    written = ["/usr/bin/labbook-foreign-test", "/etc/labbook-foreign-test",
               "/var/lib/dpkg/labbook-foreign-test", "/tmp/labbook-foreign-test"]
    for path in written:
        assert on_host("h1", f"echo x | sudo -n tee {path}").returncode == 0
        assert not Path(path).exists()
    assert on_host("h1", "sudo -n iptables -A INPUT -s 192.0.2.1 -j DROP; "
                         "sudo -n mkdir /sys/fs/cgroup/cpu/x /sys/fs/cgroup/x").returncode in (0, 1)
    machine = subprocess.run(["iptables-save"], capture_output=True, text=True).stdout
    assert "192.0.2.1" not in machine and not Path("/sys/fs/cgroup/cpu/x").exists()
    changes = "\n".join(differences(before, place.snapshot("h1")))
    for thing in (written[0], written[1], written[3], "192.0.2.1", "/x"):
        assert thing in changes
    on_host("h1", f"sudo -n rm {' '.join(written)}; sudo -n iptables -D INPUT -s 192.0.2.1 -j DROP; "
                  "sudo -n rmdir /sys/fs/cgroup/cpu/x /sys/fs/cgroup/x")
    assert differences(before, place.snapshot("h1")) == []


def test_cut_heal_and_reboot(place, on_host):
    on_host = partial(on_host, jump=None)
    place.cut("h1")
    assert on_host("h1", "true").returncode == 255
    place.heal("h1")
    boot = on_host("h1", "cat /proc/sys/kernel/random/boot_id; echo kept > ~/file; "
                   "sleep 1000 > /dev/null 2>&1 &").stdout
    place.reboot("h1")
    until = time.monotonic() + 60
    while on_host("h1", "true").returncode and time.monotonic() < until:
        time.sleep(0.2)
    after = on_host("h1", "cat /proc/sys/kernel/random/boot_id; cat ~/file; pgrep sleep")
    assert after.stdout.split()[1:] == ["kept"] and after.stdout.split()[0] != boot.strip()
    on_host("h1", "rm ~/file")


@pytest.mark.parametrize("whom", ["tests", "keeper"])
def test_they_end_with_whoever_made_them(whom):
    """SIGKILL of the tests, or of the keeper: by itself, or at the latest by the next one."""
    program = ("import sys; sys.path.insert(0, sys.argv[1]); from foreign import foreign_hosts\n"
               "with foreign_hosts(['x']) as p:\n print(p.id, p._keeper.pid, p._pids['x'], "
               "flush=True); input()")
    maker = subprocess.Popen([sys.executable, "-c", program, HERE], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    name, keeper, first = maker.stdout.readline().split()
    assert Path("/sys/class/net", f"fh-{name}").exists()
    if whom == "keeper":
        os.kill(int(keeper), 9)
        gone(Path("/proc", first, "cwd"))
        with foreign_hosts([]):
            pass
    maker.kill()
    maker.wait()
    for path in (Path("/proc", first, "cwd"), Path("/sys/class/net", f"fh-{name}"),
                 Path("/var/tmp/labbook-foreign", name)):
        gone(path)
    assert not list(Path("/sys/fs/cgroup").glob(f"*/foreign-{name}"))


def gone(path: Path, limit=30):
    until = time.monotonic() + limit
    while os.path.lexists(path):
        assert time.monotonic() < until, f"{path} stays"
        time.sleep(0.01)
