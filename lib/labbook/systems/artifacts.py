"""Software of the papers' time from Maven: fetched once, safe to kill, brought to hosts."""

import os
import shlex
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from labbook.errors import LabError
from labbook.lab import transfer
from labbook.lab.shelf import COMPLETE, is_whole, made

__all__ = ["COMPLETE", "Artifact", "bring", "fetch", "is_whole", "made"]

FETCH_SECONDS = 900
SAME_SIZES = f"""import json, os, sys
os.chdir(sys.argv[1])
sys.exit(any(os.path.getsize(f) != n for f, n in json.load(open("{COMPLETE}")).items()))"""

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

    @classmethod
    def parse(cls, coordinates: str) -> "Artifact":
        """From `group:name:version`."""
        return cls(*coordinates.split(":"))

    def __str__(self):
        return f"{self.group}:{self.name}:{self.version}"


def fetch(artifact: Artifact) -> Path:
    """The folder with the artifact's jars, fetched if it is not there; LabError when that fails."""
    return made(f"{artifact.name}-{artifact.version}", lambda folder: _maven(artifact, folder))


def bring(host, folder: Path) -> PurePosixPath:
    """Where `folder`, from `fetch` or `made`, is on the host: copied if it is not there.

    A user's own host may have it ready below its root folder, and must if no software may be
    copied there: LabError.
    """
    kept, place = _places(host, folder)
    with transfer.alone(host, place):
        if _is_there(host, kept, folder, sizes=host.allow is not None):
            return kept
        if host.allow is not None and "software" not in host.allow:
            raise LabError(
                f"{host.name}: {kept} is not there or not whole, and nothing allows to copy it",
                remedy=f"Copy {folder} there, or add software to the host's `allow`")
        if not _is_there(host, place, folder):
            transfer.send(host, folder, place)
    return place


def _places(host, folder):
    """Where the host may have it ready, and where it is copied to."""
    if host.allow is None:
        return PurePosixPath(folder), host.root / "artifacts" / folder.name
    lab = host.root.parent
    return lab.parent / "artifacts" / folder.name, lab / "artifacts" / folder.name


def _is_there(host, place, folder, sizes=False) -> bool:
    """By the list of its files; with `sizes`, which whoever copied it may have got wrong, by these."""
    mark = shlex.quote(str(place / COMPLETE))
    seen = host.run(f"cat {mark}", check=False)
    if seen.exit_code or seen.stdout.strip() != (folder / COMPLETE).read_text().strip():
        return False
    check = shlex.join([host.python, "-c", SAME_SIZES, str(place)])
    return not sizes or host.run(check, check=False).exit_code == 0


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
