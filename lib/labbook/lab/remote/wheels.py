"""Third-party packages for a user's host's Python: downloaded here, checked by their pinned hashes, cached."""

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.cache.build import build_once
from labbook.lab.ssh.transfer import say

# Imported on hosts by engines and servers; HOST_PINS has them with their dependencies.
PACKAGES = ("cassandra-driver", "ipyparallel", "pymysql", "python-keystoneclient",
            "thriftpy2", "waitress")
# Not imported on hosts, but more than half of the size: completion, a debugger, sources.
UNUSED = ("bin", "debugpy*", "jedi*", "parso*", "share",
          *(f"**/{name}" for name in ("test", "tests", "*.c", "*.h", "*.html", "*.pxd", "*.pyi", "*.pyx")))
HOST_PINS = Path(__file__).with_name("host_python.txt")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")  # includes a company's own, where there is one
MACHINES = ("x86_64", "aarch64")
LEAST_PYTHON, LEAST_GLIBC = (3, 11), (2, 28)
FETCH_SECONDS = 600
PACKED = "packages.tar.gz"
LINES = 16      # of a tool's complaint; one about a hash has the package's name in the first
# Settings of pip that name another index than the public one; uv does not read them.
OWN_INDEX = re.compile(r"\.(index-url|extra-index-url|no-index)=")
# What uv and pip say of a file whose hash is none of the pinned ones.
FORGED = re.compile(r"[Hh]ash mismatch for|DO NOT MATCH THE HASHES")


def packages(name: str, seen: dict) -> Path:
    """A .tar.gz of the packages for the Python that probe_python found on the host `name`.

    LabError when there are none for it, or they cannot be downloaded.
    """
    check_kind(name, seen)
    python, machine = "{}.{}".format(*seen["version"]), seen["machine"]
    pins = hashlib.sha256(HOST_PINS.read_bytes() + repr((PACKAGES, UNUSED)).encode())
    key = f"python{python}-{machine}-{seen['libc'][0]}-{pins.hexdigest()[:12]}"
    return build_once(key, lambda folder: _fill(folder, name, python, machine, seen["libc"][0])) / PACKED


def check_kind(name: str, seen: dict) -> None:
    """LabError when there are no packages for this kind of Python."""
    version, libc = tuple(seen["version"]), seen["libc"]
    why = None
    if seen["implementation"] != "cpython" or seen["free_threaded"] or seen["bits"] != 64:
        why = "it is not the usual 64-bit CPython"
    elif version < LEAST_PYTHON:
        why = "it is older than 3.11"
    elif seen["machine"] not in MACHINES:
        why = f"there are packages for {' and '.join(MACHINES)} only"
    elif libc[0] != "glibc":
        why = f"it was built for {libc[0] or 'another C library'}, packages are for glibc"
    elif tuple(map(int, libc[1].split(".")[:2])) < LEAST_GLIBC:
        why = f"its glibc {libc[1]} is older than {'.'.join(map(str, LEAST_GLIBC))}"
    if why:
        raise LabError(f"{name}: its {seen['python']} ({seen['implementation']} "
                       f"{'.'.join(map(str, version))}, {seen['machine']}) cannot be used: {why}",
                       remedy="Name another one as the host's `python`, or use another host")


def _fill(folder, name, python, machine, libc):
    say(f"fetching Python packages for {name} ({python}, {machine})")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        target = Path(scratch) / "site"
        into(target, HOST_PINS, python, machine, f"{name}'s Python {python} on {machine} with {libc}")
        drop(target, UNUSED)
        with tarfile.open(folder / PACKED, "w:gz", compresslevel=6) as tar:
            tar.add(target, arcname=".")


def into(target: Path, pins: Path, python: str, machine: str, whom: str, built=()) -> None:
    """Install the packages of `pins` into the folder `target`: wheels whose hashes are there, and nothing else.

    For Python `python` (such as 3.11) on the processor `machine`. Packages in `built` are built from
    source, in plain Python, by this environment's setuptools. LabError with the tools' messages on failure.
    """
    complaints = []
    for command in _commands(target, pins, python, machine, built):
        complaint = _complaint_of(command)
        if complaint is None:
            return
        complaints.append(complaint)
        for left in target.iterdir() if target.exists() else ():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        if FORGED.search(complaint):
            raise LabError(f"packages for {whom}: the index gave a file that is not the pinned one:\n{complaint}",
                           remedy=f"Nothing of it was kept. Find out who changed it; {pins.name} has the hashes "
                           "that were taken over when it was pinned")
    raise LabError(f"cannot fetch packages for {whom}:\n" + "\n".join(complaints),
                   remedy="See that this machine reaches a package index, then try again")


def _commands(target, pins, python, machine, built=()):
    """Commands to try: uv with the oldest supported glibc; pip, which needs every platform tag. Only pip
    where its settings name an index."""
    what = ["--only-binary", ":all:", *(word for one in built for word in ("--no-binary", one)),
            "--no-build-isolation", "--no-deps", "--require-hashes", "-r", str(pins)]
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if uv and not own_index(pip):
        certificates = ["--system-certs"] if CERTIFICATES.exists() else []
        yield [uv, "pip", "install", "--quiet", *certificates, "--python", sys.executable,
               "--target", str(target), "--python-version", python, "--python-platform",
               f"{machine}-manylinux_{LEAST_GLIBC[0]}_{LEAST_GLIBC[1]}", *what]
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(LEAST_GLIBC[1], 4, -1)]
    tags += [f"manylinux{year}_{machine}" for year in (2014, 2010, 1)]
    yield [*pip, "install", "--quiet", "--no-compile", "--target", str(target), "--python-version", python,
           "--implementation", "cp", *(f"--platform={tag}" for tag in tags), *what]


def own_index(pip) -> bool:
    """Whether the user's environment or pip.conf names an index of his own; `pip`: its command."""
    listed = subprocess.run([*pip, "config", "list"], capture_output=True, text=True, timeout=FETCH_SECONDS,
                            stdin=subprocess.DEVNULL)
    return bool(OWN_INDEX.search(listed.stdout))


def _complaint_of(command) -> str | None:
    """Run a command; the end of its output if it failed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]}: {error}"
    if done.returncode == 0:
        return None
    return "\n".join((done.stderr or done.stdout).strip().splitlines()[-LINES:])


def drop(target: Path, patterns) -> None:
    """Delete files and folders that match."""
    for pattern in patterns:
        for path in [*target.glob(pattern)]:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
