"""Source files as sets of definitions, each with a digest of its content and what it refers to.

A digest has no comments, docstrings, annotations, formatting or imports in it, and names what is
imported by what it is and not by the module that it lies in. So it stays the same when modules are
renamed, moved, merged or split. Which definition a name stands for is in the list of references
beside the digest.
"""

import ast
import hashlib
import json
import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from labbook import paths

PACKAGE = "labbook"
UNUSED_S = 7 * 24 * 3600.0      # after which a cache of another version is removed
PAGE = "labbook.notebook"   # the name of a notebook's own definitions
LOOSE = ""          # the name under which a module's statements that define nothing are found
MODULE_NAME = re.compile(rf"{PACKAGE}(\.\w+)+")
PROGRAM_NAME = re.compile(r"\w+\.py")
SKIPPED = {"ctx", "type_comment", "kind", "type_params", "annotation", "returns"}


@dataclass
class Definition:
    """`parts`: of each statement that defines it, (digest, references by place in the statement).
    `refers`: all that it refers to. A reference is "name" (of the same module), "module:name" or
    "module:*" (all of it). `outside`: packages from elsewhere. `files`: files and folders beside the library's modules.
    `packages`: Debian packages that a literal `packages=(...)` names. `acts`: an assignment that
    calls something, and so does more than define."""

    parts: list[tuple[str, list[str]]] = field(default_factory=list)
    refers: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)
    acts: bool = False


@dataclass
class Module:
    """`exports`: {name: "module:name"} of what it imports, or loads when asked for."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    exports: dict[str, str] = field(default_factory=dict)


def parse(source: str, name: str, path: Path, library: Path, is_package=False) -> Module:
    """The definitions of a module's source. `name` is its dotted name, `path` its file."""
    return _Parser(name, path, library, is_package).module(ast.parse(source))


class _Parser:
    def __init__(self, name, path, library, is_package):
        self.path, self.library, self.is_page = path, library, name == PAGE
        self.package = name if is_package else name.rpartition(".")[0]
        self.aliases = {}       # alias -> (module, name or None)

    def module(self, tree: ast.Module) -> Module:
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(node)
        found = Module(exports={alias: f"{module}:{name or '*'}"
                                for alias, (module, name) in self.aliases.items()
                                if _is_ours(module)})
        self.own = {name for node in tree.body for name in _bound(node)}
        literals = {name: node.value for node in tree.body if isinstance(node, ast.Assign)
                    for name in _bound(node)}
        found.exports |= self._late(tree)
        for node in tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_text(node) or _is_passive(node):
                continue
            if self.is_page and self._only_shows(node):
                continue
            one = self._definition(node, literals)
            defines = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
                                        ast.Assign, ast.AnnAssign, ast.AugAssign))
            for name in (_bound(node) or [LOOSE]) if defines else [LOOSE]:
                _merge(found.definitions.setdefault(name, Definition()), one)
            for name in () if defines else _bound(node):
                found.definitions.setdefault(name, Definition()).refers.add(LOOSE)
        return found

    def _only_shows(self, node) -> bool:
        """Whether a statement calls display(), print(), glue() or a figure, and nothing else."""
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            return False
        called = node.value.func
        while isinstance(called, ast.Attribute):
            called = called.value
        name = getattr(called, "id", "")
        return name in ("display", "print", "glue") or self.aliases.get(name, ("",))[0].startswith(
            f"{PACKAGE}.figures")

    def _import(self, node):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                self.aliases[name] = (alias.name if alias.asname else name, None)
            return
        base = node.module or ""
        if node.level:
            parts = self.package.split(".")
            outer = parts[:len(parts) - node.level + 1]
            base = ".".join([*outer, node.module] if node.module else outer)
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            is_module = _is_ours(base) and module_file(inner, self.library) is not None
            self.aliases[alias.asname or alias.name] = (inner, None) if is_module else (
                base, alias.name)

    def _late(self, tree) -> dict:
        """Names that a package's __getattr__ loads from the modules that a dict names."""
        if not any(isinstance(n, ast.FunctionDef) and n.name == "__getattr__" for n in tree.body):
            return {}
        dicts = (n.value for n in tree.body if isinstance(n, ast.Assign)
                 and isinstance(n.value, ast.Dict))
        return {key.value: f"{self.package}.{value.value}:{key.value}"
                for each in dicts for key, value in zip(each.keys, each.values)
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)}

    def _definition(self, node, literals) -> Definition:
        self.found = Definition()
        self._ordered, self._labels = [], {}
        self._reads_files = any(isinstance(n, ast.Name) and n.id in ("__file__", "resources")
                                for n in ast.walk(node))
        self._texts = [n.value for n in ast.walk(node)
                       if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        self._names_files()
        for each in ast.walk(node):
            if isinstance(each, ast.keyword) and each.arg == "packages":
                named = [literals[n.id] for n in ast.walk(each.value)
                         if isinstance(n, ast.Name) and n.id in literals]
                self.found.packages |= {n.value for value in (each.value, *named)
                                        for n in ast.walk(value) if isinstance(n, ast.Constant)
                                        and isinstance(n.value, str)}
            self._loads_by_name(each)
        out = []
        self._write(node, out)
        self.found.acts = isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and any(
            isinstance(n, ast.Call) for n in ast.walk(node))
        digest = hashlib.sha256("\n".join(out).encode()).hexdigest()[:20]
        self.found.parts = [(digest, self._ordered)]
        return self.found

    def _loads_by_name(self, node):
        """Modules that import_module() loads by a name which is put together."""
        if isinstance(node, ast.Call) and _last_name(node.func) == "import_module":
            relative = any(_last_name(given) == "__package__" for given in node.args[1:])
            for given in node.args[:1]:
                text = self._pattern(given)
                self._loads(f"{self.package}{text}" if relative else text)
        elif isinstance(node, ast.JoinedStr):
            self._loads(self._pattern(node))

    def _loads(self, pattern):
        if re.fullmatch(rf"{PACKAGE}(\.\w+)+\.\w*\*\w*", pattern):
            self.found.refers.add(f"{pattern}:*")

    def _pattern(self, node) -> str:
        """An f-string with `*` for each value but `__package__`."""
        parts = (part.value if isinstance(part, ast.Constant) else
                 self.package if _last_name(part.value) == "__package__" else "*"
                 for part in getattr(node, "values", ()))
        return "".join(map(str, parts))

    def _names_files(self):
        """Files and folders that the definition names: next to `__file__`, or programs."""
        self._known = set()
        for text in self._texts:
            for place in (self.path.parent, self.path.parent / "on_host"):
                if PROGRAM_NAME.fullmatch(text) and (place / text).is_file():
                    self._found_file(place / text, text)
        if self._reads_files:
            for base in [self.path.parent, *self.path.parent.parents]:
                if self.library not in (base, *base.parents):
                    break
                self._chains(base)

    def _chains(self, base):
        for i, text in enumerate(self._texts):
            if not text or "/" in text or text.startswith(".") or not (base / text).exists():
                continue
            place, used = base / text, {text}
            for more in self._texts[i + 1:]:
                if more and not more.startswith(".") and (place / more).exists():
                    place, used = place / more, used | {more}
            far = base != self.path.parent and (place / "__init__.py").is_file()
            if not far:
                self._found_file(place, *used)

    def _found_file(self, place, *texts):
        self.found.files.add(str(place.relative_to(self.library)))
        self._known |= set(texts)

    def _write(self, node, out):
        """Append the node's content to `out`, a line a part."""
        if isinstance(node, list):
            for part in node:
                self._write(part, out)
        elif isinstance(node, ast.Constant):
            out.append(self._constant(node.value))
        elif isinstance(node, (ast.Import, ast.ImportFrom)) or _is_text(node):
            return
        elif isinstance(node, (ast.Name, ast.Attribute)) and self._reference(node, out):
            return
        elif isinstance(node, ast.Call) and _last_name(node.func) == "experiment":
            out.append("declares an experiment")    # its parameters are in the points' keys
            self._write([one.value for one in node.keywords if one.arg == "hosts"], out)
        elif isinstance(node, ast.AST):
            out.append(f"({type(node).__name__}")
            for name, value in ast.iter_fields(node):
                if name not in SKIPPED and value is not None and value != []:
                    out.append(f".{name}")
                    self._write(value, out)
            out.append(")")
        else:
            out.append(repr(node))

    def _constant(self, value) -> str:
        if isinstance(value, str):
            if MODULE_NAME.fullmatch(value) and module_file(value, self.library):
                return self._label("a module", f"{value}:*")
            if value in self._known:
                return "a file"
            if value.startswith(f"{PACKAGE}.") and value.endswith("."):
                return "modules"
        return repr(value)

    def _reference(self, node, out) -> bool:
        """Write a name, or the attributes of an imported one; False where it is neither."""
        attributes = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        attributes.reverse()
        if node.id not in self.aliases:
            text = ".".join([node.id, *attributes])
            out.append(self._label(text, node.id) if node.id in self.own else text)
            return True
        module, name = self.aliases[node.id]
        names = ([name] if name else []) + attributes
        if not _is_ours(module):
            self.found.outside.add(module.partition(".")[0])
            out.append(".".join([module, *names]))
            return True
        while names and module_file(f"{module}.{names[0]}", self.library):
            module, names = f"{module}.{names[0]}", names[1:]
        whole = not names or names[0] in ("__file__", "__name__", "__path__")
        out.append(self._label(".".join(names) or "a module",
                               f"{module}:{'*' if whole else names[0]}"))
        return True

    def _label(self, text, reference) -> str:
        """Note a reference; how it is written, apart from others of the same text."""
        self.found.refers.add(reference)
        if reference not in self._ordered:
            self._ordered.append(reference)
        same = self._labels.setdefault(text, [])
        if reference not in same:
            same.append(reference)
        return f"@{text} {same.index(reference)}"


def module_file(name: str, library: Path) -> Path | None:
    """The file of a module of the library; None where there is no such module."""
    if name == PACKAGE or name.startswith(f"{PACKAGE}."):
        base = library.joinpath(*name.split(".")[1:])
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path
    return None


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE


def _last_name(node) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _is_text(node) -> bool:
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str))


def _is_passive(node) -> bool:
    """Statements that change nothing at run time: __all__, imports for type checkers."""
    if isinstance(node, ast.If):
        return _last_name(node.test) == "TYPE_CHECKING"
    return isinstance(node, ast.Assign) and _bound(node) == ["__all__"]


def _bound(node) -> list[str]:
    """Names that a statement binds at the top of a module."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Attribute) for t in node.targets):
        return [t.value.id for t in node.targets    # `Class.NAME = ...` belongs to the class
                if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name)]
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            ] + [n.name for n in ast.walk(node) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]


def _merge(into: Definition, one: Definition):
    into.parts = [*into.parts, *one.parts]
    into.acts |= one.acts
    for name in ("refers", "outside", "files", "packages"):
        getattr(into, name).update(getattr(one, name))


class Cache:
    """Parsed modules and digests of files, kept over runs by each file's time and size.

    One file for each version of Python and of this module, which all checkouts with that version share; those of other
    versions go once nothing has written to them for a week. A process reads it for what it has not asked for before.
    """

    _asked = {}     # of this process, as in the file

    def __init__(self):
        own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
        version = "-".join(map(str, (*sys.version_info[:2], own)))
        self._file = paths.cache_dir() / f"definitions-{version}.json"
        self._known, self._new = None, False

    def module(self, name: str, path: Path, library: Path) -> Module:
        def made():
            found = parse(path.read_text(), name, path, library, path.name == "__init__.py")
            return _plain(found)

        # which files a module names depends on which there are
        folders = [path.parent / "on_host", *(one for one in path.parents if one.is_relative_to(library))]
        return _module(self._of(f"{name} {path}", path, made, folders))

    def digest(self, path: Path) -> str:
        return self._of(str(path), path,
                        lambda: hashlib.sha256(path.read_bytes()).hexdigest()[:20])

    def _of(self, key, path, made, folders=()):
        state = path.stat()
        stamp = [state.st_mtime_ns, state.st_size, *(one.stat().st_mtime_ns for one in folders if one.is_dir())]
        if self._asked.get(key, (None,))[0] != stamp:
            self._asked[key] = self._in_file(key, stamp, made)
        return self._asked[key][1]

    def _in_file(self, key, stamp, made):
        if self._known is None:
            try:
                self._known = json.loads(self._file.read_text())
            except (OSError, ValueError):
                self._known = {}
        if self._known.get(key, (None,))[0] != stamp:
            self._known[key] = [stamp, made()]
            self._new = True
        return self._known[key]

    def save(self) -> None:
        """Write what is new; that it cannot be written costs only time."""
        if not self._new:
            return
        partial = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps({key: known for key, known in self._known.items() if _path(key).exists()}))
            partial.replace(self._file)
            self._remove_old()
        except OSError:
            partial.unlink(missing_ok=True)
        self._new = False

    def _remove_old(self):
        for other in self._file.parent.glob("definitions-*"):
            if other != self._file and time.time() - other.stat().st_mtime > UNUSED_S:
                other.unlink(missing_ok=True)


def _path(key: str) -> Path:
    """The file that a key of the cache stands for: the key is "path", or of a module "name path"."""
    return Path(key if key.startswith("/") else key.partition(" ")[2])


def _plain(module: Module) -> dict:
    return {"exports": module.exports, "definitions": {
        name: [one.parts, *(sorted(part) for part in (one.refers, one.outside, one.files,
                                                        one.packages))]
        for name, one in module.definitions.items()}}


def _module(plain: dict) -> Module:
    return Module({name: Definition(parts[0], *map(set, parts[1:]))
                   for name, parts in plain["definitions"].items()}, plain["exports"])
