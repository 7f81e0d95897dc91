"""Taking a host for a lab: one lab at a time, and nothing is written outside its root folder.

Also what this machine writes down of the hosts that a lab has: enough to reach and clean them later.
"""

import getpass
import json
import platform
import shlex
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

from labbook.errors import LabError
from labbook.lab.host.host import Host, Login
from labbook.lab.journal import Journal

IN_USE = "in-use"       # in a host's root folder: which lab has it; .new-folders, beside it, tells
                        # what the root folder took
MARK = "LABBOOK_LAB"    # in the environment of all that runs in a lab's hosts
WITHOUT_ROOT = {"software"}     # kinds of `allow` that take no sudo
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
        from labbook.lab.remote.assign import parse_cpus

        return {"cpu": self.facts.get("cpu") or self.facts.get("arch", ""),
                "cores": len(parse_cpus(self.cpus)),
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
    return in_use is not None and (in_use["lab"], in_use["by"]) == (lab_id, driver())


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
    claim = claim_text(lab_id, time.strftime("%Y-%m-%d %H:%M:%S %z"))
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


@dataclass(frozen=True)
class ClaimedHost:
    """A host of the user's that a lab takes. `new_folders`: the lab's root folder took,
    the innermost first; they go again when they are empty."""

    name: str
    data: str
    login: Login
    root: str
    python: str
    allow: tuple[str, ...]
    new_folders: tuple[str, ...] = ()

    @classmethod
    def of(cls, real, new_folders=()) -> "ClaimedHost":
        return cls(real.name, real.data, real.login, str(real.root), real.python,
                   tuple(sorted(real.allow)), tuple(new_folders))

    @property
    def sudo(self) -> bool:
        return bool(set(self.allow) - WITHOUT_ROOT)

    def lab_folder(self, lab_id: str) -> PurePosixPath:
        return PurePosixPath(self.root) / lab_id

    def host(self) -> Host:
        """For what is done to the host itself, outside of any lab host's folder and limits."""
        return Host(self.name, "", "", self.data, self.login, PurePosixPath("/"), self.python,
                    sudo=self.sudo, allow=frozenset(self.allow))


def note_claimed(folder: Path, taken: ClaimedHost) -> None:
    Journal(folder).write("taken", **asdict(taken))


def note_released(folder: Path, taken: ClaimedHost) -> None:
    Journal(folder).write("undone", name=taken.name)


def still_claimed(folder: Path) -> list[ClaimedHost]:
    """Hosts on which something may be left, from the journal in the lab's state folder."""
    left = {}
    for entry in Journal(folder).entries():
        kind = entry.pop("made")
        if kind == "undone":
            left.pop(entry["name"], None)
        elif kind == "taken":
            entry["login"] = Login.from_facts(entry["login"])
            left[entry["name"]] = ClaimedHost(**{k: tuple(v) if isinstance(v, list) else v
                                           for k, v in entry.items()})
    return list(left.values())


def driver() -> str:
    """Who takes hosts: user@machine, and what tells machines of one name apart."""
    import hashlib

    try:
        machine = Path("/etc/machine-id").read_text()
    except OSError:
        machine = ""
    mark = hashlib.sha256(machine.encode()).hexdigest()[:6]
    return f"{getpass.getuser()}@{platform.node()} ({mark})"


def claim_text(lab_id: str, time: str) -> str:
    """The content of a host's `in-use` file: a line of JSON."""
    return json.dumps({"lab": lab_id, "by": driver(), "time": time})
