"""Renew the files of pins: the exact version of every Python package, with the SHA-256 of each file of it
that Linux may take. For maintainers, in the checkout's environment:

    .venv/bin/python lib/pins.py               # today's versions and hashes of what the files lack
    .venv/bin/python lib/pins.py --upgrade     # the newest versions of everything

Versions and hashes are those of the package index that uv is set to. They are taken over on trust once,
here; whoever installs afterwards gets these files or an error. No file of pins names an index.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.markers import Marker
from packaging.utils import parse_wheel_filename

from labbook.lab.remote.wheels import CERTIFICATES, HOST_PINS, MACHINES, PACKAGES
from labbook.pipeline.setup import peers
from labbook.systems.keystone import server as keystone
from labbook.systems.openstack import releases as openstack
from labbook.workloads.keystone import rally

ROOT = Path(__file__).resolve().parents[1]
OLDEST = "3.11.0"       # Debian 12 has 3.11.2
PYTHONS = ("3.11.0", "3.12.0", "3.13.0", "3.14.0")
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix",
         "implementation_name": "cpython", "platform_python_implementation": "CPython", "extra": ""}
WHAT = {"test": "the tests need", "lab": "JupyterLab needs"}     # extras, each with a file of pins
HEADER = """# {what}, with the SHA-256 of each file that Linux may take.
# Made by `.venv/bin/python lib/pins.py`; see CONTRIBUTING.md.
"""


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    asked.add_argument("--upgrade", action="store_true", help="to the newest versions")
    upgrade = asked.parse_args().upgrade
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    base, extras = project["project"]["dependencies"], project["project"]["optional-dependencies"]
    tools = ["uv", *project["build-system"]["requires"]]
    files = [ROOT / "constraints.txt", ROOT / "lib/bootstrap.txt", *(ROOT / f"constraints-{one}.txt" for one in WHAT)]
    known = [] if upgrade else [pin for file in files for pin in pins(file)]
    everything = resolve([*base, *tools, *(one for extra in WHAT for one in extras[extra])], known)
    versions = [f"{name}=={version}" for name, version, *_ in everything]
    needed = resolve(base, versions)
    beside = {name for name, *_ in needed}
    write(files[0], "What labbook runs with, each package at the version it was tested with", needed)
    write(files[1], "What makes .venv", resolve(tools, versions))
    for extra, file in zip(WHAT, files[2:]):
        more = [one for one in resolve([*base, *extras[extra]], versions) if one[0] not in beside]
        write(file, f"What {WHAT[extra]} besides constraints.txt", more)
    write(HOST_PINS, "What hosts get for engines and servers, at the versions of constraints.txt",
          resolve(PACKAGES, versions))
    for system in (keystone.PACKAGES, openstack.PACKAGES, rally.PACKAGES, *peers.PYTHON):
        pinned = [] if upgrade else pins(system.pins)
        write(system.pins, f"What {system.name} {system.version} runs with, each package at the version it was "
              "tried with", resolve(system.requirements, pinned), system.built)


def pins(file: Path) -> list[str]:
    """`name==version` of each pin in a file; [] when it is not there."""
    return re.findall(r"^[a-z0-9.-]+==[^ ;\\\n]+", file.read_text(), re.M) if file.exists() else []


def resolve(requirements, known) -> list[tuple[str, str, str, list, bool]]:
    """(name, version, marker, hashes, whether it has to be built) of all that is needed on Linux."""
    certificates = ["--system-certs"] if CERTIFICATES.exists() else []
    with tempfile.TemporaryDirectory() as scratch:
        wanted, limits, lock = (Path(scratch, name) for name in ("wanted.in", "known.txt", "pylock.toml"))
        wanted.write_text("\n".join(requirements))
        limits.write_text("\n".join(known))
        command = [Path(sys.executable).with_name("uv"), "pip", "compile", "--quiet", *certificates,
                   "--universal", "--python-version", OLDEST, "-c", limits, "-o", lock, wanted]
        done = subprocess.run(command, text=True, capture_output=True, cwd=scratch,
                              env={k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"})
        if done.returncode:
            sys.exit(done.stderr)
        packages = tomllib.loads(lock.read_text())["packages"]
    return [found for package in packages if (found := read(package))]


def read(package: dict):
    """A package of uv's lock, as `resolve` returns it; None when Linux never needs it."""
    name, marker = package["name"], package.get("marker", "")
    needed = [not marker or Marker(marker).evaluate(environment(python)) for python in PYTHONS]
    if not any(needed):
        return None
    wheels = [one for one in package.get("wheels", ()) if usable(one["url"].rsplit("/", 1)[1])]
    files = wheels or [package["sdist"]]
    hashes = sorted({one["hashes"]["sha256"] for one in files})
    return name, package["version"], "" if all(needed) else marker, hashes, not wheels


def environment(python: str) -> dict:
    return LINUX | {"python_version": python.rsplit(".", 1)[0], "python_full_version": python}


def usable(wheel: str) -> bool:
    """Whether a CPython of ours on Linux with glibc may take a wheel of this file name."""
    return any(_python(tag) and (tag.platform == "any" or tag.platform.startswith(("manylinux", "linux"))
                                 and tag.platform.endswith(MACHINES))
               for tag in parse_wheel_filename(wheel)[3])


def _python(tag) -> bool:
    kind, number = re.fullmatch(r"([a-z]+)(\d*)", tag.interpreter).groups()
    if kind == "py":
        return number.startswith("3")
    minor = int(number[1:] or 0) if kind == "cp" and number.startswith("3") else None
    oldest = int(OLDEST.split(".")[1])
    return minor is not None and (tag.abi in ("abi3", "none") or minor >= oldest and tag.abi == f"cp3{minor}")


def write(file: Path, what: str, resolved, built=()) -> None:
    """Write a file of pins; ends when a package has no wheel and is not among the `built`."""
    unexpected = sorted(name for name, *_, source in resolved if source and name not in built)
    if unexpected:
        sys.exit(f"{file}: there is no wheel for Linux of {', '.join(unexpected)}")
    lines = [HEADER.format(what=what)]
    for name, version, marker, hashes, _ in sorted(resolved):
        line = f"{name}=={version}" + (f" ; {marker}" if marker else "")
        lines.append(" \\\n".join([line, *(f"    --hash=sha256:{one}" for one in hashes)]) + "\n")
    file.write_text("".join(lines))
    print(f"{file.relative_to(ROOT)}: {len(resolved)} packages, "
          f"{sum(len(one[3]) for one in resolved)} hashes", file=sys.stderr)


if __name__ == "__main__":
    main()
