"""A Python on a user's host that runs our programs: its interpreter, our packages and library.

Packages and library are copied to <root>/<lab>/software and deleted with the lab, including the
bytecode that imports write there. Where nothing may be copied, the host's `python` must have the
same packages and the same library already.
"""

import json
import shlex
import tarfile
import tempfile
from importlib import metadata
from pathlib import Path, PurePosixPath

from labbook.errors import InputError, LabError
from labbook.lab.remote.on_host import probe_python
from labbook.lab.remote.wheels import HOST_PINS, LEAST_PYTHON, PACKAGES, check_kind, packages
from labbook.lab.ssh import transfer

LIBRARY = Path(__file__).resolve().parents[2]
LAUNCHER = """#!/bin/sh
# The host's Python with what labbook has brought for this lab.
export PYTHONPATH={folder}/site:{folder}/library PYTHONNOUSERSITE=1
exec {python} "$@"
"""
TRY = """import ipyparallel.controller.app, ipyparallel.engine.app
import cassandra.cluster, pymysql, thriftpy2.transport, waitress
import labbook.lab, labbook.systems, labbook.workloads.keyvalue.on_host.contents"""
TRY_SECONDS = 120


def install(host, real, lab: PurePosixPath, file=None) -> str:
    """Command of a Python on the host with packages and library; `lab` is the lab's folder there.

    LabError when the host's own Python is unsuitable; InputError, with the environment's `file` and
    key, when nothing may be copied and something is missing.
    """
    seen = ask(host, real.python)
    if not real.may("software"):
        if problem := lacks(seen):
            raise InputError(f"{problem[0]}, and `allow` has no software to bring it", file=file,
                             key=f"{real.entry}.python", allowed=problem[1])
        return seen["python"]
    folder = lab / "software"
    with transfer.alone(host, folder):
        return _install(host, seen, folder)


def ask(host, python: str) -> dict:
    """What probe_python finds about a Python on the host; LabError when it does not run."""
    done = host.run(f"{shlex.join([python, '-', *PACKAGES])} <<'LABBOOK-END'\n"
                    f"{Path(probe_python.__file__).read_text()}\nLABBOOK-END", check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        output = (done.stderr or done.stdout).strip()[-300:]
        raise LabError(f"{host.name}: {python} does not run there: {output}", remedy=(
            "Install Python 3.11 or newer (Debian: apt-get install python3), or name one as the "
            "host's `python`")) from None


def lacks(seen) -> tuple[str, str] | None:
    """(what a Python lacks when nothing may be copied, what is required); None when it has all.

    Versions must be those of this machine: others would measure something else.
    """
    mine = probe_python.library_digest(LIBRARY)
    wanted = {name: metadata.version(name) for name in PACKAGES}
    missing = [f"{name} {version}" + (f" (has {have})" if have else "")
               for name, version in wanted.items() if (have := seen["packages"][name]) != version]
    if tuple(seen["version"]) < LEAST_PYTHON:
        return f"Python {'.'.join(map(str, seen['version']))} is too old", "3.11 and newer"
    if missing:
        return (f"{seen['python']} lacks {', '.join(missing)}",
                f"a Python with all that `pip install --no-deps -r {HOST_PINS.name}` gives ({HOST_PINS})")
    if seen["library"] != mine:
        have = f"labbook of another state, {seen['library']}" if seen["library"] else "no labbook"
        return f"{seen['python']} has {have}", f"a Python that imports this labbook ({mine})"
    return None


def _install(host, seen, folder: PurePosixPath) -> str:
    check_kind(host.name, seen)
    packed, library = packages(host.name, seen), probe_python.library_digest(LIBRARY)
    launcher, key = str(folder / "python"), f"{packed.parent.name} {library}"
    if host.run(f"cat {shlex.quote(f'{folder}/key')}", check=False).stdout.strip() == key:
        return launcher
    transfer.send(host, packed, folder / "site", "Python packages")
    with tempfile.NamedTemporaryFile(suffix=".tar.gz") as file:
        _pack_library(file.name)
        transfer.send(host, Path(file.name), folder / "library", "labbook")
    host.put(LAUNCHER.format(folder=shlex.quote(str(folder)), python=shlex.quote(seen["python"])),
             launcher, 0o755)
    tried = host.run(shlex.join([launcher, "-c", TRY]), timeout=TRY_SECONDS, check=False)
    if tried.exit_code:
        raise LabError(f"{host.name}: what was brought does not run with {seen['python']}: "
                       f"{tried.stderr.strip()[-500:]}")
    host.put(key, folder / "key")
    return launcher


def _pack_library(path):
    with tarfile.open(path, "w:gz") as tar:
        for file in probe_python.library_files(LIBRARY):
            tar.add(file, arcname=f"labbook/{file.relative_to(LIBRARY)}")
