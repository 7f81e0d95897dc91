"""Fetch software from Maven, once, and check it by its hashes; a fetch that is killed leaves nothing behind."""

import hashlib
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from labbook.errors import LabError
from labbook.lab.cache.build import build_once

FETCH_SECONDS = 900
HASHES = Path(__file__).with_name("jars.sha256")    # of all shared systems' jars, as sha256sum prints them

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
    """A Maven artifact, which is fetched together with its run-time dependencies.

    `hashes`: a file with a line `SHA-256  FOLDER/JAR` for each of these jars; there are to be no others.
    """

    group: str
    name: str
    version: str
    hashes: Path = HASHES

    tools = "artifacts"  # the tools that fetch it: a group in pipeline/setup/needs.yml

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

    def is_sound(self, folder: Path) -> bool:
        """Whether this folder's jars are those that are pinned."""
        return _seen(folder) == pinned(self)

    def __str__(self):
        return f"{self.group}:{self.name}:{self.version}"


def fetch(artifact: Artifact) -> Path:
    """The folder with the artifact's jars, fetched if it is missing or not as pinned.

    LabError when that fails, and when a fetched jar has no hash or another one: none is kept then.
    """
    def fill(folder):
        _maven(artifact, folder)
        _require_pinned(artifact, _digests(folder))

    return build_once(artifact.folder, fill, artifact.is_sound)


def pinned(artifact) -> dict[str, str]:
    """{file name: SHA-256} of the jars that the artifact consists of."""
    lines = (line.split(maxsplit=1) for line in artifact.hashes.read_text().splitlines())
    return {Path(path).name: digest for digest, path in lines if path.split("/")[0] == artifact.folder}


def _digests(folder: Path) -> dict[str, str]:
    """{file name: SHA-256} of the jars in a folder."""
    found = {}
    for jar in sorted(folder.glob("*.jar")):
        with jar.open("rb") as file:
            found[jar.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


_known: dict[tuple, dict] = {}


def _seen(folder: Path) -> dict[str, str]:
    """As `_digests`, read again by a process only when a file has changed."""
    stats = [(jar, jar.stat()) for jar in sorted(folder.glob("*.jar"))]
    state = tuple((str(jar), stat.st_size, stat.st_mtime_ns, stat.st_ino) for jar, stat in stats)
    if state not in _known:
        _known[state] = _digests(folder)
    return _known[state]


def _require_pinned(artifact, found: dict) -> None:
    wanted = pinned(artifact)
    if not wanted:
        lines = "\n".join(f"{digest}  {artifact.folder}/{name}" for name, digest in found.items())
        raise LabError(f"{artifact} has no hashes in {artifact.hashes}", remedy=(
            f"If you trust what came just now, add these lines to it, then try again:\n{lines}"))
    wrong = [f"{name} has SHA-256 {found[name]}, pinned is {digest}" for name, digest in wanted.items()
             if found.get(name, digest) != digest]
    wrong += [f"{name} did not come" for name in wanted.keys() - found.keys()]
    wrong += [f"{name} is not pinned" for name in found.keys() - wanted.keys()]
    if wrong:
        raise LabError(f"{artifact}: what came is not what {artifact.hashes.name} has:\n  " + "\n  ".join(wrong),
                       remedy="Nothing of it was kept. Find out who changed it; Maven's own copies are below "
                       "~/.m2/repository, and are to be deleted before another try")


def _maven(artifact: Artifact, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
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
