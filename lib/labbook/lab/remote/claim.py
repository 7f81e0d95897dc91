"""Claim a user's host for a lab: one lab at a time has its root folder, and writes only below it.

The claim is a file on the host. This machine notes claimed hosts in the lab's journal, with all that
is needed to reach and clean them later.
"""

import getpass
import json
import platform
import shlex
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

from labbook.errors import LabError
from labbook.lab.host.host import Host
from labbook.lab.journal import Journal
from labbook.lab.ssh.login import Login

IN_USE = "in-use"       # in a host's root folder: which lab has it. Beside it, .new-folders lists
                        # folders that were made for the root folder
MARK = "LABBOOK_LAB"    # environment variable of all processes in a lab's hosts
WITHOUT_ROOT = {"software"}     # permissions that need no sudo
# owns FOLDER FOLDER prints why others than root and the login could change a folder or put another one in
# its place; owns FOLDER "" the same of a folder that is still to be made in it. In a sticky parent, such as
# /tmp, nobody can replace what is another's.
OWN = r"""own() {
  dir=$1; top=$2; me=$(id -u)
  while :; do
    what=; [ "$dir" = "$top" ] || what="lies in $dir, which "
    link=$(stat -c %u "$dir"); set -- $(LC_ALL=C stat -L -c '%u %A %a %U %G' "$dir")
    if [ "$1" != "$me" ] && { [ -z "$what" ] || [ "$1" != 0 ]; }; then echo "${what}belongs to $4"; return
    elif [ "$link" != "$me" ] && [ "$link" != 0 ]; then echo "${what}is a link of another user"; return
    fi
    case $2:$what in
      *[tT]:?*) ;;
      ????????w*) echo "${what}can be written by everybody (mode $3)"; return;;
      ?????w*) echo "${what}can be written by group $5 (mode $3)"; return;;
    esac
    [ "$dir" != / ] || return 0
    dir=$(dirname "$dir")
  done
}
owns() { { own "$1" "$2"; real=$(readlink -f "$1"); [ "$real" = "$1" ] || own "$real" "${2:+$real}"; } | head -n 1; }
"""
LOOK = OWN + r"""root=@ROOT@; lab=@ROOT@/@LAB@
say() { printf '%s\t%s\n' "$1" "$2"; }
say boot "$(cat /proc/sys/kernel/random/boot_id)"; say uid "$(id -u)"
say cpus "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"
say kernel "$(uname -r)"; say memory_kib "$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo)"
say cpu "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"; say arch "$(uname -m)"
say system "$(. /etc/os-release 2> /dev/null; echo "$PRETTY_NAME")"
if [ -L "$root" ]; then say wrong "is a link to $(readlink "$root")"
elif [ -e "$root" ]; then
  [ -d "$root" ] || say wrong "is no folder"
  why=$(owns "$root" "$root"); [ -z "$why" ] || say wrong "$why"
  [ -e "$root/in-use" ] && say in_use "$(cat "$root/in-use")"
  if [ -e "$lab" ] || [ -L "$lab" ]; then say there yes; fi
else
  place=$root; while [ ! -e "$place" ] && [ ! -L "$place" ]; do say made "$place"; place=$(dirname "$place"); done
  why=$(owns "$place" ""); [ -z "$why" ] || say wrong "$why"
fi
"""
TAKE = OWN + r"""umask 077
[ -d @ROOT@ ] || { mkdir -p @ROOT@ && printf '%s\n' @NEW@ > @ROOT@/.new-folders; } || exit 1
why=$(owns @ROOT@ @ROOT@); [ -z "$why" ] || { echo "the root folder $why" >&2; exit 1; }
cd @ROOT@ || exit 1
printf '%s\n' @CLAIM@ > in-use.@LAB@ && sync in-use.@LAB@ || exit 1
ln in-use.@LAB@ in-use 2> /dev/null; rm -f in-use.@LAB@; cat in-use
"""


@dataclass
class Looked:
    """A host before it is claimed. `made`: folders that have to be made for its root folder."""

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
        """Facts for the record, without name and address."""
        from labbook.lab.remote.assign import parse_cpus

        return {"cpu": self.facts.get("cpu") or self.facts.get("arch", ""),
                "cores": len(parse_cpus(self.cpus)),
                "memory_gib": round(int(self.facts["memory_kib"]) / 2**20, 1),
                "kernel": self.facts["kernel"], "system": self.facts["system"]}


def look(host, root, lab_id: str) -> Looked:
    """Read the state of a host; changes nothing. LabError when the root folder is unsuitable."""
    output = host.run(_filled(LOOK, root, lab_id)).stdout
    looked = Looked()
    for line in output.splitlines():
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
                       remedy="Others could swap what labbook runs there, as root too. Name a folder of the "
                              "login's own in the environment file, or none yet: it is made then; or type "
                              "there: chmod go-w on the folder that is named here")
    return looked


def ours(in_use: dict | None, lab_id: str, by: str = "") -> bool:
    """Whether a claim is of this lab, made `by` a driver; "": by this user on this machine, as they are called now."""
    return in_use is not None and (in_use["lab"], in_use["by"]) == (lab_id, by or driver())


def require_free(host, root, lab_id: str, looked: Looked) -> None:
    """LabError when another lab has the host, or the lab's folder exists already."""
    if looked.in_use is not None and not ours(looked.in_use, lab_id):
        raise _taken(host, root, looked.in_use)
    if looked.there and looked.in_use is None:
        raise LabError(f"{host.name}: {root}/{lab_id} is in the way: it is no lab's folder",
                       remedy="Look what it is, and delete or move it")


def take(host, root, lab_id: str, new_folders=()) -> None:
    """Write the claim `in-use` atomically; LabError when another lab was first.

    `new_folders` are noted beside it, and removed by the last lab that goes down.
    """
    claim = claim_text(lab_id, time.strftime("%Y-%m-%d %H:%M:%S %z"))
    script = _filled(TAKE, root, lab_id).replace("@NEW@", shlex.join(new_folders) or "''")
    owner = claimed(host.run(script.replace("@CLAIM@", shlex.quote(claim))).stdout)
    if not ours(owner, lab_id):
        raise _taken(host, root, owner)


def _taken(host, root, in_use) -> LabError:
    lab = in_use["lab"]
    return LabError(
        f"{host.name} is in use: lab {lab} of {in_use['by']} has it since {in_use['time']}",
        remedy=f"Wait for it, or type there: labbook down {lab}. If that machine is gone for "
               f"good: reboot {host.name}, then delete {root}/{lab} and {root}/{IN_USE} on it")


def claimed(text: str) -> dict:
    """Parse an `in-use` file; its values are "unknown" when it cannot be parsed."""
    try:
        read = json.loads(text)
        return {key: str(read[key]) for key in ("lab", "by", "time")}
    except (ValueError, KeyError, TypeError):
        return {"lab": "unknown", "by": "unknown", "time": "an unknown time"}


def _filled(script, root, lab_id):
    return script.replace("@ROOT@", shlex.quote(str(root))).replace("@LAB@", lab_id)


@dataclass(frozen=True)
class ClaimedHost:
    """A user's host that a lab has claimed. `new_folders` were made for the root folder, the
    innermost first; they are removed when they are empty. `by`: the driver that claimed it, whose machine may
    have another name by now."""

    name: str
    data: str
    login: Login
    root: str
    python: str
    allow: tuple[str, ...]
    new_folders: tuple[str, ...] = ()
    by: str = ""

    @classmethod
    def of(cls, real, new_folders=()) -> "ClaimedHost":
        return cls(real.name, real.data, real.login, str(real.root), real.python,
                   tuple(sorted(real.allow)), tuple(new_folders), driver())

    @property
    def sudo(self) -> bool:
        return bool(set(self.allow) - WITHOUT_ROOT)

    def lab_folder(self, lab_id: str) -> PurePosixPath:
        return PurePosixPath(self.root) / lab_id

    def host(self) -> Host:
        """A Host for work on the machine itself, outside of any lab host's folder and limits."""
        return Host(self.name, "", "", self.data, self.login, PurePosixPath("/"), self.python,
                    sudo=self.sudo, allow=frozenset(self.allow))


def note_claimed(folder: Path, taken: ClaimedHost) -> None:
    Journal(folder).write("taken", **asdict(taken))


def note_released(folder: Path, taken: ClaimedHost) -> None:
    Journal(folder).write("undone", name=taken.name)


def still_claimed(folder: Path) -> list[ClaimedHost]:
    """Hosts that may still have something of the lab, by the journal in its state folder."""
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
    """Who claims hosts: user@machine, with a digest that distinguishes machines of one name."""
    return f"{getpass.getuser()}@{platform.node()} ({machine_mark()})"


def machine_mark() -> str:
    """A digest of this machine's id; of nothing where it has none."""
    import hashlib

    try:
        machine = Path("/etc/machine-id").read_text()
    except OSError:
        machine = ""
    return hashlib.sha256(machine.encode()).hexdigest()[:6]


def claim_text(lab_id: str, time: str) -> str:
    """The content of a host's `in-use` file: a line of JSON."""
    return json.dumps({"lab": lab_id, "by": driver(), "time": time})
