"""What this machine, or the hosts of an environment, have and lack for each study, why it is needed,
and the remedy."""

import json
import os
import platform
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path

from labbook import colour, paths
from labbook.errors import LabError
from labbook.lab.finding import Finding
from labbook.lab.quantities import size_text
from labbook.pipeline.setup import container_limits, install
from labbook.pipeline.setup.requirements import EVERY_LAB, all_studies, description, requirements

QUICK = "quick"     # the profile


def main(studies=(), as_json=False, environment=paths.LOCAL, profile=QUICK, verbose=False) -> int:
    """Print what is missing for `studies` (all when empty), and a line a study that has everything; every finding
    if verbose. 1 when something is missing."""
    findings = examine(studies, environment, profile)
    if as_json:
        print(json.dumps({"machine": machine(), "environment": str(environment),
                          "findings": [asdict(f) for f in findings]}, indent=1))
    else:
        print(f"This machine: {', '.join(machine().values())}\n")
        lines = _rows(findings, environment) if verbose else _short(findings, environment)
        print(colour.words("\n".join(lines), sys.stdout))
        missing = sum(not finding.ok for finding in findings)
        more = "" if verbose else " `labbook doctor -v` lists all that was looked at."
        print(f"\n{missing} missing.{more}" if missing else f"\nNothing is missing.{more}")
    return int(any(not finding.ok for finding in findings))


def _rows(findings, environment):
    """Each finding, by host of the environment."""
    place = ""
    for finding in findings:
        if place != (place := _host(finding)):
            yield f"\n{place}, of {environment}"
        yield _row(finding)


def _short(findings, environment):
    """What is missing, then a line a study."""
    missing = [finding for finding in findings if not finding.ok]
    if missing:
        yield from (*_rows(missing, environment), "")
    names = sorted({study for finding in findings for study in finding.studies} - {EVERY_LAB})
    width = max(map(len, names), default=0)
    for study in names:
        own = [finding for finding in findings if {study, EVERY_LAB} & set(finding.studies)]
        own_missing = [finding.name for finding in own if not finding.ok]
        yield f"{study:<{width}}  {_missing_line(own_missing) if own_missing else _complete(own)}"
    yield from (more for finding in findings if finding.name.endswith(" disk")
                for more in finding.why.split("; ")[1:])


def _missing_line(names: list[str]) -> str:
    return f"MISSING: {', '.join(names)}"


def _complete(findings) -> str:
    """That a study has all it needs, with what it needs of the machine's size."""
    sizes = [one.name for one in findings
             if one.name[:1].isdigit() and one.name.endswith((" cores", " memory", " disk"))]
    of = f" ({', '.join(sizes)})" if sizes else ""
    return f"all {len(findings)} requirements are there{of}"


def require(studies=(), environment=paths.LOCAL, profile=QUICK, chosen=None) -> None:
    """LabError with all missing findings, if there are any; to be called before anything starts. chosen: as of
    `examine`."""
    missing = [finding for finding in examine(studies, environment, profile, chosen) if not finding.ok]
    if missing:
        named = dict.fromkeys("clouds" if finding.key.startswith("clouds.") else "hosts"
                              for finding in missing if finding.key)
        where = f"{environment}: these {' and '.join(named)}" if named else "this machine"
        raise LabError("\n  ".join([f"{where} cannot run this yet",
                                    *(finding.words() for finding in missing)]))


def _host(finding) -> str:
    """`hosts.rack1` of a finding at hosts.rack1.data; empty for this machine."""
    from labbook.lab.environment.schema import HOST

    entry, _, last = finding.key.rpartition(".")
    return entry if last in HOST["properties"] else finding.key


def _row(finding) -> str:
    mark = "ok     " if finding.ok else "MISSING"
    found = finding.found or "-"
    row = f"{mark}  {finding.name:<24}  {found:<34}  {finding.why}; {', '.join(finding.studies)}"
    return row if finding.ok else f"{row}\n{'':9}-> {finding.remedy}"


def machine() -> dict[str, str]:
    return {"distribution": _distribution(), "kernel": f"Linux {platform.release()}",
            "python": f"Python {platform.python_version()}", "cores": f"{_cores()} cores",
            "memory": f"{size_text(_memory('MemTotal'))} memory"}


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return "unknown distribution"


def examine(studies=(), environment=paths.LOCAL, profile=QUICK, chosen=None) -> list[Finding]:
    """`environment`: a file, from the checkout's root. profile: the one whose data must find room on the disk.
    chosen: {study: parameters of its run}, which decide the hosts that it needs; None: those of the profile."""
    from labbook.lab.environment.environment import Environment

    place = Environment.load(paths.checkout() / environment)
    if place.provider == "ssh":
        return [*_driver(studies), *_hosts(studies, place, profile, chosen), *_clouds(studies, place)]
    needed = requirements(studies, profile=profile, chosen=chosen)
    privilege = _privilege()
    return [privilege, *_packages(needed, only_in_full(studies, needed)), *_artifacts(needed),
            *(_features(needed) if privilege.ok else ()), *_room(needed, place, environment),
            *_kernel(studies, place), *_clouds(studies, place)]


def _driver(studies):
    """What this machine needs to drive other hosts. Maven is left out once all its artifacts are here."""
    needed = requirements(studies, local=False)
    if all(map(install.is_here, needed.artifacts)):
        needed.packages.pop("maven", None)
    for need, found in install.installed(needed.packages.values()):
        yield Finding("", need.name, bool(found), need.why, found.split()[1] if found else "",
                      "" if found else f"Type: sudo apt-get install {need.alternatives[0]}",
                      _whom(need))


def _hosts(studies, environment, profile, chosen):
    from labbook.pipeline.setup import own_hosts
    from labbook.pipeline.sources import parameters

    studies = studies or all_studies()
    chosen = chosen or {study: parameters.chosen(study, profile) for study in studies}
    for finding, whom in own_hosts.seen(studies, environment, chosen, profile):
        yield replace(finding, studies=whom)


def _clouds(studies, environment):
    if not environment.clouds:
        return
    from labbook.pipeline.setup import own_clouds

    for own, whom, wrong in own_clouds.seen(studies, environment):
        reason = wrong and getattr(wrong, "message", str(wrong))
        yield Finding(getattr(wrong, "key", "") or own.key(), f"cloud {own.name}", wrong is None,
                      "the study's servers run on it", reason or "accepts the credentials",
                      own_clouds.remedy(wrong), whom)


def _kernel(studies, environment):
    """What a kernel of the user's own lacks, where the environment names one, for studies whose servers boot from it."""
    from labbook.systems.openstack import own_kernel

    folder = environment.programs.get("kernel")
    whom = tuple(study for study in studies or all_studies()
                 if any(system["name"] == "openstack" for system in description(study).systems))
    for name, why_not, remedy in own_kernel.lacking(folder) if folder and whom else ():
        yield Finding(own_kernel.KEY, name, not why_not, "servers of the lab's cloud run on the machine's processors",
                      why_not or "there", remedy if why_not else "", whom)


def _privilege() -> Finding:
    why = "only root can make the namespaces, links and disks of a lab"
    try:
        found, remedy = ("passwordless sudo" if install.as_root() else "root"), ""
    except LabError as error:
        found, remedy = "", error.remedy
    return Finding("", "root or sudo", bool(found), why, found, remedy, (EVERY_LAB,))


def _packages(needed, of_full):
    for need, found in install.installed(needed.packages.values()):
        yield Finding("", need.name, bool(found), need.why, found.split()[1] if found else "",
                      "" if found else _how_to_get(need, need.name in of_full), _whom(need))


def _whom(need) -> tuple[str, ...]:
    return (EVERY_LAB,) if EVERY_LAB in need.studies else tuple(need.studies)


def _how_to_get(need, full: bool) -> str:
    studies = "" if EVERY_LAB in need.studies else " ".join(need.studies)
    if not shutil.which("apt-cache"):
        return "labbook installs on Debian and Ubuntu only: install it with your distribution's package manager"
    if not any(map(install.available, need.alternatives)):
        return (f"{_distribution()} has no package {need.name}, so this cannot run here; "
                "Debian 12 has it. If apt's lists are old, type: apt-get update")
    return f"Type: labbook install {studies}".rstrip() + (" --profile full" if full else "")


def _artifacts(needed):
    for artifact, need in needed.artifacts.items():
        here = install.is_here(artifact)
        yield Finding("", need.name, here, need.why, "fetched" if here else "",
                      f"Type: labbook install {' '.join(need.studies)}", _whom(need))


def _features(needed):
    tried = _probes(list(needed.features))
    for need in needed.features.values():
        yield replace(tried[need.name], why=need.why, studies=_whom(need))


def only_in_full(studies, needed) -> set[str]:
    """Those of the needed packages that `labbook install` leaves to the full profile."""
    return set(needed.packages) - set(requirements(studies).packages)


def missing_features(study: str, chosen=None) -> list[Finding]:
    """Missing kernel features, for labs on this machine; none are reported without root. chosen: as of `examine`."""
    needed = requirements([study], chosen=chosen)
    return [one for one in _features(needed) if not one.ok] if _privilege().ok else []


def _probes(names):
    from labbook.lab.probes import probes

    return probes(names)


def _room(needed, place, file):
    """Cores, memory and disk. Studies run one at a time, so each is checked alone."""
    have = {"cores": _cores(), "memory": _memory("MemAvailable"), "disk": _disk_free(place.state)}
    needs = {"cores": needed.cores, "memory": needed.memory_bytes, "disk": needed.disk_bytes}
    why = {"cores": "hosts have their own cores", "memory": "servers and clients run at once",
           "disk": f"data of the servers, in {place.state}"}
    remedy = {"cores": "Give the hosts fewer cores in lab.yml, or use a larger machine or a container with more",
              "memory": "Stop programs that use memory, or use a larger machine or a container with more",
              "disk": f"Free some space, or name another folder as `state` in {file}"}
    for kind, wanted in needs.items():
        text = str if kind == "cores" else size_text
        for size in sorted({size for size in wanted.values() if size}):
            studies = tuple(study for study, wants in wanted.items() if wants == size)
            more = _more_in_full(needed, studies) if kind == "disk" else ""
            yield Finding("", f"{text(size)} {kind}", have[kind] >= size, why[kind] + more,
                          text(have[kind]), "" if have[kind] >= size else remedy[kind], studies)


def _more_in_full(needed, studies) -> str:
    """Words about studies whose full profile needs more disk than the one that is asked for."""
    more = {study: needed.full_disk_bytes[study] for study in studies
            if needed.full_disk_bytes[study] > needed.disk_bytes[study]}
    return "".join(f"; {study} needs {size_text(size)} with --profile full" for study, size in more.items())


def _cores() -> int:
    """Whole ones that this process may use up."""
    return int(min(len(os.sched_getaffinity(0)), container_limits.cores()))


def _memory(key) -> int:
    """Bytes, as /proc/meminfo has them, or as many as a control group allows."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    there = next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))
    return int(min(there, container_limits.memory()))


def _disk_free(state) -> int:
    folder = next(p for p in (Path(state), *Path(state).parents) if p.exists())
    return shutil.disk_usage(folder).free
