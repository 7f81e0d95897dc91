"""Make a lab on the user's hosts; everything is in the host's journal before it is made."""

import json
import secrets
import shlex
from dataclasses import asdict, replace
from pathlib import Path

from labbook.lab.disk import modelled
from labbook.lab.host import as_root
from labbook.lab.remote import preflight, root, software
from labbook.lab.remote.assign import match, parse_cpus, share_cores
from labbook.lab.remote.claim import MARK, ClaimedHost, look, note_claimed, ours, require_free, take
from labbook.lab.remote.packages import provide
from labbook.lab.remote.parallel import each, twice
from labbook.lab.remote.unmake import unmake_host
from labbook.lab.ssh import config
from labbook.lab.ssh.login import Login
from labbook.lab.ssh.transfer import say

# Refuses after the lab was taken down: a killed driver's command may arrive late.
DISK_SECONDS = 300      # a modelled one is compiled, started and gets a file system
FOLDERS = """umask 077; grep -qsF @OURS@ @ROOT@/in-use || { echo 'taken down meanwhile' >&2; exit 1; }
mkdir -p @FOLDERS@ && cd @LAB@ || exit 1
if [ ! -e journal ]; then
  printf '%s\\n' @ENTRY@ > journal.@MARK@ && touch @STAYS@ || exit 1
  ln journal.@MARK@ journal 2> /dev/null; rm -f journal.@MARK@
fi
grep -qsF @MARK@ journal || { echo 'another host has this root folder too: give each its own' >&2; exit 1; }
"""


def make(lab_id: str, description, environment, folder: Path) -> dict:
    """Make the lab: {"hosts": [...]}, each for provider.host(). InputError or LabError on failure."""
    matched = match(description, environment)
    reals = list({real.name: real for real in matched.values()}.values())
    say(f"looking at {_count(reals)}")
    preflight.require(description, environment)
    works = [_Work(lab_id, description, real,
                   [name for name in matched if matched[name] is real]) for real in reals]
    try:
        each(works, _Work.look)
        each(works, lambda work: work.take(folder), _Work.stop)
        each(works, _Work.make_folders, _Work.stop)     # all, before anything else is made on one
        each(works, _Work.furnish, _Work.stop)
    finally:
        for work in works:
            work.host.close()
    hosts = {host["name"]: host for work in works for host in work.made}
    made = {"hosts": [hosts[plan.name] for plan in description.hosts]}
    config.write({host["name"]: Login.from_facts(host["login"]) for host in made["hosts"]}, folder)
    return made


class _Work:
    """The work on one real host, for the lab hosts `names` that it serves."""

    def __init__(self, lab_id, description, real, names):
        self.lab_id, self.description, self.real, self.names = lab_id, description, real, names
        self.taken = ClaimedHost.of(real)
        self.host, self.place = self.taken.host(), self.taken.lab_folder(lab_id)
        self.looked, self.mark, self.made = None, secrets.token_hex(8), []
        self.python, self.stopped = real.python, False

    @property
    def name(self):
        return self.real.name

    def stop(self):
        """Make commands in progress fail at once, and do not retry them."""
        self.stopped = True
        self.host.disconnect()

    def _twice(self, action):
        return twice(self.host, action, lambda: self.stopped)

    def look(self):
        """Check the host; take down what an earlier lab of this id left. Changes nothing else."""
        self.looked = look(self.host, self.real.root, self.lab_id)
        if ours(self.looked.in_use, self.lab_id):
            unmake_host(self.taken, self.lab_id)
            self.looked = look(self.host, self.real.root, self.lab_id)
        require_free(self.host, self.real.root, self.lab_id, self.looked)
        self.cpus = share_cores(self.description, self.names, parse_cpus(self.looked.cpus),
                                self.name)

    def take(self, folder: Path):
        note_claimed(folder, ClaimedHost.of(self.real, self.looked.made))
        self._twice(lambda: take(self.host, self.real.root, self.lab_id,
                                 self.looked.made))

    def make_folders(self):
        """Make the folders and the journal; LabError when another host has the same root folder."""
        entry = json.dumps({"made": "lab", "boot": self.looked.boot, "lab": self.lab_id,
                            "mark": self.mark})
        script = (FOLDERS.replace("@FOLDERS@", " ".join(map(self._of, self.names)))
                  .replace("@OURS@", shlex.quote(json.dumps({"lab": self.lab_id})[1:-1]))
                  .replace("@ROOT@", shlex.quote(str(self.real.root)))
                  .replace("@LAB@", shlex.quote(str(self.place)))
                  .replace("@ENTRY@", shlex.quote(entry)).replace("@MARK@", self.mark)
                  .replace("@STAYS@", as_root.STAYS))
        self._twice(lambda: self.host.run(script))

    def furnish(self):
        self._packages()
        if self.real.may("software"):  # else preflight found it there
            self.python = self._twice(lambda: software.install(self.host, self.real, self.place))
        for name in self.names:
            plan = self.description.host(name)
            number = self._disk(name, plan.limits.get("disk"))
            limited = self._twice(lambda: self._limit(name, plan.limits, number))
            self._twice(lambda: self.host.run(f"umask 077; cd {self._of(name)} && mkdir -p tmp"))
            self.made.append(self._facts(plan, limited))

    def _of(self, name):
        return shlex.quote(str(self.place / name))

    def _packages(self):
        """Install packages that lab.yml names and that modelled disks need; systems install theirs when they
        start."""
        needed = list(self.description.needs.get("packages", ()))
        if any("model" in self.description.host(name).limits.get("disk", {}) for name in self.names):
            needed += modelled.PACKAGES
        if needed and self.real.may("packages"):  # else preflight found them there
            host = replace(self.host, root=self.place / self.names[0])
            try:
                provide(host, needed, lambda: self.stopped)
            finally:
                host.close()

    def _disk(self, name, wanted) -> str | None:
        if not wanted:
            return None
        say(f"{self.name}: making a disk for {name}")
        place = str(self.place / name)

        def anew():  # a lost connection may have left half a disk
            as_root.call(self.host, root.undo_disk, self.place, file=f"{place}.disk")
            source = modelled.source() if "model" in wanted else ""
            return as_root.call(self.host, root.make_disk, self.place, timeout_s=DISK_SECONDS, place=place,
                                disk=wanted, source=source)
        return self._twice(anew)["number"]

    def _limit(self, name, wanted, number) -> dict:
        """The control groups of a lab host, and whether they can freeze it."""
        throttled = {"iops", "mb_per_s"} & set(wanted.get("disk") or {})
        if not {"cores", "cores_of", "quota", "memory"} & set(wanted) and not throttled:
            return {"groups": [], "freezer": False}
        return as_root.call(
            self.host, root.make_limits, self.place, place=str(self.place), lab=self.lab_id, name=name,
            limits=wanted, cores=self.cpus.get(name), number=number,
            uid=self.looked.uid)

    def _facts(self, plan, limited) -> dict:
        folder = self.place / plan.name
        return {
            "name": plan.name, "site": plan.site, "role": plan.role, "limits": plan.limits,
            "cores": self.cpus.get(plan.name), "address": self.real.data, "root": str(folder),
            "login": asdict(self.real.login), "python": self.python,
            "sudo": self.taken.sudo, "allow": sorted(self.real.allow), **limited,
            "env": {MARK: self.mark, "TMPDIR": f"{folder}/tmp"}, "machine": self.looked.machine,
        }


def _count(reals):
    return "1 host" if len(reals) == 1 else f"{len(reals)} hosts"
