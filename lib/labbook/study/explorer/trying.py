"""Systems of a lab that is tried by hand; see Study.lab."""

import inspect

from labbook import systems
from labbook.checks import did_you_mean
from labbook.errors import InputError
from labbook.lab import LabDescription


def system(study, name: str):
    """The system of this label or name in lab.yml, on the lab to try; see Study.system."""
    entries = LabDescription.load(study.folder / "lab.yml").systems
    known = {wanted.get("label", wanted["name"]): wanted for wanted in entries}
    wanted = known.get(name) or next((one for one in entries if one["name"] == name), None)
    if wanted is None:
        raise InputError(f"no such system{did_you_mean(name, known)}", file=study.folder / "lab.yml",
                         key=name, allowed=list(known))
    return made(study.lab(), wanted)


def made(lab, wanted: dict):
    """A system of an entry of lab.yml on its hosts, not started, with those programs of the environment file that it
    takes, such as a kernel."""
    kind, hosts = systems.find(wanted["name"], lab.study), [lab.host(name) for name in wanted["hosts"]]
    taken = inspect.signature(kind).parameters
    programs = {name: program for name, program in lab.programs.items() if name in taken}
    return kind(hosts if systems.over_several(kind) else hosts[0], **programs, **wanted.get("settings", {}))
