"""A lab on hosts over SSH that cannot be: the error names what is wrong and where it is written, and
no host is changed. A host serves one lab at a time."""

import json
import re
import subprocess
import threading

import pytest
from foreign import foreign_hosts
from real_labs import Checkout, as_before, change, environment, small_lab
from small_labs import describe, new_id

from labbook.errors import InputError, LabError
from labbook.lab import Environment, Lab

ROOT = "/home/op/labbook"


@pytest.fixture(scope="module")
def place():
    with foreign_hosts(["h1", "h2"], jump="bastion") as made:
        yield made


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    made = Checkout(tmp_path)
    for name, value in made.variables.items():
        monkeypatch.setenv(name, value)
    yield made
    Lab.sweep()


def spoil_key(folder):
    (folder / "foreign_key").unlink()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "foreign_key"],
                   check=True)


def forget_hosts(folder):
    (folder / "foreign_known_hosts").write_text("")


def mistake_hosts(folder):
    known = folder / "foreign_known_hosts"
    lines = [line.split(" ", 1) for line in known.read_text().splitlines()]
    known.write_text("".join(f"{a} {key}\n" for (a, _), (_, key) in zip(lines, lines[1:] + lines)))


def nothing(_):
    pass


@pytest.mark.parametrize("spoil, changes, kind, expected", [
    (spoil_key, {}, LabError, ["hosts.h1.user", "login refused", "foreign_key", "ssh-copy-id"]),
    (forget_hosts, {}, LabError, ["hosts.h1.known_hosts", "jumps.bastion.known_hosts",
                                  "ssh-keyscan"]),
    (mistake_hosts, {}, LabError, ["hosts.h1.known_hosts", "another host key"]),
    (nothing, {"root": "/srv/labs/mine"}, LabError, ["hosts.h1.root", "/srv/labs/mine",
                                                     "cannot write"]),
    (nothing, {"root": "/etc/labs"}, InputError, ["root", "folder of the system"]),
    (nothing, {"roles": {"h1": ["db"], "h2": ["web"]}}, InputError, ["hosts", "role client"]),
    (nothing, {"allow": ["disk", "shape"]}, InputError, ["hosts.h1.allow", "limits", "server"]),
    (nothing, {"allow": ["limits", "shape"]}, InputError, ["hosts.h1.allow", "disk"]),
    (nothing, {"allow": ["limits", "disk"]}, InputError, ["hosts.h1.allow", "shape"]),
], ids=["wrong key", "unknown host", "changed host", "root not writable", "root of the system",
        "missing role", "no limits", "no disk", "no shape"])
def test_what_is_wrong_is_reported_and_nothing_is_changed(place, here, spoil, changes, kind, expected):
    with as_before(place):
        with pytest.raises(kind) as error:
            there = spoilt(place, here, spoil, changes)
            Lab.up(small_lab(), there, new_id())
        for part in (str(here.folder / "hosts.yml"), *expected):
            assert part in str(error.value), error.value
        assert here.standing() == []


def spoilt(place, here, spoil, changes):
    environment(place, here.folder, **changes)
    spoil(here.folder)
    return Environment.load(here.folder / "hosts.yml")


def test_a_user_who_may_not_become_root(here):
    with foreign_hosts(["h1", "h2"], sudo=False) as place, as_before(place):
        there = environment(place, here.folder)
        with pytest.raises(LabError, match=r"hosts\.h1\.allow.*sudo(?s:.*)NOPASSWD"):
            Lab.up(small_lab(), there, new_id())
        assert here.standing() == []
        there = environment(place, here.folder, allow=[])   # for a lab that needs no root there
        plain = describe({"server": ("a", {}), "client": ("b", {})})
        with Lab.up(plain, there, new_id()) as lab:
            assert lab.host("server").run("id -un; pwd").stdout.split() == ["op", f"{ROOT}/{lab.id}/server"]
            with pytest.raises(LabError, match="needs root"):
                lab.host("server").run("true", root=True)


def test_a_host_serves_one_lab_at_a_time(place, here, tmp_path, monkeypatch):
    """The second one, of another user or machine, is told who has it, and leaves it alone."""
    there = environment(place, here.folder)
    with as_before(place):
        first = Lab.up(small_lab(), there, new_id())
        try:
            first.host("server").start("server", "sleep 1000")
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
            with as_before(place) as during:
                with pytest.raises(LabError) as error:
                    Lab.up(small_lab(), there, new_id())
            assert f"in use: lab {first.id} of" in str(error.value)
            assert any(ROOT in path for path in during["h1"]["files"])
            assert not list((tmp_path / "another").glob("labbook/labs/[a-z]*/journal"))
            monkeypatch.setenv("XDG_STATE_HOME", str(here.state))
            assert first.host("server").process("server").alive()
        finally:
            first.down()


def test_two_that_come_at_once_do_not_share_a_host(place, here):
    """Each asks for both hosts: one has both, or none has any; nothing of the other stays."""
    there, outcomes = environment(place, here.folder), {}

    def bring_up(lab_id):
        try:
            outcomes[lab_id] = Lab.up(small_lab({}, ()), there, lab_id)
        except LabError as error:
            outcomes[lab_id] = error

    with as_before(place):
        threads = [threading.Thread(target=bring_up, args=(new_id(),)) for _ in range(3)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        labs = [o for o in outcomes.values() if isinstance(o, Lab)]
        assert len(outcomes) == 3 and len(labs) <= 1
        assert all("in use" in str(o) for o in outcomes.values() if o not in labs), outcomes
        for lab in labs:
            claim = json.loads(place.inside("h1", f"cat {ROOT}/in-use"))
            assert claim["lab"] == lab.id and place.inside("h2", f"ls {ROOT}").split() == sorted(
                ["in-use", lab.id])
            lab.down()


def test_what_lies_in_the_way_is_left_alone(place, here):
    lab_id = new_id()
    place.inside("h1", f"mkdir -p {ROOT}/{lab_id} && echo mine > {ROOT}/{lab_id}/thesis", user="op")
    try:
        with as_before(place), pytest.raises(LabError, match=f"h1: .*{lab_id} is in the way"):
            Lab.up(small_lab(), environment(place, here.folder), lab_id)
    finally:
        place.inside("h1", f"rm -r {ROOT}")


# Of the tests' own, with a service that its installation starts, and on each start of the host.
PROBE = r"""set -e
cd $(mktemp -d); mkdir -p probe/DEBIAN probe/etc/init.d /srv/archive
cat > probe/DEBIAN/control <<'END'
Package: labbook-probe
Version: 1.0
Architecture: all
Maintainer: Tests <tests@example.invalid>
Description: a service
END
cat > probe/etc/init.d/labbook-probe <<'END'
#!/bin/sh
### BEGIN INIT INFO
# Provides: labbook-probe
# Required-Start:
# Required-Stop:
# Default-Start: 2 3 4 5
# Default-Stop: 0 1 6
### END INIT INFO
[ "$1" != start ] || setsid sleep 100000 > /dev/null 2>&1 < /dev/null &
END
printf '#!/bin/sh\nupdate-rc.d labbook-probe defaults\ninvoke-rc.d labbook-probe start\n' \
  > probe/DEBIAN/postinst
chmod 755 probe/DEBIAN/postinst probe/etc/init.d/labbook-probe
dpkg-deb --build probe /srv/archive/probe.deb > /dev/null; rm -r $PWD
cd /srv/archive
{ dpkg-deb -f probe.deb; echo "Filename: ./probe.deb"; echo "Size: $(stat -c %s probe.deb)"
  echo "SHA256: $(sha256sum probe.deb | cut -d' ' -f1)"; } > Packages
echo 'deb [trusted=yes] file:/srv/archive ./' > /etc/apt/sources.list"""
APTS_OWN = r"h1: (packages: new: labbook-probe 1.0 |files: /(var/(lib|cache|log)/(apt|dpkg|systemd)|" \
           r"etc/(init|rc[0-6S])\.d/\w*labbook-probe|run/labbook(/\.locks(/install)?)?:))"


def test_packages_are_installed_where_allowed_and_stay_without_their_service(place, here):
    place.inside("h1", PROBE)
    wanted = describe({"server": ("a", {})}, needs={"packages": ["labbook-probe"]})
    with as_before(place):
        with pytest.raises(LabError, match=r"hosts\.h1\.allow: package labbook-probe \(missing"):
            Lab.up(wanted, environment(place, here.folder, allow=["limits"]), new_id())
    before = place.snapshots()
    with Lab.up(wanted, environment(place, here.folder, allow=["packages"]), new_id()) as lab:
        assert "installed" in lab.host("server").run("dpkg -s labbook-probe").stdout
        assert place.inside("h1", "pgrep sleep", check=False) == ""
    changed = change(place, before)
    assert [line for line in changed if not re.match(APTS_OWN, line)] == []
    assert any("packages: new: labbook-probe" in line for line in changed)
    assert not [line for line in changed if "rc2.d/S" in line]
    with as_before(place):      # the second time there is nothing to do
        Lab.up(wanted, environment(place, here.folder, allow=[]), new_id()).down()
