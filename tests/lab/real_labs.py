"""Labs on foreign hosts, for tests: a folder that is this machine's side of it, and what must be
on the hosts afterwards."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import yaml
from foreign import differences
from small_labs import describe

from labbook.lab import Environment

HERE = Path(__file__).parent
ROLES = {"h1": ["db"], "h2": ["client"]}
# One of everything that a lab makes on hosts: processes, limits, a disk, rules of the firewall.
LIMITS = {"cores": 1, "memory": "256M", "disk": {"size": "64M"}}
ALLOW = ["limits", "disk", "shape"]


def small_lab(limits=LIMITS, links=({"between": ["a", "b"], "rtt_ms": 20},)):
    return describe({"server": ("a", limits), "client": ("b", {})}, links)


def environment(place, folder, **changes) -> Environment:
    """For `small_lab`, with all that it asks for allowed."""
    given = {"roles": ROLES, "allow": ALLOW, **changes}
    sites = {"h1": {"site": "a"}, "h2": {"site": "b"}}
    for name, entry in given.pop("hosts", {}).items():
        sites.setdefault(name, {}).update(entry)
    return Environment.load(place.environment(Path(folder, "hosts.yml"), hosts=sites, **given))


def change(place, before: dict) -> list[str]:
    """What hosts have that differs from the snapshots `before`."""
    limit = time.monotonic() + 10   # what was killed takes a moment to go
    while True:
        found = [f"{name}: {line}" for name, old in before.items()
                 for line in differences(old, place.snapshot(name))]
        if not found or time.monotonic() > limit:
            return found
        time.sleep(0.2)


@contextmanager
def as_before(place):
    """The hosts must be at the end of the block as they are now."""
    before = place.snapshots()
    yield before
    changed = change(place, before)
    if changed:
        raise AssertionError("hosts are not as they were:\n" + "\n".join(changed))


class Checkout:
    """A book of one study, this machine's side of its labs, and the commands of labbook on it."""

    def __init__(self, folder: Path, state: Path | None = None):
        self.folder, self.state = folder, state or folder / "state"
        (folder / "_toc.yml").touch()
        for name in ("notebooks", "environments"):
            (folder / name).mkdir(exist_ok=True)

    @property
    def variables(self) -> dict:
        return {"LABBOOK_ROOT": str(self.folder), "XDG_STATE_HOME": str(self.state),
                "PYTHONPATH": str(HERE)}

    def paper(self, study: str, lab: dict, claims="[]\n"):
        paper = self.folder / "data" / "papers" / study
        paper.mkdir(parents=True)
        (paper / "lab.yml").write_text(yaml.safe_dump(lab, sort_keys=False))
        (paper / "claims.yml").write_text(claims)

    def start(self, *words, **more):
        return subprocess.Popen([sys.executable, *map(str, words)], text=True, cwd=self.folder,
                                env={**os.environ, **self.variables}, **more)

    def labbook(self, *words, timeout=300):
        """A command of labbook: its exit code and all that it printed."""
        done = self.start("-m", "labbook.cli", *words, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
        try:
            output, _ = done.communicate(timeout=timeout)
        finally:
            done.kill()
        return done.returncode, output

    def standing(self) -> list[Path]:
        """What is still noted on this machine of labs."""
        return [p for p in (self.state / "labbook" / "labs").glob("*") if p.is_dir()]
