"""Take down a lab by the journals on its hosts; what is not in them is not touched.

The journal in this machine's state folder only says how to reach the hosts.
"""

import shlex
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.disk import modelled, tracefs
from labbook.lab.host import as_root, fuse
from labbook.lab.host.process import FIELD, IS
from labbook.lab.journal import parse
from labbook.lab.link import firewall
from labbook.lab.local import unmake as local
from labbook.lab.remote import root
from labbook.lab.remote.claim import MARK, claimed, note_released, ours, still_claimed
from labbook.lab.remote.parallel import each, twice

SECONDS = 60
READ = r"""if [ ! -d @ROOT@ ]; then echo gone; elif [ ! -e @ROOT@/in-use ]; then echo free
else in_use=$(cat @ROOT@/in-use) && printf '%s\n' "$in_use" || exit 1; fi; cat /proc/sys/kernel/random/boot_id
cat @LAB@/journal 2> /dev/null; true"""
# Kills processes of recorded sessions (identified by pid and start time), those with the lab's mark
# in their environment, and those in its control groups.
END = FIELD + IS + r"""mine() {
  cat @LAB@/*/processes/*/ids 2> /dev/null | while read -r leader start child its boot; do
    if is "$leader" "$start" || is "$child" "$its"; then pgrep -r D,R,S,T,t,I -s "$leader"; fi
  done
  grep -lzxF @MARK@ /proc/[0-9]*/environ 2> /dev/null | cut -d/ -f3
  for group in @GROUPS@; do cat "$group/cgroup.procs" 2> /dev/null; done
}
tries=0
while left=$(mine | sort -u | tr '\n' ' ') && [ -n "$left" ]; do
  [ $tries -lt 400 ] || { echo "processes do not end: $left"; exit 1; }
  kill -KILL $left 2> /dev/null
  for group in @GROUPS@; do   # what is frozen does not end
    [ ! -e "$group/freezer.state" ] || echo THAWED > "$group/freezer.state"
    [ ! -e "$group/cgroup.freeze" ] || echo 0 > "$group/cgroup.freeze"
  done
  sleep 0.05; tries=$((tries + 1))
done"""
# Puts right what an install that was killed left, but for what dpkg left half-installed: that may take minutes, and
# the next install finishes it. An install that still runs does so itself, and is not waited for.
END_INSTALL = """cd @LAB@/apt 2> /dev/null && [ -e quiet_apt.py ] || exit 0
timeout -s KILL 50 @PYTHON@ -I quiet_apt.py log; code=$?
rmdir /var/lib/labbook 2> /dev/null; [ $code = 0 ] || [ $code = 137 ]"""
CLEAR = "rm -rf --one-file-system @LAB@"
RELEASE = "rm -f @ROOT@/in-use"
TIDY = r"""rm -f @ROOT@/in-use.@ID@; new=$(cat @ROOT@/.new-folders 2> /dev/null)
[ "$(ls -A @ROOT@ 2> /dev/null)" != .new-folders ] || rm -f @ROOT@/.new-folders
for folder in ${new:-@MADE@}; do rmdir "$folder" 2> /dev/null || break; done; true"""


def unmake(lab_id: str, folder: Path) -> list[str]:
    """Clean all hosts in parallel; return messages about what could not be undone."""
    def undo(taken):
        try:
            unmake_host(taken, lab_id)
        except LabError as error:
            return str(error)
        note_released(folder, taken)
        return None
    return [problem for problem in each(still_claimed(folder), undo) if problem]


def unmake_host(taken, lab_id: str) -> None:
    """Clean one host; may be repeated. LabError says what stays."""
    host = taken.host()
    try:
        twice(host, lambda: _Unmaking(taken, lab_id, host).all())
    finally:
        host.close()


class _Unmaking:
    def __init__(self, taken, lab_id, host):
        self.taken, self.lab_id, self.host = taken, lab_id, host
        self.place = taken.lab_folder(lab_id)

    def all(self):
        in_use, boot, *journal = self._sh(READ).splitlines()
        if in_use == "gone" and not self.taken.new_folders:     # which this lab, or one before, would have taken away
            raise LabError(f"{self.taken.name}: {self.taken.root} is not there, so what is left in it stays",
                           remedy=f"Mount its disk there, then: labbook down {self.lab_id}")
        if in_use not in ("free", "gone") and claimed(in_use)["lab"] == "unknown":
            raise LabError(f"{self.taken.name}: {self.taken.root}/in-use cannot be read, so what is left there stays",
                           remedy=f"If no other lab is on it: reboot it, then delete {self.place} and "
                                  f"{self.taken.root}/in-use there")
        if ours(claimed(in_use), self.lab_id, self.taken.by):   # else never claimed, or released already
            self._sh(as_root.going_down("@LAB@"))
            _, boot, *journal = self._sh(READ).splitlines()  # now complete
            self._undo(parse("\n".join(journal)), boot)
            self._sh(CLEAR, root=self.taken.sudo)
            self._sh(RELEASE)
        self._sh(TIDY)

    def _undo(self, entries, boot):
        of = {kind: [e for e in entries if e.get("made") == kind]
              for kind in ("lab", "packages", root.GROUP, root.SWITCHED, tracefs.KIND, root.DISK, firewall.KIND,
                           modelled.KIND)}
        sudo = self.taken.sudo
        groups = [e["folder"] for e in of[root.GROUP]]
        same_boot = any(e["boot"] == boot for e in of["lab"])
        for entry in of[firewall.KIND]:     # first: a process that does not end must not keep the owner's packets
            self._sh("set -e\n" + "\n".join(firewall.undo(entry)), root=sudo)
        if same_boot:
            mark = next(e["mark"] for e in of["lab"])
            self._unmount()  # processes that hang on a mount would not end
            if of[modelled.KIND]:   # nor, for long, those that wait for a slow disk
                as_root.call(self.host, root.hurry_disks, self.place, lab=str(self.place))
            self._sh(END.replace("@MARK@", shlex.quote(f"{MARK}={mark}"))
                     .replace("@GROUPS@", shlex.join(groups)), root=sudo)
            self._unmount()  # mounts made meanwhile
        if of[tracefs.KIND]:
            as_root.call(self.host, local.traces, self.place,
                         names=[entry["instance"] for entry in of[tracefs.KIND]])
        for entry in of[root.DISK]:
            as_root.call(self.host, root.undo_disk, self.place, file=entry["file"])
        if groups:
            as_root.call(self.host, root.undo_limits, self.place, folders=groups,
                         # after a reboot the lab did not enable them
                         controllers=[e["name"] for e in of[root.SWITCHED] if same_boot])

        if sum(1 if "asked" in e else -1 for e in of["packages"]) > 0:     # one did not come to its end
            self._sh(END_INSTALL.replace("@PYTHON@", shlex.quote(self.taken.python)), root=True)

    def _unmount(self):
        if "fuse" in self.taken.allow:
            self._sh(fuse.unmount(self.place), root=True)

    def _sh(self, script, root=False) -> str:
        for mark, word in (("@ROOT@", self.taken.root), ("@LAB@", str(self.place)),
                           ("@ID@", self.lab_id)):
            script = script.replace(mark, shlex.quote(word))
        script = script.replace("@MADE@", shlex.join(self.taken.new_folders))
        return self.host.run(script, timeout=SECONDS, root=root).stdout
