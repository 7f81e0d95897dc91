"""Fetch software from Maven, once; a fetch that is killed leaves nothing behind."""

import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.cache.build import build_once

FETCH_SECONDS = 900

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>labbook</groupId><artifactId>fetch</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>{0.group}</groupId><artifactId>{0.name}</artifactId><version>{0.version}</version>
  </dependency></dependencies>
</project>
"""


@dataclass(frozen=True)
class Artifact:
    """A Maven artifact, which is fetched together with its run-time dependencies."""

    group: str
    name: str
    version: str

    tools = "artifacts"  # the tools that fetch it: a group in pipeline/needs.yml

    @classmethod
    def parse(cls, coordinates: str) -> "Artifact":
        """Parse `group:name:version`."""
        return cls(*coordinates.split(":"))

    @property
    def folder(self) -> str:
        """The name of its folder in the cache and on hosts."""
        return f"{self.name}-{self.version}"

    def fetch(self) -> Path:
        return fetch(self)

    def __str__(self):
        return f"{self.group}:{self.name}:{self.version}"


def fetch(artifact: Artifact) -> Path:
    """The folder with the artifact's jars, fetched if it is missing; LabError when that fails."""
    return build_once(artifact.folder, lambda folder: _maven(artifact, folder))


def _maven(artifact: Artifact, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="labbook-fetch-") as scratch:
        (Path(scratch) / "pom.xml").write_text(_POM.format(artifact))
        status, output = _bounded(["mvn", "-q", "-B", "-C", "dependency:copy-dependencies",
                                 f"-DoutputDirectory={folder}", "-DincludeScope=runtime"], scratch)
    if status != 0 or not list(folder.glob(f"{artifact.name}-{artifact.version}*.jar")):
        raise LabError(f"cannot fetch {artifact}: mvn ended with {status}\n{_tail(output)}",
                       remedy="See that this machine reaches a Maven repository, then try again")


def _bounded(command: list[str], folder: str) -> tuple[int | str, str]:
    """Exit status and output of a command. After FETCH_SECONDS, and on Ctrl-C, its whole process
    group is killed."""
    try:
        process = subprocess.Popen(command, cwd=folder, start_new_session=True, text=True,
                                   stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        raise LabError("there is no command mvn here", remedy="apt install maven") from None
    try:
        output, _ = process.communicate(timeout=FETCH_SECONDS)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return f"no result in {FETCH_SECONDS} s", _end_group(process)
    finally:
        if process.returncode is None:
            _end_group(process)


def _end_group(process) -> str:
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def _tail(output: str, lines=20) -> str:
    return "\n".join(output.strip().splitlines()[-lines:])
