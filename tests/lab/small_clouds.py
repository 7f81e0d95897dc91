"""A small KeystoneCloud, always with the same seed: 20 users, 3 projects, 10 revocations."""

from contextlib import contextmanager

from small_labs import new_id

from labbook.lab import Environment, Lab, LabDescription
from labbook.systems.keystone.stack import KeystoneCloud

SMALL = {"users": 20, "projects": 3, "revocations": 10, "processes": 3}


def cloud_lab(a=2, b=1, environment=None, **more) -> Lab:
    """A lab of two linked sites with `a` and `b` database hosts, and in the first site hosts for the
    proxy, Keystone and a client."""
    def host(site, role):
        return {"site": site, "role": role}

    hosts = {f"db{n}": host("a" if n <= a else "b", "db") for n in range(1, a + b + 1)}
    hosts |= {name: host("a", name) for name in ("lb", "keystone", "client")}
    hosts |= more.pop("hosts", {})
    lab = LabDescription.parse({"sites": ["a", "b"], "hosts": hosts, **more,
                                "links": [{"between": ["a", "b"]}]})
    return Lab.up(lab, environment or Environment("local"), new_id())


def cloud_hosts(lab) -> list:
    return [host for role in ("db", "lb", "keystone") for host in lab.role(role)]


@contextmanager
def small_cloud(a=2, b=1, **settings):
    """(lab, cloud), both up until the test ends."""
    with cloud_lab(a, b) as lab:
        yield lab, KeystoneCloud(cloud_hosts(lab), **{**SMALL, **settings}).up()
