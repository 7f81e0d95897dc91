"""The parameters of a run: those of its profile, and what the command line gives over them.

They are checked by name and type before anything starts; see labbook.study.parameters.
"""

import copy

from labbook import paths
from labbook.checks import load_yaml
from labbook.errors import InputError
from labbook.study.options import PROFILES
from labbook.study.parameters.checking import check, checked, flat, from_text, is_group, unknown
from labbook.study.parameters.notebook import declared


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
    both = is_group(default) and isinstance(value, dict)
    return {**default, **{k: _over(default.get(k), v) for k, v in value.items()}} if both else value


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
        if group in known and not is_group(known[group]):
            raise InputError("this parameter is not a group, so it has no entries", file=file,
                             key=".".join(groups[:number]))
        if group not in known:
            raise unknown(name, list(flat(defaults)), file)
        place[group] = copy.copy(place[group])     # never the notebook's own dict
        place, known = place[group], known[group]
    if entry not in known:
        raise unknown(name, list(flat(defaults)), file)
    place[entry] = checked(from_text(known[entry], text, name), known[entry], name, file)


def _same(value, default) -> bool:
    return _plain(value) == _plain(default)


def _plain(value) -> str:
    """A value as text, in which 1, 1.0 and True differ, and lists and tuples do not."""
    if isinstance(value, dict):
        return repr({key: _plain(value[key]) for key in sorted(value, key=repr)})
    return repr(list(value) if isinstance(value, tuple) else value)
