"""Software of the papers' time from Maven: fetched once, safe to kill."""

import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.cache.build import COMPLETE, is_whole, build_once
from labbook.lab.cache.push import push

__all__ = ["COMPLETE", "Artifact", "build_once", "fetch", "is_whole", "push"]

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
    """A Maven artifact; fetching it brings what it depends on at run time too."""

    group: str
    name: str
    version: str

    tools = "artifacts"  # what fetches it: a group of pipeline/needs.yml

    @classmethod
    def parse(cls, coordinates: str) -> "Artifact":
        """From `group:name:version`."""
        return cls(*coordinates.split(":"))

    @property
    def folder(self) -> str:
        """Its name in the cache and on hosts."""
        return f"{self.name}-{self.version}"

    def fetch(self) -> Path:
        return fetch(self)

    def __str__(self):
        return f"{self.group}:{self.name}:{self.version}"


def fetch(artifact: Artifact) -> Path:
    """The folder with the artifact's jars, fetched if it is not there; LabError when that fails."""
    return build_once(artifact.folder, lambda folder: _maven(artifact, folder))


def _maven(artifact: Artifact, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="labbook-fetch-") as scratch:
        (Path(scratch) / "pom.xml").write_text(_POM.format(artifact))
        status, said = _bounded(["mvn", "-q", "-B", "-C", "dependency:copy-dependencies",
                                 f"-DoutputDirectory={folder}", "-DincludeScope=runtime"], scratch)
    if status != 0 or not list(folder.glob(f"{artifact.name}-{artifact.version}*.jar")):
        raise LabError(f"cannot fetch {artifact}: mvn ended with {status}\n{_tail(said)}",
                       remedy="See that this machine reaches a Maven repository, then try again")


def _bounded(command: list[str], folder: str) -> tuple[int | str, str]:
    """Exit status and output; the whole process group ends when the time is up or on Ctrl-C."""
    try:
        process = subprocess.Popen(command, cwd=folder, start_new_session=True, text=True,
                                   stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except FileNotFoundError:
        raise LabError("there is no command mvn here", remedy="apt install maven") from None
    try:
        said, _ = process.communicate(timeout=FETCH_SECONDS)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        return f"no result in {FETCH_SECONDS} s", _end_group(process)
    finally:
        if process.returncode is None:
            _end_group(process)


def _end_group(process) -> str:
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def _tail(said: str, lines=20) -> str:
    return "\n".join(said.strip().splitlines()[-lines:])
