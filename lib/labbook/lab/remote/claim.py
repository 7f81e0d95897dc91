"""Taking a host for a lab: one lab at a time, and nothing is written outside its root folder."""

import json
import shlex
import time
from dataclasses import dataclass, field

from labbook.errors import LabError
from labbook.lab.remote import record
from labbook.lab.remote.record import IN_USE, Taken

LOOK = r"""root=@ROOT@; lab=@ROOT@/@LAB@
say() { printf '%s\t%s\n' "$1" "$2"; }
say boot "$(cat /proc/sys/kernel/random/boot_id)"; say uid "$(id -u)"
say cpus "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"
say kernel "$(uname -r)"; say memory_kib "$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo)"
say cpu "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"; say arch "$(uname -m)"
say system "$(. /etc/os-release 2> /dev/null; echo "$PRETTY_NAME")"
if [ -L "$root" ]; then say wrong "is a link to $(readlink "$root")"
elif [ -e "$root" ]; then
  [ -d "$root" ] || say wrong "is no folder"
  [ "$(stat -c %u "$root")" = "$(id -u)" ] || say wrong "belongs to $(stat -c %U "$root")"
  case "$(stat -c %A "$root")" in ????????w*) say wrong "can be written by everybody";; esac
  [ -e "$root/in-use" ] && say in_use "$(cat "$root/in-use")"
  if [ -e "$lab" ] || [ -L "$lab" ]; then say there yes; fi
else
  place=$root; while [ ! -e "$place" ] && [ ! -L "$place" ]; do say made "$place"; place=$(dirname "$place"); done
fi
"""
TAKE = r"""umask 077
[ -d @ROOT@ ] || { mkdir -p @ROOT@ && printf '%s\n' @NEW@ > @ROOT@/.new-folders; } || exit 1
cd @ROOT@ || exit 1
printf '%s\n' @CLAIM@ > in-use.@LAB@ || exit 1
ln in-use.@LAB@ in-use 2> /dev/null; rm -f in-use.@LAB@; cat in-use
"""


@dataclass
class Looked:
    """What a host says before it is taken. `made`: folders that its root folder will take."""

    boot: str = ""
    uid: int = -1
    cpus: str = ""
    wrong: str = ""
    there: bool = False
    in_use: dict | None = None
    made: list[str] = field(default_factory=list)
    facts: dict = field(default_factory=dict)

    @property
    def machine(self) -> dict:
        """As a reader is told of it: no name, no address."""
        from labbook.lab.remote.cores import listed

        return {"cpu": self.facts.get("cpu") or self.facts.get("arch", ""),
                "cores": len(listed(self.cpus)),
                "memory_gib": round(int(self.facts["memory_kib"]) / 2**20, 1),
                "kernel": self.facts["kernel"], "system": self.facts["system"]}


def look(host, root, lab_id: str) -> Looked:
    """Changes nothing. LabError when the root folder cannot be one."""
    said = host.run(_filled(LOOK, root, lab_id)).stdout
    looked = Looked()
    for line in said.splitlines():
        key, _, value = line.partition("\t")
        if key == "made":
            looked.made.append(value)
        elif key == "in_use":
            looked.in_use = claimed(value)
        elif key == "uid":
            looked.uid = int(value)
        elif key == "there":
            looked.there = True
        elif key in ("boot", "cpus", "wrong"):
            setattr(looked, key, value)
        else:
            looked.facts[key] = value
    if looked.wrong:
        raise LabError(f"{host.name}: the root folder {root} {looked.wrong}",
                       remedy="Name a folder of the login user's own in the environment file, or "
                              "none yet: it is made then")
    return looked


def ours(in_use: dict | None, lab_id: str) -> bool:
    return in_use is not None and (in_use["lab"], in_use["by"]) == (lab_id, record.driver())


def require_free(host, root, lab_id: str, looked: Looked) -> None:
    """LabError when another lab has the host, or something is where the lab's folder would be."""
    if looked.in_use is not None and not ours(looked.in_use, lab_id):
        raise _taken(host, root, looked.in_use)
    if looked.there and looked.in_use is None:
        raise LabError(f"{host.name}: {root}/{lab_id} is in the way: it is no lab's folder",
                       remedy="Look what it is, and delete or move it")


def take(host, root, lab_id: str, new_folders=()) -> None:
    """Make the mark `in-use`, in one step; LabError when another lab was first.

    `new_folders`, which the root folder takes, are noted there: the last lab to go takes them away.
    """
    claim = record.claim(lab_id, time.strftime("%Y-%m-%d %H:%M:%S %z"))
    script = _filled(TAKE, root, lab_id).replace("@NEW@", shlex.join(new_folders) or "''")
    said = host.run(script.replace("@CLAIM@", shlex.quote(claim))).stdout
    if not ours(claimed(said), lab_id):
        raise _taken(host, root, claimed(said))



def _taken(host, root, in_use) -> LabError:
    lab = in_use["lab"]
    return LabError(
        f"{host.name} is in use: lab {lab} of {in_use['by']} has it since {in_use['time']}",
        remedy=f"Wait for it, or type there: labbook down {lab}. If that machine is gone for "
               f"good: reboot {host.name}, then delete {root}/{lab} and {root}/{IN_USE} on it")


def claimed(text: str) -> dict:
    """What an `in-use` file says; of a lab unknown when it says nothing that can be read."""
    try:
        read = json.loads(text)
        return {key: str(read[key]) for key in ("lab", "by", "time")}
    except (ValueError, KeyError, TypeError):
        return {"lab": "unknown", "by": "unknown", "time": "an unknown time"}


def _filled(script, root, lab_id):
    return script.replace("@ROOT@", shlex.quote(str(root))).replace("@LAB@", lab_id)
