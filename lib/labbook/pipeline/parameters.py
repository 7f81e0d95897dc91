"""A notebook's parameters: read from its cell, checked by name and type before anything starts.

papermill only warns about an unknown name, and says nothing at all about a wrong type.
"""

import ast

import yaml

from labbook import paths
from labbook.checks import did_you_mean, load_yaml
from labbook.errors import InputError
from labbook.pipeline import notebooks

PROFILES = ("quick", "full")
_NAMES = {int: "int", float: "float", str: "str", bool: "bool", list: "list", dict: "dict",
          type(None): "None"}


def declared(study: str) -> dict:
    """{name: default} of the cell tagged `parameters`: the quick profile."""
    path = paths.notebook(study)
    cells = [c for c in notebooks.read(path)["cells"] if "parameters" in notebooks.tags(c)]
    if len(cells) > 1:
        raise InputError("more than one cell is tagged 'parameters'", file=path)
    return literals(notebooks.source(cells[0]), path) if cells else {}


def literals(code: str, file) -> dict:
    """{name: value} of assignments of literals; InputError for any other statement."""
    try:
        statements = ast.parse(code).body
    except SyntaxError as error:
        raise InputError(f"the parameters cell is not Python: {error.msg}", file=file,
                         key=f"line {error.lineno}") from None
    values = {}
    for statement in statements:
        name = _target(statement)
        try:
            value = ast.literal_eval(statement.value)
        except (AttributeError, ValueError, TypeError):
            raise InputError("the parameters cell may only set names to literals", file=file,
                             key=name or f"line {statement.lineno}") from None
        if name is None:
            raise InputError("one name a line in the parameters cell", file=file,
                             key=f"line {statement.lineno}")
        values[name] = value
    return values


def _target(statement) -> str | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    else:
        target = getattr(statement, "target", None)
    return target.id if isinstance(target, ast.Name) else None


def chosen(study: str, profile: str = "quick", given=(), environment=None) -> dict:
    """What papermill is to inject: the profile's values, then `given` [(name, YAML text)].

    Values equal to the notebook's own are left out, so that naming a default changes no page.
    Raises InputError naming the file or notebook, the parameter and what is allowed.
    """
    defaults = declared(study)
    values = _profile(study, profile, defaults)
    for name, text in given:
        checked = {name: _from_text(defaults.get(name), text, name)}
        values.update(check(checked, defaults, paths.notebook(study)))
    if environment is not None:
        values.update(check({"environment": environment}, defaults, paths.notebook(study)))
    return {name: value for name, value in values.items() if not _same(value, defaults[name])}


def _profile(study, profile, defaults) -> dict:
    if profile not in PROFILES:
        raise InputError(f"no profile {profile!r}", allowed=PROFILES)
    if profile == "quick":
        return {}
    path = paths.papers(study) / f"{profile}.yml"
    data = load_yaml(path) or {}
    if not isinstance(data, dict):
        raise InputError("not a mapping of parameters to values", file=path)
    return check(data, defaults, path)


def _from_text(default, text: str, name: str):
    """A value from the command line: YAML, but text where the notebook has text ("0.7", "on")."""
    if isinstance(default, str):
        return text
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise InputError(f"{text!r} is not YAML", key=name) from None
    if isinstance(value, str) and isinstance(default, (int, float)):
        try:
            return float(text)  # YAML 1.1 reads 1e-3 as text
        except ValueError:
            pass
    return value


def check(values: dict, defaults: dict, file) -> dict:
    """`values` in the notebook's types; InputError for an unknown name or a wrong type."""
    fitted = {}
    for name, value in values.items():
        if name not in defaults:
            raise InputError("no such parameter" + did_you_mean(name, defaults), file=file,
                             key=name, allowed=sorted(defaults))
        if not _fits(value, defaults[name]):
            raise InputError(f"{value!r} is of the wrong type", file=file, key=name,
                             allowed=f"{described(defaults[name])}, such as {defaults[name]!r}")
        if defaults[name] and isinstance(defaults[name], (list, tuple)) and not value:
            raise InputError("an empty list leaves nothing to measure", file=file, key=name,
                             allowed=f"one value or more, such as {defaults[name]!r}")
        fitted[name] = _widened(value, defaults[name])
    return fitted


def _fits(value, default) -> bool:
    if default is None:
        return True
    if isinstance(default, (list, tuple)):
        examples = list(default)
        return isinstance(value, (list, tuple)) and (
            not examples or all(any(_fits(v, e) for e in examples) for v in value))
    if isinstance(default, dict):
        return isinstance(value, dict) and all(
            _fits(v, default[k]) for k, v in value.items() if k in default)
    if isinstance(default, float):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value) is type(default)


def _widened(value, default):
    """Whole numbers become floats where the notebook has floats: 1 and 1.0 are one point."""
    if isinstance(default, float):
        return float(value)
    if isinstance(default, (list, tuple)):
        floats = default and all(isinstance(d, float) for d in default)
        return [float(v) for v in value] if floats else list(value)
    return value


def _same(value, default) -> bool:
    return repr(list(value) if isinstance(value, tuple) else value) == repr(
        list(default) if isinstance(default, tuple) else default)


def described(default) -> str:
    """A type in words: "list of int"."""
    if isinstance(default, (list, tuple)):
        kinds = sorted({described(element) for element in default})
        return f"list of {' or '.join(kinds)}" if kinds else "list"
    return _NAMES.get(type(default), type(default).__name__)
