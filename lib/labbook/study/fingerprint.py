"""The fingerprint: whether a record was made by today's code, data and versions.

`code` is a digest of the content of every definition that a study's measurement reaches, of the
data files, programs and C sources that these name, and of the lab's description. It starts from
the cells of the notebook up to `study.complete()`, the paper's experiments.py, the systems in
lab.yml and the few functions of
labbook.study that decide how points are ordered, set up and summarised. What only draws, judges,
records or reports is left out, and so is what every point's key has in it (its parameters).
`versions` are those that are installed of the servers, compilers and Python packages it runs with.
"""

import ast
import json
import subprocess
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import labbook
from labbook import paths
from labbook.checks import load_yaml
from labbook.errors import InputError
from labbook.study.definitions import LOOSE, PAGE, Cache, Definition, Module, module_file, parse
from labbook.study.point import digest

LIBRARY = Path(labbook.__file__).parent
# What of the library can change a recorded number; the rest is not followed.
FLOORS = ("labbook.lab", "labbook.systems", "labbook.workloads", "labbook.targets",
          "labbook.papers.{study}", "labbook.study.experiment", "labbook.study.point",
          "labbook.study.session", "labbook.study.summary")
ROOTS = ("labbook.lab:Lab", "labbook.lab:Environment", "labbook.lab:LabDescription",
         "labbook.study.experiment:grid", "labbook.study.session:Session",
         "labbook.study.summary:summarise")
REGISTRY = "labbook.systems"    # its REGISTRY says where each system is: no content to measure
# Tools that start, list and connect; no server, client or compiler that is measured.
TOOLS = {"dpkg", "e2fsprogs", "iproute2", "mount", "openssh-client", "procps", "util-linux"}
# Where a package's name on import is not that of its distribution.
DISTRIBUTIONS = {"cassandra": "cassandra-driver", "keystoneclient": "python-keystoneclient",
                 "openstack": "openstacksdk", "yaml": "pyyaml"}


@dataclass(frozen=True)
class Fingerprint:
    """`code`: 20 hex digits. `versions`: {package: installed version}."""

    code: str
    versions: dict = field(default_factory=dict)

    def differs(self, code: str | None, versions: dict) -> list[str]:
        """What is not as it was when a record was made: "code", and each package whose version
        changed, as "mariadb-server 1:10.11 (now 1:11.4)"."""
        changed = [] if code == self.code else ["code"]
        return changed + [f"{name} {versions[name]} (now {now})"
                          for name, now in sorted(self.versions.items())
                          if versions.get(name, now) != now]


@dataclass
class Reached:
    """`definitions`: (module, name) of each; `files`: paths from the library's folder."""

    definitions: dict[tuple, Definition] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def modules(self) -> set[str]:
        return {module for module, _ in self.definitions}


def fingerprint(study: str, library: Path = LIBRARY) -> Fingerprint:
    """The study's fingerprint by this checkout and this machine."""
    lab = _lab_description(study)
    found = reached(study, library)
    needs = lab.pop("needs", None) or {}
    contents = sorted({d for one in found.definitions.values() for d in one.digests})
    return Fingerprint(digest([contents, sorted(set(found.files.values())), lab]),
                       versions(found, needs.get("packages") or (), _systems(lab), study))


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
    for root in (*ROOTS, f"labbook.papers.{study}.experiments:*"):
        walk.follow(root)
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
        self.found = Reached()
        self._modules = {}
        self._waiting = []

    def page(self, page: Module):
        self._modules[PAGE] = page
        self._take(PAGE, LOOSE)

    def follow(self, reference: str):
        self._waiting.append(reference)

    def to_end(self):
        while self._waiting:
            module, _, name = self._waiting.pop().partition(":")
            if "*" in module:
                for each in self.all_modules(module):
                    self._whole(each)
            elif name == "*":
                self._whole(module)
            else:
                self._named(module, name)

    def all_modules(self, pattern: str):
        """Names of modules on the floors that a pattern fits."""
        for path in self.library.rglob("*.py"):
            name = ".".join(("labbook", *path.relative_to(self.library).with_suffix("").parts))
            name = name.removesuffix(".__init__")
            if self._on_floors(name) and (pattern == "*" or fnmatchcase(name, pattern)
                                          and name.count(".") == pattern.count(".")):
                yield name

    def follow_system(self, name: str):
        """The class of a name in lab.yml: a registered one, or one of the paper's own."""
        registry = _registry(self.library)
        if name in registry:
            module, kind = registry[name]
            self.follow(f"{REGISTRY}.{module}:{kind}")
        else:
            self.follow(f"labbook.papers.{self.study}.systems:*")

    def _on_floors(self, name: str) -> bool:
        return any(name == floor or name.startswith(f"{floor}.") for floor in self.floors)

    def _module(self, name) -> Module | None:
        if name not in self._modules:
            path = module_file(name, self.library) if self._on_floors(name) else None
            self._modules[name] = path and self.cache.module(name, path, self.library)
        return self._modules[name]

    def _whole(self, name):
        module = self._module(name)
        for each in module.definitions if module else ():
            self._take(name, each)
        for target in module.exports.values() if module else ():
            self.follow(target)     # who is handed a module may use what that imports

    def _named(self, name, wanted):
        module = self._module(name)
        if module is None:
            return
        if wanted in module.definitions:
            self._take(name, wanted)
        elif wanted in module.exports:
            self.follow(module.exports[wanted])
        else:
            self._whole(f"{name}.{wanted}")

    def _take(self, name, wanted):
        module = self._module(name)
        one = module.definitions.get(wanted)
        if one is None or (name, wanted) in self.found.definitions or name == REGISTRY:
            return
        self.found.definitions[name, wanted] = one
        for reference in one.refers:
            self.follow(reference if ":" in reference else f"{name}:{reference}")
        for file in one.files:
            self._file(self.library / file)
        self._take(name, LOOSE)

    def _file(self, path: Path):
        for each in [path] if path.is_file() else sorted(path.rglob("*")):
            if each.suffix == ".py":
                inside = each.relative_to(self.library).with_suffix("").parts
                self._whole(".".join(("labbook", *inside)).removesuffix(".__init__"))
            elif each.is_file() and each.suffix != ".pyc":
                self.found.files[str(each.relative_to(self.library))] = self.cache.digest(each)


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
    kept = [_python(text) for cell, text in zip(cells[:last + 1], sources)
            if "parameters" not in cell.get("metadata", {}).get("tags", ())]
    page = parse("\n".join(kept), PAGE, path, library)
    acts = [name for name, one in page.definitions.items() if name != LOOSE and one.acts]
    page.definitions.setdefault(LOOSE, Definition()).refers |= set(acts)
    return page


def _python(source: str) -> str:
    """A cell without its magics; nothing of a cell that is no Python, which running it reports."""
    text = "\n".join("" if line.lstrip().startswith(("%", "!")) else line
                     for line in source.splitlines())
    try:
        ast.parse(text)
    except SyntaxError:
        return ""
    return text


def _lab_description(study) -> dict:
    path = paths.papers(study) / "lab.yml"
    data = load_yaml(path) if path.exists() else {}
    return dict(data) if isinstance(data, dict) else {}


def _systems(lab: dict) -> list[dict]:
    systems = lab.get("systems") if isinstance(lab.get("systems"), list) else []
    return [one for one in systems if isinstance(one, dict) and "name" in one]


def versions(found: Reached, packages, systems, study: str) -> dict:
    """{package: version} of what is installed here of the Debian packages that the study, its
    systems and the code that it reaches name, and of the Python packages that the code imports."""
    named = {*packages, *(p for one in found.definitions.values() for p in one.packages)}
    for system in systems:
        named |= _needed_by(system, study)
    wanted = {part.strip() for name in named for part in name.split("|")} - TOOLS
    outside = {name for one in found.definitions.values() for name in one.outside}
    return _dpkg(tuple(sorted(wanted))) | _python_packages(outside)


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


@lru_cache
def _dpkg(packages: tuple) -> dict:
    """{package: version} as dpkg lists them; empty where there is no dpkg."""
    if not packages:
        return {}
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *packages],
                              capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if not line.endswith(" "))
