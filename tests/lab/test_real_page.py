"""The book's page "On your own hosts", typed word for word: from nothing to a run and back to nothing.

Only its addresses are replaced, by those of hosts that the test makes, and the study's parameters are
small ones. The hosts know an older key of the user's, for ssh-copy-id to begin with.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
import quick_jvm
from checkout_copy import CHECKOUT, copy_checkout, with_one_study
from foreign import foreign_hosts
from real_labs import as_before

PAGE = (CHECKOUT / "book" / "own_hosts.md").read_text()
RACKS = [f"rack{i}" for i in range(1, 6)]
ONE = " ".join(f"-p {name}.clients '[1]'" for name in (     # else they have ceilings of their own
    "nodes", "many", "stages", "placed", "levels", "repair", "writes", "flush", "wiki"))
SMALL = f"-p clients.clients '[1, 2]' {ONE} -p load.requests 20 -p clients.repeats 1 -p warm.rounds 1 " \
        "-p warm.requests 5 -p warm.clients 2 -p warm.seconds 0.2 -p load.warmup_requests 2 -p nodes.repeats 0 -p writes.repeats 0 " \
        "-p warmth.repeats 0 -p wiki.repeats 0"
# Labs of this machine's own are not for `labbook down --all` here.
LOCAL_LABS, HIDE = Path("/run/labbook"), "mount -t tmpfs tmpfs /run/labbook\n"
# The page's `~` is the test's; OpenSSH takes the user's own from the list of accounts.
SSH = """#!/bin/sh
exec /usr/bin/ssh -F none -o UserKnownHostsFile="$HOME/.ssh/known_hosts" "$@"
"""


@pytest.fixture(scope="module")
def place():
    with foreign_hosts([*RACKS, "desk"], jump="bastion") as made:
        yield made


@pytest.fixture
def desk(place, tmp_path):
    """The machine that the user sits at: a checkout, a home, a key that lets in to the hosts."""
    made = Desk(place, tmp_path)
    yield made
    made.type("labbook down --all", check=False)
    subprocess.run(["kill", made.environ["SSH_AGENT_PID"]], check=True)


class Desk:
    def __init__(self, place, folder):
        self.checkout, home = folder / "labbook", folder / "home"
        with_one_study(copy_checkout(self.checkout))
        (home / ".ssh").mkdir(parents=True, mode=0o700)
        (folder / "bin").mkdir()
        (folder / "bin" / "ssh").write_text(SSH)
        (folder / "bin" / "ssh").chmod(0o755)
        self.environ = {
            "PYTHONSTARTUP": quick_jvm.__file__, "HOME": str(home), "PYTHONPATH": f"{self.checkout}/lib", "PATH": f"{folder}/bin:{os.environ['PATH']}", "LANG": "C.UTF-8",
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")}
        key = place.environment(folder / "unused.yml").parent / "foreign_key"
        agent = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
        self.environ |= dict(re.findall(r"(SSH_\w+)=([^;]+);", agent))
        subprocess.run(["ssh-add", "-q", key], env=self.environ, check=True)

    def type(self, block, check=True):
        """Type a block into a shell; its output."""
        apart = ["unshare", "--mount"] if os.geteuid() == 0 and LOCAL_LABS.is_dir() else []
        ready = f'{HIDE if apart else ""}export PATH="$PWD/.venv/bin:$PATH"\n'
        done = subprocess.run([*apart, "bash", "-ec", ready + block], cwd=self.checkout, env=self.environ,
                              stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=500)
        assert not check or done.returncode == 0, f"{block}\n{done.stdout}"
        return done.stdout


def blocks(place, language):
    """The page's, with the addresses of these hosts."""
    ours = {"198.51.100.7": place.address("bastion")}
    for i, name in enumerate([*RACKS, "desk"]):
        ours |= {f"192.0.2.{11 + i}": place.address(name),
                 f"10.0.0.{11 + i}": place.addresses[name]["data"]}
    return [re.sub(r"\b(?:192\.0\.2|10\.0\.0|198\.51\.100)\.\d+\b", lambda m: ours[m[0]], block)
            for block in re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)]


def test_the_page_word_for_word(place, desk):
    bootstrap, key, copy, jump, sudo, look, run, explore, down = blocks(place, "bash")
    written, = blocks(place, "yaml")
    desk.type(bootstrap)
    assert "ED25519" in desk.type(key)
    assert "Number of key(s) added: 1" in desk.type(copy)
    assert "Number of key(s) added: 1" in desk.type(jump)
    allow_root(place, sudo)
    (desk.checkout / "environments" / "hosts.yml").write_text(written)

    with as_before(place):
        output = desk.type(look)
        assert "\nNothing is missing. " in output, output
        assert "repeats until 4 headline claims have a verdict; 0 have one" in output
        assert re.search(r"as root: limits: .*\bsmall \(", output)
        output = desk.type(re.sub(r"^(labbook run .*)$", rf"\1 {SMALL}", run, flags=re.M))
        assert (desk.checkout / "build/html/index.html").exists(), output
        output = desk.type(explore)
        assert re.search("^(rack1)$", output, re.M) and "is down" in output, output
        desk.type(down)


def allow_root(place, sudo):
    """By an administrator of the hosts; his own leave is taken from him, so that the page's counts."""
    for name in [*RACKS, "desk"]:
        place.inside(name, f"set -e\n{sudo}", user=place.user)
        place.inside(name, "rm /etc/sudoers.d/tests")
