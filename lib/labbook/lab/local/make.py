"""Make a lab on this machine; everything is written into the journal before it is made."""

import os
from pathlib import Path

from labbook.lab import deadline, kernel
from labbook.lab.disk import loop_device, making, modelled
from labbook.lab.local import cgroups, freezer, sandbox
from labbook.lab.local.layout import (
    names_file,
    network_commands,
    passwd_file,
    shadow_file,
    share_cores,
    sshd_config,
    switch_commands,
)

SWITCH = "(switch)"
PROGRAMS = ".programs"  # a folder beside labs', of what was compiled


def make(plan: dict, given: list[int], state: Path, journal) -> None:
    """Make the hosts and networks of the layout `plan`; adds `cores`, `pid` and `start` to each host.
    `given`: the lab's own cores.

    OSError or ValueError when it fails; the journal then names what to undo.
    """
    cores = share_cores(plan["hosts"], given)
    program = _disk_program(plan["hosts"])
    files = _write_files(plan, state)
    made = _Makers(journal)
    switch = made.sandbox(SWITCH, sandbox.idle, state / "switch.log")
    for host in plan["hosts"]:
        host["cores"] = cores.get(host["name"])
        places = _limit(plan["lab"], host, host["cores"], program, state, journal)
        places |= _freezer(plan["lab"], host["name"], journal)
        host["freezer"] = freezer.LIMIT in places
        places |= _account(plan["lab"], host["name"], journal)
        spec = _spec(host, state, host.get("device"))
        job = sandbox.host(spec, files, [str(p) for p in dict.fromkeys(places.values())])
        host["pid"] = made.sandbox(host["name"], job, state / f"{host['name']}.log")
        host["start"] = kernel.start_time(host["pid"])
    try:
        _connect(plan, switch, journal)
        made.finish()
    except Exception:
        made.require_alive()    # a host that died says why, and not what could not be done with it
        raise


class _Makers:
    """Starts sandboxes; each is in the journal before it does anything."""

    def __init__(self, journal):
        self.journal, self.sandboxes = journal, []

    def sandbox(self, name, job, log) -> int:
        made = sandbox.Sandbox(name, job, str(log))
        self.journal.write("process", name=name, pid=made.pid, start=kernel.start_time(made.pid))
        self.sandboxes.append(made)
        made.go()
        return made.pid

    def require_alive(self):
        for made in self.sandboxes:
            made.require_alive()

    def finish(self):
        """Let all continue, and wait until their networks are configured."""
        for made in self.sandboxes:
            made.go()
        for made in self.sandboxes:
            made.await_ready()


def _write_files(plan, state) -> dict[str, str]:
    texts = {"/etc/hosts": names_file(plan), "/etc/nsswitch.conf": NSSWITCH, "/etc/resolv.conf": "",
             "/etc/passwd": passwd_file(Path("/etc/passwd").read_text(), sandbox.ROOT)}
    if os.path.exists("/etc/shadow"):
        texts["/etc/shadow"] = shadow_file(Path("/etc/shadow").read_text())
    if not os.path.lexists("/etc/resolv.conf"):  # a missing file serves as well as an empty one
        del texts["/etc/resolv.conf"]
    penalties = os.path.exists(SSHD_SESSION)
    files = {}
    for place, text in texts.items():
        path = state / place.removeprefix("/etc/")
        path.write_text(text)
        files[place] = str(path)
    for host in plan["hosts"]:
        (state / f"{host['name']}.sshd").write_text(sshd_config(host, str(state), penalties))
    return files


SSHD_SESSION = "/usr/lib/openssh/sshd-session"  # a program of its own since OpenSSH 9.8
NSSWITCH = "passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\n"


def _spec(host, state, device):
    return {"name": host["name"], "folder": host["folder"], "device": device, "state": str(state),
            "sees": host["sees"], "sshd_config": str(state / f"{host['name']}.sshd"),
            "network": network_commands(host), "forward": int(host["role"] == "router")}


def _disk_program(hosts) -> Path | None:
    """The daemon of modelled disks, compiled before anything is started; None where no disk has a model."""
    mine = [host for host in hosts if "model" in host["limits"].get("disk", {})]
    return modelled.build(Path(mine[0]["folder"]).parents[1] / PROGRAMS, modelled.source()) if mine else None


def _limit(lab, host, cores, program, state, journal) -> dict[str, Path]:
    """Make the host's folder, disk and control groups; return the groups."""
    folder = Path(host["folder"])
    folder.mkdir(parents=True, mode=0o755)
    limits, number = host["limits"], None
    if limits.get("disk"):
        file, disk = folder.with_name(f"{host['name']}.disk"), limits["disk"]
        journal.write("loop", file=str(making.below_loop(file, disk)))
        host["device"] = making.make(file, disk, journal, program, state, state.stat().st_uid)
        number = loop_device.number(host["device"])
    places = cgroups.folders(lab, host["name"], cgroups.wanted(limits))
    for place in dict.fromkeys(places.values()):
        journal.write("cgroup", folder=str(place))
    cgroups.make(places)
    cgroups.apply(places, cgroups.settings(limits, cores, number, cgroups.version()))
    return places


def _freezer(lab, host, journal) -> dict[str, Path]:
    """Make the host's group with a freezer; {} where this machine has none."""
    if not freezer.is_mounted():
        return {}
    place = freezer.folder(lab, host)
    for folder in (place, freezer.beside(place)):
        journal.write("cgroup", folder=str(folder))
    try:
        cgroups.make({freezer.LIMIT: place})
    except OSError:     # a lab without limits needs no control groups otherwise
        return {}
    return {freezer.LIMIT: place} if freezer.works(place) else {}


def _account(lab, host, journal) -> dict[str, Path]:
    """Make the host's group in which its use of processors is counted, where no other group is that; it limits
    nothing. {} where this machine has none."""
    place = cgroups.account(lab, host) if cgroups.version() == 1 else None
    if place is None:
        return {}
    journal.write("cgroup", folder=str(place))
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:     # nothing that is measured needs it
        return {}
    return {cgroups.UNIFIED: place}


def _connect(plan, switch, journal):
    uplink = plan["uplink"]
    journal.write("link", name=uplink)
    _ip(f"link add {uplink} type veth peer name up0 netns {switch}\n")
    try:
        Path(f"/proc/sys/net/ipv6/conf/{uplink}/disable_ipv6").write_text("1")
    except FileNotFoundError:
        pass  # a kernel without IPv6
    _ip(f"addr add {plan['gateway']}/24 dev {uplink}\nlink set {uplink} up\n")
    _ip(switch_commands(plan), "nsenter", f"--net=/proc/{switch}/ns/net")


def _ip(commands, *before):
    deadline.run(*before, "ip", "-batch", "-", input=commands)
