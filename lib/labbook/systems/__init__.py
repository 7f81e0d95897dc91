"""The software under test: a package or module a system, with its versions inside.

The registry gives each system's class by the name that lab.yml uses for it. A paper may bring
systems of its own, in `labbook/papers/STUDY/systems.py`: there the classes' NAMEs are the registry.
Only the module of the class that is asked for is imported.
"""

import importlib
from importlib import util

from labbook.checks import did_you_mean
from labbook.errors import InputError

# name in lab.yml: (module below this package, class)
REGISTRY = {
    "cassandra": ("cassandra.node", "Cassandra"),
    "cassandra_ring": ("cassandra.ring", "Ring"),
    "ceph": ("ceph.cluster", "Ceph"),
    "ceph_mds": ("ceph.daemons", "CephMDS"),
    "ceph_mon": ("ceph.daemons", "CephMon"),
    "ceph_mount": ("ceph.mount", "CephMount"),
    "ceph_osd": ("ceph.daemons", "CephOSD"),
    "elastic_ring": ("cassandra.elastic_ring", "ElasticRing"),
    "galera": ("galera.cluster", "Galera"),
    "haproxy": ("haproxy", "HAProxy"),
    "keystone": ("keystone.server", "Keystone"),
    "keystone_cloud": ("keystone.stack", "KeystoneCloud"),
    "mariadb": ("sql", "MariaDB"),
    "mysql": ("sql", "MySQL"),
    "null": ("null.server", "NullServer"),
    "openstack": ("openstack.lab_cloud", "OpenStack"),
    "wiki": ("wiki.server", "Wiki"),
}


def find(name: str, study: str | None = None) -> type:
    """The class of system `name`: a registered one, or one that the study's paper brings.

    InputError with the known names for one that is neither, and for a paper's system that has the
    name of a registered one.
    """
    own = of_paper(study)
    if name in REGISTRY:
        if name in own:
            raise InputError(f"{name!r} is a system of labbook already", key="NAME",
                             file=own[name].__module__, allowed="any other name")
        module, kind = REGISTRY[name]
        return getattr(importlib.import_module(f"{__name__}.{module}"), kind)
    if name in own:
        return own[name]
    known = sorted([*REGISTRY, *own])
    raise InputError(f"no system {name!r}{did_you_mean(name, known)}", allowed=known)


def names() -> list[str]:
    """The names of all registered systems."""
    return sorted(REGISTRY)


def of_paper(study: str | None) -> dict[str, type]:
    """{NAME: class} of the systems that `labbook/papers/STUDY/systems.py` defines; none without
    such a file. What goes wrong while that is imported is raised as it is."""
    paper = f"labbook.papers.{study}"
    if not study or not util.find_spec(paper) or not util.find_spec(f"{paper}.systems"):
        return {}
    module = importlib.import_module(f"{paper}.systems")
    return {kind.NAME: kind for kind in vars(module).values()
            if isinstance(kind, type) and hasattr(kind, "NAME")
            and kind.__module__.startswith(module.__name__)}


def over_several(kind: type) -> bool:
    """Whether its constructor takes a list of hosts: it is a cluster, and so no System itself.

    Such a class may have PARTS: by the role of a host, the name of the system that runs there.
    """
    from labbook.systems.base import System

    return not issubclass(kind, System)
