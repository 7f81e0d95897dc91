"""What foreign hosts run with: Python packages, the library, artifacts, Debian packages."""

import hashlib
import os
import threading
from pathlib import Path, PurePosixPath

import pytest
from foreign import foreign_hosts

from labbook.errors import InputError, LabError
from labbook.lab import Environment
from labbook.lab.cache.build import build_once
from labbook.lab.cache.push import push
from labbook.lab.host.host import Host
from labbook.lab.remote import packages, software
from labbook.lab.ssh import transfer
from labbook.systems.keystone.server import Keystone
from labbook.systems.null.server import NullServer
from labbook.systems.sql import MariaDB

# A package of the tests' own, with a service that its installation would start and enable.
CONTROL = """Package: labbook-toy
Version: 1.0
Architecture: all
Maintainer: Tests <tests@example.invalid>
Description: a toy
"""
MAKE = """set -e
mkdir -p /tmp/toy/DEBIAN /tmp/toy/etc/init.d /srv/archive
cat > /tmp/toy/DEBIAN/control
cat > /tmp/toy/DEBIAN/postinst <<'END'
#!/bin/sh
touch /run/toy-is-being-installed
while [ ! -e /run/toy-may-be-installed ]; do sleep 0.05; done
invoke-rc.d labbook-toy start || true
END
printf '#!/bin/sh\\ntouch /run/toy-was-started\\n' > /tmp/toy/etc/init.d/labbook-toy
chmod 755 /tmp/toy/DEBIAN/postinst /tmp/toy/etc/init.d/labbook-toy
dpkg-deb --build /tmp/toy /srv/archive/toy.deb > /dev/null
cd /srv/archive
{ dpkg-deb -f toy.deb; echo "Filename: ./toy.deb"; echo "Size: $(stat -c %s toy.deb)"
  echo "SHA256: $(sha256sum toy.deb | cut -d' ' -f1)"; } > Packages
echo 'deb [trusted=yes] file:/srv/archive ./' > /etc/apt/sources.list
apt-get -q update > /dev/null"""
# Ends the SSH connections while the package is half installed.
IN_THE_MIDDLE = """while [ ! -e /run/toy-is-being-installed ]; do sleep 0.05; done
pkill -KILL -f '^sshd: [a-z]+( |@)'; sleep 1; touch /run/toy-may-be-installed"""


@pytest.fixture(scope="module")
def place():
    with foreign_hosts(["h1", "h2"], jump="bastion") as made:
        yield made


@pytest.fixture
def there(place, tmp_path):
    """A lab's host on h1 (or another), with the environment's entry for it."""
    opened = []

    def host(name="h1", allow=("software",)):
        environment = Environment.load(place.environment(tmp_path / "rack.yml", allow=list(allow)))
        real = next(each for each in environment.hosts if each.name == name)
        root = real.root / "lab" / "node"
        place.inside(name, f"mkdir -p {root}", user="op")
        opened.append(Host("node", "lan", "client", real.data, real.login, root, real.python,
                           sudo=True, allow=real.allow))
        return opened[-1], real
    yield host
    for each in opened:
        each.close()
    for name in ("h1", "h2"):
        place.inside(name, "rm -rf /home/op/labbook")


def test_a_bare_debian_behind_a_jump_host_runs_our_programs_with_what_is_brought(there):
    host, real = there("h2")
    lab = host.root.parent
    host.python = software.install(host, real, lab)
    assert host.python == f"{lab}/software/python"
    assert software.install(host, real, lab) == host.python
    seen = software.ask(host, host.python)
    assert software.lacks(seen) is None and seen["python"].startswith("/usr/bin/python3")
    with_null = NullServer(host).up()
    try:
        with_null.answers()
    finally:
        with_null.destroy()


def test_a_system_in_python_runs_there_with_packages_of_its_own_as_a_user_who_is_not_root(there, place):
    host, _ = there()
    before = place.inside("h1", "ls -A /home/op").split()
    database = MariaDB(host).up()
    keystone = Keystone.over(host, database)
    try:
        keystone.up()
        assert keystone.facts()["python"] == host.run("python3 --version").stdout.split()[1]
        running = host.run(f"ps -o user=,args= -p {keystone.process.pid}").stdout
        assert running.split()[:2] == ["op", "/usr/bin/python3"], running
        users = keystone.request("GET", "/users", token=keystone.admin_token()).json["users"]
        assert [user["name"] for user in users] == ["admin"]
        assert host.run(f"stat -c %a {keystone.home}/fernet-keys/1").stdout.strip() == "600"
    finally:
        keystone.destroy()
        database.destroy()
    assert host.run("ls").stdout.split() == ["processes"]
    assert place.inside("h1", "ls -A /home/op").split() == sorted({*before, "labbook"})


def test_where_nothing_may_be_brought_all_must_be_there(there):
    host, real = there(allow=())
    with pytest.raises(InputError, match=r"rack.yml: hosts.h1.python: .* lacks cassandra-driver 3"):
        software.install(host, real, host.root.parent, file="rack.yml")
    granted, real_granted = there()
    brought = software.install(granted, real_granted, PurePosixPath("/home/op/labbook/lab"))
    object.__setattr__(real, "python", brought)
    assert software.install(host, real, host.root.parent) == "/usr/bin/python3"
    library = "/home/op/labbook/lab/software/library/labbook"
    host.run(f"echo >> {library}/errors.py")
    with pytest.raises(InputError, match="has labbook of another state"):
        software.install(host, real, host.root.parent)


def test_a_python_that_cannot_be_used_is_reported(there):
    host, real = there()
    host.put("#!/bin/sh\nsed 's/^import sys$/import sys; sys.version_info = (3, 9, 2)/' | "
             "exec python3 \"$@\"\n", "old", 0o755)
    with pytest.raises(LabError, match=r"3.9.2, .*older than 3.11.*`python`"):
        object.__setattr__(real, "python", f"{host.root}/old")
        software.install(host, real, host.root.parent)
    with pytest.raises(LabError, match="nope does not run there.*Install Python"):
        software.ask(host, "nope")


def test_artifacts_come_below_the_labs_folder_whole_or_not_at_all(there, place, tmp_path, monkeypatch):
    monkeypatch.setenv("LABBOOK_CACHE", str(tmp_path / "cache"))
    data = os.urandom(4 << 20)
    folder = build_once("store-1", lambda folder: [(folder / f"{i}.jar").write_bytes(data)
                                             for i in range(20)])
    host, _ = there()
    pour = transfer._pour_folder

    def pour_and_break_off(source, sink):
        """The first half, whole files; then the connection is lost."""
        half = tmp_path / "half"
        half.mkdir()
        for file in sorted(source.iterdir())[:10]:
            os.link(file, half / file.name)
        pour(half, sink)
        place.hang_up("h1")
        pour(source, sink)
    monkeypatch.setattr(transfer, "_pour_folder", pour_and_break_off)
    with pytest.raises(LabError, match="node: copying store-1 broke off"):
        push(host, folder)
    assert place.inside("h1", "ls /home/op/labbook/lab/artifacts").strip() == ""
    monkeypatch.setattr(transfer, "_pour_folder", pour)
    at = push(host, folder)
    assert at == PurePosixPath("/home/op/labbook/lab/artifacts/store-1")
    assert host.run(f"sha256sum < {at}/14.jar").stdout.split()[0] == (
        hashlib.sha256((folder / "14.jar").read_bytes()).hexdigest())


def test_a_full_disk_is_reported_in_the_words_of_the_host(there, tmp_path):
    (tmp_path / "much").mkdir()
    (tmp_path / "much" / "file").write_bytes(bytes(4 << 20))
    host, _ = there()
    with pytest.raises(LabError, match=r"copying full failed: .*(No space|Read-only|Cannot)"):
        transfer.feed(host, "cat > /dev/full", lambda sink: transfer._pour_file(
            tmp_path / "much" / "file", sink), 4 << 20, "copying full")
    assert host.run("echo on").stdout == "on\n"


def test_debian_packages_are_installed_quietly_and_outlast_a_lost_connection(there, place):
    place.inside("h1", MAKE, input=CONTROL)
    host, _ = there(allow=["packages"])
    middle = threading.Thread(target=place.inside, args=["h1", IN_THE_MIDDLE])
    middle.start()
    assert packages.provide(host, ["nosuch | labbook-toy", "coreutils"]) == {"labbook-toy": "1.0"}
    middle.join()
    assert packages.provide(host, ["nosuch | labbook-toy"]) == {}
    assert place.inside("h1", "ls /run/toy-was-started /etc/rc2.d/S*labbook-toy", check=False) == ""
    journal = Path("/home/op/labbook/lab/journal")
    assert '"installed": {"labbook-toy": "1.0"}' in place.inside("h1", f"cat {journal}")
    with pytest.raises(LabError, match=r"could not install nosuch:\n(.|\n)*Unable to locate"):
        packages.provide(host, ["nosuch"])
    assert place.inside("h1", "ls -d /var/lib/labbook", check=False) == ""


def test_debian_packages_that_may_not_be_installed_are_named(there):
    host, _ = there(allow=["software"])
    with pytest.raises(LabError, match="nosuch missing.*sudo apt-get install nosuch"):
        packages.provide(host, ["nosuch", "coreutils"])
