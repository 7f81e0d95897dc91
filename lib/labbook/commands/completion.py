"""Completion of the command line in bash and zsh, by argcomplete; and `labbook completion`.

A shell calls the command itself at each press of the key, so values come from names of files, and those of
`-p` from notebooks' parameters cells.
"""

import json
import os

import argcomplete

from labbook import paths
from labbook.errors import LabbookError
from labbook.pipeline.executing.driver import labs_left
from labbook.pipeline.sources import notebooks


def complete(parser) -> None:
    """Print the words that may come next, as the shell asks by the environment, and end."""
    for command in _commands(parser).values():
        for action in command._actions:
            if action.dest in VALUES:
                action.completer = _quiet(VALUES[action.dest])
    argcomplete.autocomplete(parser, always_complete_options=False)


def show(given) -> int:
    """Print what switches completion on in a shell."""
    print(argcomplete.shellcode(["labbook"], shell=given.shell))
    return 0


def _commands(parser) -> dict:
    return next(action for action in parser._actions if action.dest == "command").choices


def _quiet(values):
    """Values of a word; none where the working folder is in no checkout."""
    def found(parsed_args, **_):
        try:
            return sorted(values(parsed_args))
        except LabbookError:
            return []
    return found


def _studies(_):
    return notebooks.studies()


def _labs(_):
    return [name for lab in _standing() for name in {lab.id, lab.study} - {""}]


def _hosts(_):
    return [name for lab in _standing() for name in lab.hosts]


def _sites(_):
    return {site for lab in _standing() for pair in lab.links for site in pair}


def _links(_):
    return ["-".join(pair) for lab in _standing() for pair in lab.links]


def _standing():
    """Labs that are up. The library is imported only where there may be one."""
    if not labs_left():
        return []
    from labbook.lab import Lab

    return Lab.list()


def _experiments(given):
    """Those with records of the study, wherever they were measured."""
    return {folder.name for folder in paths.records_dir().glob(f"*/{given.study}/*") if folder.is_dir()}


def _environments(_):
    root = paths.checkout()
    return [str(file.relative_to(root)) for file in (root / "environments").glob("*.yml")]


def _results(_):
    """What `labbook compare` takes, beside paths."""
    machines = {folder.name for folder in paths.published_dir().glob("*/*") if folder.is_dir()}
    return ["quick", "published", *(f"published:{machine}" for machine in machines)]


def _parameters(given):
    """Names of the parameters of the line's studies, or of all; after such a name its value in the notebook."""
    from labbook.study.parameters.checking import flat
    from labbook.study.parameters.notebook import declared

    known = {}
    for study in given.studies or notebooks.studies():
        known |= flat(declared(study))
    line = os.environ.get("COMP_LINE", "")[:int(os.environ.get("COMP_POINT", 0))]
    name = next((word for word in line.split()[:-3:-1] if word in known), None)
    if name is None or line.endswith(name):
        return known
    value = known[name]
    return [value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))]


def _claims(given):
    """Kinds of claims, and the ids of those of the line's studies, or of all."""
    from labbook.pipeline.running.asking import WHICH, ids

    return [*WHICH, *(name for study in given.studies or notebooks.studies() for name in ids(study, "all"))]


def _none(_):
    return []       # and no names of files, which a shell would offer


VALUES = {"study": _studies, "studies": _studies, "lab": _labs, "host": _hosts, "pattern": _hosts,
          "site_a": _sites, "site_b": _sites, "link": _links, "experiment": _experiments,
          "point": _experiments,
          "environment": _environments, "a": _results, "b": _results, "given": _parameters, "claims": _claims,
          "values": _none}
