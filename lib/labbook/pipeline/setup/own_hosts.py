"""What a study needs of the user's own hosts, in addition to what its lab.yml asks of each."""

from labbook.lab.remote.assign import match
from labbook.lab.remote.needs import HostNeeds, host_requests, modelled_packages, named_packages
from labbook.pipeline.setup.requirements import description_of_run, needs_on, systems_needs

PROGRAMS_ONLY = ("client", "ceiling")   # roles whose hosts run only the library's programs


def needs(study: str, parameters: dict | None = None) -> dict[str, HostNeeds]:
    """{lab host: HostNeeds} for `labbook.lab.remote.preflight`. parameters: of the run, or None: quick's.

    Any system of the study may run on any of its hosts (eras, nodes of a cluster), except on hosts of
    clients and their ceiling: these need only what lab.yml names for them. A system with PARTS runs,
    on a host of a role, only the part of that role. Programs of the library run on hosts for which
    lab.yml names no system.
    """
    lab = description_of_run(study, parameters)
    theirs = {name for system in lab.systems for name in system["hosts"]}
    found = {host.name: HostNeeds(programs=host.name not in theirs, packages=named_packages(lab))
             for host in lab.hosts}
    for system, what, wanted in systems_needs(study, lab):
        for host in lab.hosts:
            if host.name in system["hosts"] or host.role not in PROGRAMS_ONLY:
                _add(found[host.name], *needs_on(system, what, wanted, host.role, study))
    return found


def _add(wants, what, wanted):
    wants.packages |= {package: f"{what} runs on it" for package in wanted.packages}
    wants.commands |= {command: f"{what} needs it" for command in wanted.commands}
    wants.folders |= {folder: f"{what} is in it" for folder in wanted.pushed}


def seen(studies, environment, chosen, profile="quick"):
    """(Finding, the studies it was seen for) of all hosts, each once. chosen: {study: parameters of its run}; profile:
    the one whose data must find room. InputError when the hosts cannot make up the lab of a study."""
    from labbook.lab.remote import preflight

    found = {}
    for study in studies:
        parameters = chosen.get(study)
        for one in preflight.examine(description_of_run(study, parameters), environment, needs(study, parameters),
                                     profile):
            found.setdefault(one, []).append(study)
    return [(one, tuple(whom)) for one, whom in found.items()]


def plan(study: str, environment, parameters: dict | None = None, profile="quick") -> list[str]:
    """Lines for --dry-run: what each host becomes, what is written, copied and done as root there,
    and what it lacks now. parameters and profile: of the run."""
    lab, wants = description_of_run(study, parameters), needs(study, parameters)
    matched = match(lab, environment)
    asks, lines = host_requests(lab, matched), []
    for real in dict.fromkeys(matched.values()):
        mine = [name for name, host in matched.items() if host is real]
        lines += [f"  {real.name} ({real.user}@{real.address}) as {', '.join(mine)}",
                  f"    written: below {real.root}, taken away with the lab"]
        copied = dict.fromkeys(one for name in mine for one in wants[name].folders)
        if real.may("software"):
            lines.append("    copied there: " + ", ".join(
                (*copied, "the library", "the Python packages that it needs")))
        packages = dict.fromkeys([*(one for name in mine for one in wants[name].packages),
                                  *modelled_packages(asks[real.name])])
        if packages and real.may("packages"):
            lines.append(f"    as root: packages, those that are missing of {', '.join(packages)}")
        lines += [f"    as root: {kind}: {', '.join(what)}" for kind, what in asks[real.name].of.items()]
    missing = [one for one, _ in seen([study], environment, {study: parameters}, profile) if not one.ok]
    return lines + [f"  missing: {one.words()}" for one in missing]
