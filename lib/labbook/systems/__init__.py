"""The software under test: a package a system, its versions inside. The registry names each one.

Nothing but the class that is asked for is imported.
"""

import importlib

from labbook.checks import did_you_mean
from labbook.errors import InputError

# name in lab.yml: (module below this package, class)
REGISTRY = {
    "cassandra": ("cassandra.node", "Cassandra"),
    "ceph": ("ceph.cluster", "Ceph"),
    "ceph_mds": ("ceph.daemons", "CephMDS"),
    "ceph_mon": ("ceph.daemons", "CephMon"),
    "ceph_mount": ("ceph.mount", "CephMount"),
    "ceph_osd": ("ceph.daemons", "CephOSD"),
    "galera": ("galera.cluster", "Galera"),
    "growing_ring": ("cassandra.elastic_ring", "GrowingRing"),
    "haproxy": ("haproxy", "HAProxy"),
    "keystone": ("keystone.server", "Keystone"),
    "keystone_cloud": ("keystone.stack", "KeystoneCloud"),
    "mariadb": ("sql.mariadb", "MariaDB"),
    "mysql": ("sql.mysql", "MySQL"),
    "null": ("null.server", "NullServer"),
    "openstack": ("openstack.lab_cloud", "OpenStack"),
    "wiki": ("wiki.server", "Wiki"),
}


def find(name: str) -> type:
    """The class of system `name`; InputError with the names there are."""
    if name not in REGISTRY:
        raise InputError(f"no system {name!r}{did_you_mean(name, names())}", allowed=names())
    module, kind = REGISTRY[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), kind)


def names() -> list[str]:
    """All systems there are."""
    return sorted(REGISTRY)


def over_several(kind: type) -> bool:
    """Whether its constructor takes a list of hosts: a cluster of systems, and so no System itself.

    Such a class may say in PARTS, by the role of a host, which system that one has of it.
    """
    from labbook.systems.base import System

    return not issubclass(kind, System)
