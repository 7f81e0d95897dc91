"""Python programs with packages of their own, for the Python that a host has.

Such as a server of OpenStack: its packages are kept apart from labbook's, and from the host's.
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

# What nothing imports at run time but what is a good part of the files.
UNUSED = ("bin", "share", *(f"**/{name}" for name in ("test", "tests", "locale/*", "*.c", "*.h", "*.pyx")))
COMPILE = ("-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash")
COMPILE_SECONDS = 600


@dataclass(frozen=True)
class PythonPackages:
    """`requirements` in pip's words; `pins`: a file with the version of each package, theirs too;
    `built`: those that are no wheels there but plain Python, made here."""

    name: str
    version: str
    requirements: tuple[str, ...]
    pins: Path
    built: tuple[str, ...] = ()

    tools = "none"  # no group of pipeline/needs.yml: what fetches them came with labbook

    def __str__(self):
        return f"Python packages of {self.name} {self.version}"

    @property
    def folder(self) -> str:
        """Its name in the cache and on hosts, for this machine's Python."""
        return self._folder("{}.{}".format(*sys.version_info), platform.machine())

    def fetch(self, seen: dict | None = None) -> Path:
        """The cached folder for the Python that `look` has seen on a host, or for this one."""
        seen = seen or probe_python.look(())
        wheels.check_kind(seen.get("host", "this machine"), seen)
        python, machine = "{}.{}".format(*seen["version"]), seen["machine"]
        return build_once(self._folder(python, machine), lambda folder: self._fill(folder, python, machine))

    def python_on(self, host) -> str:
        """The command line, for a shell, of the host's Python with these packages and no others."""
        seen = {**software.ask(host, host.python), "host": host.name}
        folder = push(host, self.fetch(seen))
        return (f"env PYTHONPATH={shlex.quote(str(folder))} PYTHONNOUSERSITE=1 "
                f"{shlex.quote(seen['python'])} -S")

    def _folder(self, python, machine) -> str:
        recipe = self.pins.read_bytes() + repr((self.requirements, UNUSED)).encode()
        digest = hashlib.sha256(recipe).hexdigest()[:8]
        return f"{self.name}-{self.version}-python{python}-{machine}-{digest}"

    def _fill(self, folder, python, machine):
        say(f"fetching {self} (for Python {python}, {machine})")
        wheels.into(folder, self.requirements, self.pins, python, machine, f"{self.name} {self.version} "
                    f"(Python {python} on {machine})", self.built)
        wheels.drop(folder, UNUSED)
        if "{}.{}".format(*sys.version_info) == python:  # another one's bytecode its host makes
            subprocess.run([sys.executable, *COMPILE, "-s", folder, folder], timeout=COMPILE_SECONDS,
                           capture_output=True, stdin=subprocess.DEVNULL)
