"""What studies need of a machine, and why: from their lab.yml and the systems in it."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from labbook import paths
from labbook.checks import load_yaml
from labbook.errors import InputError
from labbook.lab.description import LabDescription
from labbook.pipeline.sources import notebooks
from labbook.study.parameters.notebook import declared

EVERY_LAB = "every study"
THE_TESTS = "make test"
THE_BENCHMARKS = "make benchmarks"


@dataclass
class Need:
    """One thing that must be present: its name, the reason, and the studies that need it."""

    name: str
    why: str
    studies: list[str] = field(default_factory=list)

    @property
    def alternatives(self) -> list[str]:
        return [part.strip() for part in self.name.split("|")]


@dataclass
class Requirements:
    packages: dict[str, Need] = field(default_factory=dict)
    artifacts: dict[object, Need] = field(default_factory=dict)
    features: dict[str, Need] = field(default_factory=dict)      # names of labbook.lab.probes
    cores: dict[str, int] = field(default_factory=dict)          # by study
    memory_bytes: dict[str, int] = field(default_factory=dict)
    disk_bytes: dict[str, int] = field(default_factory=dict)     # of the profile that is asked for
    full_disk_bytes: dict[str, int] = field(default_factory=dict)

    def package(self, name, why, study):
        _add(self.packages, name, name, why, study)

    def artifact(self, artifact, why, study):
        _add(self.artifacts, artifact, str(artifact), why, study)

    def feature(self, name, why, study):
        _add(self.features, name, name, why, study)


def _add(needs, key, name, why, study):
    need = needs.setdefault(key, Need(name, why))
    if study not in need.studies:
        need.studies.append(study)


def all_studies() -> list[str]:
    """Studies of this checkout: a notebook each, with its lab's description."""
    names = (notebook.stem for notebook in (paths.checkout() / "notebooks").glob("*.ipynb"))
    return sorted(name for name in names if _lab_file(name).exists())


def _lab_file(study: str) -> Path:
    return paths.papers(study) / "lab.yml"


def requirements(studies=(), tests=False, local=True, profile="quick", benchmarks=False, chosen=None) -> Requirements:
    """The union over `studies` (all when empty). InputError for a study without a lab.yml.

    `local`: labs run on this machine. Otherwise it only drives other hosts, and needs less. `profile`: what
    the data take on the disk is of it, and hosts of single experiments count in the full one alone. `chosen`: {study:
    parameters of its run}, which say for which experiments a run needs hosts and disks of their own.
    """
    known = all_studies()
    needed = Requirements()
    for name, why in _listed("packages", "lab" if local else "driver", "figures"):
        needed.package(name, why, EVERY_LAB)
    for study in studies or known:
        check_lab(study)
        lab = (description_of_run(study, chosen[study]) if study in (chosen or {}) else
               description(study, whole=profile == "full"))
        _add_study(needed, study, lab, local, profile)
    for artifact, need in needed.artifacts.items():
        for name, why in _listed("packages", artifact.tools):
            for study in need.studies:
                needed.package(name, why, study)
    for name, why in _listed("packages", "tests") if tests else ():
        needed.package(name, why, THE_TESTS)
    for name, why in _listed("packages", "benchmarks", "modelled_disks", "artifacts") if benchmarks else ():
        needed.package(name, why, THE_BENCHMARKS)
    return needed


def _listed(part, *groups):
    """(name, why) pairs of needs.yml; a group that it does not have is empty."""
    listed = load_yaml(Path(__file__).with_name("needs.yml"))[part]
    return [pair for group in groups for pair in listed.get(group, {}).items()]


def check_lab(study: str) -> None:
    """InputError unless the study describes a lab; its notebook need not be there yet."""
    if _lab_file(study).is_file():
        return
    if any(notebooks.parts(study).values()):
        raise InputError("no such file; the study's lab is described there", file=_lab_file(study))
    raise notebooks.no_study(study, all_studies())


def description(study: str, whole: bool = False) -> LabDescription:
    """The study's lab; `whole`: also the hosts of single experiments."""
    lab = LabDescription.load(_lab_file(study))
    return lab if whole else lab.of()


def description_of_run(study: str, parameters: dict | None = None) -> LabDescription:
    """The study's lab with the hosts and disks of those single experiments that a run measures. parameters: the
    run's, as `chosen` returns them; without them its own are the quick profile's."""
    lab, values = LabDescription.load(_lab_file(study)), _declared(study) | (parameters or {})
    measured = [name for name in sorted(lab.apart) if _repeats(values.get(name))]
    hosts = {}
    for host in (host for one in (None, *measured) for host in lab.of(one).hosts):
        known = hosts.get(host.name)
        if known is None or "model" not in known.limits.get("disk", {}):
            hosts[host.name] = host
    return replace(lab, hosts=tuple(hosts.values()))


def _declared(study) -> dict:
    return declared(study) if paths.notebook(study).is_file() else {}


def _repeats(group) -> bool:
    """Whether an experiment with these parameters is measured."""
    return not isinstance(group, dict) or group.get("repeats", 1) > 0


def systems_needs(study: str, lab: LabDescription):
    """(entry of lab.yml's `systems`, its name and version in words, its Needs), for each."""
    for i, system in enumerate(lab.systems):
        settings = system.get("settings", {})
        _check_hosts(system, lab, study, f"systems.{i}.host")
        what = " ".join(str(x) for x in (system["name"], settings.get("version")) if x)
        yield system, what, _kind(system, settings, study).needs(**settings)


def needs_on(system, what: str, wanted, role: str, study: str | None = None):
    """(words, Needs) of what a host of this role has of a system: the system's own `what` and
    `wanted`, or those of the part that the role has."""
    from labbook.systems import find

    part = getattr(find(system["name"], study), "PARTS", {}).get(role)
    return (what, wanted) if part is None else (f"{what}: {part}", find(part, study).needs())


def _add_study(needed, study, lab: LabDescription, local, profile):
    for _, what, wants in systems_needs(study, lab):
        for package in wants.packages if local else ():
            needed.package(package, f"{what} runs on it", study)
        for artifact in wants.artifacts:
            needed.artifact(artifact, f"{what} is in it", study)
    if local:
        _add_place(needed, study, lab, profile)


def _add_place(needed, study, lab: LabDescription, profile):
    """What this machine must have for the lab to run on it."""
    for package in lab.needs.get("packages", ()):
        needed.package(package, "named in lab.yml", study)
    if "model" in _features_used(lab):
        for package, why in _listed("packages", "modelled_disks"):
            needed.package(package, why, study)
    for used in sorted(_features_used(lab)):
        for feature, why in _listed("features", used):
            needed.feature(feature, why, study)
    needed.cores[study] = lab.cores
    needed.memory_bytes[study] = lab.needs.get("memory", 0)
    needed.disk_bytes[study] = lab.disk_bytes(profile)
    needed.full_disk_bytes[study] = lab.disk_bytes("full")


def _check_hosts(system, lab: LabDescription, study, key):
    """InputError for several hosts where the system takes one, and when one of its parts has none."""
    from labbook.systems import find, over_several

    kind, name, file = find(system["name"], study), system["name"], _lab_file(study)
    if len(system["hosts"]) > 1 and not over_several(kind):
        raise InputError(f"{name} is a server on one host", file=file, key=key,
                         allowed=system["hosts"])
    roles = {lab.host(host).role for host in system["hosts"]}
    for role, part in getattr(kind, "PARTS", {}).items():
        if role not in roles:
            raise InputError(f"{name} has no host of role {role}, for {part}", file=file, key=key,
                             allowed=f"hosts of the roles {', '.join(kind.PARTS)}")


def _kind(system, settings, study):
    """The system's class; InputError for settings in lab.yml that it does not know."""
    from labbook.systems import find

    kind = find(system["name"], study)
    try:
        kind.checked(settings)
    except InputError as error:
        error.file = f"{_lab_file(study)}: {error.file}"
        raise
    return kind


def _features_used(lab: LabDescription) -> set[str]:
    """Keys of `features` in needs.yml that this lab uses."""
    limits = [host.limits for host in lab.hosts]
    disks = [limit["disk"] for limit in limits if "disk" in limit]
    used = {key for part in (*limits, *disks, *lab.links) for key, value in part.items() if value}
    return used | ({"links"} if lab.links else set()) | {"hosts"}
