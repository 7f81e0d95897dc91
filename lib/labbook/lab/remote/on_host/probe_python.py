"""Describe the Python that runs this, and the packages that it has, as JSON.

Run on a host as `python - PACKAGE...`. Standard library only; labbook may not be there.
"""

import hashlib
import json
import platform
import struct
import sys
import sysconfig
from importlib import metadata, util
from pathlib import Path

PARTS = ("__init__.py", "checks.py", "errors.py", "paths.py", "targets.py", "lab", "systems", "workloads")
# What a paper brings of its own that runs on hosts.
OF_PAPERS = ("papers/__init__.py", "papers/*/__init__.py", "papers/*/on_host/**/*", "papers/*/protocols/**/*")


def look(packages) -> dict:
    found = util.find_spec("labbook")
    folder = found and found.origin and Path(found.origin).parent
    return {
        "python": sys.executable, "version": sys.version_info[:3], "bits": struct.calcsize("P") * 8,
        "implementation": sys.implementation.name, "machine": platform.machine(),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "libc": list(libc()), "library": library_digest(folder) if folder else None,
        "packages": {name: version(name) for name in packages}}


def libc() -> tuple:
    """("glibc", "2.36"), or the likes of ("musl", "")."""
    name, number = platform.libc_ver()
    kind = sysconfig.get_config_var("HOST_GNU_TYPE") or ""
    return (name, number) if name else ("musl" if kind.endswith("musl") else kind, "")


def version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def library_files(folder: Path) -> list:
    """The files of labbook that run on hosts."""
    found = {file for part in PARTS for file in [folder / part, *(folder / part).rglob("*")]}
    found |= {file for pattern in OF_PAPERS for file in folder.glob(pattern)}
    return sorted(f for f in found if f.is_file() and "__pycache__" not in f.parts)


def library_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in library_files(folder):
        name, text = str(file.relative_to(folder)).encode(), file.read_bytes()
        digest.update(b"%d %s %d " % (len(name), name, len(text)) + text)
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    json.dump(look(sys.argv[1:]), sys.stdout)
