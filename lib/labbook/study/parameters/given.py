"""The parameters that a kernel was given, checked as a notebook makes its Study.

papermill's `-p` gives text, and papermill lets an unknown name pass; who edits the parameters cell in
JupyterLab is not checked by anybody else. In a process without a kernel, and in one that has not run the
study's parameters cell, there is nothing to check.
"""

import ast
import sys

from labbook import paths
from labbook.checks import did_you_mean
from labbook.errors import InputError
from labbook.study.parameters.checking import checked, flat, from_text, unknown
from labbook.study.parameters.notebook import declared, names_used

PLAIN = (type(None), bool, int, float, str, list, tuple, dict)
INJECTED = "# Parameters"       # how papermill's own cell begins


def check(study: str) -> None:
    """InputError, with notebook, parameter and allowed values, for a parameter of the wrong type in the
    kernel's names, for an unknown name that papermill set, and for one in the parameters cell that looks
    like a parameter's. Text is parsed as YAML where the notebook has none, and put back."""
    names = getattr(shell(), "user_ns", None)
    path = paths.notebook(study)
    if names is None or not path.is_file():
        return
    try:
        defaults = declared(study)
    except InputError:
        return      # no notebook that parameters could be given to, which `labbook run` says
    cells = _cells(names.get("In", ()), defaults)
    for name, is_injected in _strangers(cells, defaults):
        if isinstance(names.get(name), PLAIN) and (is_injected or did_you_mean(name, defaults)):
            raise unknown(name, list(defaults if did_you_mean(name, defaults) else flat(defaults)), path)
    if cells:
        _check_used(study, defaults, path)
    for name, default in defaults.items():
        if cells and name in names:
            names[name] = _value(names[name], default, name, path)


def values(study: str) -> dict | None:
    """The notebook's parameters as the kernel has them; None in a process that does not have all of them."""
    names = getattr(shell(), "user_ns", None)
    try:
        return {name: names[name] for name in declared(study)}
    except (InputError, KeyError, TypeError):       # no parameters, none of this notebook's, or no kernel
        return None


def _check_used(study: str, defaults: dict, path) -> None:
    """InputError for a parameter of the notebook's file that no cell uses, where the cells use one of nearly its
    name that nothing sets: the parameters cell was edited and saved."""
    reads, unset = names_used(study)
    for name in defaults.keys() - reads:
        if near := did_you_mean(name, unset - defaults.keys()):
            raise InputError(f"no cell uses this parameter{near}", file=path, key=name,
                             allowed=sorted(reads & defaults.keys() | unset - defaults.keys()))


def shell():
    """The shell of this process's notebook, None without one."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def _value(value, default, name: str, path):
    """The value itself if it fits, or what its text says."""
    if not isinstance(value, str) or isinstance(default, str):
        checked(value, default, name, path)
        return value
    try:
        return checked(from_text(default, value, name), default, name, path)
    except InputError as error:
        error.file = path
        raise


def _cells(executed, defaults: dict) -> list[str]:
    """The parameters cell as it was last run, whoever edited it, and the cells that papermill put after it;
    none if it was not run. It is taken to be a cell that sets half of the parameters or more."""
    found = []
    for source in reversed(executed):
        if source.lstrip().startswith(INJECTED):
            found.append(source)
        elif 2 * len(_set_in(source) & set(defaults)) >= max(len(defaults), 1):
            return [source, *reversed(found)]
    return []


def _strangers(cells: list[str], defaults: dict):
    """(name, whether papermill set it) of what the cells set and the notebook does not declare."""
    for source in cells:
        is_injected = source.lstrip().startswith(INJECTED)
        for name in sorted(_set_in(source) - set(defaults)):
            yield name, is_injected


def _set_in(source: str) -> set[str]:
    """The names that a cell assigns to."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    targets = [target for one in tree.body if isinstance(one, (ast.Assign, ast.AnnAssign))
               for target in (one.targets if isinstance(one, ast.Assign) else [one.target])]
    return {target.id for target in targets if isinstance(target, ast.Name)}
