"""Python programs with their own packages, such as a server of OpenStack, for a host's Python.

The packages are isolated from labbook's and from the host's.
"""

import hashlib
import platform
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from labbook.lab.cache.build import build_once
from labbook.lab.cache.push import push
from labbook.lab.remote import software, wheels
from labbook.lab.remote.on_host import probe_python
from labbook.lab.ssh.transfer import say

# Not imported at run time, but a large part of the files.
UNUSED = ("bin", "share", *(f"**/{name}" for name in ("test", "tests", "locale/*", "*.c", "*.h", "*.pyx")))
COMPILE = ("-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash")
COMPILE_SECONDS = 600
NO_TOOLS = "none"   # no group of pipeline/setup/needs.yml: what is fetched needs no Debian package for that


@dataclass(frozen=True)
class PythonPackages:
    """`requirements` as pip takes them; `pins`: a file with version and hashes of every package,
    dependencies included, which lib/pins.py makes; `built`: packages without wheels, in plain Python,
    which are built here."""

    name: str
    version: str
    requirements: tuple[str, ...]
    pins: Path
    built: tuple[str, ...] = ()

    tools = NO_TOOLS    # pip or uv came with labbook

    def __str__(self):
        return f"Python packages of {self.name} {self.version}"

    @property
    def folder(self) -> str:
        """Name of the folder in the cache and on hosts, for this machine's Python."""
        return self._folder("{}.{}".format(*sys.version_info), platform.machine())

    def fetch(self, python: dict | None = None) -> Path:
        """The cached folder for a Python as probe_python describes it, or for this machine's."""
        python = python or probe_python.look(())
        wheels.check_kind(python.get("host", "this machine"), python)
        version, machine = "{}.{}".format(*python["version"]), python["machine"]
        return build_once(self._folder(version, machine),
                          lambda folder: self._fill(folder, version, machine))

    def python_on(self, host) -> str:
        """Shell words of the host's Python with these packages and no others; copies them there."""
        python = {**software.ask(host, host.python), "host": host.name}
        folder = push(host, self.fetch(python))
        return (f"env PYTHONPATH={shlex.quote(str(folder))} PYTHONNOUSERSITE=1 "
                f"{shlex.quote(python['python'])} -S")

    def _folder(self, python, machine) -> str:
        recipe = self.pins.read_bytes() + repr((self.requirements, UNUSED)).encode()
        digest = hashlib.sha256(recipe).hexdigest()[:8]
        return f"{self.name}-{self.version}-python{python}-{machine}-{digest}"

    def _fill(self, folder, python, machine):
        say(f"fetching {self} (for Python {python}, {machine})")
        wheels.into(folder, self.pins, python, machine, f"{self.name} {self.version} "
                    f"(Python {python} on {machine})", self.built)
        wheels.drop(folder, UNUSED)
        if "{}.{}".format(*sys.version_info) == python:  # bytecode for other versions is made on the host
            subprocess.run([sys.executable, *COMPILE, "-s", folder, folder], timeout=COMPILE_SECONDS,
                           capture_output=True, stdin=subprocess.DEVNULL)
