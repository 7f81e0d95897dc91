"""The software under test: one module a system, its versions inside."""

import importlib
import pkgutil

from labbook.checks import did_you_mean
from labbook.errors import InputError
from labbook.systems.base import System


def find(name: str) -> type:
    """The class of system `name`; InputError with the names there are."""
    found = _system_in(name) if name in _modules() else None
    if found is None:
        known = names()
        raise InputError(f"no system {name!r}{did_you_mean(name, known)}", allowed=known)
    return found


def over_several(kind: type) -> bool:
    """Whether its constructor takes a list of hosts: it is made of systems, and so is none itself.

    Such a class may say in PARTS, by the role of a host, which system that one has of it.
    """
    return not issubclass(kind, System)


def names() -> list[str]:
    """All systems there are."""
    return sorted(name for name in _modules() if _system_in(name))


def _modules() -> set[str]:
    return {info.name for info in pkgutil.iter_modules(__path__)}


def _system_in(name: str) -> type | None:
    """The class in that module that says what it needs, which makes it a system."""
    module = importlib.import_module(f"{__name__}.{name}")
    classes = [c for c in vars(module).values()
               if isinstance(c, type) and c.__module__ == module.__name__]
    return next((c for c in classes if "NEEDS" in vars(c)), None)
