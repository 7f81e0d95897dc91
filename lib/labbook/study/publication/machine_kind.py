"""Kinds of machines: processor, cores and kernel, by which published results are kept apart.

Two machines of one kind are expected to give the same results; a kernel's patch level and build are
no part of its kind.
"""

import re

_NOISE = re.compile(r"\((?:R|TM|tm|C)\)|\b(?:CPU|Processor|Core\(TM\))\b|@.*$")


def kind(machine: dict) -> dict:
    """{"cpu", "cores", "kernel"} of a machine as provenance describes it; `kernel` is such as 6.18."""
    return {"cpu": machine["cpu"], "cores": machine["cores"], "kernel": _version(machine["kernel"])}


def of_point(provenance: dict) -> dict:
    """The kind of machine that a point was measured on, from its provenance: that of the lab's hosts
    where they are elsewhere, if they are all of one kind, otherwise the driver's."""
    hosts = [host["machine"] for host in provenance.get("lab", {}).get("hosts", {}).values()
             if "machine" in host]
    kinds = {slug(kind(host)): kind(host) for host in hosts}
    return next(iter(kinds.values())) if len(kinds) == 1 else kind(provenance["machine"])


def slug(kind: dict) -> str:
    """A kind as the name of a folder: `amd-epyc-2-cores-linux-6.18`."""
    text = f"{_processor(kind['cpu'])} {kind['cores']} cores linux {kind['kernel']}"
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def words(kind: dict) -> str:
    """A kind for readers: `AMD EPYC, 2 cores, Linux 6.18`."""
    return f"{_processor(kind['cpu'])}, {kind['cores']} cores, Linux {kind['kernel']}"


def _processor(cpu: str) -> str:
    return re.sub(r"\s+", " ", _NOISE.sub(" ", cpu)).strip() or "unknown processor"


def _version(release: str) -> str:
    found = re.match(r"\d+\.\d+", release)
    return found[0] if found else release
