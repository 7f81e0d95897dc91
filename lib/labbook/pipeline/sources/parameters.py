"""A notebook's parameters: read from its cell, checked by name and type before anything starts.

A parameter is a literal, or a group: a dict of one experiment's parameters, such as
`response = dict(rtt_ms=[0, 100], repeats=3)`. One entry of a group is named `response.repeats`.
papermill only warns about an unknown name, and does not check types at all.
"""

import ast
import copy

import yaml

from labbook import paths
from labbook.checks import did_you_mean, load_yaml
from labbook.errors import InputError
from labbook.pipeline.sources import notebooks

PROFILES = ("quick", "full")
_NAMES = {int: "int", float: "float", str: "str", bool: "bool", list: "list", dict: "group",
          type(None): "None"}


def declared(study: str) -> dict:
    """{name: default} of the cell tagged `parameters`: the quick profile. A group is a dict.

    InputError unless the notebook has exactly one such cell, which sets names to literals.
    """
    path = paths.notebook(study)
    cells = [c for c in notebooks.read(path)["cells"] if "parameters" in notebooks.tags(c)]
    if not cells:
        raise InputError("no cell is tagged 'parameters', so nothing could be set in it", file=path,
                         allowed="one code cell with this tag, which may be empty")
    if len(cells) > 1:
        raise InputError("more than one cell is tagged 'parameters'", file=path)
    return literals(notebooks.source(cells[0]), path)


def literals(code: str, file) -> dict:
    """{name: value} of assignments of literals and of `dict(name=literal, ...)`; InputError for
    any other statement."""
    try:
        statements = ast.parse(code).body
    except SyntaxError as error:
        raise InputError(f"the parameters cell is not Python: {error.msg}", file=file,
                         key=f"line {error.lineno}") from None
    values = {}
    for statement in statements:
        name = _target(statement)
        try:
            value = ast.literal_eval(_DictCalls().visit(statement.value))
        except (AttributeError, ValueError, TypeError):
            raise InputError("the parameters cell may only set names to literals and to dict(...) "
                             "of literals", file=file,
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


class _DictCalls(ast.NodeTransformer):
    """dict(name=value, ...) as the literal {"name": value, ...}."""

    def visit_Call(self, node):
        self.generic_visit(node)
        names = [keyword.arg for keyword in node.keywords]
        if getattr(node.func, "id", None) != "dict" or node.args or None in names:
            return node
        return ast.Dict([ast.Constant(name) for name in names], [k.value for k in node.keywords])


def chosen(study: str, profile: str = "quick", given=(), environment=None) -> dict:
    """What papermill injects: the profile's values, then `given` [(name or group.entry, YAML text)].

    Values equal to the notebook's own are left out, so that naming a default changes no page. Of a
    group with a changed entry the whole effective dict is returned, since papermill replaces it.
    Raises InputError with the file or notebook, the parameter and the allowed values.
    """
    defaults, notebook = declared(study), paths.notebook(study)
    values = defaults | _profile(study, profile, defaults)
    for name, text in given:
        _set(values, defaults, name, text, notebook)
    if environment is not None:
        values |= check({"environment": environment}, defaults, notebook)
    return {name: value for name, value in values.items() if not _same(value, defaults[name])}


def filled(values: dict, study: str, file) -> dict:
    """Parameters of an earlier run, from `file`, for today's notebook: names and types are checked;
    entries that a group did not have yet take the notebook's value."""
    defaults = declared(study)
    return check({name: _over(defaults.get(name), value) for name, value in values.items()},
                 defaults, file)


def _over(default, value):
    both = _is_group(default) and isinstance(value, dict)
    return {**default, **{k: _over(default.get(k), v) for k, v in value.items()}} if both else value


def flat(values: dict) -> dict:
    """{"group.entry": value} of all entries of groups, and other parameters by their name."""
    found = {}
    for name, value in values.items():
        if _is_group(value):
            found |= {f"{name}.{entry}": v for entry, v in flat(value).items()}
        else:
            found[name] = value
    return found


def _is_group(value) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(key, str) for key in value)


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


def _set(values, defaults, name: str, text: str, file) -> None:
    """Set one parameter, or one entry of a group, from the command line."""
    *groups, entry = name.split(".")
    place, known = values, defaults
    for number, group in enumerate(groups, 1):
        if group in known and not _is_group(known[group]):
            raise InputError("this parameter is not a group, so it has no entries", file=file,
                             key=".".join(groups[:number]))
        if group not in known:
            raise _unknown(name, list(flat(defaults)), file)
        place[group] = copy.copy(place[group])     # never the notebook's own dict
        place, known = place[group], known[group]
    if entry not in known:
        raise _unknown(name, list(flat(defaults)), file)
    place[entry] = _checked(_from_text(known[entry], text, name), known[entry], name, file)


def _unknown(name: str, known: list[str], file) -> InputError:
    """The error for a name that is none of `known`, with the one that was probably meant: of the
    same group, or entries of that name in any group, or the nearest of all."""
    group, _, entry = name.rpartition(".")
    inside = [one for one in known if one.rpartition(".")[0] == group] if group else []
    ends = [one for one in known if one.rpartition(".")[2] == entry]
    near = did_you_mean(name, inside) or (
        f", did you mean {' or '.join(ends[:3])}?" if ends else did_you_mean(name, known))
    return InputError(f"no such parameter{near}", file=file, key=name, allowed=sorted(inside or known))


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
    """`values` in the notebook's types; InputError for an unknown name, a wrong type or a group that
    lacks entries."""
    for name in values:
        if name in flat(defaults).keys() - defaults.keys():
            raise InputError("entries of a group are nested in a file", file=file, key=name,
                             allowed=f"{name.partition('.')[0]}: {{...}}, with all of its entries")
        if name not in defaults:
            raise _unknown(str(name), list(flat(defaults)), file)
    return {name: _checked(value, defaults[name], name, file) for name, value in values.items()}


def _checked(value, default, name: str, file):
    if _is_group(default) and isinstance(value, dict):
        return _checked_group(value, default, name, file)
    if not _fits(value, default):
        raise InputError(f"{value!r} is of the wrong type", file=file, key=name,
                         allowed=f"{described(default)}, such as {default!r}")
    if default and isinstance(default, (list, tuple)) and not value:
        raise InputError("an empty list leaves nothing to measure", file=file, key=name,
                         allowed=f"one value or more, such as {default!r}")
    return _widened(value, default)


def _checked_group(value: dict, default: dict, name: str, file) -> dict:
    for entry in value:
        if entry not in default:
            raise _unknown(f"{name}.{entry}", [f"{name}.{known}" for known in default], file)
    lacking = [entry for entry in default if entry not in value]
    if lacking:
        raise InputError(f"the group is incomplete, it lacks {', '.join(lacking)}: papermill replaces "
                         "a group as a whole", file=file, key=name, allowed=f"all of {', '.join(default)}")
    return {entry: _checked(value[entry], default[entry], f"{name}.{entry}", file) for entry in default}


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
    return _plain(value) == _plain(default)


def _plain(value) -> str:
    """A value as text, in which 1, 1.0 and True differ, and lists and tuples do not."""
    if isinstance(value, dict):
        return repr({key: _plain(value[key]) for key in sorted(value, key=repr)})
    return repr(list(value) if isinstance(value, tuple) else value)


def described(default) -> str:
    """A type in words: "list of int"."""
    if isinstance(default, (list, tuple)):
        kinds = sorted({described(element) for element in default})
        return f"list of {' or '.join(kinds)}" if kinds else "list"
    return _NAMES.get(type(default), type(default).__name__)
