"""The code key: whether a measurement was made by today's code.

Of the code, only what a notebook's measurement runs through: the lab, system and workload modules
that the notebook and its lab.yml name, and what these import of each other.
"""

import ast
import hashlib
import json
import re
import subprocess
from functools import lru_cache
from pathlib import Path

import labbook
from labbook import paths
from labbook.checks import load_yaml
from labbook.study.point import digest

LIBRARY = Path(labbook.__file__).parent
FLOORS = ("labbook.lab", "labbook.systems", "labbook.workloads")
NO_CODE = {"", ".py", ".pyc", ".md"}


def code_key(study: str, library: Path = LIBRARY) -> str:
    """Digest of the modules a study measures with (without comments and docstrings), the data
    files beside them, the lab's description, and the versions of the packages it needs."""
    lab = _lab_description(study)
    used = modules(roots(study, lab, library), library)
    parts = [[name, module_digest(path)] for name, path in sorted(used.items())]
    needs = lab.pop("needs", None) or {}
    return digest([parts, _data_files(used.values()), lab, _versions(needs.get("packages") or ())])


def _lab_description(study) -> dict:
    path = paths.papers(study) / "lab.yml"
    data = load_yaml(path) if path.exists() else {}
    return dict(data) if isinstance(data, dict) else {}


def roots(study: str, lab: dict, library: Path = LIBRARY) -> set[str]:
    """Modules that the study names: in its notebook's imports and as its lab's systems."""
    systems = lab.get("systems") if isinstance(lab.get("systems"), list) else []
    named = {f"labbook.systems.{s['name']}" for s in systems if isinstance(s, dict) and "name" in s}
    path = paths.notebook(study)
    if path.exists():
        return named | {"labbook.lab"} | set(_imports(_notebook_code(path), "notebook"))
    return named | set(_all_modules(library))     # no notebook to ask: whatever it may use


def modules(names, library: Path = LIBRARY) -> dict[str, Path]:
    """{module: file} of all modules on the three floors that `names` reach by imports."""
    found, waiting = {}, list(names)
    while waiting:
        name = waiting.pop()
        path = _file(name, library)
        if name in found or path is None:
            continue
        found[name] = path
        is_package = path.name == "__init__.py"
        package = name if is_package else name.rpartition(".")[0]
        for imported in _imports(path.read_text(), package, late=is_package):
            waiting += _matching(imported, library) if "*" in imported else [imported]
        waiting.append(name.rpartition(".")[0])
    return found


def _file(name: str, library: Path) -> Path | None:
    if not any(name == floor or name.startswith(floor + ".") for floor in FLOORS):
        return None
    base = library.joinpath(*name.split(".")[1:])
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)


def _matching(pattern: str, library: Path) -> list[str]:
    """Modules whose names fit a pattern such as labbook.workloads.*_calls."""
    package, _, name = pattern.rpartition(".")
    folder = library.joinpath(*package.split(".")[1:])
    return [f"{package}.{path.stem}" for path in folder.glob(f"{name}.py")]


def _all_modules(library):
    for floor in FLOORS:
        for path in library.joinpath(*floor.split(".")[1:]).rglob("*.py"):
            inside = path.relative_to(library).with_suffix("").parts
            yield ".".join(("labbook", *inside)).removesuffix(".__init__")


def _imports(source: str, package: str, late: bool = False):
    """Everything an import may name: `from a import b` may mean the module a.b. A package that
    loads its modules late (`late`) names them in strings (`"Lab": "lab"`), which count as well."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "*"
                           for part in node.values)
            if re.fullmatch(r"labbook(\.[a-z_]+)+\.[a-z0-9_]*\*[a-z0-9_]*", text):
                yield text
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _named_in(node.value, package, late)


def _named_in(text: str, package: str, late: bool):
    """Modules that a string may name: `labbook.lab.x`, the file `x.py`, a late import's `x`."""
    if re.fullmatch(r"labbook(\.[a-z_][a-z0-9_]*)+", text):
        yield text
    elif re.fullmatch(r"[a-z_][a-z0-9_]*\.py", text):
        yield f"{package}.{text[:-3]}"
    elif late and re.fullmatch(r"[a-z_][a-z0-9_]*", text):
        yield f"{package}.{text}"


def _absolute(node, package):
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    kept = parts[: len(parts) - node.level + 1]
    return ".".join([*kept, node.module] if node.module else kept)


def _notebook_code(path: Path) -> str:
    cells = json.loads(path.read_text())["cells"]
    code = []
    for cell in (c for c in cells if c["cell_type"] == "code"):
        lines = "".join(cell["source"]).splitlines()
        text = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines)
        try:
            ast.parse(text)
        except SyntaxError:
            continue    # running it will say so
        code.append(text)
    return "\n".join(code)


def module_digest(path: Path) -> str:
    return _module_digest(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=None)
def _module_digest(path: Path, _mtime) -> str:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.body and _is_text(node.body[0]):
                node.body[0].value.value = ""
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_text(node) -> bool:
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str))


def _data_files(module_files) -> list:
    """[name, digest] of the files beside modules that these read: of their own name but for the
    suffix (IDL, templates), or named in their code."""
    found = {}
    for module in module_files:
        source = module.read_text()
        for path in module.parent.iterdir():
            if path.is_file() and path.suffix not in NO_CODE and (
                    path.stem == module.stem or path.name in source):
                found[path] = hashlib.sha256(path.read_bytes()).hexdigest()
    return sorted([path.name, content] for path, content in found.items())


def _versions(packages) -> list:
    """Installed versions of Debian packages, as dpkg tells them; none where there is no dpkg."""
    return list(_dpkg(tuple(sorted(packages)))) if packages else []


@lru_cache
def _dpkg(packages: tuple) -> tuple:
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\\n", *packages],
                              capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(sorted(done.stdout.splitlines()))
