"""Another user of the machine can neither block, read nor redirect what labs do."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from small_labs import SUDO, describe, new_id

from labbook.lab import Environment, Lab, probes
from labbook.lab.on_host import quiet_apt

NOBODY = [*SUDO, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-I", "-c"]
PLACES = ["/run/labbook", "/run/lock", "/var/lib/labbook", "/var/tmp", "/tmp"]
# Prints what of labbook's it can open; holds a lock on each until its input ends.
OPEN = """
import fcntl, json, os, sys
opened = []
for top in sys.argv[1:]:
    for place, folders, files in os.walk(top):
        if top in ("/tmp", "/var/tmp"):
            folders[:] = [name for name in folders if name.startswith("labbook")]
        for path in [place, *(f"{place}/{name}" for name in files)]:
            if "labbook" not in path:
                continue
            try:
                number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            opened.append(path)
print(json.dumps(opened), flush=True)
sys.stdin.read()
"""
PLANT = """
import os, sys
target, *links = sys.argv[1:]
for link in links:
    os.symlink(target, link)
os.mkdir("/var/tmp/labbook-probe-planted")
"""
# In a mount namespace, nobody may use sudo; then it brings a lab up.
AS_SUDOER = """mount -t tmpfs -o mode=755 tmpfs /etc/sudoers.d
echo 'nobody ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/nobody && chmod 440 /etc/sudoers.d/nobody
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@" """
LAB_OF_ITS_OWN = """
import os, shutil, sys, tempfile
os.environ["HOME"] = tempfile.mkdtemp()
sys.path[:0] = sys.argv[1:3]
from small_labs import describe
from labbook.lab import Environment, Lab
try:
    with Lab.up(describe({"h1": {"cores": 1, "quota": 0.5}}), Environment("local"), sys.argv[3]) as lab:
        owner = lab.folder.stat()
        lab.limit("h1", None)
        print(owner.st_uid, oct(owner.st_mode & 0o777), lab.host("h1").run("id -u").stdout.strip())
    assert not lab.folder.exists()
finally:
    shutil.rmtree(os.environ["HOME"])
"""
HERE = Path(__file__).parent
LIB = HERE.parents[1] / "lib"
LIMITS = {"disk": {"size": "32M"}, "memory": "128M"}


@pytest.fixture(scope="module")
def lab():
    with Lab.up(describe({"h1": LIMITS}), Environment("local"), new_id()) as made:
        yield made


@contextmanager
def opened_by_nobody(*places):
    """What another user could open, who holds a lock on all of it during the block."""
    process = subprocess.Popen([*NOBODY, OPEN, *map(str, places)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.communicate()


def test_nobody_reads_nothing_of_a_lab(lab):
    host = lab.host("h1")
    device = host.run("df --output=source . | tail -n 1").stdout.strip()
    assert probes.probe("tbf").ok       # is written down, for anybody to read
    with opened_by_nobody(*PLACES) as opened:
        mine = [path for path in opened if lab.id in path]
    assert mine == [] and "/run/labbook/probes.json" in opened
    assert not [path for path in opened if path.startswith(("/run/labbook/.", "/var/lib/labbook/."))]
    secrets = [device, *(lab.folder / name for name in ("key", "host_key", "journal", "owner.lock", "lab.json")),
               f"/var/lib/labbook/{lab.id}/h1.disk"]
    code = "import sys\nfor path in sys.argv[1:]:\n try: open(path, 'rb').read(1)\n except OSError: print(path)"
    denied = subprocess.run([*NOBODY, code, *map(str, secrets)], capture_output=True, text=True).stdout
    assert denied.split() == [*map(str, secrets)]


@pytest.mark.timeout(120)
def test_nobody_holds_up_nothing_by_locks(lab):
    """It takes a lock on all that it can open; before, that was enough to block all labs for ever."""
    assert probes.probes(["tbf"], again=True)["tbf"].ok
    with opened_by_nobody(*PLACES):
        with Lab.up(describe({"h1": {}}), Environment("local"), new_id()) as other:
            assert other.host("h1").run("echo up").stdout == "up\n"
        assert probes.probes(["tbf"], again=True)["tbf"].ok


def test_names_that_nobody_plants_lead_root_nowhere(tmp_path):
    tmp_path.chmod(0o755)
    precious = tmp_path / "precious"
    precious.write_text("text")
    links = ["/run/lock/labbook-install", "/run/lock/labbook-planted", "/tmp/labbook-planted"]
    links = [link for link in links if os.access(os.path.dirname(link), os.F_OK)
             and os.stat(os.path.dirname(link)).st_mode & 0o002 and not os.path.lexists(link)]
    log = tmp_path / "log"
    try:
        subprocess.run([*NOBODY, PLANT, str(precious), *links], check=True)
        found = probes.probes(["loop", "tbf"], again=True)
        assert found["tbf"].ok and "planted" not in found["loop"].found
        subprocess.run([*SUDO, sys.executable, "-I", quiet_apt.__file__, str(log)], check=True)
        assert Path("/var/tmp/labbook-probe-planted").is_dir() and precious.read_text() == "text"
        assert all(os.path.islink(link) for link in links)
    finally:
        subprocess.run([*SUDO, "rm", "-f", *links])
        subprocess.run([*SUDO, "rmdir", "/var/tmp/labbook-probe-planted"])


def test_a_user_with_sudo_has_a_lab_of_its_own():
    command = [sys.executable, "-c", LAB_OF_ITS_OWN, str(LIB), str(HERE), new_id()]
    reads = subprocess.run([*SUDO, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                            sys.executable, "-c", f"open({str(HERE / 'small_labs.py')!r})"], capture_output=True)
    if reads.returncode or not shutil.which("sudo"):
        pytest.skip("nobody cannot read this checkout and its Python, or there is no sudo")
    done = subprocess.run([*SUDO, "unshare", "--mount", "sh", "-ec", AS_SUDOER, "sh", *command],
                          capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["65534", "0o700", "0"], done.stderr
