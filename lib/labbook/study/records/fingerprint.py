"""The fingerprint: whether a record was made by today's code, data and versions.

`code` is a digest of the content of every definition that a study's measurement reaches, each
with the definitions that its names stand for, of the data files, programs and C sources that these
name, and of the lab's description. It starts from the cells of the notebook up to
`study.complete()`, the paper's experiments.py, protocols, null servers and systems, the systems in
lab.yml and the few functions of labbook.study that decide how points are ordered, set up and
summarised. What only draws, judges, records or reports is left out, and so is what every point's
key has in it (its parameters); the hosts of an experiment's arms are in no key, and count. `versions`
are those of the Python interpreter and of the installed servers, compilers and Python packages it runs with.
"""

import ast
import json
import platform
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path

import labbook
from labbook import paths
from labbook.checks import load_yaml
from labbook.errors import InputError
from labbook.study.parameters.notebook import python
from labbook.study.point import digest
from labbook.study.records import debian
from labbook.study.records.definitions import LOOSE, PAGE, Cache, Definition, Module, module_file, parse

LIBRARY = Path(labbook.__file__).parent
# What of the library can change a recorded number; the rest is not followed.
FLOORS = ("labbook.lab", "labbook.systems", "labbook.workloads", "labbook.targets",
          "labbook.papers.{study}", "labbook.study.experiment", "labbook.study.point",
          "labbook.study.session", "labbook.study.summary", "labbook.study.paired",
          "labbook.study.arm_hosts", "labbook.study.attempt", "labbook.study.watcher")
# What only a disk with a model runs through: followed where lab.yml gives a host one.
OF_MODELLED_DISKS = ("labbook.lab.disk.modelled", "labbook.lab.disk.models", "labbook.lab.disk.served")
ROOTS = ("labbook.lab:Lab", "labbook.lab:Environment", "labbook.lab:LabDescription",
         "labbook.study.experiment:grid", "labbook.study.session:Session",
         "labbook.study.paired:order", "labbook.study.paired:in_turns",
         "labbook.study.paired:arm_results", "labbook.study.arm_hosts:ArmHosts",
         "labbook.study.attempt:Attempt", "labbook.study.watcher:Watcher",
         "labbook.study.summary:summarise")
OF_THE_PAPER = ("labbook.papers.{study}.experiments:*", "labbook.papers.{study}.systems:*",
                "labbook.papers.{study}.protocols.*:*", "labbook.papers.{study}.null_servers.*:*")
FILES = "/"                     # the name of a file or folder among definitions
REGISTRY = "labbook.systems"    # its REGISTRY says where each system is: no content to measure
# Tools that start, list and connect; no server, client or compiler that is measured.
TOOLS = {"dpkg", "e2fsprogs", "iproute2", "mount", "openssh-client", "procps", "util-linux"}
# Where a package's name on import is not that of its distribution.
DISTRIBUTIONS = {"cassandra": "cassandra-driver", "keystoneclient": "python-keystoneclient",
                 "openstack": "openstacksdk", "yaml": "pyyaml"}


@dataclass(frozen=True)
class Fingerprint:
    """`code`: 20 hex digits. `versions`: {package: installed version}. `alternatives`: groups of
    packages of which the first that is installed is used."""

    code: str
    versions: dict = field(default_factory=dict)
    alternatives: tuple = ()

    def differs(self, code: str | None, versions: dict) -> list[str]:
        """What is not as it was when a record was made: "code", each package whose version
        changed, as "mariadb-server 1:10.11 (now 1:11.4)", and each that another has replaced.
        A package that only one side knows is no difference otherwise."""
        changed = [] if code == self.code else ["code"]
        changed += [f"{name} {versions[name]} (now {now})"
                    for name, now in sorted(self.versions.items())
                    if versions.get(name, now) != now]
        for group in self.alternatives:
            then, now = _first(group, versions), _first(group, self.versions)
            if then and now and then != now:
                changed.append(f"{then} {versions[then]} (now {now} {self.versions[now]})")
        return changed


@dataclass
class Reached:
    """`definitions`: (module, name) of each; `files`: paths from the library's folder; `nodes`: of
    each definition, module and folder, what its digest has in it; `systems`: {name in lab.yml:
    node of its class}."""

    definitions: dict[tuple, Definition] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    nodes: dict[tuple, "Node"] = field(default_factory=dict)
    systems: dict[str, tuple | None] = field(default_factory=dict)

    def modules(self) -> set[str]:
        return {module for module, _ in self.definitions}

    def digests(self) -> dict[tuple, str]:
        """{node: digest of its content and of all that it refers to}.

        Each round takes in what is a reference further away, until no more nodes differ: by then
        two nodes are equal only if all that they lead to is. Cycles need no care.
        """
        found = {key: node.content() for key, node in self.nodes.items()}
        different = 0
        while different < len(set(found.values())):
            different = len(set(found.values()))
            found = {key: node.content(found) for key, node in self.nodes.items()}
        return found


@dataclass
class Node:
    """`parts`: as in Definition, with nodes as references (None: not followed). `others`: nodes
    without a place. `files`: digests. `reaches`: nodes that are followed from here."""

    parts: list[tuple] = field(default_factory=list)
    others: set[tuple] = field(default_factory=set)
    files: list[str] = field(default_factory=list)
    reaches: set[tuple] = field(default_factory=set)

    def content(self, digests: dict | None = None) -> str:
        known = digests or {}
        text = repr((sorted([own, *(known.get(key, "") for key in keys)] for own, keys in self.parts),
                     sorted({known.get(key, "") for key in self.others}), sorted(self.files)))
        return sha256(text.encode()).hexdigest()


def fingerprint(study: str, library: Path = LIBRARY) -> Fingerprint:
    """The study's fingerprint by this checkout and this machine."""
    lab = _lab_description(study)
    found = reached(study, library)
    needs = lab.pop("needs", None)
    lab.pop("quick", None)      # which claims are asked and for how long: no number depends on it
    digests = found.digests()
    contents = sorted({digests[key] for key in found.definitions})
    systems = {name: digests.get(key) for name, key in found.systems.items()}
    named = _packages(found, _named(needs), _systems(lab), study)
    return Fingerprint(digest([contents, sorted(set(found.files.values())), systems, lab]),
                       versions(found, named), tuple(group for group in named if len(group) > 1))


def measuring_files(study: str, library: Path = LIBRARY) -> set[str]:
    """Paths of the library's files that a study's measurement may run through."""
    found = reached(study, library)
    return {str(path) for path in (*(module_file(name, library) for name in found.modules()),
                                   *(library / file for file in found.files)) if path}


def reached(study: str, library: Path = LIBRARY) -> Reached:
    """All definitions and files that a study's measurement may run through."""
    cache = Cache()
    walk = _Walk(study, library, cache)
    notebook = paths.notebook(study)
    if notebook.exists():
        walk.page(_page(notebook, library))
    else:   # no notebook to ask: whatever it may use
        for module in walk.all_modules("*"):
            walk.follow(f"{module}:*")
    for root in (*ROOTS, *OF_THE_PAPER):
        walk.follow(root.format(study=study))
    for system in _systems(_lab_description(study)):
        walk.follow_system(system["name"])
    walk.to_end()
    cache.save()
    return walk.found


class _Walk:
    """From definition to definition, by what each refers to."""

    def __init__(self, study, library, cache):
        self.study, self.library, self.cache = study, library, cache
        self.floors = [floor.format(study=study) for floor in FLOORS]
        self.left_out = () if _has_modelled_disk(_lab_description(study)) else OF_MODELLED_DISKS
        self.found = Reached()
        self._modules, self._leads = {}, {}
        self._waiting = []

    def page(self, page: Module):
        self._modules[PAGE] = page
        self._waiting.append((PAGE, LOOSE))

    def follow(self, reference: str) -> tuple | None:
        """The node of a reference, which is followed; None where it is not."""
        key = self._node_of(reference)
        self._waiting.append(key)
        return key

    def to_end(self):
        while self._waiting:
            key = self._waiting.pop()
            if key is not None and key not in self.found.nodes:
                self.found.nodes[key] = node = self._node(*key)
                self._waiting += node.reaches

    def all_modules(self, pattern: str):
        """Names of modules on the floors that a pattern fits."""
        for name in self._names:
            if self._on_floors(name) and (pattern == "*" or fnmatchcase(name, pattern)
                                          and name.count(".") == pattern.count(".")):
                yield name

    @cached_property
    def _names(self) -> list[str]:
        return [".".join(("labbook", *path.relative_to(self.library).with_suffix("").parts)
                         ).removesuffix(".__init__") for path in self.library.rglob("*.py")]

    def follow_system(self, name: str):
        """The class of a registered name in lab.yml; the paper's own are all followed."""
        registry = _registry(self.library)
        if name in registry:
            module, kind = registry[name]
            self.found.systems[name] = self.follow(f"{REGISTRY}.{module}:{kind}")

    def _on_floors(self, name: str) -> bool:
        return name not in self.left_out and any(name == floor or name.startswith(f"{floor}.")
                                                 for floor in self.floors)

    def _module(self, name) -> Module | None:
        if name not in self._modules:
            path = module_file(name, self.library) if self._on_floors(name) else None
            self._modules[name] = path and self.cache.module(name, path, self.library)
        return self._modules[name]

    def _node_of(self, reference: str) -> tuple | None:
        """Where a reference leads, through the modules that only import what it names."""
        if reference not in self._leads:
            self._leads[reference] = self._lead(*reference.split(":"))
        return self._leads[reference]

    def _lead(self, module, name) -> tuple | None:
        while name != "*":
            found = self._module(module)
            if found is None or (module == REGISTRY and name in found.definitions):
                return None
            if name in found.definitions:
                return module, name
            module, _, name = found.exports.get(name, f"{module}.{name}:*").partition(":")
        return (module, "*") if "*" in module or self._module(module) else None

    def _node(self, module, name) -> Node:
        if name == FILES:
            return self._files(self.library / module)
        if "*" in module:
            modules = {(each, "*") for each in self.all_modules(module)}
            return Node(others=modules, reaches=modules)
        return self._whole(module) if name == "*" else self._named(module, name)

    def _whole(self, name) -> Node:
        """A module that is handed on or run. Bound are the definitions that none of its others
        refers to, so that these may be moved out of it."""
        module = self._module(name)
        if name == REGISTRY:
            own = set()
        else:
            own = {(name, each) for each in module.definitions}
        used = {(name, to) for each, one in module.definitions.items() for to in one.refers
                if to != each}
        # who is handed a module may use what that imports
        exports = {self._node_of(target) for target in module.exports.values()} - {None}
        return Node(others=own - used, reaches=own | exports)

    def _named(self, name, wanted) -> Node:
        one = self._module(name).definitions[wanted]
        self.found.definitions[name, wanted] = one
        to = {reference: self._node_of(reference if ":" in reference else f"{name}:{reference}")
              for reference in one.refers}
        parts = [(own, [to[each] for each in references]) for own, references in one.parts]
        placed = {each for _, references in one.parts for each in references}
        others = {key for each, key in to.items() if each not in placed} - {None}
        files = {(file, FILES) for file in one.files}
        loose = {(name, LOOSE)} & {(name, each) for each in self._module(name).definitions}
        return Node(parts, others | files, [], {*to.values(), *files, *loose} - {None})

    def _files(self, path: Path) -> Node:
        node = Node()
        for each in [path] if path.is_file() else sorted(path.rglob("*")):
            if each.suffix == ".py":
                inside = each.relative_to(self.library).with_suffix("").parts
                name = ".".join(("labbook", *inside)).removesuffix(".__init__")
                node.others |= {self._node_of(f"{name}:*")} - {None}
            elif each.is_file() and each.suffix != ".pyc":
                node.files.append(self.cache.digest(each))
                self.found.files[str(each.relative_to(self.library))] = node.files[-1]
        node.reaches = node.others
        return node


def _registry(library: Path) -> dict:
    """{name: (module, class)} of labbook.systems, read without an import."""
    path = module_file(REGISTRY, library)
    for node in ast.parse(path.read_text()).body if path else ():
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "REGISTRY":
            return ast.literal_eval(node.value)
    return {}


def _page(path: Path, library: Path) -> Module:
    """The definitions in the notebook's cells up to its last `.complete()`. What these cells do
    beside defining is found under LOOSE."""
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    sources = ["".join(c["source"]) for c in cells]
    last = max((i for i, text in enumerate(sources) if ".complete(" in text), default=len(cells))
    texts = [python(text) for cell, text in zip(cells[:last + 1], sources)
             if "parameters" not in cell.get("metadata", {}).get("tags", ())]
    page = parse("\n".join(texts), PAGE, path, library)
    acts = [name for name, one in page.definitions.items() if name != LOOSE and one.acts]
    page.definitions.setdefault(LOOSE, Definition()).refers |= set(acts)
    return page


def _lab_description(study) -> dict:
    """lab.yml as plain data, also where it has what no lab has, such as dates; {} without it."""
    path = paths.papers(study) / "lab.yml"
    data = load_yaml(path) if path.exists() else {}
    text = json.dumps(data if isinstance(data, dict) else {}, default=str, skipkeys=True)
    return json.loads(text, parse_constant=str)


def _has_modelled_disk(lab: dict) -> bool:
    """Whether a host's disk has a model, as far as lab.yml is what it should be."""
    hosts = lab.get("hosts") if isinstance(lab.get("hosts"), dict) else {}
    limits = [host.get("limits") for host in hosts.values() if isinstance(host, dict)]
    disks = [limit.get("disk") for limit in limits if isinstance(limit, dict)]
    return any(isinstance(disk, dict) and "model" in disk for disk in disks)


def _systems(lab: dict) -> list[dict]:
    """As far as lab.yml is what it should be."""
    systems = lab.get("systems") if isinstance(lab.get("systems"), list) else []
    return [one for one in systems if isinstance(one, dict) and "name" in one and
            isinstance(one.get("settings", {}), dict)]


def _named(needs) -> list[str]:
    """The packages of lab.yml's `needs`, as far as they are what they should be."""
    packages = needs.get("packages") if isinstance(needs, dict) else None
    return [one for one in packages if isinstance(one, str)] if isinstance(packages, list) else []


def _packages(found: Reached, packages, systems, study: str) -> list[tuple]:
    """The Debian packages that the study, its systems and the code that it reaches name, each as
    a tuple of alternatives."""
    named = {*packages, *(p for one in found.definitions.values() for p in one.packages)}
    for system in systems:
        named |= _needed_by(system, study)
    return sorted({tuple(part.strip() for part in name.split("|")) for name in named})


def versions(found: Reached, packages: list[tuple]) -> dict:
    """{package: version} of Python, of the first of each tuple of Debian packages that is
    installed here, and of the Python packages that the code imports."""
    wanted = {part for group in packages for part in group} - TOOLS
    installed = _dpkg(tuple(sorted(wanted)))
    chosen = {_first(group, installed) for group in packages} - {None}
    outside = {name for (module, _), one in found.definitions.items()
               if not _runs_on_debians_python(module) for name in one.outside}
    return ({"python": platform.python_version()} | {name: installed[name] for name in chosen}
            | _python_packages(outside))


def _first(group, installed) -> str | None:
    return next((name for name in group if name in installed), None)


def _runs_on_debians_python(module: str) -> bool:
    """Whether a module is of a program, a folder in an on_host folder: these run under the host's
    own Python, with packages of Debian's, which the systems' needs name."""
    return "on_host" in module.split(".")[:-2]


def _needed_by(system: dict, study: str) -> set[str]:
    from labbook.systems import find

    try:
        return set(find(system["name"], study).needs(**system.get("settings", {})).packages)
    except InputError:      # `labbook doctor` and a run say what is wrong with lab.yml
        return set()


def _python_packages(names) -> dict:
    found = {}
    for name in names:
        try:
            distribution = DISTRIBUTIONS.get(name, name)
            found[f"python {distribution}"] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue    # the standard library's
    return found


_dpkg = lru_cache(debian.installed)
