"""Compare what a probe found on a host with what the host must have. Asks no host."""

import platform

from labbook.lab.environment.inventory import APART
from labbook.lab.environment.schema import ALLOW
from labbook.lab.finding import Finding
from labbook.lab.quantities import size_text
from labbook.lab.remote.probe import ROOTS_TOOLS, TOOLS, alternatives
from labbook.paths import cache_dir

LEAST_PYTHON = (3, 11)
CONTROLLERS = ("cpu", "cpuset", "memory")
PROGRAMS = "the programs that drive servers and stand in for them run on it"


def check_host(real, found, needs) -> list[Finding]:
    """Findings about a RealHost: what it has (probe.Found) against what it must have (HostNeeds)."""
    if found.system != "Linux":
        return [Finding(real.entry, "Linux", False, "hosts are Linux", found.system or "unknown",
                        "Name another host")]
    findings = [Finding(f"{real.entry}.address", "reachable", True, "SSH goes there",
                        f"{found.user}, Linux {found.kernel}"),
            _tools(real, found, needs), _address(real, found), *_root(real, found, needs),
            _size(real, "cores", found.cores, needs.request.cores, str),
            _size(real, "memory", found.memory_bytes, needs.request.memory_bytes, size_text)]
    if needs.python:
        findings.append(_python(real, found))
    findings += [*_packages(real, found, needs), *_permissions(real, found, needs),
             *_software(real, found, needs)]
    return [finding for finding in findings if finding is not None]


def _tools(real, found, needs):
    packages = dict(TOOLS)
    for kind in needs.request.of:
        for package, tools in ROOTS_TOOLS[kind].items():
            packages[package] = f"{packages.get(package, '')} {tools}"
    missing = {package: [tool for tool in tools.split() if tool in found.lacks]
               for package, tools in packages.items()}
    missing = {package: tools for package, tools in missing.items() if tools}
    tools = ", ".join(tool for tools in missing.values() for tool in tools)
    return Finding(real.entry, "commands", not missing, "every host is worked with by these",
                   f"without {tools}" if missing else "all there",
                   f"There, type: {_apt(missing)}" if missing else "")


def _apt(packages) -> str:
    return f"sudo apt-get install {' '.join(packages)}"


def _address(real, found):
    ok = real.data in found.addresses
    if ok and real.data == found.ssh_address and not real.shared_address:
        return Finding(f"{real.entry}.data", f"data address {real.data}", False,
                       "servers listen and clients call there", "SSH arrives there too",
                       f"Write down {APART}")
    return Finding(f"{real.entry}.data", f"data address {real.data}", ok,
                   "servers listen and clients call there",
                   "its own" if ok else f"its own are {', '.join(found.addresses) or 'unknown'}",
                   "" if ok else "Write down one of its own addresses, one that the other hosts reach")


def _root(real, found, needs):
    key, ok = f"{real.entry}.root", found.writable
    state = "there" if found.place == str(real.root) else f"to be made in {found.place}"
    yield Finding(key, f"root folder {real.root}", ok, "all that a lab writes lies below it",
                  state if ok else f"{found.user} cannot write to {found.place}",
                  "" if ok else f"There, type: sudo mkdir -p {real.root} && sudo chown {found.user} "
                                f"{real.root}")
    if "noexec" in found.options:
        yield Finding(key, "programs below root", False, "servers and clients start from there",
                      "mounted noexec", "Choose another folder as root")
    needed = needs.disk_bytes + needs.request.disk_bytes
    if needed:
        ok = found.free_bytes >= needed
        yield Finding(key, f"{size_text(needed)} disk", ok, "data of the servers, below root",
                      size_text(found.free_bytes), "" if ok else "Free some, or choose a roomier root")


def _size(real, kind, have, needed, text):
    if not needed:
        return None
    ok, kind = have >= needed, "core" if kind == "cores" and needed == 1 else kind
    return Finding(real.entry, f"{text(needed)} {kind}", ok, "the study's lab.yml asks for it",
                   text(have), "" if ok else "Give these roles to a larger host, or ask for less in "
                                             "lab.yml")


def _python(real, found):
    version = tuple(int(part) for part in found.python.split(".")) if found.python else ()
    ok, least = version[:2] >= LEAST_PYTHON, ".".join(map(str, LEAST_PYTHON))
    return Finding(f"{real.entry}.python", f"Python {least} or newer", ok, PROGRAMS,
                   found.python or f"{real.python} does not run",
                   "" if ok else f"Install one there and name it, such as python: /usr/bin/python{least}")


def _packages(real, found, needs):
    """By dpkg's list of packages; on other distributions by the commands."""
    if "dpkg-query" not in found.debian:
        for command, why in needs.commands.items():
            there = command not in found.lacks
            yield Finding(real.entry, f"command {command}", there, why, "there" if there else "",
                          "" if there else "Install it there, your distribution's way")
        return
    for need, why in needs.packages.items():
        have = next((f"{name} {found.packages[name]}" for name in alternatives(need)
                     if name in found.packages), None)
        may = real.may("packages") and found.root and "apt-get" in found.debian
        yield Finding(f"{real.entry}.allow", f"package {need}", bool(have or may), why,
                      have or ("installed when first needed" if may else "missing"),
                      "" if have or may else f"There, type: {_apt(alternatives(need)[:1])}; or allow: "
                                             f"[packages]")


def _permissions(real, found, needs):
    """Permissions that lack; for those that are given, root and the kernel's features."""
    for kind, what in needs.request.of.items():
        if not real.may(kind):
            yield Finding(f"{real.entry}.allow", kind, False, f"{ALLOW[kind]}, for {', '.join(what)}",
                          "not allowed", f"Add it if you agree: allow: [{kind}]")
    kinds = [kind for kind in needs.request.of if real.may(kind)]
    if real.may("packages") and any(
            not set(alternatives(need)) & set(found.packages) for need in needs.packages):
        kinds.append("packages")
    if not kinds:
        return
    if not found.root:
        yield Finding(f"{real.entry}.allow", "sudo without a password", False,
                      f"{', '.join(kinds)}: {'; '.join(ALLOW[kind] for kind in kinds)}", found.user,
                      f"There, as root: echo '{found.user} ALL=(root) NOPASSWD: ALL' > "
                      f"/etc/sudoers.d/labbook; or leave out of allow what it is for")
        return
    yield Finding(f"{real.entry}.allow", "root", True, ", ".join(kinds),
                  "root" if found.uid == 0 else "sudo without a password")
    if "limits" in kinds:
        missing = [c for c in CONTROLLERS if c not in found.controllers]
        yield _feature(real, "limits", "control groups", missing and f"no {', '.join(missing)}")
    if "disk" in kinds:
        yield _feature(real, "disk", "loop devices", not found.loop and "no /dev/loop-control")
    if "disk" in kinds and needs.request.modelled:
        yield _feature(real, "disk", "file systems of programs (FUSE)", found.fuse)
    if "shape" in kinds:
        yield _feature(real, "shape", "packets handed to a program (NFQUEUE)", found.shape)
    if "trace" in kinds:
        yield _feature(real, "trace", "the kernel's tracing of disks", found.trace)
    if "fuse" in kinds:
        yield _feature(real, "fuse", "file systems of programs (FUSE)", found.fuse)


def _feature(real, kind, what, problem):
    return Finding(f"{real.entry}.allow", what, not problem, f"{kind}: {ALLOW[kind]}",
                   problem or "works", "" if not problem else
                   "Use the machine itself rather than a container on it, with Debian's own kernel")


def _software(real, found, needs):
    """Files that are copied when allowed, if this machine's programs run there; else must be there."""
    if real.may("software"):
        if needs.folders:  # of Python packages there are some for other processors too
            yield _arch(real, found)
        return
    for folder, why in needs.folders.items():
        there, place = folder in found.folders, f"{real.root}/artifacts/{folder}"
        yield Finding(f"{real.entry}.allow", folder, there, why, place if there else "missing",
                      "" if there else f"Allow software, or copy {cache_dir()}/artifacts/{folder} to "
                                       f"{place} there")


def _arch(real, found):
    ok, mine = found.arch == platform.machine(), platform.machine()
    return Finding(f"{real.entry}.allow", f"processor {mine}", ok,
                   "software: what is copied there was made for this machine's kind", found.arch,
                   "" if ok else "Use hosts of the same kind, or install it there and leave software "
                                 "out of allow")
