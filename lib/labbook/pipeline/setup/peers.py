"""What benchmarks/ runs beside labbook and Debian does not have: programs in Python, each with packages of its
own, Cassandra as its project ships it (for cassandra-stress), and latte."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from labbook import paths
from labbook.errors import LabbookError, LabError
from labbook.lab.cache.build import build_once, is_whole
from labbook.lab.python_packages import COMPILE, PythonPackages
from labbook.lab.remote import wheels
from labbook.lab.ssh.transfer import say

PINS = Path(__file__).with_name("peer_pins")
FETCH_SECONDS, BUILD_SECONDS = 900, 3000
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")     # Maven's colours, also where nobody asked for them


class Program(PythonPackages):
    """A program in Python with all that its wheels bring: Ansible has plugins in a folder `test`."""

    @property
    def folder(self) -> str:
        return f"peer-{super().folder}"

    def fetch(self, python: dict | None = None) -> Path:
        """Its folder in the cache, for this machine's Python; `python` is that of a host of this machine."""
        return build_once(self.folder, self._fill_whole)

    def _fill_whole(self, folder: Path) -> None:
        say(f"fetching {self}")
        version, machine = "{}.{}".format(*sys.version_info), platform.machine()
        wheels.into(folder, self.pins, version, machine, str(self), self.built)
        subprocess.run([sys.executable, *COMPILE, "-s", folder, folder], timeout=BUILD_SECONDS, capture_output=True,
                       stdin=subprocess.DEVNULL)


@dataclass(frozen=True)
class Tarball:
    """A .tar.gz of Maven's repository with its SHA-256; unpacked, without the folder at its top."""

    group: str
    name: str
    version: str
    sha256: str

    tools = "artifacts"     # the tools that fetch it: a group in needs.yml

    def __str__(self):
        return f"{self.group}:{self.name}:{self.version}:tar.gz:bin"

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}-bin"

    def fetch(self) -> Path:
        """Its folder in the cache. LabError when it cannot be fetched, or is not as pinned."""
        return build_once(self.folder, self._fill)

    def _fill(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            # lax as to Maven's own checksums, which a mirror may lack: the pinned one below is what counts
            run(["mvn", "-q", "-B", "-c", "dependency:copy", f"-DoutputDirectory={scratch}", "-Dartifact="
                 f"{self.group}:{self.name}:{self.version}:tar.gz:bin"], FETCH_SECONDS, f"cannot fetch {self}")
            file, = Path(scratch).glob("*.tar.gz")
            with file.open("rb") as packed:
                found = hashlib.file_digest(packed, "sha256").hexdigest()
            if found != self.sha256:
                raise LabError(f"{self}: what came has SHA-256 {found}, pinned is {self.sha256}")
            with tarfile.open(file) as tar:
                tar.extractall(scratch, filter="data")
            top, = (path for path in Path(scratch).iterdir() if path.is_dir())
            shutil.copytree(top, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("javadoc", "doc"))


@dataclass(frozen=True)
class Crate:
    """A program in Rust, built once by the machine's own cargo from the versions that it was released with."""

    name: str
    version: str
    program: str

    tools = "none"

    def __str__(self):
        return f"{self.name} {self.version}"

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}-crate"

    def fetch(self) -> Path:
        """Its folder in the cache, with bin/PROGRAM. LabError without a cargo that can build it."""
        return build_once(self.folder, self._fill)

    def why_missing(self) -> str:
        """Why it is not in the cache; "" when it is."""
        if is_whole(paths.cache_dir() / "artifacts" / self.folder):
            return ""
        return "it has not been built" if shutil.which("cargo") else "there is no cargo here, which builds it"

    def _fill(self, folder: Path) -> None:
        if not shutil.which("cargo"):
            raise LabError(f"{self}: {self.why_missing()}", remedy="Install Rust, 1.75 or newer")
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            run(["cargo", "install", "--quiet", "--locked", "--version", self.version, "--root", folder, self.name],
                BUILD_SECONDS, f"cannot build {self}", CARGO_TARGET_DIR=scratch)


def run(command, seconds: float, failure: str, **environment) -> None:
    """Run a command; LabError with `failure` and the end of its output when it fails or takes too long."""
    try:
        done = subprocess.run(list(map(str, command)), text=True, capture_output=True, timeout=seconds,
                              stdin=subprocess.DEVNULL, env={**os.environ, **environment})
        problem = _ESCAPES.sub("", f"{done.stdout}\n{done.stderr}").strip()[-2000:] if done.returncode else None
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    if problem is not None:
        raise LabError(f"{failure}: {problem}")


# One version for every Python each, or a second run of lib/pins.py could not keep them.
ANSIBLE = Program("ansible-core", "2.19", ("ansible-core<2.20",), PINS / "ansible.txt")
CCM = Program("ccm", "3.1.5", ("ccm",), PINS / "ccm.txt", built=("ccm",))
DVC = Program("dvc", "3.67", ("dvc", "networkx<3.7"), PINS / "dvc.txt", built=("antlr4-python3-runtime",))
SNAKEMAKE = Program("snakemake", "9.27", ("snakemake",), PINS / "snakemake.txt", built=("connection-pool",))
PYTHON = (ANSIBLE, CCM, DVC, SNAKEMAKE)
CASSANDRA = Tarball("org.apache.cassandra", "apache-cassandra", "3.11.4",
                    "5d598e23c3ffc4db0301ec2b313061e3208fae0f9763d4b47888237dd9069987")
LATTE = Crate("latte-cli", "0.29.0", "latte")
NEEDED, WHERE_IT_GOES = (*PYTHON, CASSANDRA), (LATTE,)


def why_not(peer) -> str:
    """Fetch a peer: "", or why it cannot be had here, as one line."""
    try:
        peer.fetch()
    except LabbookError as error:
        return " ".join(str(error).split())
    return ""


def command_line(packages: PythonPackages, *arguments: str) -> tuple[list[str], dict]:
    """(command line, what its environment has besides ours) of a module of a peer in Python."""
    return [sys.executable, "-S", *arguments], {"PYTHONPATH": str(packages.fetch()), "PYTHONNOUSERSITE": "1"}
