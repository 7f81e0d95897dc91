"""Protocols by which clients call a store: each a module here, named after its protocol.

A module has a class `Calls`, a subclass of wire.prepared.PreparedCalls, whose class attributes
say what the protocol can do (OPS, LEVELS, ANY_BYTES, BATCHES, REGISTERS, NULL_SERVER). A paper may
bring a protocol of its own: `labbook/papers/PAPER/protocols/PROTOCOL.py`. Nothing else needs a
change: the folders are listed, and a module is imported when it is used, by the driver and by client
hosts.
"""

import importlib
from functools import cache
from pathlib import Path

LIBRARY = Path(__file__).parents[3]


@cache
def modules() -> dict[str, str]:
    """{protocol: its module}."""
    found = {path.stem: f"labbook.workloads.keyvalue.protocols.{path.stem}"
             for path in Path(__file__).parent.glob("[a-z]*.py")}
    for path in (LIBRARY / "papers").glob("*/protocols/[a-z]*.py"):
        paper = path.parts[-3]
        found.setdefault(path.stem, f"labbook.papers.{paper}.protocols.{path.stem}")
    return dict(sorted(found.items()))


def protocol(name: str) -> type:
    """The `Calls` of a protocol; KeyError for an unknown one."""
    return importlib.import_module(modules()[name]).Calls


def that(**attributes) -> list[str]:
    """Protocols with these class attributes, such as BATCHES=True."""
    return [name for name in modules()
            if all(getattr(protocol(name), key) == value for key, value in attributes.items())]


def of_client(spec: dict, number: int) -> dict:
    """The spec of one client; clients take the servers' addresses in turn."""
    addresses = spec["addresses"]
    return dict(spec, client=number, address=addresses[number % len(addresses)])


def calls(spec: dict):
    """The calls by spec["protocol"] of one client, not yet connected."""
    return protocol(spec["protocol"])(spec)
