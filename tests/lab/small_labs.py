"""Descriptions of small labs, and ids of their own."""

import secrets

from labbook.lab import LabDescription


def describe(hosts: dict, links=(), **more) -> LabDescription:
    """A description from `{name: limits}` in one site, or `{name: (site, limits)}`."""
    entries = {}
    for name, given in hosts.items():
        site, limits = given if isinstance(given, tuple) else ("lan", given)
        entries[name] = {"site": site, "role": "client" if "client" in name else "db",
                         "limits": limits}
    sites = list(dict.fromkeys(e["site"] for e in entries.values()))
    return LabDescription.parse({"sites": sites, "hosts": entries, "links": list(links), **more})


def new_id() -> str:
    return f"t{secrets.token_hex(3)}"
